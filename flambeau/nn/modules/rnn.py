"""Recurrent layers over sequences: `RNN`, `LSTM`, `GRU`."""

from __future__ import annotations

import math
import numbers
import operator
import warnings
from typing import Any, NamedTuple

from ..._tensor import Parameter, Tensor
from ..._tensor import functions as fn
from ..._tensor.overriding.entry_points import asks_handlers
from ...amp.policies import cast
from ...amp.state import _is_any_autocast_enabled, acts, dtype_of
from ...dtypes import float32
from ...warning_location import warn_once
from .. import init
from ..recurrent import SEQUENCE_FUNCTIONS, run_layers
from ..utils.rnn import PackedSequence
from .base.own_methods import OwnMethods
from .layers.rnn_cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class _AssignedWeights(NamedTuple):
    """A list that was assigned to `_flat_weights`: it counts until one of the attributes that it replaces is set."""

    weights: list[Parameter]
    replaced: list[Parameter]

#: dtypes for which PyTorch looks for an implementation of oneDNN first
_ACCELERATED = (float32,)


class RNNBase(OwnMethods, Module, shares=("forward",)):
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

    __constants__ = ["mode", "input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout",
                     "bidirectional", "proj_size"]

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
        state = {**super().__getstate__(), "_flat_weights_names": names,
                 "_flat_weights": [getattr(self, name, None) for name in names]}
        state.pop("_assigned_weights", None)
        return state

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
        weights = [weight for weights in self.all_weights for weight in weights]
        assigned = self.__dict__.get("_assigned_weights")
        if assigned is not None and all(map(operator.is_, assigned.replaced, weights)):
            return assigned.weights
        return weights

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Parameter]) -> None:
        replaced = [weight for weights in self.all_weights for weight in weights]
        self.__dict__["_assigned_weights"] = _AssignedWeights(list(weights), replaced)

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

    def check_input(self, input: Tensor, batch_sizes: Tensor | None = None) -> None:
        """Check the dtype, the number of dimensions and the last dimension of the input.

        Raises:
            ValueError: the dtype is not the weights' dtype.
            RuntimeError: the number of dimensions is wrong, or the last dimension is not `input_size`.
        """
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype and not _is_any_autocast_enabled():
            raise ValueError(f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                             f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})")
        expected = 3 if batch_sizes is None else 2
        if input.dim() != expected:
            raise RuntimeError(f"input must have {expected} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError("input.size(-1) must be equal to input_size. "
                               f"Expected {self.input_size}, got {input.size(-1)}")

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of h: (D · num_layers, N, proj_size or H)."""
        batch = input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])
        return (self.num_layers * (2 if self.bidirectional else 1), batch, self.proj_size or self.hidden_size)

    def check_hidden_size(self, hx: Tensor, expected_hidden_size: tuple[int, int, int],
                          msg: str = "Expected hidden size {}, got {}") -> None:
        """Check the shape of a state.

        Raises:
            RuntimeError: it is not the expected shape.
        """
        if tuple(hx.shape) != tuple(expected_hidden_size):
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input and the shape of the state."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with its batch permuted."""
        return hx if permutation is None else hx.index_select(1, permutation)

    def _zero_state(self, batch: int, like: Tensor) -> Any:
        """The initial state: zeros."""
        directions = 2 if self.bidirectional else 1
        return fn.zeros((self.num_layers * directions, batch, self.proj_size or self.hidden_size),
                        dtype=like.dtype, device=like.device)

    def _run_layers(self, input: Tensor, hx: Any, batch_sizes: Tensor | None) -> tuple[Tensor, Any]:
        """Map a batch of sequences, or packed data, and initial states to outputs and final states."""
        weights = self._flat_weights
        if asks_handlers(input, hx, weights):
            given = (input, hx) if batch_sizes is None else (input, batch_sizes, hx)
            output, *final = SEQUENCE_FUNCTIONS[self.mode](
                *given, weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional,
                *((self.batch_first,) if batch_sizes is None else ()))
            return output, tuple(final) if self.mode == "LSTM" else final[0]
        if self.proj_size and batch_sizes is None and input.numel() and input.dtype in _ACCELERATED:
            warn_once("LSTM with projections is not supported with oneDNN. Using default implementation.")
        batch_first = self.batch_first and batch_sizes is None
        if batch_first:
            input = input.transpose(0, 1)
        states = hx if self.mode == "LSTM" else (hx,)
        if self.mode == "LSTM" and batch_sizes is None and acts():  # one operator, which runs in autocast's dtype
            input, states, weights = cast((input, tuple(states), weights), dtype_of("cpu"))
        output, *final = run_layers(self.mode, input, states, weights, self.bias, self.num_layers, self.dropout,
                                    self.training, self.bidirectional, batch_sizes)
        if batch_first:
            output = output.transpose(0, 1)
        return output, tuple(final) if self.mode == "LSTM" else final[0]

    def _run_packed(self, sequence: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, sorted_indices, unsorted_indices = sequence
        if hx is None:
            hx = self._zero_state(int(batch_sizes[0]), data)
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        if self.mode != "LSTM":
            self.check_forward_args(data, hx, batch_sizes)
        output, final = self._run_layers(data, hx, batch_sizes)
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        return packed, self.permute_hidden(final, unsorted_indices)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._run_packed(input, hx)
        name = type(self).__name__ if type(self) in (RNN, LSTM, GRU) else self.mode.partition("_")[0]
        if input.dim() not in (2, 3):
            word = " tensor" if name == "RNN" else ""
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D{word} instead")
        batched = input.dim() == 3
        batch_dim = 0 if self.batch_first else 1
        if not batched:
            input = input.unsqueeze(batch_dim)
        hx = self._zero_state(input.size(batch_dim), input) if hx is None else self._batched_state(hx, batched)
        self.check_forward_args(input, hx, None)
        output, final = self._run_layers(input, hx, None)
        return (output, final) if batched else (output.squeeze(batch_dim), self._remove_batch_dim(final))

    def _batched_state(self, hx: Any, batched: bool) -> Any:
        rank, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if hx.dim() != rank:
            raise RuntimeError(f"For {kind} input, hx should also be {rank}-D but got {hx.dim()}-D tensor")
        return hx if batched else hx.unsqueeze(1)

    def _remove_batch_dim(self, final: Any) -> Any:
        return final.squeeze(1)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """Deprecated: the tensor's slices of a dimension in the order of `permutation`."""
    warnings.warn("`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
                  FutureWarning, stacklevel=2)
    return tensor.index_select(dim, permutation)


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

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """The shape of c: (D · num_layers, N, H)."""
        return (*self.get_expected_hidden_size(input, batch_sizes)[:2], self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Check the input and the shapes of h and c."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden[0], self.get_expected_hidden_size(input, batch_sizes),
                               "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], self.get_expected_cell_size(input, batch_sizes),
                               "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """h and c with their batch permuted."""
        return hx if permutation is None else tuple(each.index_select(1, permutation) for each in hx)

    def _zero_state(self, batch: int, like: Tensor) -> tuple[Tensor, Tensor]:
        directions = 2 if self.bidirectional else 1
        cell = fn.zeros((self.num_layers * directions, batch, self.hidden_size), dtype=like.dtype,
                        device=like.device)
        return super()._zero_state(batch, like), cell

    def _batched_state(self, hx: Any, batched: bool) -> Any:
        h, c = hx[0], hx[1]
        rank, kind = (3, "batched 3-D") if batched else (2, "unbatched 2-D")
        if h.dim() != rank or c.dim() != rank:
            raise RuntimeError(f"For {kind} input, hx and cx should also be {rank}-D "
                               f"but got ({h.dim()}-D, {c.dim()}-D) tensors")
        return (h, c) if batched else (h.unsqueeze(1), c.unsqueeze(1))

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
