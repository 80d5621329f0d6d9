"""Products, statistics, differences, comparisons of arrays, histograms, complex parts."""

from __future__ import annotations

import builtins
import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as torch

from . import _dtypes, _dtypes_impl, _util
from ._normalizations import (
    ArrayLike,
    DTypeLike,
    OptionalArray,
    OutArray,
    Unsupported,
    maybe_copy_to,
    normalize_array_like,
    normalize_casting,
    normalize_dtype,
    normalize_seq_array_like,
    normalizer,
    wrap_tensors,
)
from .joining import joined


def _common(a: Any, b: Any) -> tuple[Any, Any]:
    dtype = _dtypes_impl.result_type_impl(a, b)
    return _util.cast_if_needed(a, dtype), _util.cast_if_needed(b, dtype)


def _product(compute: Callable[[Any, Any], Any], a: Any, b: Any, half: bool = True) -> Any:
    """A product in a dtype that sums exactly: booleans as bytes, 16 bits as 32."""
    a, b = _common(a, b)
    wider = {torch.bool: torch.uint8, **({torch.float16: torch.float32} if half else {})}.get(a.dtype)
    return compute(a, b) if wider is None else compute(a.to(wider), b.to(wider)).to(a.dtype)


@normalizer
def dot(a: ArrayLike, b: ArrayLike, out: OutArray = None) -> Any:
    """The product of vectors and matrices; of numbers the elementwise one."""
    return _product(operator.mul if a.ndim == 0 or b.ndim == 0 else torch.matmul, a, b, half=False)


@normalizer
def inner(a: ArrayLike, b: ArrayLike, /) -> Any:
    """Sums of products over the last dimensions."""
    return _product(torch.inner, a, b)


@normalizer
def outer(a: ArrayLike, b: ArrayLike, out: OutArray = None) -> Any:
    """All products of two vectors' elements."""
    return torch.outer(a, b)


@normalizer
def vdot(a: ArrayLike, b: ArrayLike, /) -> Any:
    """The sum of products of all elements; the first ones are conjugated.

    >>> import flambeau._numpy as np
    >>> np.vdot([[1, 2]], [3, 4])
    torch.ndarray(11)
    """
    return _product(torch.vdot, a.flatten(), b.flatten())


@normalizer
def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2) -> Any:
    """Sums of products over dimensions."""
    if isinstance(axes, (list, tuple)):
        axes = [[each] if isinstance(each, int) else each for each in axes]
    return torch.tensordot(*_common(a, b), dims=axes)


@normalizer
def kron(a: ArrayLike, b: ArrayLike) -> Any:
    """The Kronecker product."""
    return torch.kron(a, b)


