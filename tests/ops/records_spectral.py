"""Records of Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.ops.spec import Make, Sample, record, sample


def one_dim(numpy_name: str, real: bool) -> tuple[Callable[[Make], Iterable[Sample]], Callable[..., Any]]:
    """Samples of a transform over one dimension, and NumPy's transform."""
    def samples(make: Make) -> Iterable[Sample]:
        dtype = make.dtype.to_real() if real else None
        yield sample(make(5, dtype=dtype))
        yield sample(make(4, 3, dtype=dtype), dim=0)
        yield sample(make(2, 6, dtype=dtype), 4, norm="ortho")
        yield sample(make(2, 3, dtype=dtype), 5, -1, "forward")

    def reference(x: Any, n: Any = None, dim: int = -1, norm: Any = None) -> Any:
        return getattr(np.fft, numpy_name)(x, n, dim, norm or "backward")

    return samples, reference


def many_dims(numpy_name: str | None, real: bool) -> tuple[Callable[[Make], Iterable[Sample]], Any]:
    """Samples of a transform over several dimensions, and NumPy's transform, where it has it."""
    def samples(make: Make) -> Iterable[Sample]:
        dtype = make.dtype.to_real() if real else None
        yield sample(make(3, 4, dtype=dtype))
        yield sample(make(2, 3, 4, dtype=dtype), s=(2, 5), dim=(0, 2), norm="ortho")
        yield sample(make(2, 4, dtype=dtype), dim=(1, 0), norm="forward")

    def reference(x: Any, s: Any = None, dim: Any = None, norm: Any = None) -> Any:
        if dim is None:
            dim = tuple(range(x.ndim))
        return getattr(np.fft, numpy_name)(x, s, dim, norm or "backward")

    return samples, reference if numpy_name else None


for _name, _real in (("fft", False), ("ifft", False), ("rfft", True), ("irfft", False), ("hfft", False),
                     ("ihfft", True)):
    _samples, _reference = one_dim(_name, _real)
    record(f"fft.{_name}", _samples, reference=_reference, complex=not _real,
           covers={"fft": ("_fft_c2c",), "rfft": ("_fft_r2c",), "irfft": ("_fft_c2r",)}.get(_name, ()))
    _samples, _reference = many_dims(None if "h" in _name else _name + "n", _real)
    record(f"fft.{_name}n", _samples, reference=_reference, complex=not _real)
    record(f"fft.{_name}2", lambda make, real=_real: [
        sample(make(2, 3, 4, dtype=make.dtype.to_real() if real else None))], complex=not _real)
record("fft.fftshift", lambda make: [sample(make(5)), sample(make(3, 4)), sample(make(3, 4), dim=1)],
       reference=lambda x, dim=None: np.fft.fftshift(x, dim), complex=True, integers=True)
record("fft.ifftshift", lambda make: [sample(make(5)), sample(make(3, 4)), sample(make(3, 4), dim=(0,))],
       reference=lambda x, dim=None: np.fft.ifftshift(x, dim), complex=True, integers=True)


def window(make: Make, n: int) -> Any:
    return make(n, low=0.5, high=1.0, dtype=make.dtype.to_real(), requires_grad=False)


record("stft", lambda make: [
    sample(make(10), 4, window=window(make, 4), center=False, onesided=False, return_complex=True),
    sample(make(2, 9), 4, 2, 3, window(make, 3), onesided=False, normalized=True, return_complex=True)], complex=True)
record("istft", lambda make: [
    sample(make(4, 5, dtype=make.dtype.to_complex()), 4, window=window(make, 4), return_complex=True),
    sample(make(2, 3, 5, dtype=make.dtype.to_complex()), 4, window=window(make, 4))], complex=True, keeps_dtype=False)
