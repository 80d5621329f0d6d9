"""`gradient`: finite differences of second order, on equal or unequal spacings, and `vander`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...devices import contiguous_format
from ...dtypes import int64
from ...engine.tensor_interface import layer
from ...shapes import wrap_dim
from ..tensor import Tensor

__all__ = ["gradient", "vander"]

_NAME = "torch.gradient expected"


def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> tuple[Tensor, ...]:
    """The partial derivatives of a function given by its values, by central differences.

    Args:
        input: the values.
        spacing: the distance of the values (1 by default), one for each dimension, or their coordinates, a 1-d tensor
            for each dimension.
        dim: the dimensions, all by default.
        edge_order: the order, 1 or 2, of the differences at both ends.

    Returns:
        One tensor of the input's shape for each dimension.

    Raises:
        RuntimeError: an argument does not fit the others.

    >>> import flambeau as torch
    >>> torch.gradient(torch.tensor([1., 2., 4., 8.]))
    (tensor([1.0000, 1.5000, 3.0000, 4.0000]),)
    """
    ndim = input._array.ndim
    if isinstance(spacing, Tensor):
        if spacing._array.ndim:
            raise TypeError("gradient() received an invalid combination of arguments - got (Tensor, spacing=Tensor)")
        spacing = spacing.item()
    several = isinstance(spacing, (tuple, list))
    dims = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if several:
        if dims is None and len(spacing) != ndim:
            raise RuntimeError(f"{_NAME} spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() "
                               f"= {ndim}', since dim argument was not given, but got a list of length {len(spacing)}")
        if dims is not None and len(spacing) != len(dims):
            raise RuntimeError(f"{_NAME} spacing to be unspecified, a scalar or it's spacing and dim arguments to have "
                               f"the same length, but got a spacing argument of length {len(spacing)} and a dim "
                               f"argument of length {len(dims)}.")
        for x in spacing:
            if isinstance(x, Tensor) and x._array.ndim != 1:
                raise RuntimeError(f"{_NAME} each element of spacing to have one dimension, but got an element with "
                                   f"{x._array.ndim} dimensions!")
    if input.dtype.name == "uint8":
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = list(range(ndim)) if dims is None else [wrap_dim(d, ndim) for d in dims]
    for i, d in enumerate(dims):
        if d in dims[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    for d in dims:
        if input._array.shape[d] < edge_order + 1:
            raise RuntimeError(f"{_NAME} each dimension size to be at least edge_order+1")
    spacings = spacing if several else [1 if spacing is None else spacing] * len(dims)
    return tuple((_by_coordinates if isinstance(h, Tensor) else _by_distance)(input, d, h, edge_order)
                 for d, h in zip(dims, spacings, strict=True))


def _part(x: Tensor, d: int, start: int, end: int | None) -> Tensor:
    return layer.functions.slice(x, dim=d, start=start, end=end, step=1)


def _by_distance(x: Tensor, d: int, h: Any, edge_order: int) -> Tensor:
    size, fn = x._array.shape[d], layer.functions
    if not isinstance(h, complex):
        h = float(h)

    def at(start: int, end: int | None = None) -> Tensor:
        return _part(x, d, start, end)

    def times(part: Tensor, factor: float) -> Tensor:
        result: Tensor = fn._mul_scalar(part, other=factor)
        return result

    def by_distance(difference: Tensor) -> Tensor:
        result: Tensor = fn._div_scalar(difference, other=h)
        return result

    inner = fn._div_scalar(by_distance(at(2) - at(0, -2)), other=2)
    if edge_order == 1:
        first, last = by_distance(at(1, 2) - at(0, 1)), by_distance(at(-1) - at(-2, -1))
    else:
        first = by_distance(times(at(0, 1), -1.5) + times(at(1, 2), 2) - times(at(2, 3), 0.5))
        last = by_distance(times(at(size - 3, size - 2), 0.5) - times(at(-2, -1), 2) + times(at(-1), 1.5))
    return fn.cat([first, inner, last], d)


def _by_coordinates(x: Tensor, d: int, coordinates: Tensor, edge_order: int) -> Tensor:
    fn = layer.functions
    size = x._array.shape[d]
    shape = [1] * x._array.ndim
    shape[d] = -1
    steps = fn.diff(coordinates)

    def at(start: int, end: int | None = None) -> Tensor:
        return _part(x, d, start, end)

    def weighted(weights: Sequence[Tensor], *parts: Tensor) -> Tensor:
        total = fn.reshape(weights[0], shape) * parts[0]
        for weight, part in zip(weights[1:], parts[1:], strict=True):
            total = total + fn.reshape(weight, shape) * part
        return total

    left, right = steps[:-1], steps[1:]
    inner = weighted((-right / (left * (left + right)), (right - left) / (left * right),
                      left / (right * (left + right))), at(0, -2), at(1, -1), at(2))
    if edge_order == 1:
        first, last = (at(1, 2) - at(0, 1)) / steps[0], (at(-1) - at(-2, -1)) / steps[-1]
    else:
        a, b = steps[:1], steps[1:2]
        first = weighted((-(2 * a + b) / (a * (a + b)), (a + b) / (a * b), -a / (b * (a + b))),
                         at(0, 1), at(1, 2), at(2, 3))
        a, b = steps[-2:-1], steps[-1:]
        last = weighted((b / (a * (a + b)), -(a + b) / (a * b), (a + 2 * b) / (b * (a + b))),
                        at(size - 3, size - 2), at(-2, -1), at(-1))
    return fn.cat([first, inner, last], d)


def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix, x[i]ᴺ⁻¹⁻ʲ, or x[i]ʲ if `increasing`.

    Args:
        x: (n,).
        N: the number of columns, n by default.

    Raises:
        RuntimeError: `x` is not 1-d, or `N` is negative.

    >>> import flambeau as torch
    >>> torch.vander(torch.tensor([2, 3]), 3)
    tensor([[4, 2, 1],
            [9, 3, 1]])
    """
    fn = layer.functions
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x._array.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    dtype = x.dtype if x.dtype.is_floating_point or x.dtype.is_complex else int64
    batched = fn.expand(fn.unsqueeze(x.detach(), 1), (len(x), count))
    matrix = fn.empty_like(batched, dtype=dtype, memory_format=contiguous_format)
    if count:
        matrix.select(1, 0).fill_(1)
    if count > 1:
        columns = fn.expand(fn.unsqueeze(x, 1), (len(x), count - 1)).to(dtype)
        matrix[:, 1:].copy_(fn.cumprod(columns, 1))  # PyTorch's is of `matrix`, which its derivative finds modified
    return matrix if increasing else fn.flip(matrix, (1,))
