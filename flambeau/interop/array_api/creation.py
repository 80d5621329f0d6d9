"""Creation of arrays."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor import Tensor, functions


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: builtins.bool | None = None) -> Tensor:
    """An array of an array, a Python scalar, nested sequences, or an object with the buffer protocol or DLPack.

    Args:
        copy: whether to copy; None: only where memory cannot be shared.

    Raises:
        ValueError: `copy` is False and the memory cannot be shared.

    >>> from flambeau.interop import array_api as xp
    >>> xp.asarray([[1, 2], [3, 4]], dtype=xp.float32)
    tensor([[1., 2.],
            [3., 4.]])
    """
    if not isinstance(obj, Tensor) and not hasattr(obj, "__dlpack__") and not hasattr(obj, "__array__"):
        if copy is False and isinstance(obj, (builtins.bool, int, float, complex, list, tuple)):
            raise ValueError("copy=False: the elements of Python objects are always copied")
        if isinstance(obj, (memoryview, bytearray, bytes)) or type(obj).__module__ == "array":
            obj = np.asarray(obj)
    if copy is False:
        source = functions.asarray(obj)
        if dtype is not None and source.dtype is not dtype:
            raise ValueError(f"copy=False: dtype {source.dtype} would have to be converted to {dtype}")
        return source
    return functions.asarray(obj, dtype=dtype, device=device, copy=copy)


def from_dlpack(x: object, /, *, device: Any = None, copy: builtins.bool | None = None) -> Tensor:
    """An array on the memory of another library's array, by DLPack.

    >>> import numpy as np
    >>> from flambeau.interop import array_api as xp
    >>> xp.from_dlpack(np.ones(2))
    tensor([1., 1.], dtype=flambeau.float64)
    """
    return functions.from_dlpack(x, device=device, copy=copy)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Numbers from `start` up to, not including, `stop`; empty if the step points away from `stop`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.arange(1, 7, 2)
    tensor([1, 3, 5])
    """
    if stop is None:
        start, stop = 0, start
    if (stop - start) * step <= 0:  # PyTorch refuses a step of the wrong sign
        if dtype is None and builtins.all(isinstance(each, int) for each in (start, stop, step)):
            dtype = dtypes.int64
        return functions.empty(0, dtype=dtype, device=device)
    return functions.arange(start, stop, step, dtype=dtype, device=device)


def linspace(start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None,
             endpoint: builtins.bool = True) -> Tensor:
    """`num` evenly spaced numbers from `start` to `stop`, which is left out if `endpoint` is False.

    >>> from flambeau.interop import array_api as xp
    >>> xp.linspace(0, 1, 4, endpoint=False)
    tensor([0.0000, 0.2500, 0.5000, 0.7500])
    """
    if dtype is None and (isinstance(start, complex) or isinstance(stop, complex)):
        dtype = dtypes.complex128 if dtypes.get_default_dtype() is dtypes.float64 else dtypes.complex64
    if endpoint:
        return functions.linspace(start, stop, num, dtype=dtype, device=device)
    return functions.linspace(start, stop, num + 1, dtype=dtype, device=device)[:num]


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None) -> Tensor:
    """Ones on the diagonal `k`, zeros elsewhere.

    >>> from flambeau.interop import array_api as xp
    >>> xp.eye(2, 3, k=1)
    tensor([[0., 1., 0.],
            [0., 0., 1.]])
    """
    columns = n_rows if n_cols is None else n_cols
    out = functions.zeros(n_rows, columns, dtype=dtype, device=device)
    if -n_rows < k < columns:
        out.diagonal(k).fill_(1)
    return out


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros.

    >>> from flambeau.interop import array_api as xp
    >>> xp.zeros(2)
    tensor([0., 0.])
    """
    return functions.zeros(_shape(shape), dtype=dtype, device=device)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones.

    >>> from flambeau.interop import array_api as xp
    >>> xp.ones((1, 2))
    tensor([[1., 1.]])
    """
    return functions.ones(_shape(shape), dtype=dtype, device=device)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of undefined elements.

    >>> from flambeau.interop import array_api as xp
    >>> xp.empty((2, 3)).shape
    flambeau.Size([2, 3])
    """
    return functions.empty(_shape(shape), dtype=dtype, device=device)


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of one value.

    >>> from flambeau.interop import array_api as xp
    >>> xp.full((2,), 7)
    tensor([7, 7])
    """
    return functions.full(_shape(shape), fill_value, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of zeros, with the shape and dtype of another one.

    >>> from flambeau.interop import array_api as xp
    >>> xp.zeros_like(xp.ones(2))
    tensor([0., 0.])
    """
    return functions.zeros_like(x, dtype=dtype, device=device)


def ones_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of ones, with the shape and dtype of another one.

    >>> from flambeau.interop import array_api as xp
    >>> xp.ones_like(xp.zeros(2))
    tensor([1., 1.])
    """
    return functions.ones_like(x, dtype=dtype, device=device)


def empty_like(x: Tensor, /, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of undefined elements, with the shape and dtype of another one.

    >>> from flambeau.interop import array_api as xp
    >>> xp.empty_like(xp.zeros(2)).dtype
    flambeau.float32
    """
    return functions.empty_like(x, dtype=dtype, device=device)


def full_like(x: Tensor, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """An array of one value, with the shape and dtype of another one.

    >>> from flambeau.interop import array_api as xp
    >>> xp.full_like(xp.zeros(2), 3)
    tensor([3., 3.])
    """
    return functions.full_like(x, fill_value, dtype=dtype, device=device)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid, one array for each one-dimensional argument.

    Args:
        indexing: "xy": the first argument runs along the second axis; "ij": along the first.

    >>> from flambeau.interop import array_api as xp
    >>> xp.meshgrid(xp.arange(2), xp.arange(3))[1].shape
    flambeau.Size([3, 2])
    """
    return tuple(functions.meshgrid(*arrays, indexing=indexing))


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, up to diagonal `k`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.tril(xp.ones((2, 2)))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return functions.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, from diagonal `k` on.

    >>> from flambeau.interop import array_api as xp
    >>> xp.triu(xp.ones((2, 2)))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return functions.triu(x, k)
