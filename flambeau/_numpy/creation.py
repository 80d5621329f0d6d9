"""New arrays: filled ones, ranges, grids, diagonals, windows."""

from __future__ import annotations

import builtins
from typing import Any

import flambeau as torch

from . import _dtypes_impl, _util
from ._normalizations import (
    ArrayLike,
    DTypeLike,
    OptionalArrayOrScalar,
    Unsupported,
    normalizer,
)


def _float() -> torch.dtype:
    return _dtypes_impl.default_dtypes().float_dtype


def _filled(name: str) -> Any:
    def function(shape: Any, dtype: DTypeLike = None, order: Unsupported = "C", *, like: Unsupported = None) -> Any:
        return getattr(torch, name)(shape, dtype=dtype or _float())

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"A new array: `torch.{name}`, of the default dtype of floating point."
    return normalizer(function)


def _filled_like(name: str) -> Any:
    def function(a: ArrayLike, dtype: DTypeLike = None, order: Unsupported = "K", subok: Unsupported = False,
                 shape: Any = None) -> Any:
        result = getattr(torch, name)(a, dtype=dtype)
        return result if shape is None else result.reshape(shape)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"A new array of another one's shape and dtype: `torch.{name}`."
    return normalizer(function)


empty, ones, zeros = _filled("empty"), _filled("ones"), _filled("zeros")
ones_like, zeros_like = _filled_like("ones_like"), _filled_like("zeros_like")


@normalizer
def empty_like(prototype: ArrayLike, dtype: DTypeLike = None, order: Unsupported = "K", subok: Unsupported = False,
               shape: Any = None) -> Any:
    """A new array of another one's shape and dtype, with any elements."""
    result = torch.empty_like(prototype, dtype=dtype)
    return result if shape is None else result.reshape(shape)


@normalizer
def full(shape: Any, fill_value: ArrayLike, dtype: DTypeLike = None, order: Unsupported = "C", *,
         like: Unsupported = None) -> Any:
    """A new array of equal elements.

    >>> import flambeau._numpy as np
    >>> np.full(2, 7)
    torch.ndarray([7, 7])
    """
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    return torch.full(sizes, fill_value, dtype=dtype or fill_value.dtype)


@normalizer
def full_like(a: ArrayLike, fill_value: Any, dtype: DTypeLike = None, order: Unsupported = "K",
              subok: Unsupported = False, shape: Any = None) -> Any:
    """A new array of equal elements, of another one's shape and dtype."""
    result = torch.full_like(a, fill_value, dtype=dtype)
    return result if shape is None else result.reshape(shape)


@normalizer
def copy(a: ArrayLike, order: Unsupported = "K", subok: Unsupported = False) -> Any:
    """A copy."""
    return a.clone()


@normalizer
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: DTypeLike = None, axis: int = 0) -> Any:
    """Numbers of equal distances.

    Raises:
        NotImplementedError: other options than the default ones.
    """
    if axis != 0 or retstep or not endpoint:
        raise NotImplementedError("linspace: axis, retstep and endpoint=False are not supported")
    return torch.linspace(start, stop, num, dtype=dtype or _float())


@normalizer
def geomspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, dtype: DTypeLike = None,
              axis: int = 0) -> Any:
    """Numbers of equal ratios."""
    if axis != 0 or not endpoint:
        raise NotImplementedError("geomspace: axis and endpoint=False are not supported")
    base = torch.pow(stop / start, 1.0 / (num - 1))
    scale = torch.log(base)
    return torch.logspace(torch.log(start) / scale, torch.log(stop) / scale, num, base=base)


@normalizer
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0,
             dtype: DTypeLike = None, axis: int = 0) -> Any:
    """Powers of a base whose exponents have equal distances."""
    if axis != 0 or not endpoint:
        raise NotImplementedError("logspace: axis and endpoint=False are not supported")
    return torch.logspace(start, stop, num, base=base, dtype=dtype)


