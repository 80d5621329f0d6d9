"""`torch.utils.hooks`: the handle of a hook, and the mark of hooks that are not serialized."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.nodes.hooks import RemovableHandle

__all__ = ["RemovableHandle", "unserializable_hook"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook as not serializable: saving a tensor with this hook does not warn."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f
