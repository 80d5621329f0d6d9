"""Modules whose forward PyTorch passes to one operator: recurrent networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch

from ...nn.modules import rnn
from .calls import overload
from .lowerings import METADATA

_NAMES = {"LSTM": "lstm", "GRU": "gru", "RNN_TANH": "rnn_tanh", "RNN_RELU": "rnn_relu"}


def recurrent_forward(builder: Any, module: Any, original: Callable[..., Any], input: Any, hx: Any = None) -> Any:
    """A call of `nn.RNN`, `nn.LSTM` or `nn.GRU` as one node.

    Args:
        original: the module's forward.
    """
    if not isinstance(input, torch.Tensor) or input.dim() not in (2, 3):
        return original(input, hx)
    name = _NAMES[module.mode]
    batched, batch_dim = input.dim() == 3, 0 if module.batch_first else 1
    x = input if batched else input.unsqueeze(batch_dim)
    if hx is None:
        directions = 2 if module.bidirectional else 1
        sizes = (module.proj_size or module.hidden_size, module.hidden_size)
        states = [torch.zeros(module.num_layers * directions, x.size(batch_dim), size, dtype=x.dtype, device=x.device)
                  for size in (sizes if name == "lstm" else sizes[:1])]
        hx = tuple(states) if name == "lstm" else states[0]
    elif not batched:
        hx = tuple(h.unsqueeze(1) for h in hx) if name == "lstm" else hx.unsqueeze(1)
    weights = [w for layer in module.all_weights for w in layer]
    options = (module.bias, module.num_layers, float(module.dropout), module.training, module.bidirectional,
               module.batch_first)
    arguments = (x, list(hx) if name == "lstm" else hx, weights, *options)
    out, *state = builder.emit(overload(name, "input"), arguments, {}, METADATA[name], arguments, {})
    if not batched:
        out, state = out.squeeze(batch_dim), [s.squeeze(1) for s in state]
    return out, tuple(state) if name == "lstm" else state[0]


#: classes of modules -> what records their calls
FORWARDS = {rnn.LSTM: recurrent_forward, rnn.GRU: recurrent_forward, rnn.RNN: recurrent_forward}

__all__ = ["FORWARDS", "recurrent_forward"]