@normalizer
def cross(a: ArrayLike, b: ArrayLike, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Any:
    """The cross product of vectors of two or three elements.

    Raises:
        ValueError: they have other numbers of elements.
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _common(torch.moveaxis(a, _util.normalize_axis_index(axisa, a.ndim), -1),
                   torch.moveaxis(b, _util.normalize_axis_index(axisb, b.ndim), -1))
    lengths = a.shape[-1], b.shape[-1]
    if not {2, 3}.issuperset(lengths):
        raise ValueError("incompatible dimensions for cross product\n(dimension must be 2 or 3)")
    a0, a1, b0, b1 = a[..., 0], a[..., 1], b[..., 0], b[..., 1]
    third = a0 * b1 - a1 * b0
    if lengths == (2, 2):
        return third
    if lengths[0] == 2:
        first, second = a1 * b[..., 2], -a0 * b[..., 2]
    elif lengths[1] == 2:
        first, second = -a[..., 2] * b1, a[..., 2] * b0
    else:
        first, second = a1 * b[..., 2] - a[..., 2] * b1, a[..., 2] * b0 - a0 * b[..., 2]
    return torch.moveaxis(torch.stack((first, second, third), -1), -1,
                          _util.normalize_axis_index(axisc, third.ndim + 1))


@contextlib.contextmanager
def _contraction_order(optimize: Any) -> Iterator[None]:
    """The strategy by which products of several operands are ordered."""
    settings = torch.backends.opt_einsum
    if not settings.is_available():
        yield
        return
    strategy, enabled = settings.strategy, settings.enabled
    try:
        if optimize is False:
            settings.enabled = False
        settings.strategy = "auto" if optimize is True else optimize
        yield
    finally:
        settings.strategy, settings.enabled = strategy, enabled


def einsum(*operands: Any, out: Any = None, dtype: Any = None, order: str = "K", casting: Any = "safe",
           optimize: Any = False) -> Any:
    """Sums of products in Einstein's notation.

    >>> import flambeau._numpy as np
    >>> np.einsum("ij,j->i", [[1, 2], [3, 4]], [1, 1])
    torch.ndarray([3, 7])
    """
    dtype, casting = normalize_dtype(dtype), normalize_casting(casting)
    if out is not None and not hasattr(out, "tensor"):
        raise TypeError("'out' must be an array")
    if order != "K":
        raise NotImplementedError("'order' parameter is not supported.")
    by_lists = not isinstance(operands[0], str)
    given = operands[:-1][::2] if by_lists and len(operands) % 2 else operands[::2] if by_lists else operands[1:]
    tensors: Any = [normalize_array_like(x) for x in given]
    dtype = _dtypes_impl.result_type_impl(*tensors) if dtype is None else dtype
    wider = {torch.float16: torch.float32, **dict.fromkeys((torch.uint8, torch.int8, torch.int16, torch.int32),
                                                          torch.int64)}
    tensors = _util.typecast_tensors(tensors, wider.get(dtype, dtype), casting)
    with _contraction_order(optimize):
        if by_lists:
            pairs = [x for pair in zip(tensors, operands[1::2], strict=False) for x in pair]
            result = torch.einsum(*pairs, *(operands[-1:] if len(operands) % 2 else ()))
        else:
            result = torch.einsum(operands[0], *tensors)
    return wrap_tensors(maybe_copy_to(out, result))


def _observations(x: Any, y: Any, rowvar: bool) -> Any:
    if y is None:
        return x

    def rows(each: Any) -> Any:
        each = each.reshape((1,) * (2 - each.ndim) + tuple(each.shape)) if each.ndim < 2 else each
        return each.mT if not rowvar and each.shape[0] != 1 else each

    return joined((rows(x), rows(y)), 0)


def _as_single(compute: Callable[[Any], Any], x: Any, dtype: Any) -> Any:
    """A statistic, of 16 bits computed in 32."""
    half = x.dtype == torch.float16
    result = compute(_util.cast_if_needed(x, torch.float32 if half else dtype))
    return result.to(torch.float16) if half else result


@normalizer
def corrcoef(x: ArrayLike, y: OptionalArray = None, rowvar: bool = True, bias: Any = None, ddof: Any = None, *,
             dtype: DTypeLike = None) -> Any:
    """Correlation coefficients."""
    if bias is not None or ddof is not None:
        raise NotImplementedError("corrcoef: bias and ddof are not supported")
    return _as_single(torch.corrcoef, _observations(x, y, rowvar), dtype)


@normalizer
def cov(m: ArrayLike, y: OptionalArray = None, rowvar: bool = True, bias: Any = False, ddof: Any = None,
        fweights: OptionalArray = None, aweights: OptionalArray = None, *, dtype: DTypeLike = None) -> Any:
    """Covariances."""
    correction = (1 if bias == 0 else 0) if ddof is None else ddof
    return _as_single(lambda x: torch.cov(x, correction=correction, aweights=aweights, fweights=fweights),
                      _observations(m, y, rowvar), dtype)


def _sliding(a: Any, v: Any, mode: str) -> Any:
    a, v = _common(a, v)
    if mode == "same" and v.shape[0] % 2 == 0:
        raise NotImplementedError("mode='same' and even-length weights")
    padding = v.shape[0] - 1 if mode == "full" else mode
    return torch.nn.functional.conv1d(a[None], v[None, None], padding=padding)[0]


@normalizer
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full") -> Any:
    """The convolution of two vectors.

    >>> import flambeau._numpy as np
    >>> np.convolve([1, 2], [1, 1])
    torch.ndarray([1, 3, 2])
    """
    if a.shape[0] < v.shape[0]:
        a, v = v, a
    return _sliding(a, torch.flip(v, (0,)), mode)


@normalizer
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid") -> Any:
    """The cross-correlation of two vectors."""
    return _sliding(a, torch.conj_physical(v), mode)


@normalizer
def isclose(a: ArrayLike, b: ArrayLike, rtol: float = 1.0e-5, atol: float = 1.0e-8, equal_nan: bool = False) -> Any:
    """Which elements are equal up to tolerances."""
    return torch.isclose(*_common(a, b), rtol=rtol, atol=atol, equal_nan=equal_nan)


@normalizer
def allclose(a: ArrayLike, b: ArrayLike, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Any:
    """Whether all elements are equal up to tolerances."""
    return torch.allclose(*_common(a, b), rtol=rtol, atol=atol, equal_nan=equal_nan)


def _equal(a: Any, b: Any, equal_nan: bool = False) -> Any:
    if a.shape != b.shape:
        return False
    same = a == b
    return ((same | (torch.isnan(a) & torch.isnan(b))) if equal_nan else same).all().item()


@normalizer
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Any:
    """Whether shapes and elements are equal."""
    return _equal(a1, a2, equal_nan)


@normalizer
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Any:
    """Whether elements are equal, in one shape."""
    try:
        return _equal(*torch.broadcast_tensors(a1, a2))
    except RuntimeError:
        return False


@normalizer
def nan_to_num(x: ArrayLike, copy: Unsupported = True, nan: float = 0.0, posinf: Any = None,
               neginf: Any = None) -> Any:
    """Numbers in place of NaN and infinities."""
    if not x.is_complex():
        return torch.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)
    real, imaginary = (torch.nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in (x.real, x.imag))
    return real + 1j * imaginary


@normalizer
def clip(a: ArrayLike, min: OptionalArray = None, max: OptionalArray = None, out: OutArray = None) -> Any:
    """Elements between two bounds."""
    return torch.clamp(a, min, max)


@normalizer
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: OptionalArray = None,
         append: OptionalArray = None) -> Any:
    """Differences of neighbours, n times."""
    axis = _util.normalize_axis_index(axis, a.ndim)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return a

    def beside(x: Any) -> Any:
        if x is None:
            return None
        sizes = [*a.shape]
        sizes[axis] = x.shape[axis] if x.ndim else 1
        return torch.broadcast_to(x, sizes)

    return torch.diff(a, n, axis, prepend=beside(prepend), append=beside(append))


@normalizer
def angle(z: ArrayLike, deg: bool = False) -> Any:
    """The phase."""
    result = torch.angle(z)
    return torch.rad2deg(result) if deg else result


@normalizer
def sinc(x: ArrayLike) -> Any:
    """sin(pi x) / (pi x)."""
    return torch.sinc(x)


@normalizer
def i0(x: ArrayLike) -> Any:
    """The modified Bessel function of order 0."""
    return torch.special.i0(x)


@normalizer
def round(a: ArrayLike, decimals: int = 0, out: OutArray = None) -> Any:
    """The nearest numbers of so many decimals."""
    if a.is_complex():
        return torch.complex(torch.round(a.real, decimals=decimals), torch.round(a.imag, decimals=decimals))
    return torch.round(a, decimals=decimals) if a.is_floating_point() else a


@normalizer
def real_if_close(a: ArrayLike, tol: float = 100) -> Any:
    """The real parts if all imaginary ones are small: below `tol` machine epsilons."""
    if not a.is_complex():
        return a
    bound = tol * torch.finfo(a.dtype).eps if tol > 1 else tol
    return a.real if (torch.abs(a.imag) < bound).all() else a


@normalizer
def real(a: ArrayLike) -> Any:
    """The real parts."""
    return torch.real(a)


@normalizer
def imag(a: ArrayLike) -> Any:
    """The imaginary parts; zeros of real numbers."""
    return a.imag if a.is_complex() else torch.zeros_like(a)


@normalizer
def iscomplex(x: ArrayLike) -> Any:
    """Which elements have an imaginary part."""
    return x.imag != 0 if x.is_complex() else torch.zeros_like(x, dtype=torch.bool)


@normalizer
def isreal(x: ArrayLike) -> Any:
    """Which elements have none."""
    return x.imag == 0 if x.is_complex() else torch.ones_like(x, dtype=torch.bool)


@normalizer
def iscomplexobj(x: ArrayLike) -> Any:
    """Whether the dtype is complex."""
    return torch.is_complex(x)


@normalizer
def isrealobj(x: ArrayLike) -> Any:
    """Whether the dtype is real."""
    return not torch.is_complex(x)


@normalizer
def isneginf(x: ArrayLike, out: OutArray = None) -> Any:
    """Which elements are minus infinity."""
    return torch.isneginf(x)


@normalizer
def isposinf(x: ArrayLike, out: OutArray = None) -> Any:
    """Which elements are infinity."""
    return torch.isposinf(x)


def isscalar(a: Any) -> bool:
    """Whether it is one number.

    >>> isscalar(3), isscalar([1, 2])
    (True, False)
    """
    try:
        return bool(normalize_array_like(a).numel() == 1)
    except Exception:
        return False


@normalizer
def common_type(*tensors: ArrayLike) -> Any:
    """The dtype of floating point that holds all; integers count as float64."""
    order = [torch.float16, torch.float32, torch.float64]
    precisions = {**{dtype: at for at, dtype in enumerate(order)}, torch.complex64: 1, torch.complex128: 2}
    found = []
    for each in tensors:
        inexact = each.is_floating_point() or each.is_complex()
        if inexact and each.dtype not in precisions:
            raise TypeError("can't get common type for non-numeric array")
        found.append(precisions[each.dtype] if inexact else 2)
    at = builtins.max(found, default=0)
    if builtins.any(each.is_complex() for each in tensors):
        return [None, torch.complex64, torch.complex128][at]
    return order[at]


@normalizer
def min_scalar_type(a: ArrayLike, /) -> Any:
    """The smallest dtype of its kind that holds a number; the dtype of several.

    >>> import flambeau._numpy as np
    >>> np.min_scalar_type(300)
    dtype("int16")
    """
    dtype = a.dtype
    if a.numel() > 1 or dtype == torch.bool:
        return _dtypes.DType(dtype)
    if dtype.is_complex:
        limits = torch.finfo(torch.float32)
        fits = dtype == torch.complex64 or builtins.all(limits.min <= x <= limits.max for x in (a.real, a.imag))
        return _dtypes.DType(torch.complex64 if fits else torch.complex128)
    limits_of: Any
    if dtype.is_floating_point:
        kinds, limits_of = [torch.float16, torch.float32, torch.float64], torch.finfo
    else:
        kinds, limits_of = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64], torch.iinfo
    for each in kinds:
        limits = limits_of(each)
        if limits.min <= a <= limits.max:
            return _dtypes.DType(each)
    return _dtypes.DType(dtype)


@normalizer
def histogram(a: ArrayLike, bins: ArrayLike = 10, range: Any = None, normed: Any = None,
              weights: OptionalArray = None, density: Any = None) -> Any:
    """How many elements are in each bin, and the bins' edges."""
    if normed is not None:
        raise ValueError("normed argument is deprecated, use density= instead")
    if weights is not None and weights.is_complex():
        raise NotImplementedError("complex weights histogram.")
    integers = not (a.is_floating_point() or a.is_complex())
    counts = weights is None or not weights.is_floating_point()
    a = a.double() if integers else a
    weights = None if weights is None else _util.cast_if_needed(weights, a.dtype)
    if isinstance(bins, torch.Tensor):
        bins = _util.cast_if_needed(bins, a.dtype) if bins.ndim else operator.index(bins)
    bounds = {} if range is None else {"range": range}
    heights, edges = torch.histogram(a, bins, weight=weights, density=bool(density), **bounds)
    return heights.long() if counts and not density else heights, edges.long() if integers else edges


def _histogramdd(sample: Any, bins: Any, bounds: Any, normed: Any, weights: Any, density: Any) -> Any:
    if normed is not None:
        raise ValueError("normed argument is deprecated, use density= instead")
    points = normalize_array_like(sample)
    points = torch.atleast_2d(points.T if isinstance(sample, (list, tuple)) else points)
    points = points if points.is_floating_point() or points.is_complex() else points.double()
    dtypes = None
    if not (isinstance(bins, int) or builtins.all(isinstance(each, int) for each in bins)):
        edges = normalize_seq_array_like(bins)
        dtypes = [each.dtype for each in edges]
        bins = [_util.cast_if_needed(each, points.dtype) for each in edges]
    if bounds is not None:
        bounds = bounds.flatten().tolist()
    if weights is not None:  # the operator takes weights only with bounds
        lowest, highest = points.aminmax(dim=0)
        bounds = tuple(torch.stack((lowest, highest), 1).flatten().tolist())
        weights = _util.cast_if_needed(weights, points.dtype)
    heights, edges = torch.histogramdd(points, bins, bounds, density=bool(density), weight=weights)
    if dtypes is not None:
        edges = [_util.cast_if_needed(each, dtype) for each, dtype in zip(edges, dtypes, strict=True)]
    return heights, edges


@normalizer
def histogramdd(sample: Any, bins: Any = 10, range: OptionalArray = None, normed: Any = None,
                weights: OptionalArray = None, density: Any = None) -> Any:
    """How many points are in each box, and the boxes' edges."""
    return _histogramdd(sample, bins, range, normed, weights, density)


@normalizer
def histogram2d(x: Any, y: Any, bins: Any = 10, range: OptionalArray = None, normed: Any = None,
                weights: OptionalArray = None, density: Any = None) -> Any:
    """How many points of a plane are in each rectangle, and their edges."""
    if len(x) != len(y):
        raise ValueError("x and y must have the same length.")
    if builtins.hasattr(bins, "__len__") and len(bins) not in (1, 2):
        bins = [bins, bins]
    heights, edges = _histogramdd((x, y), bins, range, normed, weights, density)
    return heights, edges[0], edges[1]


around = round_ = round

__all__ = ["allclose", "angle", "around", "array_equal", "array_equiv", "clip", "common_type", "convolve", "corrcoef",
           "correlate", "cov", "cross", "diff", "dot", "einsum", "histogram", "histogram2d", "histogramdd", "i0",
           "imag", "inner", "isclose", "iscomplex", "iscomplexobj", "isneginf", "isposinf", "isreal", "isrealobj",
           "isscalar", "kron", "min_scalar_type", "nan_to_num", "outer", "real", "real_if_close", "round", "round_",
           "sinc", "tensordot", "vdot"]
