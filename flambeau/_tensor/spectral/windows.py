"""Window functions: `torch.hann_window` and the others of its kind."""

from __future__ import annotations

from math import pi
from typing import Any

from ... import dtypes
from ...devices import strided
from ...engine.tensor_interface import layer
from ..argument_errors.type_names import type_name
from ..creation.factory_arguments import refuse_pinned
from ..tensor import Tensor

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


def _positions(name: str, length: Any, periodic: bool, options: dict[str, Any]) -> tuple[Tensor | None, int]:
    """0, 1, ... up to the last element of the symmetric window, and its length; None where the window is trivial.

    Raises:
        TypeError: the length is not an integer.
        RuntimeError: it is negative, or the dtype is not a floating point one.
    """
    if not isinstance(length, int):
        raise TypeError(f"{name}(): argument 'window_length' (position 1) must be int, not {type_name(length)}")
    layout, pinned, by_default = options.pop("layout"), options.pop("pin_memory"), options["dtype"] is None
    dtype = options["dtype"] = dtypes.of_argument(options["dtype"] or dtypes.get_default_dtype(), name)
    layout_text = "Strided (default)" if layout is None else "Strided" if layout is strided else "Sparse"
    described = (f"TensorOptions(dtype={dtypes.C_NAMES[dtype.name]}{' (default)' * by_default}, device=cpu, "
                 f"layout={layout_text}, requires_grad=false (default), pinned_memory={str(bool(pinned)).lower()}, "
                 "memory_format=(nullopt))")
    if layout not in (None, strided):
        raise RuntimeError(f"{name} is not implemented for sparse types, got: {described}")
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: {described}")
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if pinned:
        refuse_pinned(options["device"])
    if dtype.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{dtype.scalar_name}'")
    if length < 2:
        return None, length
    length += periodic
    return layer.functions.arange(length, dtype=dtype, device=options["device"]), length


def _finish(window: Tensor | None, length: int, periodic: bool, options: dict[str, Any]) -> Tensor:
    """The window cut to its length, of which a periodic one is the first part of a longer symmetric one."""
    if window is None:
        return layer.functions.ones(length, **options)
    window = window[:length - 1].clone() if periodic else window
    return window.requires_grad_() if options["requires_grad"] else window


def _cosine_window(name: str, length: int, periodic: bool, alpha: float, beta: float,
                   options: dict[str, Any]) -> Tensor:
    window, length = _positions(name, length, periodic, options)
    if window is not None:
        window = window.mul_(pi * 2 / (length - 1)).cos_().mul_(-beta).add_(alpha)
    return _finish(window, length, periodic, options)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """The Hann window, 1/2 - 1/2 cos(2πk / (n - 1)).

    Args:
        window_length: n.
        periodic: whether the window is one period, for spectra: the first n elements of the window of n + 1.

    >>> import flambeau as torch
    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _cosine_window("hann_window", window_length, periodic, 0.5, 0.5,
                          {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": layout,
                           "pin_memory": pin_memory})


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: Any = None, layout: Any = None, device: Any = None, pin_memory: bool = False,
                   requires_grad: bool = False) -> Tensor:
    """The Hamming window, α - β cos(2πk / (n - 1)).

    Args:
        window_length: n.
        periodic: whether the window is one period, for spectra: the first n elements of the window of n + 1.

    >>> import flambeau as torch
    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _cosine_window("hamming_window", window_length, periodic, alpha, beta,
                          {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": layout,
                           "pin_memory": pin_memory})


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
                    device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """The Bartlett window, a triangle: 1 - |2k / (n - 1) - 1|.

    Args:
        window_length: n.
        periodic: whether the window is one period, for spectra: the first n elements of the window of n + 1.

    >>> import flambeau as torch
    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": layout,
               "pin_memory": pin_memory}
    window, length = _positions("bartlett_window", window_length, periodic, options)
    if window is not None:
        window = window.mul_(2 / (length - 1))
        window[((length - 1) >> 1) + 1:].mul_(-1).add_(2)
    return _finish(window, length, periodic, options)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
                    device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """The Blackman window, 0.42 - 1/2 cos(2πk / (n - 1)) + 0.08 cos(4πk / (n - 1)).

    Args:
        window_length: n.
        periodic: whether the window is one period, for spectra: the first n elements of the window of n + 1.

    >>> import flambeau as torch
    >>> torch.blackman_window(4, dtype=torch.float64).abs()
    tensor([0.0000, 0.3400, 1.0000, 0.3400], dtype=flambeau.float64)
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": layout,
               "pin_memory": pin_memory}
    window, length = _positions("blackman_window", window_length, periodic, options)
    if window is not None:
        window = window.mul_(pi / (length - 1))
        window = window.mul(4).cos_().mul_(0.08) - window.mul(2).cos_().mul_(0.5) + 0.42
    return _finish(window, length, periodic, options)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None,
                  layout: Any = None, device: Any = None, pin_memory: bool = False,
                  requires_grad: bool = False) -> Tensor:
    """The Kaiser window, I₀(β √(1 - (2k / (n - 1) - 1)²)) / I₀(β).

    Args:
        window_length: n.
        periodic: whether the window is one period, for spectra: the first n elements of the window of n + 1.
        beta: the shape: 0 is a rectangle, larger values are narrower.

    >>> import flambeau as torch
    >>> torch.kaiser_window(4, True, 1.)
    tensor([0.7898, 0.9450, 1.0000, 0.9450])
    """
    options = {"dtype": dtype, "device": device, "requires_grad": requires_grad, "layout": layout,
               "pin_memory": pin_memory}
    window, length = _positions("kaiser_window", window_length, periodic, options)
    if window is not None:
        fn, dtype = layer.functions, options["dtype"]
        wide = window if dtype is dtypes.float64 else window.to(dtypes.float32)
        ratio = (wide - (length - 1) / 2) / ((length - 1) / 2)
        top = fn.i0(beta * fn.sqrt(fn.clamp(1 - ratio * ratio, min=0)))
        window = (top / fn.i0(fn.tensor(beta, dtype=top.dtype))).to(dtype)
    return _finish(window, length, periodic, options)
