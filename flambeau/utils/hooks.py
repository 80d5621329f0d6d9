"""`torch.utils.hooks`: the handle that takes a hook away again."""

from __future__ import annotations

from ..autograd.node import RemovableHandle

__all__ = ["RemovableHandle"]