@normalizer
def arange(start: OptionalArrayOrScalar = None, stop: OptionalArrayOrScalar = None, step: OptionalArrayOrScalar = 1,
           dtype: DTypeLike = None, *, like: Unsupported = None) -> Any:
    """Numbers of a distance, less than `stop`.

    Raises:
        ZeroDivisionError: the step is 0.
        TypeError: there is no end.

    >>> import flambeau._numpy as np
    >>> np.arange(3)
    torch.ndarray([0, 1, 2])
    """
    if step == 0:
        raise ZeroDivisionError("arange: the step must not be 0")
    if stop is None:
        if start is None:
            raise TypeError("arange() requires stop to be specified.")
        start, stop = 0, start
    start = 0 if start is None else start
    bounds = (start, stop, step)
    if dtype is None:
        defaults = _dtypes_impl.default_dtypes()
        dtype = (defaults.float_dtype if builtins.any(map(_dtypes_impl.is_float_or_fp_tensor, bounds))
                 else defaults.int_dtype)
    if builtins.any(map(_dtypes_impl.is_complex_or_complex_tensor, bounds)):
        raise NotImplementedError("arange: complex numbers are not supported")
    if (step > 0 and start > stop) or (step < 0 and start < stop):
        return torch.empty(0, dtype=dtype)
    result = torch.arange(start, stop, step, dtype=torch.float64 if dtype.is_complex else dtype)
    return _util.cast_if_needed(result, dtype)


@normalizer
def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = None, order: Unsupported = "C", *,
        like: Unsupported = None) -> Any:
    """Ones on the k-th diagonal of N x M zeros."""
    result = torch.zeros(N, N if M is None else M, dtype=dtype or _float())
    result.diagonal(k).fill_(1)
    return result


@normalizer
def identity(n: int, dtype: DTypeLike = None, *, like: Unsupported = None) -> Any:
    """The identity matrix."""
    return torch.eye(n, dtype=dtype)


@normalizer
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike = None, *, like: Unsupported = None) -> Any:
    """Ones at and below the k-th diagonal."""
    return torch.tril(torch.ones((N, N if M is None else M), dtype=dtype), diagonal=k)


@normalizer
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Any:
    """The Vandermonde matrix."""
    return torch.vander(x, N, increasing)


@normalizer
def meshgrid(*xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Grids of coordinates.

    Raises:
        ValueError: `indexing` is neither "xy" nor "ij".

    >>> import flambeau._numpy as np
    >>> np.meshgrid([1, 2], [3])
    [torch.ndarray([[1, 2]]), torch.ndarray([[3, 3]])]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError("Valid values for `indexing` are 'xy' and 'ij'.")
    places = [*range(len(xi))]
    if indexing == "xy" and len(xi) > 1:
        places[:2] = 1, 0
    grids = [x.reshape([-1 if at == place else 1 for at in range(len(xi))])
             for x, place in zip(xi, places, strict=True)]
    if not sparse:
        grids = [*torch.broadcast_tensors(*grids)]
    return [x.clone() for x in grids] if copy else grids


@normalizer
def indices(dimensions: Any, dtype: DTypeLike = int, sparse: bool = False) -> Any:
    """The positions along each dimension of a grid.

    >>> import flambeau._numpy as np
    >>> np.indices((1, 2))[1]
    torch.ndarray([[0, 1]])
    """
    sizes = tuple(dimensions)
    dtype = torch.int64 if dtype is int else dtype
    lines = tuple(torch.arange(size, dtype=dtype).reshape([-1 if at == place else 1 for at in range(len(sizes))])
                  for place, size in enumerate(sizes))
    if sparse:
        return lines
    result = torch.empty((len(sizes), *sizes), dtype=dtype)
    for place, line in enumerate(lines):
        result[place] = line
    return result


def _window(name: str, torch_name: str) -> Any:
    def function(M: int) -> Any:
        return getattr(torch, torch_name)(M, periodic=False, dtype=_float())

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"A symmetric window: `torch.{torch_name}`."
    return normalizer(function)


hamming, hanning = _window("hamming", "hamming_window"), _window("hanning", "hann_window")
blackman, bartlett = _window("blackman", "blackman_window"), _window("bartlett", "bartlett_window")


@normalizer
def kaiser(M: int, beta: float) -> Any:
    """Kaiser's window."""
    return torch.kaiser_window(M, beta=beta, periodic=False, dtype=_float())


__all__ = ["arange", "bartlett", "blackman", "copy", "empty", "empty_like", "eye", "full",
           "full_like", "geomspace", "hamming", "hanning", "identity", "indices", "kaiser", "linspace", "logspace",
           "meshgrid", "ones", "ones_like", "tri", "vander", "zeros", "zeros_like"]
