"""Functions of functions, under `torch.func`'s names: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`."""

from __future__ import annotations

from .derivatives import grad, grad_and_value, jvp, vjp
from .jacobians import hessian, jacfwd, jacrev

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp"]
