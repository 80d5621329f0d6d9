"""`torch.autograd.functional`: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from .jacobians import hessian, jacobian
from .products import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
