"""LSTM and GRU layers as one operator over all time steps, for float32 and float64 tensors outside modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...modes import special
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply, ndarray
from ..fastpath.by_arity import F32, F64
from ..tensor import Tensor

_gru, _lstm, _lstm_wide = (REGISTRY[name] for name in ("_gru_layer", "_lstm_layer", "_lstm_layer_wide"))


def _all_plain(tensors: Sequence[Any]) -> bool:
    """Whether all are float32 or all float64 tensors, and `special` is 0."""
    if special[0]:
        return False
    dtype = tensors[0]._array.dtype
    if dtype is not F32 and dtype is not F64:
        return False
    for x in tensors:
        if x is not None and (x._array.__class__ is not ndarray or x._array.dtype is not dtype):
            return False
    return True


def recurrent_layer(input: Tensor, state: Any, weights: Sequence[Any], bias: bool,
                    backwards: bool) -> tuple[Tensor, Any] | None:
    """All time steps of an LSTM or GRU layer; None if the steps must be run one by one.

    Args:
        input: (L, N, size).
        state: (h, c) for an LSTM, h for a GRU.
        weights: weight_ih, weight_hh and, if `bias`, bias_ih, bias_hh.
        backwards: run from the end of the sequence.
    """
    is_lstm = state.__class__ is tuple
    states = state if is_lstm else (state,)
    weight_ih, weight_hh = weights[:2]
    bias_ih, bias_hh = weights[2:4] if bias else (None, None)
    inputs = [input, weight_ih, weight_hh, bias_ih, bias_hh, *states]
    if not _all_plain(inputs) or not input._array.size:
        return None
    params = {"backwards": backwards, "saved": []}
    if not is_lstm:
        output, last = apply(_gru, inputs, params)
        return output, last
    output, last, cell = apply(_lstm if input._array.dtype is F32 else _lstm_wide, inputs, params)
    return output, (last, cell)
