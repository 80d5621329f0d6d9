"""The operators that the package torchaudio expects of its library in machine code, which cannot be loaded here.

Torchaudio asks only whether the library's file is there. Its Python functions need two loops over samples; alignment
and the loss of transducers are left out.
"""

from __future__ import annotations

import numpy as np

from .. import library
from .._tensor import Tensor
from .._tensor.tensor import wrap


def recursive_filter(input: Tensor, a_coeffs_flipped: Tensor, padded_output: Tensor) -> None:
    """The recursive part of a filter: each sample minus the products of the former outputs.

    Args:
        input: (batch, channels, time).
        a_coeffs_flipped: (channels, order), the coefficient of the current sample, which is 1, last.
        padded_output: (batch, channels, order - 1 + time), zeros, to which the result is written.
    """
    signal = np.ascontiguousarray(np.moveaxis(input.detach().numpy(), 2, 0))
    coefficients = a_coeffs_flipped.detach().numpy()[:, :-1].T[:, None, :]
    former = len(coefficients)
    found = np.zeros((former + len(signal), *signal.shape[1:]), signal.dtype)
    for t, sample in enumerate(signal):
        found[t + former] = sample - (found[t:t + former] * coefficients).sum(0)
    padded_output.copy_(wrap(np.moveaxis(found, 0, 2)))


def overdrive(waveform: Tensor, temp: Tensor, last_in: Tensor, last_out: Tensor, output_waveform: Tensor) -> None:
    """The loop of the overdrive effect: a distorted signal without its slow part, mixed with the signal.

    Args:
        waveform, temp: the signal and the distorted one, (channels, time).
        last_in, last_out: the values before the first, (channels,).
        output_waveform: (channels, time), to which the result is written.
    """
    signal, distorted = waveform.detach().numpy(), temp.detach().numpy()
    before, high = last_in.numpy(), last_out.numpy()
    found = np.empty_like(signal)
    for t in range(signal.shape[1]):
        high = distorted[:, t] - before + 0.995 * high
        before = distorted[:, t]
        found[:, t] = signal[:, t] * 0.5 + high * 0.75
    output_waveform.copy_(wrap(found))


def define() -> None:
    """Define the operators, once."""
    if _defined:
        return
    _defined.append(True)
    for name, schema, kernel in (
            ("torchaudio::_lfilter_core_loop",
             "(Tensor input, Tensor a_coeffs_flipped, Tensor(a!) padded_output) -> ()", recursive_filter),
            ("torchaudio::_overdrive_core_loop",
             "(Tensor waveform, Tensor temp, Tensor last_in, Tensor last_out, Tensor(a!) output_waveform) -> ()",
             overdrive),
            ("_torchaudio::is_align_available", "() -> bool", lambda: False),
            ("_torchaudio::cuda_version", "() -> int?", lambda: None)):
        library.define(name, schema)
        library.impl(name, "default" if "Tensor" not in schema else "cpu", kernel)


_defined: list[bool] = []

__all__ = ["define"]
