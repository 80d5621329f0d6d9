"""The functions of `torch.fft`: discrete Fourier transforms over one or several dimensions."""

from __future__ import annotations

from typing import Any

from ...engine.tensor_interface import layer
from ...modes import active_tracer
from ...ops.declare import REGISTRY
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.apply import apply
from ..dispatch.out_tensors import write_out
from ..fastpath.repeated_calls import repeated
from ..pointwise.complex import conj
from ..tensor import Tensor
from .arguments import check_input, check_points, normalization, one_dim, promoted, resized, shape_and_dims

__all__ = ["fft_fft", "fft_fft2", "fft_fftn", "fft_hfft", "fft_hfft2", "fft_hfftn",
           "fft_ifft", "fft_ifft2", "fft_ifftn", "fft_ihfft", "fft_ihfft2", "fft_ihfftn",
           "fft_irfft", "fft_irfft2", "fft_irfftn", "fft_rfft", "fft_rfft2", "fft_rfftn"]

_LAST_TWO = (-2, -1)


def _c2c(x: Tensor, dims: tuple[int, ...], by: int, forward: bool) -> Tensor:
    return apply(REGISTRY["_fft_c2c"], [x], {"dim": dims, "normalization": by, "forward": forward})


def _r2c(x: Tensor, dims: tuple[int, ...], by: int, onesided: bool) -> Tensor:
    return apply(REGISTRY["_fft_r2c"], [x], {"dim": dims, "normalization": by, "onesided": onesided})


def _c2r(x: Tensor, dims: tuple[int, ...], by: int, size: int) -> Tensor:
    return apply(REGISTRY["_fft_c2r"], [x], {"dim": dims, "normalization": by, "last_dim_size": size})


def _dims(x: Tensor, dim: Any) -> tuple[int, ...]:
    return tuple(one_dim(each, x) for each in dim)


def _fft_c2c(input: Tensor, dim: Any, normalization: int, forward: bool) -> Tensor:
    """The operator of the complex transforms; `normalization` 0 divides by 1, 1 by √n, 2 by n.

    >>> import flambeau as torch
    >>> torch._fft_c2c(torch.ones(2) + 0j, [0], 2, True)
    tensor([1.+0.j, 0.+0.j])
    """
    if not input.dtype.is_complex:
        raise RuntimeError(f"Only supports complex dtypes, but found: {input.dtype.scalar_name}")
    return _c2c(input, _dims(input, dim), normalization, forward)


def _fft_r2c(input: Tensor, dim: Any, normalization: int, onesided: bool) -> Tensor:
    """The operator of the transforms of real tensors (`_fft_c2c`); `onesided` leaves out what the symmetry repeats.

    >>> import flambeau as torch
    >>> torch._fft_r2c(torch.ones(2), [0], 0, True)
    tensor([2.+0.j, 0.+0.j])
    """
    return _r2c(input, _dims(input, dim), normalization, onesided)


def _fft_c2r(input: Tensor, dim: Any, normalization: int, last_dim_size: int) -> Tensor:
    """The operator of the transforms to real tensors (`_fft_c2c`); `last_dim_size` is the size of the last `dim`.

    >>> import flambeau as torch
    >>> torch._fft_c2r(torch.ones(2) + 0j, [0], 0, 2)
    tensor([2., 0.])
    """
    return _c2r(input, _dims(input, dim), normalization, last_dim_size)


def _conj(x: Tensor) -> Tensor:
    return layer.functions.conj(x)


def _finish(name: str, operator: str, input: Tensor, result: Tensor, out: Tensor | None, to_real: bool = False) -> Any:
    """The result, or `out` with the result written to it.

    Raises:
        RuntimeError: `out` has a dtype of the wrong kind, or is to be differentiated.
    """
    if out is None:
        return result
    _check_out(name, out, to_real)
    check_records_nothing(operator, (result,), (out,))
    return write_out(REGISTRY[operator], result, out)


