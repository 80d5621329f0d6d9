"""Version counters: the number of writes to a tensor's memory, and of detachments in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..tensor_interface import layer

#: added to a version by `detach_()`: more than any number of writes
DETACHED = 1 << 32

WRITES = DETACHED - 1  # mask of the part of a version that counts writes

IS_DETACHED = ("Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not "
               "supported, please use out-of-place `.detach()` instead")


def was_detached(version: int, expected: int) -> bool:
    """Whether a tensor was detached in place since it had the expected version."""
    return version // DETACHED != expected // DETACHED


class DetachedCounter(list[Any]):
    """The version counter of a tensor that was detached in place, while other tensors or nodes count with it.

    Reads and writes go to the shared counter; versions that are read here are larger by DETACHED.
    """

    def __init__(self, shared: list[Any]) -> None:
        self.shared = shared

    def __len__(self) -> int:
        return len(self.shared)

    def __getitem__(self, key: Any) -> Any:
        return self.shared[0] + DETACHED if key == 0 else self.shared[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.shared[key] = value - DETACHED if key == 0 else value

    def append(self, value: Any) -> None:
        self.shared.append(value)


class _unsafe_preserve_version_counter:
    """A block whose writes to the tensors leave their versions unchanged: backward uses the new values.

    Args:
        tensor: one tensor or several.

    >>> import flambeau as torch
    >>> x = torch.zeros(2)
    >>> with torch.autograd._unsafe_preserve_version_counter(x):
    ...     x += 1
    >>> x._version
    0
    """

    def __init__(self, tensor: Any) -> None:
        tensors: Iterable[Any] = (tensor,) if isinstance(tensor, layer.tensor_class) else tensor
        self.tensors = tuple(tensors)
        self.prev_versions = tuple(x._version for x in self.tensors)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        for x, version in zip(self.tensors, self.prev_versions, strict=True):
            if x._counter is not None:
                x._counter[0] += version - x._version


__all__ = ["DETACHED", "IS_DETACHED", "WRITES", "DetachedCounter", "was_detached"]
