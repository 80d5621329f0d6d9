"""`torch.utils.hooks`: handles of hooks, and hooks that files may leave out without a word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.nodes.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook as one that need not be saved: then saving a tensor that has it does not warn."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f
