"""Recurrent cells: one time step of RNN, LSTM and GRU."""

from __future__ import annotations

import math
from typing import Any

from ...._tensor import Parameter, Tensor
from ...._tensor import functions as fn
from ...._tensor.overriding.entry_points import asks_handlers
from ... import init
from ...recurrent import gru_cell, gru_step, lstm_cell, lstm_step, rnn_relu_cell, rnn_step, rnn_tanh_cell
from ..module import Module

__all__ = ["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"]


class RNNCellBase(Module):
    """Base of `RNNCell`, `LSTMCell` and `GRUCell`: parameters and shape checks.

    Args:
        input_size: size of the input features.
        hidden_size: H, size of the hidden state.
        bias: whether there are biases.
        num_chunks: number of gates.
        device: device of the parameters.
        dtype: dtype of the parameters.

    >>> import flambeau as torch
    >>> [tuple(p.shape) for p in torch.nn.RNNCellBase(2, 3, True, num_chunks=4).parameters()]
    [(12, 2), (12, 3), (12,), (12,)]
    """

    __constants__ = ["input_size", "hidden_size", "bias"]

    input_size: int
    hidden_size: int
    bias: bool
    weight_ih: Tensor
    weight_hh: Tensor
    bias_ih: Tensor | None
    bias_hh: Tensor | None

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = Parameter(fn.empty((gates, input_size), device=device, dtype=dtype))
        self.weight_hh = Parameter(fn.empty((gates, hidden_size), device=device, dtype=dtype))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(fn.empty(gates, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize the parameters from U(-1/√hidden_size, 1/√hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        nonlinearity = self.__dict__.get("nonlinearity", "tanh")
        return text + (f", nonlinearity={nonlinearity}" if nonlinearity != "tanh" else "")

    def _add_batch_dim(self, input: Tensor, name: str) -> tuple[Tensor, bool]:
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        return (input, True) if input.dim() == 2 else (input.unsqueeze(0), False)

    def _zero_state(self, input: Tensor) -> Tensor:
        return fn.zeros((input.size(0), self.hidden_size), dtype=input.dtype, device=input.device)

    def _parameters_in_order(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check_sizes(self, input: Tensor, *states: Tensor) -> None:
        if input.size(1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {self.input_size}")
        for i, state in enumerate(states):
            if input.size(0) != state.size(0):
                raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{i} batch size "
                                   f"{state.size(0)}")
            if state.size(1) != self.hidden_size:
                raise RuntimeError(f"hidden{i} has inconsistent hidden_size: got {state.size(1)}, "
                                   f"expected {self.hidden_size}")


class RNNCell(RNNCellBase):
    """One step of `RNN`: h' = tanh(x Wᵢₕᵀ + bᵢₕ + h Wₕₕᵀ + bₕₕ), or relu.

    Args:
        input_size: size of x.
        hidden_size: H, size of h.
        bias: whether there are biases.
        nonlinearity: "tanh" or "relu".
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        x (N, input_size) or (input_size,); h and h' (N, H) or (H,); h defaults to zeros.

    Raises:
        ValueError: input or state is neither 1-D nor 2-D.
        RuntimeError: the sizes of input and state do not match.

    >>> import flambeau as torch
    >>> torch.nn.RNNCell(10, 20)(torch.ones(3, 10)).shape
    flambeau.Size([3, 20])
    """

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    nonlinearity: str

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh",
                 device: Any = None, dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        input, batched = self._add_batch_dim(input, "RNNCell")
        if hx is not None and hx.dim() not in (1, 2):
            raise ValueError(f"RNNCell: Expected hidden to be 1D or 2D, got {hx.dim()}D instead")
        h = self._zero_state(input) if hx is None else hx if batched else hx.unsqueeze(0)
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        self._check_sizes(input, h)
        weights = self._parameters_in_order()
        if asks_handlers(input, h, *weights):
            h = (rnn_tanh_cell if self.nonlinearity == "tanh" else rnn_relu_cell)(input, h, *weights)
            return h if batched else h.squeeze(0)
        x = fn.linear(input, self.weight_ih, self.bias_ih)
        h = rnn_step(x, h, self.weight_hh, self.bias_hh, self.nonlinearity)
        return h if batched else h.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of `LSTM`: returns (h', c').

    Args:
        input_size: size of x.
        hidden_size: H, size of h.
        bias: whether there are biases.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        x (N, input_size) or (input_size,); h, c, h' and c' (N, H) or (H,); h and c default to zeros.

    Raises:
        ValueError: input or state is neither 1-D nor 2-D.
        RuntimeError: the sizes of input and state do not match.

    >>> import flambeau as torch
    >>> h, c = torch.nn.LSTMCell(10, 20)(torch.ones(3, 10))
    >>> h.shape
    flambeau.Size([3, 20])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        input, batched = self._add_batch_dim(input, "LSTMCell")
        if hx is None:
            zeros = self._zero_state(input)
            state = (zeros, zeros)
        else:
            for i, value in enumerate(hx):
                if value.dim() not in (1, 2):
                    raise ValueError(f"LSTMCell: Expected hx[{i}] to be 1D or 2D, got {value.dim()}D instead")
            state = (hx[0], hx[1]) if batched else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        self._check_sizes(input, *state)
        weights = self._parameters_in_order()
        if asks_handlers(input, state, *weights):
            h, c = lstm_cell(input, state, *weights)
        else:
            x = fn.linear(input, self.weight_ih, self.bias_ih)
            h, c = lstm_step(x, state, self.weight_hh, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of `GRU`: returns h'.

    Args:
        input_size: size of x.
        hidden_size: H, size of h.
        bias: whether there are biases.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        x (N, input_size) or (input_size,); h and h' (N, H) or (H,); h defaults to zeros.

    Raises:
        ValueError: input or state is neither 1-D nor 2-D.
        RuntimeError: the sizes of input and state do not match.

    >>> import flambeau as torch
    >>> torch.nn.GRUCell(10, 20)(torch.ones(3, 10)).shape
    flambeau.Size([3, 20])
    """

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None,
                 dtype: Any = None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        input, batched = self._add_batch_dim(input, "GRUCell")
        if hx is not None and hx.dim() not in (1, 2):
            raise ValueError(f"GRUCell: Expected hidden to be 1D or 2D, got {hx.dim()}D instead")
        h = self._zero_state(input) if hx is None else hx if batched else hx.unsqueeze(0)
        self._check_sizes(input, h)
        weights = self._parameters_in_order()
        if asks_handlers(input, h, *weights):
            h = gru_cell(input, h, *weights)
            return h if batched else h.squeeze(0)
        x = fn.linear(input, self.weight_ih, self.bias_ih)
        h = gru_step(x, h, self.weight_hh, self.bias_hh)
        return h if batched else h.squeeze(0)
