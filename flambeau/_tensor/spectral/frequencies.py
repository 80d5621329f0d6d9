"""The frequencies of Fourier transforms, and the shift of frequency 0 to the middle."""

from __future__ import annotations

from math import copysign, inf
from typing import Any

from ... import dtypes
from ...engine.tensor_interface import layer
from ...ops.declare import REGISTRY
from ..argument_errors.out_arguments import check_records_nothing
from ..creation.sequences import check_out_size
from ..dispatch.out_tensors import write_out
from ..tensor import Tensor
from .arguments import check_input, one_dim

__all__ = ["fft_fftfreq", "fft_fftshift", "fft_ifftshift", "fft_rfftfreq"]


def _frequencies(name: str, n: int, d: float, out: Any, positions: Any, dtype: Any, options: Any) -> Tensor:
    if isinstance(out, Tensor):
        check_records_nothing(f"fft_{name}", (), (out,))
    dtype = (out.dtype if isinstance(out, Tensor) else dtypes.get_default_dtype()) if dtype is None else (
        dtypes.of_argument(dtype, name))
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    if dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.scalar_name}'")
    fn = layer.functions
    requires_grad = options.pop("requires_grad", False)
    if n < 0 and name == "fftfreq" and out is None:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    factor = 1.0 / (n * d) if n * d else copysign(inf, n * d)
    result = fn.mul(fn.cat([fn.arange(*bounds, dtype=dtype, **options) for bounds in positions]), factor)
    if out is not None:
        check_out_size(result._array, out)
        return write_out(REGISTRY["mul"], result, out)
    return result.requires_grad_() if requires_grad else result


def fft_fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
                device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """The frequencies of the elements of `fft.fft`: 0, 1, ..., (n-1)/2, -n/2, ..., -1, divided by n d.

    Args:
        n: the size of the transform.
        d: the distance of the samples.

    >>> import flambeau as torch
    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return _frequencies("fftfreq", n, d, out, ((0, (n + 1) // 2), (-(n // 2), 0)), dtype, {
        "layout": layout, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad})


def fft_rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
                 device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """The frequencies of the elements of `fft.rfft`: 0, 1, ..., n/2, divided by n d.

    Args:
        n: the size of the transform.
        d: the distance of the samples.

    >>> import flambeau as torch
    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return _frequencies("rfftfreq", n, d, out, ((0, int(n / 2) + 1),), dtype, {
        "layout": layout, "device": device, "pin_memory": pin_memory, "requires_grad": requires_grad})


def _shift(name: str, input: Tensor, dim: Any, inverse: bool) -> Tensor:
    check_input(name, input)
    shape = input._array.shape
    dim = dim if dim is None or isinstance(dim, (tuple, list)) else (dim,)
    dims = tuple(range(len(shape))) if dim is None else tuple(one_dim(d, input) for d in dim)
    shifts = tuple((shape[d] + inverse) // 2 for d in dims)
    return layer.functions.roll(input, shifts, dims)


def fft_fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The input with the element of frequency 0 moved to the middle of the dimensions (all by default).

    >>> import flambeau as torch
    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shift("fftshift", input, dim, False)


def fft_ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fft.fftshift`.

    >>> import flambeau as torch
    >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1, 2]))
    tensor([ 0,  1,  2, -2, -1])
    """
    return _shift("ifftshift", input, dim, True)