def _check_out(name: str, out: Any, to_real: bool = False) -> None:
    """Check that `out`, if it is given, is of the result's kind: of transforms of one dimension, before all others."""
    if not isinstance(out, Tensor):
        return
    if to_real and not out.dtype.is_floating_point:
        raise RuntimeError(f"{name} expects a floating point output tensor, but got {out.dtype.scalar_name}")
    if not to_real and not out.dtype.is_complex:
        raise RuntimeError(f"{name} expects a complex output tensor, but got {out.dtype.scalar_name}")


# ----- one dimension -----


def _one_dim_c2c(name: str, input: Tensor, n: Any, dim: int, norm: Any, out: Any, forward: bool) -> Tensor:
    check_input(name, input)
    if not input.dtype.is_complex:
        return _one_dim_r2c(name, input, n, dim, norm, out, forward, False)
    x = promoted(input)
    dim = one_dim(dim, x)
    size = _size(name, n, x, dim)
    result = _c2c(resized(x, (size,), (dim,)), (dim,), normalization(norm, forward), forward)
    return _finish(name, "_fft_c2c", input, result, out)


def _size(name: str, n: Any, x: Tensor, dim: int) -> int:
    if n is None:
        n = x._array.shape[dim]
    elif not isinstance(n, int):
        if not hasattr(n, "__index__"):
            raise TypeError(f"fft_{name}(): argument 'n' must be int, not {type_name(n)}")
        n = n.__index__()
    check_points(n)
    return n


def _one_dim_r2c(name: str, input: Tensor, n: Any, dim: int, norm: Any, out: Any, forward: bool,
                 onesided: bool) -> Tensor:
    check_input(name, input)
    if input.dtype.is_complex:
        raise RuntimeError(f"{name} expects a real input tensor, but got {input.dtype.scalar_name}")
    _check_out(name, out)
    x = promoted(input)
    dim = one_dim(dim, x)
    size = _size(name, n, x, dim)
    result = _r2c(resized(x, (size,), (dim,)), (dim,), normalization(norm, forward), onesided)
    if not forward:  # `out` and programs have no conjugate bits
        result = conj(result) if out is None and active_tracer.get() is None else _conj(result)
    return _finish(name, "_fft_r2c", input, result, out)


