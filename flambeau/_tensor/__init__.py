"""The tensor: storage, views, in-place writes, operator dispatch, and the functions and methods of tensors."""

from __future__ import annotations

from ..engine.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from . import functions, methods
from .dispatch import batching_rules, vmap_gradients  # noqa: F401
from .overriding import dispatched, dispatched_factories, dispatched_out, overload_calls  # noqa: F401
from .parameter import Parameter
from .tensor import Tensor

__all__ = ["Parameter", "Tensor", "enable_grad", "functions", "is_grad_enabled", "methods", "no_grad",
           "set_grad_enabled"]
