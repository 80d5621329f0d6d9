"""The short-time Fourier transform and its inverse."""

from __future__ import annotations

import warnings
from typing import Any

from ...engine.tensor_interface import layer
from ...modes import special
from ...ops.declare import REGISTRY
from ...warning_location import user_stacklevel, warn_once
from ..argument_errors.guards import raise_refusal
from ..dispatch.apply import apply
from ..neural.padding import pad as pad_input
from ..tensor import Tensor
from .fourier import _c2c, _c2r, _r2c

__all__ = ["istft", "stft"]


def _shown(value: Any) -> str:
    return str(int(value)) if isinstance(value, bool) else str(value)


def _described(name: str, input: Tensor, prefix: str, window: Tensor | None, **arguments: Any) -> str:
    """The call as PyTorch's errors name it."""
    shown = "None" if window is None else f"torch.{_type_name(window)}{{{list(window._array.shape)}}}"
    arguments["window"] = shown
    order = ("n_fft", "hop_length", "win_length", "window", *(
        key for key in arguments if key not in ("n_fft", "hop_length", "win_length", "window")))
    text = ", ".join(f"{key}={_shown(arguments[key])}" for key in order)
    return f"{name}({prefix}{list(input._array.shape)}, {text}) "


def _type_name(x: Tensor) -> str:
    return f"{x.dtype.scalar_name}Tensor"


def _padded_window(window: Tensor | None, input: Tensor, n_fft: int, win_length: int) -> Tensor | None:
    """The window in the middle of n_fft elements; None where it has no effect."""
    if win_length >= n_fft:
        return window
    fn = layer.functions
    left = (n_fft - win_length) // 2
    if window is None:
        window = fn.ones(win_length, dtype=input.dtype)
    return fn.constant_pad_nd(window, (left, n_fft - win_length - left))


#: classes of arguments that say whether something is done
_FLAGS = frozenset((bool, type(None)))


