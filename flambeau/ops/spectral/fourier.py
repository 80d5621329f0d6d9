"""Discrete Fourier transforms over several dimensions, from complex or real to complex or real numbers.

The functions of `torch.fft` resolve their arguments to these three operators. A normalization divides by a power of the
number n of transformed elements: 0 by 1, 1 by √n, 2 by n.
"""

from __future__ import annotations

from ..declare import linear

_OPTIONS = {"expose": (), "opmath": False, "holomorphic": False,
            "unsupported_dtypes": {"narrow": RuntimeError("MKL FFT doesn't support tensors of type: {}")}}


@linear(name="_fft_c2c", node="FftC2CBackward0", **_OPTIONS)
def _fft_c2c(xp, input, *, dim, normalization, forward):
    """The transform of a complex tensor over the dimensions `dim`.

    Args:
        dim: non-negative dimensions.
        normalization: 0, 1 or 2.
        forward: whether the exponent is negative.
    """
    return xp.fft_c2c(input, dim, normalization, forward)


_fft_c2c.vjp(input=lambda xp, g, dim, normalization, forward: xp._fft_c2c(
    g, dim=dim, normalization=normalization, forward=not forward))


@linear(name="_fft_r2c", node="FftR2CBackward0", **_OPTIONS)
def _fft_r2c(xp, input, *, dim, normalization, onesided):
    """The forward transform of a real tensor over the dimensions `dim`.

    Args:
        dim: non-negative dimensions.
        normalization: 0, 1 or 2.
        onesided: whether only the first n/2 + 1 elements of the last of these dimensions are returned, which determine
            the others.
    """
    return xp.fft_r2c(input, dim, normalization, onesided)


def _r2c_vjp(xp, g, input_shape, dim, normalization, onesided):
    if onesided:
        return xp._fft_r2c_adjoint(g, dim=dim, normalization=normalization, last_dim_size=input_shape[dim[-1]])
    return xp.real(xp._fft_c2c(g, dim=dim, normalization=normalization, forward=False))


_fft_r2c.vjp(input=lambda xp, g, input, dim, normalization, onesided: _r2c_vjp(  # saves it, as PyTorch's node does
    xp, g, input.shape, dim, normalization, onesided))


@linear(name="_fft_c2r", node="FftC2RBackward0", **_OPTIONS)
def _fft_c2r(xp, input, *, dim, normalization, last_dim_size):
    """The inverse of `_fft_r2c` with `onesided`: a real tensor from half of a Hermitian one.

    Args:
        dim: non-negative dimensions.
        normalization: 0, 1 or 2.
        last_dim_size: the size n of the last of these dimensions of the result, of which the input has n/2 + 1.
    """
    return xp.fft_c2r(input, dim, normalization, last_dim_size)


_fft_c2r.vjp(input=lambda xp, g, dim, normalization: xp._fft_c2r_adjoint(g, dim=dim, normalization=normalization))


@linear(name="_fft_r2c_adjoint", node="FftC2RBackward0", **_OPTIONS)
def _fft_r2c_adjoint(xp, input, *, dim, normalization, last_dim_size):
    """The adjoint of `_fft_r2c` with `onesided`, whose input has the size `last_dim_size` in the last dimension."""
    return xp.fft_r2c_adjoint(input, dim, normalization, last_dim_size)


_fft_r2c_adjoint.vjp(input=lambda xp, g, dim, normalization: xp._fft_r2c(
    g, dim=dim, normalization=normalization, onesided=True))


@linear(name="_fft_c2r_adjoint", node="FftR2CBackward0", **_OPTIONS)
def _fft_c2r_adjoint(xp, input, *, dim, normalization):
    """The adjoint of `_fft_c2r`."""
    return xp.fft_c2r_adjoint(input, dim, normalization)


_fft_c2r_adjoint.vjp(input=lambda xp, g, input_shape, dim, normalization: xp._fft_c2r(
    g, dim=dim, normalization=normalization, last_dim_size=input_shape[dim[-1]]))
