"""Discrete Fourier transforms: the extension `fft`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor import Tensor, functions

__all__ = ["fft", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifftn", "ifftshift", "ihfft", "irfft", "irfftn",
           "rfft", "rfftfreq", "rfftn"]


def fft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along an axis.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.fft(xp.asarray([1.+0j, 0.]))
    tensor([1.+0.j, 1.+0.j])
    """
    return functions.fft_fft(x, n, axis, norm)


def ifft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `fft`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.ifft(xp.asarray([1.+0j, 1.]))
    tensor([1.+0.j, 0.+0.j])
    """
    return functions.fft_ifft(x, n, axis, norm)


def rfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The half of the transform of real numbers that determines the other.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.rfft(xp.asarray([1., 0.]))
    tensor([1.+0.j, 1.+0.j])
    """
    return functions.fft_rfft(x, n, axis, norm)


def irfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `rfft`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.irfft(xp.asarray([1.+0j, 1.]))
    tensor([1., 0.])
    """
    return functions.fft_irfft(x, n, axis, norm)


def hfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The transform of a Hermitian-symmetric signal.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.hfft(xp.asarray([1.+0j, 1.]))
    tensor([2., 0.])
    """
    return functions.fft_hfft(x, n, axis, norm)


def ihfft(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
    """The inverse of `hfft`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.ihfft(xp.asarray([1., 0.]))
    tensor([0.5000-0.j, 0.5000-0.j])
    """
    return functions.fft_ihfft(x, n, axis, norm)


def fftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: str = "backward") -> Tensor:
    """The discrete Fourier transform along several axes.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.fftn(xp.ones((2, 2), dtype=xp.complex64))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return functions.fft_fftn(x, s, axes, norm)


def ifftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str = "backward") -> Tensor:
    """The inverse of `fftn`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.ifftn(xp.ones((2, 2), dtype=xp.complex64))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """
    return functions.fft_ifftn(x, s, axes, norm)


def rfftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str = "backward") -> Tensor:
    """The transform of real numbers along several axes, of which the last is halved.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.rfftn(xp.ones((2, 2))).shape
    flambeau.Size([2, 2])
    """
    return functions.fft_rfftn(x, s, axes, norm)


def irfftn(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
           norm: str = "backward") -> Tensor:
    """The inverse of `rfftn`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.irfftn(xp.ones((2, 2), dtype=xp.complex64)).shape
    flambeau.Size([2, 2])
    """
    return functions.fft_irfftn(x, s, axes, norm)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the transform of `n` samples at distance `d`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """
    return functions.fft_fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of the real transform of `n` samples at distance `d`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """
    return functions.fft_rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The zero frequency moved to the middle.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.fftshift(xp.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return functions.fft_fftshift(x, axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of `fftshift`.

    >>> from flambeau.interop import array_api as xp
    >>> xp.fft.ifftshift(xp.asarray([-1., 0., 1.]))
    tensor([ 0.,  1., -1.])
    """
    return functions.fft_ifftshift(x, axes)
