"""`torch.autograd.functional`: products with Jacobians and Hessians, and whole ones."""

from __future__ import annotations

from .jacobians import hessian, jacobian
from .products import hvp, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
