"""`torch._guards`: the mode of fake tensors of a trace."""

from __future__ import annotations

from typing import Any

from ..utils._pytree import tree_leaves
from .fake_tensor import FakeTensor, FakeTensorMode, active_fake_mode


class Source:
    """Where a value of a trace comes from."""


class TracingContext:
    """The state of a trace.

    Args:
        fake_mode: its mode of fake tensors.
    """

    def __init__(self, fake_mode: FakeTensorMode | None = None) -> None:
        self.fake_mode = fake_mode

    @staticmethod
    def try_get() -> TracingContext | None:
        """The context of the running trace; None outside of one."""
        mode = active_fake_mode()
        return None if mode is None else TracingContext(mode)


def detect_fake_mode(inputs: Any = None) -> FakeTensorMode | None:
    """The mode of fake tensors that is active, or that of the fake tensors in a value.

    Raises:
        AssertionError: there are several.

    >>> import flambeau as torch
    >>> from flambeau._subclasses.guards import detect_fake_mode
    >>> detect_fake_mode([torch.ones(1)]) is None
    True
    """
    found = [mode for mode in (active_fake_mode(),) if mode is not None]
    found += [x.fake_mode for x in tree_leaves(inputs) if isinstance(x, FakeTensor)]
    if any(mode is not found[0] for mode in found):
        raise AssertionError("fake mode from several sources does not match")
    return found[0] if found else None


__all__ = ["Source", "TracingContext", "active_fake_mode", "detect_fake_mode"]
