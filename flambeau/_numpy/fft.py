"""`numpy.fft` on tensors; all of it computes in the default dtypes, which are of 64 bits."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from . import _dtypes_impl, _util
from ._normalizations import ArrayLike, normalizer


def _wide(a: Any) -> Any:
    defaults = _dtypes_impl.default_dtypes()
    return _util.cast_if_needed(a, defaults.complex_dtype if a.is_complex() else defaults.float_dtype)


def _named(function: Any, name: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"NumPy's `fft.{name}`."
    return normalizer(function)


def _one_dimension(name: str) -> Any:
    def transform(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Any:
        return getattr(torch.fft, name)(_wide(a), n, dim=axis, norm=norm)

    return _named(transform, name)


def _all_dimensions(name: str) -> Any:
    def transform(a: ArrayLike, s: Any = None, axes: Any = None, norm: str | None = None) -> Any:
        return getattr(torch.fft, name)(_wide(a), s, dim=axes, norm=norm)

    return _named(transform, name)


def _two_dimensions(name: str) -> Any:
    def transform(a: ArrayLike, s: Any = None, axes: Any = (-2, -1), norm: str | None = None) -> Any:
        return getattr(torch.fft, name)(_wide(a), s, dim=axes, norm=norm)

    return _named(transform, name)


fft, ifft, rfft, irfft, hfft, ihfft = map(_one_dimension, ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fftn, ifftn, rfftn, irfftn = map(_all_dimensions, ("fftn", "ifftn", "rfftn", "irfftn"))
fft2, ifft2, rfft2, irfft2 = map(_two_dimensions, ("fft2", "ifft2", "rfft2", "irfft2"))


@normalizer
def fftfreq(n: int, d: float = 1.0) -> Any:
    """The frequencies of `fft`.

    >>> fftfreq(2)
    torch.ndarray([ 0.0000, -0.5000])
    """
    return torch.fft.fftfreq(n, d)


@normalizer
def rfftfreq(n: int, d: float = 1.0) -> Any:
    """The frequencies of `rfft`."""
    return torch.fft.rfftfreq(n, d)


@normalizer
def fftshift(x: ArrayLike, axes: Any = None) -> Any:
    """The elements with frequency 0 in the middle."""
    return torch.fft.fftshift(x, axes)


@normalizer
def ifftshift(x: ArrayLike, axes: Any = None) -> Any:
    """The inverse of `fftshift`."""
    return torch.fft.ifftshift(x, axes)


__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "ifft", "ifft2", "ifftn", "ifftshift", "ihfft",
           "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn"]