def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:
    """The short-time Fourier transform: the transforms of overlapping windows of a signal.

    Args:
        input: (L) or (B, L), real or complex.
        n_fft: the size of the transforms.
        hop_length: the distance of two windows, n_fft / 4 by default.
        win_length: the size of the window, `n_fft` by default; a smaller one is padded with zeros.
        window: (win_length), a rectangle by default.
        center: whether the signal is padded by n_fft / 2 at both ends, in the mode `pad_mode`.
        normalized: whether the result is divided by √n_fft.
        onesided: whether only the first n_fft / 2 + 1 frequencies are returned, the default for real signals.
        return_complex: required for real signals: whether the result is complex, or has real and imaginary parts as
            its last dimension (deprecated).
        align_to_window: whether windows without `center` begin at the start of a smaller window.

    Returns:
        (N, T) or (B, N, T): N frequencies, T windows.

    Raises:
        RuntimeError: an argument is out of range.

    >>> import flambeau as torch
    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    flambeau.Size([3, 9])
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    fn = layer.functions
    if center:
        ndim = input.dim()
        extended = input.view([1] * (3 - ndim) + list(input._array.shape))
        width = int(n_fft // 2)
        padded = pad_input(extended, [width, width], pad_mode)
        input = padded.view(padded._array.shape[-ndim:])
    if not {normalized.__class__, onesided.__class__, return_complex.__class__} <= _FLAGS:
        from ..argument_errors.messages import FUNCTION, explained

        raise_refusal(explained(FUNCTION, "stft", (input, n_fft, hop_length, win_length, window, normalized, onesided,
                                                   return_complex, align_to_window), {}))
    if window is None:
        warn_once("A window was not provided. A rectangular window will be applied,which is known to cause spectral "
                  "leakage. Other windows such as torch.hann_window or torch.hamming_window are recommended to reduce "
                  "spectral leakage.To suppress this warning and use a rectangular window, explicitly set "
                  "`window=torch.ones(n_fft, device=<device>)`.")
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length
    is_complex = input.dtype.is_complex or (window is not None and window.dtype.is_complex)
    shown = f"CPU{input.dtype.scalar_name}Type" if input.dtype.is_complex else f"torch.{_type_name(input)}"
    call = _described("stft", input, shown, window, n_fft=n_fft, hop_length=hop,
                      win_length=length, normalized=normalized, onesided=onesided, return_complex=return_complex,
                      align_to_window=align_to_window)
    if return_complex is None:
        return_complex = is_complex
        if not is_complex:
            raise RuntimeError("stft requires the return_complex parameter be given for real inputs, and will further "
                               "require that return_complex=True in a future PyTorch release.")
    if not return_complex:
        warn_once("stft with return_complex=False is deprecated. In a future pytorch release, stft will return "
                  "complex tensors for all inputs, and return_complex=False will raise an error.\nNote: you can "
                  "still call torch.view_as_real on the complex output to recover the old return format.")
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(call + ": expected a tensor of floating point or complex values")
    if input.dim() not in (1, 2):
        raise RuntimeError(call + ": expected a 1D or 2D tensor")
    batched = input.dim() == 2
    x = input if batched else fn.unsqueeze(input, 0)
    size = x._array.shape[1]
    if not 0 < n_fft <= size:
        raise RuntimeError(call + f": expected 0 < n_fft < {size}, but got n_fft={n_fft}")
    if hop <= 0:
        raise RuntimeError(call + f": expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise RuntimeError(call + f": expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and window._array.shape != (length,):
        raise RuntimeError(call + f": expected a 1D window tensor of size equal to win_length={length}, but got window "
                           f"with size {list(window._array.shape)}")
    onesided = not is_complex if onesided is None else onesided
    if is_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return_frames = _frames(x, n_fft, hop, length, window, bool(align_to_window))
    by = 1 if normalized else 0
    if is_complex:
        if not return_frames.dtype.is_complex:
            return_frames = return_frames.to(return_frames.dtype.to_complex())
        result = _c2c(return_frames, (2,), by, True)
    else:
        result = _r2c(return_frames, (2,), by, bool(onesided))
    result = fn.transpose(result, 1, 2)
    if not batched:
        result = fn.squeeze(result, 0)
    return result if return_complex else fn.view_as_real(result)


def _frames(x: Tensor, n_fft: int, hop: int, length: int, window: Tensor | None, aligned: bool) -> Tensor:
    """The windows of a signal times the window function, (B, T, n_fft)."""
    fn = layer.functions
    if aligned and length < n_fft:
        left = (n_fft - length) // 2
        x = fn.constant_pad_nd(x, (left, n_fft - length - left))
    frames = x.unfold(1, n_fft, hop)
    window = _padded_window(window, x, n_fft, length)
    return frames if window is None else fn.mul(frames, window)


def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
          length: int | None = None, return_complex: bool = False) -> Tensor:
    """The inverse of `stft`: the signal of which the transform is nearest to the input.

    Args:
        input: (N, T) or (B, N, T), complex.
        n_fft, hop_length, win_length, window, center, normalized, onesided: as given to `stft`.
        length: the length of the signal.
        return_complex: whether the signal is complex.

    Returns:
        The signal, (L) or (B, L).

    Raises:
        RuntimeError: an argument is out of range, or the windows do not cover the signal.

    >>> import flambeau as torch
    >>> window = torch.hann_window(4)
    >>> x = torch.stft(torch.arange(8.), 4, window=window, return_complex=True)
    >>> torch.istft(x, 4, window=window).round()
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    if window is None:
        warn_once("A window was not provided. A rectangular window will be applied.Please provide the same window "
                  "used by stft to make the inversion lossless.To suppress this warning and use a rectangular "
                  "window, explicitly set `window=torch.ones(n_fft, device=<device>)`.")
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length
    if not input.dtype.is_complex:
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with "
                           "return_complex=True.")
    call = _described("istft", input, f"CPU{input.dtype.scalar_name}Type", window, n_fft=n_fft, hop_length=hop,
                      win_length=size, center=center, normalized=normalized, onesided=onesided, length=length,
                      return_complex=return_complex)
    ndim = input.dim()
    if ndim < 2:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim - 1}, {ndim}], but got -3)")
    frequencies, count = input._array.shape[-2:]
    _check_istft(call, input, frequencies, n_fft, hop, size, window, onesided)
    onesided = frequencies != n_fft if onesided is None else onesided
    fn = layer.functions
    x = fn.unsqueeze(input, 0) if ndim == 2 else input
    x = fn.transpose(x, 1, 2)
    by = 1 if normalized else 2
    if return_complex:
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        x = _c2c(x, (2,), by, False)
    else:
        if window is not None and window.dtype.is_complex:
            raise RuntimeError("Complex windows are incompatible with return_complex=False")
        if not onesided:
            x = fn.slice(x, dim=2, start=0, end=n_fft // 2 + 1, step=1)
        x = _c2r(x, (2,), by, n_fft)
    if window is None:
        window = fn.ones(size, dtype=input.dtype.to_real())
    window = _padded_window(window, input, n_fft, size)
    return _overlap_add(call, x, fn.view(window, (1, 1, n_fft)), n_fft, hop, count, center, length, ndim == 2)


def _check_istft(call: str, input: Tensor, frequencies: int, n_fft: int, hop: int, size: int, window: Tensor | None,
                 onesided: bool | None) -> None:
    if not input.numel():
        raise RuntimeError(call + ": input tensor cannot be empty.")
    if input.dim() not in (2, 3):
        raise RuntimeError(call + f": expected a tensor with 3 or 4 dimensions, but got {input.dim() + 1}")
    onesided = frequencies != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if onesided else n_fft
    if frequencies != expected:
        raise RuntimeError(call + ": expected the frequency dimension (3rd to the last) of the input tensor to match "
                           f"n_fft{' / 2 + 1' if onesided else ''} when onesided={onesided}, but got {frequencies}")
    if not 0 < hop <= size:
        raise RuntimeError(call + ": expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise RuntimeError(call + ": expected 0 < win_length <= n_fft")
    if window is not None and window._array.shape != (size,):
        raise RuntimeError(call + ": Invalid window shape. window has to be 1D and length of `win_length`")


def _overlap_add(call: str, frames: Tensor, window: Tensor, n_fft: int, hop: int, count: int, center: bool,
                 length: int | None, unbatched: bool) -> Tensor:
    """The sum of the windows at their positions over that of the squared window functions."""
    fn = layer.functions
    total = n_fft + hop * (count - 1)

    def added(x: Tensor) -> Tensor:
        return apply(REGISTRY["_embed_windows"], [x], {
            "size": (x._array.shape[0], total), "dimension": 1, "window": n_fft, "step": hop})

    signal = added(fn.mul(frames, window))
    envelope = added(fn.expand(fn.pow(window, 2), (1, count, n_fft)))
    start = n_fft // 2 if center else 0
    end = total if length is None and not center else total - n_fft // 2 if length is None else start + length
    signal = fn.slice(signal, dim=1, start=start, end=end, step=1)
    envelope = fn.slice(envelope, dim=1, start=start, end=end, step=1)
    if not _all(fn.abs(envelope) > 1e-11):
        raise RuntimeError(call + "window overlap add min: 1\n[ CPUBoolType{} ]")
    signal = fn.div(signal, envelope)
    if end > total:
        warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in "
                      "the tail. Please check your center and hop_length settings.", UserWarning,
                      stacklevel=user_stacklevel())
        signal = fn.constant_pad_nd(signal, (0, end - total))
    return fn.squeeze(signal, 0) if unbatched else signal


def _all(x: Tensor) -> bool:
    """Whether all elements are true, in all examples of a batched tensor."""
    if special[0]:
        from ..dispatch.batched_tensor import BatchedTensor

        if type(x) is BatchedTensor:
            x = x._value
    return bool(layer.functions.all(x))


METHODS: dict[str, Any] = {"stft": stft, "istft": istft}
