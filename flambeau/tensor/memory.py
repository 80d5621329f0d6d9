"""A tensor's memory: numbers, arrays, copies, dtypes and devices; what other libraries see of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from .tensor import Tensor, wrap

__all__ = ["is_complex", "is_floating_point", "is_tensor"]


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def is_complex(input: Tensor) -> bool:
    """Whether the tensor's elements are complex numbers."""
    return input._array.dtype.kind == "c"


def is_floating_point(input: Tensor) -> bool:
    """Whether the tensor's elements are floating point numbers."""
    return input._array.dtype.kind in "fV"


def detach(self: Tensor) -> Tensor:
    """The same memory without history; writes to either are counted for both.

    >>> import flambeau as torch
    >>> torch.ones(1, requires_grad=True).detach().requires_grad
    False
    """
    out: Tensor = wrap(self._array)
    if self._counter is None:
        self._counter = [0]
    out._counter = self._counter
    return out


def item(self: Tensor) -> Any:
    """The only element, as a Python number.

    Raises:
        RuntimeError: there is not exactly one element.
    """
    a = self._array
    if a.size != 1:
        raise RuntimeError(f"a Tensor with {a.size} elements cannot be converted to Scalar")
    if a.dtype == dtypes.BFLOAT16:
        a = dtypes.widen(a)
    return a.item()


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The array of this tensor: the same memory.

    Raises:
        RuntimeError: the tensor requires grad.
        TypeError: NumPy has no such dtype (bfloat16).
    """
    if self._requires_grad and not force:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._array.dtype == dtypes.BFLOAT16:
        raise TypeError("Got unsupported ScalarType BFloat16")
    return self._array


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    a = numpy(self)
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return a.copy() if copy else a


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    return dtypes.widen(self._array).tolist()


METHODS: dict[str, Any] = {
    "detach": detach, "item": item, "numpy": numpy, "tolist": tolist, "__array__": __array__,
    "is_complex": is_complex, "is_floating_point": is_floating_point,
}
