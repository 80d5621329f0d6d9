"""`torch.autograd.forward_ad`: forward-mode differentiation with dual tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._tensor.dispatch.dual_tensors import (
    UnpackedDualTensor,
    _dual_levels,
    dual_level,
    enter_dual_level,
    exit_dual_level,
    make_dual,
    unpack_dual,
)
from ..modes import forward_mode


def __getattr__(name: str) -> Any:
    if name == "_current_level":  # -1 without an open level
        return len(_dual_levels) - 1
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")



@contextmanager
def _set_fwd_grad_enabled(mode: bool) -> Iterator[None]:
    """A block in which tangents are propagated, or not."""
    token = forward_mode.set(mode)
    try:
        yield
    finally:
        forward_mode.reset(token)


def _is_fwd_grad_enabled() -> bool:
    return forward_mode.get()


UnpackedDualTensor.__module__ = __name__

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]
