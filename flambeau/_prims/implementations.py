"""What the operators of `torch.ops.prims` compute: each is a function of `torch`, or of few of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import flambeau as torch

from .. import _prims_common as utils

#: PyTorch's name -> the function here, below `torch`
_FUNCTIONS = {
    **{name: name for name in """
        abs acos acosh amax amin asin asinh atan atan2 atanh bitwise_and bitwise_not bitwise_or bitwise_xor ceil
        clone conj conj_physical cos cosh digamma empty_permuted empty_strided eq erf erfc exp exp2 expm1 floor fmax
        fmin fmod frexp gcd ge gt hypot igamma igammac imag isfinite le lgamma log log10 log1p log2 lt maximum
        minimum mul ne neg nextafter normal pow real reciprocal remainder reshape round rsqrt scalar_tensor
        sign signbit sin sinh sqrt sub tan tanh trunc where
    """.split()},  # noqa: SIM905
    **{name: f"special.{function}" for name, function in {
        "bessel_i0": "i0", "bessel_i0e": "i0e", "bessel_i1": "i1", "bessel_i1e": "i1e", "bessel_j0": "bessel_j0",
        "bessel_j1": "bessel_j1", "erf_inv": "erfinv", "erfcx": "erfcx", "ndtri": "ndtri", "zeta": "zeta",
        "spherical_bessel_j0": "spherical_bessel_j0"}.items()},
    "add": "add", "fill": "fill", "shift_left": "bitwise_left_shift", "shift_right_arithmetic": "bitwise_right_shift",
    "as_strided": "as_strided", "as_strided_scatter": "as_strided_scatter"}

def div(a: Any, b: Any) -> Any:
    """The quotient; of integers rounded toward zero.

    >>> import flambeau as torch
    >>> torch._prims.div(torch.tensor([7]), torch.tensor([2]))
    tensor([3])
    """
    whole = utils.is_integer_dtype(utils.get_dtype(a)) and utils.is_integer_dtype(utils.get_dtype(b))
    return torch.div(a, b, rounding_mode="trunc" if whole else None)


def cbrt(a: torch.Tensor) -> torch.Tensor:
    """The cube root."""
    return torch.copysign(torch.pow(torch.abs(a), 1 / 3), a)


def broadcast_in_dim(a: torch.Tensor, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> torch.Tensor:
    """A view of another shape: dimension `i` becomes `broadcast_dimensions[i]`, other dimensions repeat.

    Raises:
        AssertionError: the dimensions do not ascend, or there are not as many as those of `a`.
        RuntimeError: a size is neither 1 nor that of the shape.

    >>> import flambeau as torch
    >>> torch._prims.broadcast_in_dim(torch.tensor([1., 2.]), (2, 3), (0,))
    tensor([[1., 1., 1.],
            [2., 2., 2.]])
    """
    dims = list(broadcast_dimensions)
    if len(dims) != a.ndim or len(shape) < a.ndim:
        raise AssertionError(f"broadcast_dimensions {dims} do not name the {a.ndim} dimensions of the input in a shape "
                             f"of {len(shape)}")
    if any(not 0 <= d < len(shape) for d in dims) or any(d >= e for d, e in itertools.pairwise(dims)):
        raise AssertionError(f"broadcast_dimensions {dims} must ascend strictly below {len(shape)}")
    for i, d in enumerate(dims):
        if a.shape[i] not in (1, shape[d]):
            raise RuntimeError(f"{a.shape[i]} must be broadcastable to {shape[d]}")
    for d in range(len(shape)):
        if d not in dims:
            a = a.unsqueeze(d)
    return a.expand(tuple(shape))


def _merged(shape: Sequence[int], start: int, end: int) -> tuple[int, ...]:
    """A shape with the dimensions from `start` to `end`, both included, as one."""
    utils.validate_idx(max(1, len(shape)), start)
    utils.validate_idx(max(1, len(shape)), end)
    if end < start:
        raise ValueError(f"Attempting to collapse but end, {end}, is less than start, {start}!")
    if not shape:
        return (1,)
    return (*shape[:start], utils.prod(shape[start:end + 1]), *shape[end + 1:])


def collapse_view(a: torch.Tensor, start: int, end: int) -> torch.Tensor:
    """A view in which the dimensions from `start` to `end`, both included, are one.

    Raises:
        RuntimeError: no view is.
    """
    shape = _merged(a.shape, start, end)
    try:
        return a.view(shape)
    except RuntimeError:
        raise RuntimeError("Attempting to view a collapsed tensor, but no such view exists!") from None


def collapse(a: torch.Tensor, start: int, end: int) -> torch.Tensor:
    """A copy in which the dimensions from `start` to `end`, both included, are one."""
    shape = _merged(a.shape, start, end)
    return a.new_empty(shape).copy_(a.reshape(shape))


def slice(a: torch.Tensor, start_indices: Sequence[int], limit_indices: Sequence[int],
          strides: Sequence[int] | None = None) -> torch.Tensor:
    """A view of the elements from `start_indices` to `limit_indices` in each dimension."""
    import builtins

    steps = (1,) * a.ndim if strides is None else strides
    return a[tuple(builtins.slice(*each) for each in zip(start_indices, limit_indices, steps, strict=True))]


def split_dim(a: torch.Tensor, dim: int, outer_length: int) -> torch.Tensor:
    """A view in which a dimension is two, the outer one of a size that is given.

    Raises:
        ValueError: the size is not a multiple of it.
    """
    utils.validate_idx(a.ndim, dim)
    inner, rest = divmod(a.shape[dim], outer_length)
    if rest:
        raise ValueError(f"Attempting to split dimension of length {a.shape[dim]}, but outer length of {outer_length} "
                         "divides it with a remainder!")
    return a.view(*a.shape[:dim], outer_length, inner, *a.shape[dim + 1:])


def squeeze(a: torch.Tensor, dimensions: Sequence[int]) -> torch.Tensor:
    """A view without some dimensions of size 1."""
    return torch.squeeze(a, tuple(dimensions))


def transpose(a: torch.Tensor, permutation: Sequence[int]) -> torch.Tensor:
    """A view with the dimensions in another order.

    Raises:
        ValueError: it is none of the dimensions.
    """
    if a.ndim != len(permutation):
        raise ValueError(f"Attempting to permute a tensor of rank {a.ndim}, but received a permutation of length "
                         f"{len(permutation)}!")
    if not utils.is_valid_permutation(a.ndim, permutation):
        raise ValueError(f"Received an invalid permutation, {list(permutation)}!")
    return a.permute(tuple(permutation))


def view_of(a: torch.Tensor) -> torch.Tensor:
    """A view of the whole tensor."""
    return a.view(a.shape)


def view_element_type(a: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The same memory as another dtype."""
    return a.view(dtype)


