"""`torch.autograd.functional`: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from .jacobians import hessian, jacobian
from .private_names import _as_tuple as _as_tuple
from .private_names import _construct_standard_basis_for as _construct_standard_basis_for
from .private_names import _grad_postprocess as _grad_postprocess
from .private_names import _tuple_postprocess as _tuple_postprocess
from .products import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
