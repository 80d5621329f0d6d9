"""`torch.utils.hooks`: the handle of a hook, the mark of hooks that are not serialized, and module hooks."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..engine.nodes.hooks import RemovableHandle
from ..nn.modules.base.hooks import BackwardHook

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a hook as not serializable: saving a tensor with this hook does not warn."""
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of the hooks of a tensor that are not saved with it, unless they are marked.

    >>> import flambeau as torch
    >>> torch.utils.hooks.warn_if_has_hooks(torch.ones(1, requires_grad=True))
    """
    for hook in (tensor._backward_hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                          "decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                          stacklevel=2)
