"""Arguments of Fourier transforms: promotion, dimensions, sizes and normalization, checked as PyTorch checks them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ... import dtypes
from ...engine.tensor_interface import layer
from ...shapes import wrap_dim
from ..argument_errors.type_names import not_a_tensor
from ..tensor import Tensor


def check_input(name: str, input: Any) -> None:
    """Raise PyTorch's error unless `input` is a tensor."""
    if not isinstance(input, Tensor):
        raise not_a_tensor(f"fft_{name}", input)


def promoted(input: Tensor, to_complex: bool = False) -> Tensor:
    """The input in a floating point dtype, or a complex one.

    Raises:
        RuntimeError: there are no transforms of its dtype.
    """
    dtype = input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        dtype = dtypes.get_default_dtype()
    if dtype not in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128):
        raise RuntimeError(f"Unsupported dtype {dtype.scalar_name}")
    if to_complex:
        dtype = dtype.to_complex()
    return input if dtype is input.dtype else input.to(dtype)


def normalization(norm: str | None, forward: bool) -> int:
    """The operators' number for a normalization: 0 none, 1 by √n, 2 by n."""
    if norm is None or norm == "backward":
        return 0 if forward else 2
    if norm == "forward":
        return 2 if forward else 0
    if norm == "ortho":
        return 1
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def one_dim(dim: int, input: Tensor) -> int:
    """`dim` as a non-negative dimension."""
    ndim = input._array.ndim
    if not ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return wrap_dim(dim if dim.__class__ is int else dim.__index__(), ndim)


def check_points(n: int) -> None:
    """Raise PyTorch's error unless a transform has at least one element."""
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def shape_and_dims(input: Tensor, s: Any, dim: Any, c2r: bool = False) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The sizes and dimensions of a transform over several dimensions.

    Args:
        c2r: whether the last size may be missing because it is not the input's.
    """
    shape = input._array.shape
    ndim = len(shape)
    s = (s,) if isinstance(s, int) else s
    dim = (dim,) if isinstance(dim, int) else dim
    dims: Sequence[int] | None = None
    if dim is not None:
        dims = tuple(one_dim(d, input) for d in dim)
        if len(set(dims)) != len(dims):
            raise RuntimeError("FFT dims must be unique")
    if s is not None:
        if dims is not None and len(dims) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        if dims is None:
            dims = range(ndim - len(s), ndim)
        sizes = tuple(shape[d] if n == -1 else int(n) for n, d in zip(s, dims, strict=True))
    else:
        dims = range(ndim) if dims is None else dims
        sizes = tuple(shape[d] for d in dims)
    for n in sizes:
        check_points(n)
    return sizes, tuple(dims)


def resized(input: Tensor, sizes: Sequence[int], dims: Sequence[int]) -> Tensor:
    """The input cut off, or padded with zeros, at the end of its dimensions `dims`."""
    fn = layer.functions
    pad = [0] * (2 * input._array.ndim)
    for n, d in zip(sizes, dims, strict=True):
        size = input._array.shape[d]
        if n < size:
            input = fn.slice(input, dim=d, start=0, end=n, step=1)
        elif n > size:
            pad[2 * (input._array.ndim - 1 - d) + 1] = n - size
    return fn.constant_pad_nd(input, tuple(pad)) if any(pad) else input
