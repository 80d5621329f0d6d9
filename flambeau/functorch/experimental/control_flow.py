"""`functorch.experimental.control_flow`: the former place of `torch.cond` and of `map`."""

from __future__ import annotations

from ..._higher_order_ops import cond, map
from ..._higher_order_ops.map import _stack_pytree as _stack_pytree
from ..._higher_order_ops.map import _unstack_pytree as _unstack_pytree

__all__ = ["cond", "map"]
