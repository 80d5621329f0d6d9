"""The elements of tensors as flat arrays, which messages read and write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor.tensor import wrap
from ..backends.bit_views import BitView
from ..devices import strided
from ..engine.grad_mode import no_grad


def array_of(tensor: Any) -> np.ndarray:
    """The array of a dense tensor on the CPU.

    Raises:
        RuntimeError: the tensor is sparse, or has no elements in memory.
    """
    array = tensor._array
    if isinstance(array, np.ndarray) and not isinstance(array, BitView):
        return array
    if tensor.layout is not strided:
        raise RuntimeError("only supports dense tensors")
    if tensor.device.type != "cpu":
        raise RuntimeError(f"No backend type associated with device type {tensor.device.type}")
    return tensor.resolve_conj().resolve_neg()._array


def read(tensor: Any) -> np.ndarray:
    """The elements of a tensor, in order; not a copy if the tensor is contiguous."""
    return np.ascontiguousarray(array_of(tensor)).reshape(-1)


class Target:
    """A tensor that a message is written to.

    Attributes:
        flat: its elements in order, in its own memory if it is contiguous.
    """

    __slots__ = ("flat", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor, self.flat = tensor, read(tensor)

    def store(self) -> None:
        """Write the elements back where `flat` is a copy, and count the write."""
        array = self.tensor._array
        if isinstance(array, BitView):
            with no_grad():
                self.tensor.copy_(wrap(self.flat.reshape(self.tensor.shape)))
            return
        if not np.may_share_memory(array, self.flat):
            array[...] = self.flat.reshape(array.shape)
        self.tensor._bump_version()


def concatenated(tensors: Sequence[Any]) -> np.ndarray:
    """The elements of several tensors, one after another, in a new array."""
    return np.concatenate([read(tensor) for tensor in tensors])


def scatter_into(flat: np.ndarray, tensors: Sequence[Any]) -> None:
    """Write consecutive elements to several tensors."""
    start = 0
    for tensor in tensors:
        target = Target(tensor)
        target.flat[...] = flat[start:start + target.flat.size]
        target.store()
        start += target.flat.size


def divide(flat: np.ndarray, n: int) -> None:
    """Divide elements in place, in float32 where they are narrower."""
    if flat.dtype in (dtypes.BFLOAT16, dtypes.HALF):
        flat[...] = dtypes.cast(dtypes.widen(flat) / n, flat.dtype)
    else:
        np.divide(flat, n, out=flat)


__all__ = ["Target", "array_of", "concatenated", "divide", "read", "scatter_into"]
