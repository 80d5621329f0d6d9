"""Recurrent layers over sequences: `RNN`, `LSTM`, `GRU`."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

from ..._tensor import Parameter, Tensor
from ..._tensor import functions as fn
from ..._tensor.neural.recurrent import recurrent_layer
from ..._tensor.neural.recurrent_cell import rnn_steps
from .. import init
from .module import Module
from .rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase, gru_step, lstm_step, rnn_step

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class RNNBase(Module):
    """Base of `RNN`, `LSTM` and `GRU`: parameters, stacking of layers, directions, batch handling.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input_size: size of the input features.
        hidden_size: H, size of the hidden state.
        num_layers: number of stacked layers.
        bias: whether there are biases.
        batch_first: batched sequences are (N, L, size) instead of (L, N, size).
        dropout: dropout probability of the outputs between layers, in training mode.
        bidirectional: also run over the reversed sequence; the outputs are concatenated.
        proj_size: LSTM only: size that the hidden state is projected to; 0 for no projection.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a size is out of range, or `mode` is unknown.

    >>> import flambeau as torch
    >>> [name for name, _ in torch.nn.RNNBase("GRU", 2, 3).named_parameters()]
    ['weight_ih_l0', 'weight_hh_l0', 'bias_ih_l0', 'bias_hh_l0']
    """

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check_arguments(dropout)
        gates = GATES[mode] * hidden_size
        output_size = proj_size if proj_size > 0 else hidden_size
        directions = 2 if bidirectional else 1
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            layer_input = input_size if layer == 0 else output_size * directions
            shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, layer_input),
                                                  "weight_hh": (gates, output_size)}
            if bias:
                shapes["bias_ih"] = shapes["bias_hh"] = (gates,)
            if proj_size > 0:
                shapes["weight_hr"] = (proj_size, hidden_size)
            for suffix in (f"_l{layer}", f"_l{layer}_reverse")[:directions]:
                for name, shape in shapes.items():
                    setattr(self, name + suffix, Parameter(fn.empty(shape, device=device, dtype=dtype)))
                self._all_weights.append([name + suffix for name in shapes])
        self.reset_parameters()

    def __getstate__(self) -> dict[str, Any]:
        # PyTorch's pickles hold the flat weight list too
        names = [name for layer_names in self._all_weights for name in layer_names]
        return {**super().__getstate__(), "_flat_weights_names": names,
                "_flat_weights": [getattr(self, name, None) for name in names]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for name in ("_flat_weights_names", "_flat_weights"):
            self.__dict__.pop(name, None)
        self.__dict__.setdefault("proj_size", 0)  # absent in pickles of PyTorch < 1.8

    def _check_arguments(self, dropout: Any) -> None:
        is_number = isinstance(dropout, numbers.Number) and not isinstance(dropout, bool)
        if not is_number or not 0 <= dropout <= 1:
            raise ValueError("dropout should be a number in range [0, 1] "
                             "representing the probability of an element being zeroed")
        if dropout > 0 and self.num_layers == 1:
            warnings.warn("dropout option adds dropout after all but last recurrent layer, so non-zero dropout "
                          f"expects num_layers greater than 1, but got dropout={dropout} and "
                          f"num_layers={self.num_layers}", stacklevel=4)
        if not isinstance(self.bias, bool):
            raise TypeError(f"bias should be of type bool, got: {type(self.bias).__name__}")
        if not isinstance(self.batch_first, bool):
            raise TypeError(f"batch_first should be of type bool, got: {type(self.batch_first).__name__}")
        for name in ("input_size", "hidden_size"):
            size = getattr(self, name)
            if not isinstance(size, int):
                raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
            if size <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    def reset_parameters(self) -> None:
        """Initialize the parameters from U(-1/√hidden_size, 1/√hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def flatten_parameters(self) -> None:
        """No effect: the CPU kernels do not require contiguous weights."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each layer and direction, one list each."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [weight for weights in self.all_weights for weight in weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size != 0:
            text += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            text += f", num_layers={self.num_layers}"
        if self.bias is not True:
            text += f", bias={self.bias}"
        if self.batch_first is not False:
            text += f", batch_first={self.batch_first}"
        if self.dropout != 0:
            text += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            text += f", bidirectional={self.bidirectional}"
        return text

    # -- forward -------------------------------------------------------------------------------------

    def check_input(self, input: Tensor) -> None:
        """Check the dtype and the last dimension of the input.

        Raises:
            ValueError: the dtype is not the weights' dtype.
            RuntimeError: the last dimension is not `input_size`.
        """
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype:
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                             f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})")
        if input.size(-1) != self.input_size:
            raise RuntimeError("input.size(-1) must be equal to input_size. "
                               f"Expected {self.input_size}, got {input.size(-1)}")

    def _check_state(self, state: Tensor, size: int, batch: int, label: str = "hidden") -> None:
        directions = 2 if self.bidirectional else 1
        expected = (self.num_layers * directions, batch, size)
        if tuple(state.shape) != expected:
            raise RuntimeError(f"Expected {label} size {expected}, got {list(state.size())}")

    def _cell(self, x: Tensor, state: Any, weights: list[Parameter]) -> Any:
        """One time step: the next state from the projected input `x`."""
        raise NotImplementedError

    def _run_steps(self, xs: Sequence[Tensor], state: Any, weights: list[Parameter]) -> list[Any]:
        """The states after each time step."""
        states = []
        for x in xs:
            state = self._cell(x, state, weights)
            states.append(state)
        return states

    def _zero_state(self, batch: int, like: Tensor) -> Any:
        """The initial state: zeros."""
        directions = 2 if self.bidirectional else 1
        return fn.zeros((self.num_layers * directions, batch, self.proj_size or self.hidden_size),
                        dtype=like.dtype, device=like.device)

    def _select_state(self, states: Any, i: int) -> Any:
        """The state of one layer and direction."""
        return states[i]

    def _stack_states(self, states: list[Any]) -> Any:
        return fn.stack(states)

    def _hidden_of(self, state: Any) -> Tensor:
        """The output h of a state."""
        return state

    def _run_layers(self, input: Tensor, states: Any) -> tuple[Tensor, Any]:
        """Map (L, N, input_size) and initial states to (L, N, directions · H) and final states."""
        directions = 2 if self.bidirectional else 1
        finals = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(directions):
                i = layer * directions + direction
                steps, final = self._run_layer(input, self._select_state(states, i), self.all_weights[i],
                                               reverse=direction == 1)
                outputs.append(steps)
                finals.append(final)
            input = outputs[0] if directions == 1 else fn.cat(outputs, 2)
            if self.dropout > 0 and self.training and layer < self.num_layers - 1:
                input = fn.dropout(input, self.dropout, True)
        return input, self._stack_states(finals)

    def _run_layer(self, input: Tensor, state: Any, weights: list[Parameter],
                   reverse: bool) -> tuple[Tensor, Any]:
        if self.mode in ("LSTM", "GRU") and self.proj_size == 0:
            fused = recurrent_layer(input, state, weights, self.bias, reverse)
            if fused is not None:
                return fused
        # one GEMM projects the inputs of all steps; the hidden state is projected step by step
        projected = fn.linear(input, weights[0], weights[2] if self.bias else None).unbind(0)
        states = self._run_steps(projected[::-1] if reverse else projected, state, weights)
        outputs = [self._hidden_of(each) for each in states]
        state = states[-1] if states else state
        if reverse:
            outputs.reverse()
        return fn.stack(outputs), state

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Any]:
        name = type(self).__name__ if type(self) in (RNN, LSTM, GRU) else self.mode.partition("_")[0]
        if input.dim() not in (2, 3):
            word = " tensor" if name == "RNN" else ""
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D{word} instead")
        batched = input.dim() == 3
        if not batched:
            input = input.unsqueeze(1)
        elif self.batch_first:
            input = input.transpose(0, 1)
        states = self._prepare_state(hx, batched, input)
        self.check_input(input)
        self._check_states(states, input.size(1))
        output, final = self._run_layers(input, states)
        if not batched:
            return output.squeeze(1), self._remove_batch_dim(final)
        return (output.transpose(0, 1) if self.batch_first else output), final

    def _prepare_state(self, hx: Any, batched: bool, input: Tensor) -> Any:
        if hx is None:
            return self._zero_state(input.size(1), input)
        rank, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if hx.dim() != rank:
            raise RuntimeError(f"For {kind} input, hx should also be {rank}-D but got {hx.dim()}-D tensor")
        return hx if batched else hx.unsqueeze(1)

    def _check_states(self, states: Any, batch: int) -> None:
        self._check_state(states, self.hidden_size, batch)

    def _remove_batch_dim(self, final: Any) -> Any:
        return final.squeeze(1)


class RNN(RNNBase):
    """Elman RNN: hₜ = tanh(xₜ Wᵢₕᵀ + bᵢₕ + hₜ₋₁ Wₕₕᵀ + bₕₕ), or relu.

    Parameters are initialized from U(-1/√hidden_size, 1/√hidden_size).

    Args:
        input_size: size of xₜ.
        hidden_size: H, size of hₜ.
        num_layers: number of stacked layers; each runs over the outputs of the one below.
        nonlinearity: "tanh" or "relu".
        bias: whether there are biases.
        batch_first: batched sequences are (N, L, size) instead of (L, N, size).
        dropout: dropout probability of the outputs between layers, in training mode.
        bidirectional: also run over the reversed sequence; the outputs are concatenated.
        device: device of the parameters.
        dtype: dtype of the parameters.
        proj_size: must be 0.

    Shape:
        Input (L, N, input_size), (N, L, input_size) with `batch_first`, or (L, input_size). Initial and final h:
        (D · num_layers, N, H) or (D · num_layers, H), D = 2 if bidirectional, else 1. Output: like the input, with
        last dimension D · H.

    Raises:
        ValueError: `nonlinearity` is unknown, or the input is neither 2-D nor 3-D.
        RuntimeError: the sizes of input and state do not match.

    >>> import flambeau as torch
    >>> output, hidden = torch.nn.RNN(10, 20, 2)(torch.ones(5, 3, 10))
    >>> output.shape, hidden.shape
    (flambeau.Size([5, 3, 20]), flambeau.Size([2, 3, 20]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh",
                 bias: bool = True, batch_first: bool = False, dropout: float = 0.0,
                 bidirectional: bool = False, device: Any = None, dtype: Any = None, *,
                 proj_size: int = 0) -> None:
        if proj_size > 0:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        mode = "RNN_TANH" if nonlinearity == "tanh" else "RNN_RELU"
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         0, device, dtype)
        self.nonlinearity = nonlinearity

    def _cell(self, x: Tensor, state: Tensor, weights: list[Parameter]) -> Tensor:
        return rnn_step(x, state, weights[1], weights[3] if self.bias else None, self.nonlinearity)

    def _run_steps(self, xs: Sequence[Tensor], state: Any, weights: list[Parameter]) -> list[Any]:
        fused = rnn_steps(xs, state, weights[1], weights[3] if self.bias else None, self.nonlinearity)
        return super()._run_steps(xs, state, weights) if fused is None else fused


class LSTM(RNNBase):
    """Long short-term memory: c = f · c + i · g, h = o · tanh(c).

    i, f, o = σ(x Wᵢₕᵀ + bᵢₕ + h Wₕₕᵀ + bₕₕ) and g = tanh(...) likewise, each with its own rows of the weights.

    Args:
        input_size: size of x.
        hidden_size: H, size of h and c.
        num_layers: number of stacked layers.
        bias: whether there are biases.
        batch_first: batched sequences are (N, L, size) instead of (L, N, size).
        dropout: dropout probability of the outputs between layers, in training mode.
        bidirectional: also run over the reversed sequence; the outputs are concatenated.
        proj_size: size that h is projected to by a learnable matrix; 0 for no projection.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Input as in `RNN`; initial and final state (h, c): h (D · num_layers, N, proj_size or H), c (D · num_layers, N,
        H); output (L, N, D · (proj_size or H)).

    Raises:
        ValueError: an argument is out of range, or the input is neither 2-D nor 3-D.
        RuntimeError: the sizes of input and state do not match.

    >>> import flambeau as torch
    >>> output, (hidden, cell) = torch.nn.LSTM(10, 20, 2)(torch.ones(5, 3, 10))
    >>> output.shape, cell.shape
    (flambeau.Size([5, 3, 20]), flambeau.Size([2, 3, 20]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 proj_size: int = 0, device: Any = None, dtype: Any = None) -> None:
        super().__init__("LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         proj_size, device, dtype)

    def _cell(self, x: Tensor, state: tuple[Tensor, Tensor],
              weights: list[Parameter]) -> tuple[Tensor, Tensor]:
        h, c = lstm_step(x, state, weights[1], weights[3] if self.bias else None)
        return (fn.linear(h, weights[-1]) if self.proj_size > 0 else h), c

    def _zero_state(self, batch: int, like: Tensor) -> tuple[Tensor, Tensor]:
        directions = 2 if self.bidirectional else 1
        cell = fn.zeros((self.num_layers * directions, batch, self.hidden_size), dtype=like.dtype,
                        device=like.device)
        return super()._zero_state(batch, like), cell

    def _select_state(self, states: Any, i: int) -> tuple[Tensor, Tensor]:
        return states[0][i], states[1][i]

    def _stack_states(self, states: list[Any]) -> tuple[Tensor, Tensor]:
        hidden, cell = zip(*states, strict=True)
        return fn.stack(hidden), fn.stack(cell)

    def _hidden_of(self, state: Any) -> Tensor:
        return state[0]

    def _prepare_state(self, hx: Any, batched: bool, input: Tensor) -> Any:
        if hx is None:
            return self._zero_state(input.size(1), input)
        h, c = hx[0], hx[1]
        rank, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if h.dim() != rank or c.dim() != rank:
            raise RuntimeError(f"For {kind} input, hx and cx should also be {rank}-D "
                               f"but got ({h.dim()}-D, {c.dim()}-D) tensors")
        return (h, c) if batched else (h.unsqueeze(1), c.unsqueeze(1))

    def _check_states(self, states: Any, batch: int) -> None:
        self._check_state(states[0], self.proj_size or self.hidden_size, batch, "hidden[0]")
        self._check_state(states[1], self.hidden_size, batch, "hidden[1]")

    def _remove_batch_dim(self, final: Any) -> Any:
        return final[0].squeeze(1), final[1].squeeze(1)


class GRU(RNNBase):
    """Gated recurrent unit: h = (1 - z) · n + z · h.

    r, z = σ(x Wᵢₕᵀ + bᵢₕ + h Wₕₕᵀ + bₕₕ) and n = tanh(x Wᵢₕᵀ + bᵢₕ + r · (h Wₕₕᵀ + bₕₕ)), each with its own rows of
    the weights. See `RNN` for the arguments, the shapes and the exceptions.

    >>> import flambeau as torch
    >>> output, hidden = torch.nn.GRU(10, 20, 2)(torch.ones(5, 3, 10))
    >>> output.shape, hidden.shape
    (flambeau.Size([5, 3, 20]), flambeau.Size([2, 3, 20]))
    """

    def __init__(self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
                 batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False,
                 device: Any = None, dtype: Any = None, *, proj_size: int = 0) -> None:
        if proj_size > 0:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional,
                         0, device, dtype)

    def _cell(self, x: Tensor, state: Tensor, weights: list[Parameter]) -> Tensor:
        return gru_step(x, state, weights[1], weights[3] if self.bias else None)
