"""`torch.signal.windows.windows`: window functions, symmetric or periodic, in float32 or float64."""

from __future__ import annotations

from collections.abc import Iterable
from math import pi, sqrt
from typing import Any

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor import functions as fn
from ...devices import strided

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
           "hann", "kaiser", "nuttall"]


def _checked(name: str, M: int, dtype: Any, layout: Any) -> Any:
    """The dtype of the window.

    Raises:
        ValueError: an argument is not supported.
    """
    dtype = dtypes.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return dtype


def _spaced(start: float, end: float, steps: int, layout: Any, options: dict[str, Any]) -> Tensor:
    """`linspace` with all arguments by name, as PyTorch calls it and its errors list them."""
    return fn.linspace(start=start, end=end, steps=steps, dtype=options["dtype"], layout=layout,
                       device=options["device"], requires_grad=options["requires_grad"])


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
                layout: Any = strided, device: Any = None, requires_grad: bool = False) -> Tensor:
    """The exponential window, exp(-|k - c| / τ).

    Args:
        M: the number of elements.
        center: c; by default the middle, and only then for symmetric windows.
        tau: τ, positive.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    dtype = _checked("exponential", M, dtype, layout)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    if M == 0:
        return fn.empty((0,), **options)
    if center is None:
        center = (M if not sym and M > 1 else M - 1) / 2
    k = _spaced(-center / tau, (M - 1 - center) / tau, M, layout, options)
    return fn.exp(-fn.abs(k))


def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
           requires_grad: bool = False) -> Tensor:
    """The sine window, sin(π (k + 1/2) / M).

    Args:
        M: the number of elements.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    dtype = _checked("cosine", M, dtype, layout)
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    if M == 0:
        return fn.empty((0,), **options)
    step = pi / (M + 1 if not sym and M > 1 else M)
    return fn.sin(_spaced(0.5 * step, (M - 0.5) * step, M, layout, options))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = strided,
             device: Any = None, requires_grad: bool = False) -> Tensor:
    """The Gaussian window, exp(-(k - c)² / (2 std²)), c the middle.

    Args:
        M: the number of elements.
        std: the standard deviation, in elements.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    dtype = _checked("gaussian", M, dtype, layout)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    if M == 0:
        return fn.empty((0,), **options)
    start, step = -(M if not sym and M > 1 else M - 1) / 2, 1 / (std * sqrt(2))
    k = _spaced(start * step, (start + M - 1) * step, M, layout, options)
    return fn.exp(-(k ** 2))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = strided,
           device: Any = None, requires_grad: bool = False) -> Tensor:
    """The Kaiser window, I₀(β √(1 - (2k / N - 1)²)) / I₀(β), N = M - 1 where symmetric, else M.

    Args:
        M: the number of elements.
        beta: the shape: 0 is a rectangle, larger values are narrower.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.kaiser(3, beta=1.)
    tensor([0.7898, 1.0000, 0.7898])
    """
    dtype = _checked("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    if M < 2:
        return fn.empty((0,), **options) if M == 0 else fn.ones((1,), **options)
    width = fn.tensor(beta, dtype=dtype, device=device)
    # in the window's dtype, so that the last element is not beyond the width
    end = fn.minimum(width, -width + (M - 1) * (2.0 * width / (M if not sym else M - 1)))
    k = _spaced(-width, end, M, layout, options)
    return fn.i0(fn.sqrt(width * width - fn.pow(k, 2))) / fn.i0(width)


def hamming(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
            requires_grad: bool = False) -> Tensor:
    """The Hamming window, 0.54 - 0.46 cos(2πk / (M - 1)).

    Args:
        M: the number of elements.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.hamming(3)
    tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
         requires_grad: bool = False) -> Tensor:
    """The Hann window, 1/2 - 1/2 cos(2πk / (M - 1)).

    Args:
        M: the number of elements.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.hann(3)
    tensor([0., 1., 0.])
    """
    return general_hamming(M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device,
                           requires_grad=requires_grad)


def blackman(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """The Blackman window, 0.42 - 1/2 cos(2πk / (M - 1)) + 0.08 cos(4πk / (M - 1)).

    Args:
        M: the number of elements.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.blackman(3, dtype=torch.float64).abs()
    tensor([1.3878e-17, 1.0000e+00, 1.3878e-17], dtype=flambeau.float64)
    """
    dtype = _checked("blackman", M, dtype, layout)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
             requires_grad: bool = False) -> Tensor:
    """The Bartlett window, a triangle: 1 - |2k / (M - 1) - 1|.

    Args:
        M: the number of elements.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.bartlett(3)
    tensor([0., 1., 0.])
    """
    dtype = _checked("bartlett", M, dtype, layout)
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    if M < 2:
        return fn.empty((0,), **options) if M == 0 else fn.ones((1,), **options)
    step = 2 / (M if not sym else M - 1)
    return 1 - fn.abs(_spaced(-1, -1 + (M - 1) * step, M, layout, options))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = strided,
                   device: Any = None, requires_grad: bool = False) -> Tensor:
    """A sum of cosines, Σᵢ (-1)ⁱ aᵢ cos(2πik / (M - 1)).

    Args:
        M: the number of elements.
        a: the coefficients.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.general_cosine(3, a=[0.5, 0.5])
    tensor([0., 1., 0.])
    """
    dtype = _checked("general_cosine", M, dtype, layout)
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad}
    if M < 2:
        return fn.empty((0,), **options) if M == 0 else fn.ones((1,), **options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    k = _spaced(0, (M - 1) * (2 * pi / (M if not sym else M - 1)), M, layout, options)
    weights = fn.tensor([(-1) ** i * w for i, w in enumerate(a)], **options)
    i = fn.arange(weights.shape[0], **options)
    return fn.sum(fn.unsqueeze(weights, -1) * fn.cos(fn.unsqueeze(i, -1) * k), 0)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = strided,
                    device: Any = None, requires_grad: bool = False) -> Tensor:
    """The general Hamming window, α - (1 - α) cos(2πk / (M - 1)).

    Args:
        M: the number of elements.
        alpha: α.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.general_hamming(3, alpha=0.5)
    tensor([0., 1., 0.])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)


def nuttall(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = strided, device: Any = None,
            requires_grad: bool = False) -> Tensor:
    """Nuttall's window, the four-term sum of cosines with the smallest side lobes.

    Args:
        M: the number of elements.
        sym: whether the window is symmetric; else it is one period, for spectra.

    >>> import flambeau as torch
    >>> torch.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    return general_cosine(M, a=[0.3635819, 0.4891775, 0.1365995, 0.0106411], sym=sym, dtype=dtype, layout=layout,
                          device=device, requires_grad=requires_grad)
