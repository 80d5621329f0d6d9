"""Decompositions of what makes tensors and what moves elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flambeau as torch

from ..._tensor import Tensor
from ...ops import aten
from .entries import decomposes


@decomposes("zeros_like")
def zeros_like(self: Tensor, **options: Any) -> Tensor:
    """A tensor of zeros of another's shape."""
    return torch.full_like(self, 0, **_given(options))


@decomposes("ones_like")
def ones_like(self: Tensor, **options: Any) -> Tensor:
    """A tensor of ones of another's shape."""
    return torch.full_like(self, 1, **_given(options))


@decomposes("zeros")
def zeros(size: Sequence[int], **options: Any) -> Tensor:
    """A tensor of zeros."""
    return torch.full(size, 0, **{"dtype": torch.get_default_dtype(), **_given(options)})


@decomposes("ones")
def ones(size: Sequence[int], **options: Any) -> Tensor:
    """A tensor of ones."""
    return torch.full(size, 1, **{"dtype": torch.get_default_dtype(), **_given(options)})


@decomposes("new_full")
def new_full(self: Tensor, size: Sequence[int], fill_value: Any, **options: Any) -> Tensor:
    """A tensor of one number, of another's dtype and device."""
    return torch.full(size, fill_value, **{"dtype": self.dtype, "device": self.device, **_given(options)})


@decomposes("new_zeros")
def new_zeros(self: Tensor, size: Sequence[int], **options: Any) -> Tensor:
    """A tensor of zeros, of another's dtype and device."""
    return new_full(self, size, False if (options.get("dtype") or self.dtype) is torch.bool else 0, **options)


@decomposes("new_ones")
def new_ones(self: Tensor, size: Sequence[int], **options: Any) -> Tensor:
    """A tensor of ones, of another's dtype and device."""
    return new_full(self, size, True if (options.get("dtype") or self.dtype) is torch.bool else 1, **options)


@decomposes("new_empty")
def new_empty(self: Tensor, size: Sequence[int], **options: Any) -> Tensor:
    """A tensor without values, of another's dtype and device."""
    return torch.empty(size, **{"dtype": self.dtype, "device": self.device, **_given(options)})


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


@decomposes("t", "t_copy")
def t(self: Tensor) -> Tensor:
    """The transpose of a matrix; what has fewer dimensions stays."""
    return self if self.dim() < 2 else torch.permute(self, [1, 0])


@decomposes("transpose.int")
def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged."""
    order = list(range(self.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return torch.permute(self, order)


@decomposes("stack")
def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors along a new dimension."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    return torch.cat([x.unsqueeze(dim) for x in tensors], dim % (tensors[0].dim() + 1))


@decomposes("unbind.int")
def unbind(self: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts of a tensor along a dimension."""
    return tuple(aten.select.int(self, dim, i) for i in range(self.size(dim)))


@decomposes("split.Tensor", "unsafe_split.Tensor")
def split(self: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of a size along a dimension; the last may be smaller."""
    length = self.size(dim)
    starts = range(0, length, split_size) if split_size and length else (0,)
    return tuple(self.narrow(dim, start, min(split_size, length - start)) for start in starts)


@decomposes("unsafe_split_with_sizes")
def split_with_sizes(self: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of given sizes along a dimension."""
    starts = [sum(split_sizes[:i]) for i in range(len(split_sizes))]
    return tuple(self.narrow(dim, start, size) for start, size in zip(starts, split_sizes, strict=True))


@decomposes("select_backward")
def select_backward(grad_output: Tensor, input_sizes: Sequence[int], dim: int, index: int) -> Tensor:
    """The gradient of `select`: zeros but for what was selected."""
    return torch.select_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, index)


@decomposes("slice_backward")
def slice_backward(grad_output: Tensor, input_sizes: Sequence[int], dim: int, start: int, end: int,
                   step: int) -> Tensor:
    """The gradient of `slice`: zeros but for what was taken."""
    return torch.slice_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, start, end, step)


@decomposes("diagonal_backward")
def diagonal_backward(grad_output: Tensor, input_sizes: Sequence[int], offset: int, dim1: int, dim2: int) -> Tensor:
    """The gradient of `diagonal`: zeros but for the diagonal."""
    return torch.diagonal_scatter(grad_output.new_zeros(input_sizes), grad_output, offset, dim1, dim2)


@decomposes("roll")
def roll(self: Tensor, shifts: Any, dims: Any = ()) -> Tensor:
    """Elements moved along dimensions, those at the end to the beginning."""
    moves = [shifts] if isinstance(shifts, int) else list(shifts)
    chosen = [dims] if isinstance(dims, int) else list(dims)
    if not chosen:
        return roll(self.flatten(), moves, [0]).view(self.shape)
    for shift, dim in zip(moves, chosen, strict=True):
        length = self.size(dim)
        if length:
            places = (torch.arange(length, device=self.device) - shift) % length
            self = torch.index_select(self, dim, places)
    return self.clone()


@decomposes("rot90")
def rot90(self: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """A rotation by quarter turns in the plane of two dimensions."""
    a, b = dims
    turns = k % 4
    if turns == 1:
        return torch.flip(self, [b]).transpose(a, b)
    if turns == 2:
        return torch.flip(self, [a, b])
    return torch.flip(self, [a]).transpose(a, b) if turns == 3 else self.clone()


@decomposes("tril")
def tril(self: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle; zeros above a diagonal."""
    return torch.where(_below(self, diagonal), self, torch.zeros((), dtype=self.dtype, device=self.device))


@decomposes("triu")
def triu(self: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle; zeros below a diagonal."""
    zero = torch.zeros((), dtype=self.dtype, device=self.device)
    return torch.where(_below(self, diagonal - 1), zero, self)


def _below(x: Tensor, diagonal: int) -> Tensor:
    rows, columns = (torch.arange(n, device=x.device) for n in x.shape[-2:])
    return columns - rows.unsqueeze(-1) <= diagonal


@decomposes("pixel_shuffle")
def pixel_shuffle(self: Tensor, upscale_factor: int) -> Tensor:
    """Channels moved to rows and columns."""
    *batch, channels, h, w = self.shape
    r, n = upscale_factor, len(batch)
    parts = self.view(*batch, channels // (r * r), r, r, h, w)
    order = [*range(n), n, n + 3, n + 1, n + 4, n + 2]
    return parts.permute(order).reshape(*batch, channels // (r * r), h * r, w * r)


@decomposes("pixel_unshuffle")
def pixel_unshuffle(self: Tensor, downscale_factor: int) -> Tensor:
    """Rows and columns moved to channels."""
    *batch, channels, h, w = self.shape
    r, n = downscale_factor, len(batch)
    parts = self.view(*batch, channels, h // r, r, w // r, r)
    return parts.permute([*range(n), n, n + 2, n + 4, n + 1, n + 3]).reshape(
        *batch, channels * r * r, h // r, w // r)


@decomposes("channel_shuffle")
def channel_shuffle(self: Tensor, groups: int) -> Tensor:
    """Channels of several groups interleaved."""
    n, channels, *rest = self.shape
    return self.reshape(n, groups, channels // groups, *rest).transpose(1, 2).reshape(self.shape)
