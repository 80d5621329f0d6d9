"""`functorch.experimental.control_flow`: the former place of `torch.cond` and of `map`."""

from __future__ import annotations

from ..._higher_order_ops import cond, map

__all__ = ["cond", "map"]
