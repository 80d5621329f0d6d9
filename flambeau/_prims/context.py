"""`torch._prims.context`: a mode in which functions are replaced by those of `torch._refs`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import flambeau as torch

from .. import _refs
from .._prims_common import torch_function_passthrough
from .._tensor.overriding.function_modes import TorchFunctionMode

__all__ = ["TorchRefsMode"]


def _has_reference(name: str) -> bool:
    """Whether `torch._refs`, or a module in it, has a function of a name."""
    name = name.strip("_") if name.startswith("__") else name
    for prefix in ("linalg_", "special_", "fft_"):
        name = name.removeprefix(prefix)
    return bool(name) and any(getattr(module, name, None) is not None for module in (
        _refs, _refs.linalg, _refs.special, _refs.fft, _refs.nn.functional))


class TorchRefsMode(TorchFunctionMode):
    """A mode that runs the function of `torch._refs` in place of one of `torch`: here the same function.

    Args:
        strict: refuse functions that `torch._refs` lacks.
        should_fallback_fn: called with the mode, the function, its replacement and the arguments; whether the function
            itself runs.
        prims_mode_cls: a context manager around functions that are not replaced.

    Raises:
        RuntimeError: a function without replacement, if `strict`.

    >>> import flambeau as torch
    >>> from flambeau._prims.context import TorchRefsMode
    >>> with TorchRefsMode(strict=True):
    ...     torch.add(torch.ones(1), 2)
    tensor([3.])
    """

    def __init__(self, strict: bool = False, should_fallback_fn: Callable[..., bool] = lambda *_: False,
                 prims_mode_cls: type = nullcontext) -> None:
        super().__init__()
        self.strict, self.should_fallback_fn, self.prims_mode_cls = strict, should_fallback_fn, prims_mode_cls

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in torch_function_passthrough:
            with self.prims_mode_cls():
                return func(*args, **kwargs)
        replacement = func if _has_reference(getattr(func, "__name__", "")) else None
        if replacement is None and self.strict:
            raise RuntimeError(f"no _refs support for {torch.overrides.resolve_name(func)}")
        if replacement is not None and self.should_fallback_fn(self, func, replacement, args, kwargs):
            return func(*args, **kwargs)
        return func(*args, **kwargs)