def _one_dim_c2r(name: str, input: Tensor, n: Any, dim: int, norm: Any, out: Any, forward: bool) -> Tensor:
    check_input(name, input)
    _check_out(name, out, True)
    x = promoted(input, True)
    dim = one_dim(dim, x)
    size = 2 * (x._array.shape[dim] - 1) if n is None else _size(name, n, x, dim)
    check_points(size)
    if n is not None:
        x = resized(x, (size // 2 + 1,), (dim,))
    result = _c2r(_conj(x) if forward else x, (dim,), normalization(norm, forward), size)
    return _finish(name, "_fft_c2r", input, result, out, True)


@repeated
def fft_fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *,
            out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform over one dimension, Xₖ = Σⱼ xⱼ exp(-2πi jk / n).

    Args:
        input: real or complex.
        n: the size of the transformed dimension, which is cut off or padded with zeros to it.
        norm: "backward" (default: as above), "ortho" (divided by √n) or "forward" (divided by n).

    Returns:
        A complex tensor.

    >>> import flambeau as torch
    >>> torch.fft.fft(torch.tensor([1., 2., 0., 0.]))
    tensor([ 3.+0.j,  1.-2.j, -1.+0.j,  1.+2.j])
    """
    return _one_dim_c2c("fft", input, n, dim, norm, out, True)


@repeated
def fft_ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *,
             out: Tensor | None = None) -> Tensor:
    """The inverse of `fft.fft`: xⱼ = 1/n Σₖ Xₖ exp(2πi jk / n).

    Args:
        input: real or complex.
        n: the size of the transformed dimension, which is cut off or padded with zeros to it.
        norm: "backward" (default: divided by n), "ortho" (by √n) or "forward" (not divided).

    >>> import flambeau as torch
    >>> torch.fft.ifft(torch.tensor([4., 0., 0., 0.]))
    tensor([1.-0.j, 1.-0.j, 1.-0.j, 1.-0.j])
    """
    return _one_dim_c2c("ifft", input, n, dim, norm, out, False)


@repeated
def fft_rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *,
             out: Tensor | None = None) -> Tensor:
    """The first n/2 + 1 elements of `fft.fft` of a real tensor, which determine the others.

    Args:
        n, norm: as of `fft.fft`.

    Raises:
        RuntimeError: the input is complex.

    >>> import flambeau as torch
    >>> torch.fft.rfft(torch.tensor([1., 2., 0., 0.]))
    tensor([ 3.+0.j,  1.-2.j, -1.+0.j])
    """
    return _one_dim_r2c("rfft", input, n, dim, norm, out, True, True)


@repeated
def fft_irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """The inverse of `fft.rfft`: a real tensor of n elements.

    Args:
        n: the result's size; 2(m - 1) by default, where m is the input's size.
        norm: as of `fft.ifft`.

    >>> import flambeau as torch
    >>> torch.fft.irfft(torch.tensor([3. + 0j, 1 - 2j, -1]))
    tensor([1., 2., 0., 0.])
    """
    return _one_dim_c2r("irfft", input, n, dim, norm, out, False)


@repeated
def fft_hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *,
             out: Tensor | None = None) -> Tensor:
    """The Fourier transform, which is real, of a Hermitian tensor given by its first half.

    Args:
        n: the result's size; 2(m - 1) by default, where m is the input's size.
        norm: as of `fft.fft`.

    >>> import flambeau as torch
    >>> torch.fft.hfft(torch.tensor([1. + 0j, 1j, 0]))
    tensor([ 1.,  3.,  1., -1.])
    """
    return _one_dim_c2r("hfft", input, n, dim, norm, out, True)


def fft_ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """The inverse of `fft.hfft`: the first half of the inverse transform of a real tensor.

    Args:
        n: as of `fft.fft`.
        norm: as of `fft.ifft`.

    >>> import flambeau as torch
    >>> torch.fft.ihfft(torch.tensor([1., 3., 1., -1.]))
    tensor([1.-0.j, 0.+1.j, 0.-0.j])
    """
    return _one_dim_r2c("ihfft", input, n, dim, norm, out, False, True)


# ----- several dimensions -----


@repeated
def fft_fftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *,
             out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform over several dimensions.

    Args:
        s: the sizes of the transformed dimensions, which are cut off or padded with zeros to them; -1 for no change.
        dim: the dimensions; all by default, or as many last ones as `s` has.
        norm: as of `fft.fft`, n being the product of the sizes.

    >>> import flambeau as torch
    >>> torch.fft.fftn(torch.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return _many_c2c("fftn", input, s, dim, norm, out, True)


def _many_c2c(name: str, input: Tensor, s: Any, dim: Any, norm: Any, out: Any, forward: bool) -> Tensor:
    check_input(name, input)
    sizes, dims = shape_and_dims(input, s, dim)
    x = resized(promoted(input, True), sizes, dims)
    result = _c2c(x, dims, normalization(norm, forward), forward)
    return _finish("fftn", "_fft_c2c", input, result, out)  # of the inverse, too, as PyTorch says


@repeated
def fft_ifftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """The inverse of `fft.fftn`.

    Args:
        s, dim: as of `fft.fftn`.
        norm: as of `fft.ifft`.

    >>> import flambeau as torch
    >>> torch.fft.ifftn(torch.tensor([[4., 0.], [0., 0.]]))
    tensor([[1.+0.j, 1.+0.j],
            [1.+0.j, 1.+0.j]])
    """
    return _many_c2c("ifftn", input, s, dim, norm, out, False)


@repeated
def fft_rfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """`fft.fftn` of a real tensor, of whose last transformed dimension only the first half is returned.

    Args:
        s, dim: as of `fft.fftn`.
        norm: as of `fft.fft`.

    Raises:
        RuntimeError: the input is complex.

    >>> import flambeau as torch
    >>> torch.fft.rfftn(torch.ones(2, 4))
    tensor([[8.+0.j, 0.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j, 0.+0.j]])
    """
    return _rfftn(input, s, dim, norm, out)


def _rfftn(input: Tensor, s: Any, dim: Any, norm: Any, out: Any) -> Tensor:
    check_input("rfftn", input)
    if input.dtype.is_complex:
        raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {input.dtype.scalar_name}")
    sizes, dims = shape_and_dims(input, s, dim)
    _check_axes("rfftn", dims)
    x = resized(promoted(input), sizes, dims)
    return _finish("rfftn", "_fft_r2c", input, _r2c(x, dims, normalization(norm, True), True), out)


def _check_axes(name: str, dims: Any) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def _half_sizes(name: str, input: Tensor, s: Any, dim: Any) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """The input's sizes and the dimensions of a transform to real numbers, and the last size of the result."""
    sizes, dims = shape_and_dims(input, s, dim)
    _check_axes(name, dims)
    s = (s,) if isinstance(s, int) else s
    last = 2 * (input._array.shape[dims[-1]] - 1) if s is None or s[-1] == -1 else sizes[-1]
    check_points(last)
    return (*sizes[:-1], last // 2 + 1), dims, last


@repeated
def fft_irfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *,
               out: Tensor | None = None) -> Tensor:
    """The inverse of `fft.rfftn`: a real tensor.

    Args:
        s, dim: as of `fft.fftn`; the last size is the result's, 2(m - 1) by default, where m is the input's size.
        norm: as of `fft.ifft`.

    >>> import flambeau as torch
    >>> torch.fft.irfftn(torch.tensor([[8., 0., 0.], [0., 0., 0.]]))
    tensor([[1., 1., 1., 1.],
            [1., 1., 1., 1.]])
    """
    return _irfftn(input, s, dim, norm, out)


def _irfftn(input: Tensor, s: Any, dim: Any, norm: Any, out: Any) -> Tensor:
    check_input("irfftn", input)
    sizes, dims, last = _half_sizes("irfftn", input, s, dim)
    x = resized(promoted(input, True), sizes, dims)
    return _finish("irfftn", "_fft_c2r", input, _c2r(x, dims, normalization(norm, False), last), out, True)


def fft_hfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """The Fourier transform, which is real, of a Hermitian tensor given by the first half of its last dimension.

    Args:
        s, dim: as of `fft.irfftn`.
        norm: as of `fft.fft`.

    >>> import flambeau as torch
    >>> torch.fft.hfftn(torch.ones(2, 2))
    tensor([[4., 0.],
            [0., 0.]])
    """
    return _hfftn(input, s, dim, norm, out)


def _hfftn(input: Tensor, s: Any, dim: Any, norm: Any, out: Any) -> Tensor:
    check_input("hfftn", input)
    sizes, dims, last = _half_sizes("hfftn", input, s, dim)
    x = resized(promoted(input, True), sizes, dims)
    by = normalization(norm, True)
    if len(dims) > 1:
        x = _c2c(x, dims[:-1], by, True)
    return _finish("hfftn", "_fft_c2r", input, _c2r(_conj(x), dims[-1:], by, last), out, True)


def fft_ihfftn(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None, *,
               out: Tensor | None = None) -> Tensor:
    """The inverse of `fft.hfftn`: the first half of the inverse transform of a real tensor.

    Args:
        s, dim: as of `fft.fftn`.
        norm: as of `fft.ifft`.

    >>> import flambeau as torch
    >>> torch.fft.ihfftn(torch.tensor([[4., 0.], [0., 0.]]))
    tensor([[1.-0.j, 1.-0.j],
            [1.+0.j, 1.+0.j]])
    """
    return _ihfftn(input, s, dim, norm, out)


def _ihfftn(input: Tensor, s: Any, dim: Any, norm: Any, out: Any) -> Tensor:
    check_input("ihfftn", input)
    sizes, dims = shape_and_dims(input, s, dim)
    if input.dtype.is_complex:
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {input.dtype.scalar_name}")
    _check_axes("ihfftn", dims)
    x = resized(promoted(input), sizes, dims)
    by = normalization(norm, False)
    half = _r2c(x, dims[-1:], by, True)
    lazy = len(dims) == 1 and out is None and active_tracer.get() is None  # as in `_one_dim_r2c`
    half = conj(half) if lazy else layer.functions.conj_physical(half)
    if len(dims) == 1 and out is not None and out.dtype is not half.dtype:
        check_records_nothing("_fft_r2c", (half,), (out,))
        raise RuntimeError(f"Found dtype {half.dtype.scalar_name} but expected {out.dtype.scalar_name}")
    result = _c2c(half, dims[:-1], by, False) if len(dims) > 1 else half
    return _finish("ihfftn", "_fft_c2c", input, result, out)


# ----- two dimensions -----


@repeated
def fft_fft2(input: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None, *,
             out: Tensor | None = None) -> Tensor:
    """`fft.fftn` over the last two dimensions.

    >>> import flambeau as torch
    >>> torch.fft.fft2(torch.ones(1, 2, 2))
    tensor([[[4.+0.j, 0.+0.j],
             [0.+0.j, 0.+0.j]]])
    """
    return fft_fftn(input, s, dim, norm, out=out)


@repeated
def fft_ifft2(input: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """`fft.ifftn` over the last two dimensions.

    >>> import flambeau as torch
    >>> torch.fft.ifft2(torch.ones(1, 2, 2))
    tensor([[[1.+0.j, 0.+0.j],
             [0.+0.j, 0.+0.j]]])
    """
    return fft_ifftn(input, s, dim, norm, out=out)


@repeated
def fft_rfft2(input: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """`fft.rfftn` over the last two dimensions.

    >>> import flambeau as torch
    >>> torch.fft.rfft2(torch.ones(1, 2, 2))
    tensor([[[4.+0.j, 0.+0.j],
             [0.+0.j, 0.+0.j]]])
    """
    return _rfftn(input, s, dim, norm, out)


@repeated
def fft_irfft2(input: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None, *,
               out: Tensor | None = None) -> Tensor:
    """`fft.irfftn` over the last two dimensions.

    >>> import flambeau as torch
    >>> torch.fft.irfft2(torch.ones(1, 2, 2))
    tensor([[[1., 0.],
             [0., 0.]]])
    """
    return _irfftn(input, s, dim, norm, out)


def fft_hfft2(input: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None, *,
              out: Tensor | None = None) -> Tensor:
    """`fft.hfftn` over the last two dimensions.

    >>> import flambeau as torch
    >>> torch.fft.hfft2(torch.ones(1, 2, 2))
    tensor([[[4., 0.],
             [0., 0.]]])
    """
    return _hfftn(input, s, dim, norm, out)


def fft_ihfft2(input: Tensor, s: Any = None, dim: Any = _LAST_TWO, norm: str | None = None, *,
               out: Tensor | None = None) -> Tensor:
    """`fft.ihfftn` over the last two dimensions.

    >>> import flambeau as torch
    >>> torch.fft.ihfft2(torch.ones(1, 2, 2))
    tensor([[[1.-0.j, 0.-0.j],
             [0.+0.j, 0.+0.j]]])
    """
    return _ihfftn(input, s, dim, norm, out)
