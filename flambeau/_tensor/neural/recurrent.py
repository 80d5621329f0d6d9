"""A recurrent layer's steps in one node, where nothing but plain tensors is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...modes import special
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply, ndarray
from ..fastpath.by_arity import F32, F64
from ..tensor import Tensor

_gru, _lstm, _lstm_wide = (REGISTRY[name] for name in ("_gru_layer", "_lstm_layer", "_lstm_layer_wide"))


def _plain(tensors: Sequence[Any]) -> bool:
    """Whether all are tensors of float32 or all of float64, in no mode that looks at each operator."""
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
    """All steps of an LSTM, whose state is (h, c), or of a GRU; None: they are to be run one by one.

    Args:
        input: (L, N, size).
        weights: of the input and of the state; their biases if `bias`.
        backwards: begin with the sequence's end.
    """
    is_lstm = state.__class__ is tuple
    states = state if is_lstm else (state,)
    weight_ih, weight_hh = weights[:2]
    bias_ih, bias_hh = weights[2:4] if bias else (None, None)
    inputs = [input, weight_ih, weight_hh, bias_ih, bias_hh, *states]
    if not _plain(inputs) or not input._array.size:
        return None
    params = {"backwards": backwards, "saved": []}
    if not is_lstm:
        output, last = apply(_gru, inputs, params)
        return output, last
    output, last, cell = apply(_lstm if input._array.dtype is F32 else _lstm_wide, inputs, params)
    return output, (last, cell)