def cat(tensors: Sequence[torch.Tensor], dim: int) -> torch.Tensor:
    """Tensors joined along a dimension."""
    return torch.cat(tuple(tensors), dim)


def rev(a: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    """The elements in reverse order along dimensions."""
    return torch.flip(a, tuple(dims))


def convert_element_type(a: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A copy in a dtype."""
    return a.to(dtype, copy=True)


def device_put(a: torch.Tensor, device: Any, non_blocking: bool = False) -> torch.Tensor:
    """The tensor on a device."""
    return a.to(device, non_blocking=non_blocking)


def item(a: torch.Tensor) -> Any:
    """The number in a tensor of one element."""
    return a.item()


def _extremes(dtype: torch.dtype) -> tuple[Any, Any]:
    if dtype is torch.bool:
        return False, True
    if dtype.is_floating_point:
        return -float("inf"), float("inf")
    limits = torch.iinfo(dtype)
    return limits.min, limits.max


def maximum_value(dtype: torch.dtype) -> Any:
    """The greatest number of a dtype."""
    return _extremes(dtype)[1]


def minimum_value(dtype: torch.dtype) -> Any:
    """The least number of a dtype."""
    return _extremes(dtype)[0]


def copy_strided(a: torch.Tensor, stride: Sequence[int]) -> torch.Tensor:
    """A copy with other strides."""
    return torch.empty_strided(a.shape, stride, dtype=a.dtype, layout=a.layout, device=a.device).copy_(a)


def copy_to(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Write `b` into `a`."""
    return a.copy_(b)


def resize(a: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Give `a` another shape, in place."""
    return a.resize_(tuple(shape))


def _reduced(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduce(inp: torch.Tensor, dims: Sequence[int] | None, *, output_dtype: Any = None, **options: Any) -> Any:
        out = function(inp, tuple(range(inp.ndim)) if dims is None else tuple(dims), **options)
        return out if output_dtype is None else out.to(output_dtype)

    return reduce


def _prod(a: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    for dim in sorted(dims, reverse=True):
        a = torch.prod(a, dim, dtype=a.dtype)
    return a


def _xor(a: torch.Tensor, dims: Sequence[int]) -> torch.Tensor:
    for dim in sorted(dims, reverse=True):
        out = torch.zeros_like(a.select(dim, 0))
        for each in a.unbind(dim):
            out = torch.bitwise_xor(out, each)
        a = out
    return a


sum = _reduced(lambda a, dims: torch.sum(a, dims, dtype=a.dtype) if dims else a.clone())
prod, xor_sum = _reduced(_prod), _reduced(_xor)


def var(inp: torch.Tensor, dims: Sequence[int] | None, correction: float | None = 1, *,
        output_dtype: Any = None) -> torch.Tensor:
    """The variance over dimensions."""
    out = torch.var(inp, None if dims is None else tuple(dims), correction=1 if correction is None else correction)
    return out if output_dtype is None else out.to(output_dtype)


def iota(length: int, *, start: int, step: int, dtype: torch.dtype, device: Any, requires_grad: bool) -> torch.Tensor:
    """The integers `start`, `start + step`, ..."""
    return torch.arange(start, start + length * step, step, dtype=dtype, device=device, requires_grad=requires_grad)


def svd(A: torch.Tensor, *, full_matrices: bool) -> Any:
    """The singular value decomposition."""
    return tuple(torch.linalg.svd(A, full_matrices=full_matrices))


_HERE = """
    broadcast_in_dim cat cbrt collapse collapse_view convert_element_type copy_strided copy_to device_put div iota item
    maximum_value minimum_value prod resize rev slice split_dim squeeze sum svd transpose var view_element_type view_of
    xor_sum
"""

#: the names of the operators
NAMES = (*_FUNCTIONS, *_HERE.split())


def implementation(name: str) -> Callable[..., Any]:
    """What computes an operator."""
    if name in _FUNCTIONS:
        module, _, function = _FUNCTIONS[name].rpartition(".")
        found = getattr(getattr(torch, module) if module else torch, function)
    else:
        found = globals()[name]
    return found


__all__ = ["NAMES", "implementation"]
