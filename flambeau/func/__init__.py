"""`torch.func`: function transforms (derivatives, Jacobians, `vmap`) and modules as functions."""

from __future__ import annotations

from .batches import vmap
from .debugging import debug_unwrap
from .derivatives import grad, grad_and_value, jvp, linearize, vjp
from .functional import functionalize
from .jacobians import hessian, jacfwd, jacrev
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .rearranging import rearrange

__all__ = ["debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev",
           "jvp", "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap"]
