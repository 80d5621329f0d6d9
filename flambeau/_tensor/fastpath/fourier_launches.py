"""Launches of Fourier transforms of few elements along the last dimension: pocketfft's ufuncs, as `numpy.fft` calls
them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...backends.compiled import fourier_kernels
from ...errstate import quietly, run_quietly
from ...runtime.filling import Filling, NewArray, with_filling

ndarray = np.ndarray
empty = np.empty
#: dtypes of signals and spectra
_SPECTRA: dict[Any, Any] = {np.dtype(np.float32): np.dtype(np.complex64), np.dtype(np.float64): np.dtype(np.complex128)}
_SIGNALS: dict[Any, Any] = {spectrum: signal for signal, spectrum in _SPECTRA.items()}
Launch = Callable[..., Any] | None
#: elements from which SciPy's transforms are used where there are any
_LARGE = 1 << 14
#: kinds of kernels, by the name of the ufunc and the elements' kind; the others transform real signals
_KINDS = {("fft", "f"): "r2c_twosided", ("fft", "c"): "c2c", ("ifft", "c"): "c2c_inverse", ("irfft", "c"): "c2r"}


def _ufunc(name: str) -> Any:
    """A ufunc of NumPy 2's pocketfft; None in other versions."""
    return getattr(getattr(np.fft, "_pocketfft_umath", None), name, None)


def _along_last(a: ndarray, dim: Any, name: str, length: int, count: int, dtype: Any, normalization: int) -> Launch:
    """The launch of a ufunc that makes `count` elements of each row.

    Args:
        length: of the signal.
    """
    transform = _ufunc(name)
    if transform is None or dtype is None or tuple(dim) not in ((-1,), (a.ndim - 1,)) or not a.size or length < 1 or (
            not a.flags.c_contiguous or a.size >= _LARGE):
        return None
    part: Any = _SIGNALS.get(dtype, dtype).type
    if _has_kernel(a, name, length, part):
        return None
    scale = _scale(length, normalization, part)
    shape = (*a.shape[:-1], count)
    return with_filling(lambda x: run_quietly(transform, x, scale, empty(shape, dtype)),
                        Filling(quietly, ([transform], 0, [scale], NewArray(shape, dtype))))


def _has_kernel(a: ndarray, name: str, length: int, part: Any) -> bool:
    """Whether the operator transforms rows by a kernel."""
    if fourier_kernels(a.size) is None:
        return False
    from ...codegen.fourier import transforms

    return transforms.is_supported(_KINDS.get((name, a.dtype.kind), "r2c"), length, np.dtype(part))


def _scale(length: int, normalization: int, part: Any) -> Any:
    """The factor of a dimension; its class counts, too: with an int NumPy computes in double."""
    return 1 if not normalization else np.reciprocal(
        np.sqrt(length, dtype=part) if normalization == 1 else length, dtype=part)


def _along_two(a: ndarray, dim: Any, name: str, count: int, dtype: Any, normalization: int) -> Launch:
    """The launch of the ufunc `name` along the last dimension, and of transforms of spectra along the one before."""
    if a.ndim < 2 or sorted(d % a.ndim for d in dim) != [a.ndim - 2, a.ndim - 1] or not a.size or a.size >= _LARGE or (
            dtype is None or not a.flags.c_contiguous):
        return None
    between = "ifft" if name == "ifft" else "fft"
    last, first, part = _ufunc(name), _ufunc(between), _SIGNALS.get(dtype, dtype).type
    rows, columns = a.shape[-2:]
    if last is None or first is None or _has_kernel(a, name, columns, part):
        return None
    scales = [_scale(n, normalization, part) for n in (columns, rows)]
    shape, axes = (*a.shape[:-1], count), [(-2,), (), (-2,)]

    def compute(x: ndarray) -> ndarray:
        spectra = last(x, scales[0], empty(shape, dtype))
        found: ndarray = first(spectra, scales[1], empty(shape, dtype), axes=axes)
        return found

    return lambda x: run_quietly(compute, x)


def _between_spectra(a: ndarray, dim: Any, normalization: int, forward: bool) -> Launch:
    if a.dtype not in _SIGNALS or not a.ndim:
        return None
    n = a.shape[-1]
    if len(dim) == 2:
        return _along_two(a, dim, "fft" if forward else "ifft", n, a.dtype, normalization)
    return _along_last(a, dim, "fft" if forward else "ifft", n, n, a.dtype, normalization)


def _of_signal(a: ndarray, dim: Any, normalization: int, onesided: bool) -> Launch:
    if not a.ndim:
        return None
    n, spectrum = a.shape[-1], _SPECTRA.get(a.dtype)
    if len(dim) == 2 and dim[1] % a.ndim == a.ndim - 1:
        name = "fft" if not onesided else "rfft_n_odd" if n % 2 else "rfft_n_even"
        return _along_two(a, dim, name, n // 2 + 1 if onesided else n, spectrum, normalization)
    if not onesided:
        return _along_last(a, dim, "fft", n, n, spectrum, normalization)
    return _along_last(a, dim, "rfft_n_odd" if n % 2 else "rfft_n_even", n, n // 2 + 1, spectrum, normalization)


def _to_signal(a: ndarray, dim: Any, normalization: int, last_dim_size: int) -> Launch:
    if not a.ndim or a.shape[-1] != last_dim_size // 2 + 1:
        return None
    return _along_last(a, dim, "irfft", last_dim_size, last_dim_size, _SIGNALS.get(a.dtype), normalization)


MAKERS: dict[str, Callable[..., Launch]] = {
    "_fft_c2c": _between_spectra, "_fft_r2c": _of_signal, "_fft_c2r": _to_signal}

__all__ = ["MAKERS"]
