"""Recurrent networks as functions: `lstm`, `gru`, `rnn_tanh`, `rnn_relu` over sequences, and their cells.

A packed sequence is its data, all steps concatenated along the batch, and the batch size of each step; batch sizes do
not increase. Each layer runs the projection of all inputs as one GEMM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from .._tensor.neural.recurrent import recurrent_layer
from .._tensor.neural.recurrent_cell import rnn_steps

_NONLINEARITIES = {"RNN_TANH": "tanh", "RNN_RELU": "relu"}


# ----- one step -------------------------------------------------------------------------


def rnn_step(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None, nonlinearity: str) -> Tensor:
    """The next h (N, H) from the projected input `x` (N, H) and h (N, H)."""
    fused = rnn_steps([x], h, weight, bias, nonlinearity)
    if fused is not None:
        return fused[0]
    total = fn.linear(h, weight, bias) + x
    return total.tanh() if nonlinearity == "tanh" else total.relu()


def lstm_step(x: Tensor, state: tuple[Tensor, Tensor], weight: Tensor,
              bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """The next (h, c), (N, H) each, from the projected input `x` (N, 4H) and (h, c)."""
    h, c = state
    i, f, g, o = (fn.linear(h, weight, bias) + x).unsafe_chunk(4, 1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def gru_step(x: Tensor, h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The next h (N, H) from the projected input `x` (N, 3H) and h (N, H)."""
    reset_h, update_h, new_h = fn.linear(h, weight, bias).unsafe_chunk(3, 1)
    reset_x, update_x, new_x = x.unsafe_chunk(3, 1)
    reset = (reset_h + reset_x).sigmoid()
    update = (update_h + update_x).sigmoid()
    new = (new_x + new_h * reset).tanh()
    return (h - new) * update + new


def _step(mode: str, x: Tensor, state: Any, weights: Sequence[Tensor], bias: bool) -> Any:
    """The next state from the projected input; `weights` are those of one layer and direction."""
    weight_hh, bias_hh = weights[1], weights[3] if bias else None
    if mode == "LSTM":
        h, c = lstm_step(x, state, weight_hh, bias_hh)
        has_projection = len(weights) == (5 if bias else 3)
        return (fn.linear(h, weights[-1]) if has_projection else h), c
    if mode == "GRU":
        return gru_step(x, state, weight_hh, bias_hh)
    return rnn_step(x, state, weight_hh, bias_hh, _NONLINEARITIES[mode])


# ----- one layer and direction ----------------------------------------------------------


def _run_layer(mode: str, input: Tensor, state: Any, weights: Sequence[Tensor], bias: bool,
               reverse: bool) -> tuple[Tensor, Any]:
    """Map (L, N, input_size) and a state to (L, N, H) and the state after the last step."""
    if mode in ("LSTM", "GRU") and len(weights) == (4 if bias else 2):
        fused = recurrent_layer(input, state, weights, bias, reverse)
        if fused is not None:
            return fused
    xs = fn.linear(input, weights[0], weights[2] if bias else None).unbind(0)
    if reverse:
        xs = xs[::-1]
    states = None
    if mode in _NONLINEARITIES:
        states = rnn_steps(xs, state, weights[1], weights[3] if bias else None, _NONLINEARITIES[mode])
    if states is None:
        states = []
        for x in xs:
            state = _step(mode, x, state, weights, bias)
            states.append(state)
    outputs = [each[0] for each in states] if mode == "LSTM" else list(states)
    if reverse:
        outputs.reverse()
    return fn.stack(outputs), states[-1] if states else state


def _narrow(state: Any, start: int, stop: int) -> Any:
    """The rows of a state."""
    if isinstance(state, tuple):
        return tuple(_narrow(each, start, stop) for each in state)
    return state.narrow(0, start, stop - start)


def _concatenated(states: Sequence[Any]) -> Any:
    """States joined along the batch."""
    if isinstance(states[0], tuple):
        return tuple(fn.cat(parts) for parts in zip(*states, strict=True))
    return fn.cat(list(states))


def _run_packed_layer(mode: str, data: Tensor, state: Any, weights: Sequence[Tensor], bias: bool, reverse: bool,
                      batch_sizes: list[int]) -> tuple[Tensor, Any]:
    """`_run_layer` for packed data (Σ batch_sizes, input_size)."""
    if batch_sizes[0] == batch_sizes[-1]:
        steps = data.reshape(len(batch_sizes), batch_sizes[0], -1)
        steps, last = _run_layer(mode, steps, state, weights, bias, reverse)
        return steps.flatten(0, 1), last
    xs = fn.linear(data, weights[0], weights[2] if bias else None).split(batch_sizes)
    initial, outputs = state, []
    if reverse:
        size = batch_sizes[-1]
        state = _narrow(initial, 0, size)
        for x in xs[::-1]:
            if x.size(0) > size:  # sequences that end at this step
                state = _concatenated([state, _narrow(initial, size, x.size(0))])
                size = x.size(0)
            state = _step(mode, x, state, weights, bias)
            outputs.append(state[0] if mode == "LSTM" else state)
        outputs.reverse()
        return fn.cat(outputs), state
    finished, size = [], batch_sizes[0]
    for x in xs:
        if x.size(0) < size:
            finished.append(_narrow(state, x.size(0), size))
            size = x.size(0)
            state = _narrow(state, 0, size)
        state = _step(mode, x, state, weights, bias)
        outputs.append(state[0] if mode == "LSTM" else state)
    finished.append(state)
    return fn.cat(outputs), _concatenated(finished[::-1])


# ----- all layers -----------------------------------------------------------------------


def run_layers(mode: str, input: Tensor, states: Sequence[Tensor], params: Sequence[Tensor], has_biases: bool,
               num_layers: int, dropout: float, train: bool, bidirectional: bool,
               batch_sizes: Tensor | None = None) -> tuple[Tensor, ...]:
    """All layers and directions of a recurrent network.

    Args:
        mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU".
        input: (L, N, size), or the data of a packed sequence.
        states: h, or h and c, (layers · directions, N, H) each.
        params: the weights of each layer and direction, one after the other.
        has_biases: whether there are biases.
        num_layers: number of layers.
        dropout: dropout probability between layers, if `train`.
        train: whether the network is trained.
        bidirectional: whether each layer has a second direction.
        batch_sizes: the batch sizes of a packed sequence.

    Returns:
        The output of the last layer, and the final states.
    """
    directions = 2 if bidirectional else 1
    count = len(params) // (num_layers * directions)
    sizes = None if batch_sizes is None else batch_sizes.tolist()
    finals = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            i = layer * directions + direction
            weights = params[i * count:(i + 1) * count]
            state = tuple(each[i] for each in states) if mode == "LSTM" else states[0][i]
            if sizes is None:
                steps, final = _run_layer(mode, input, state, weights, has_biases, direction == 1)
            else:
                steps, final = _run_packed_layer(mode, input, state, weights, has_biases, direction == 1, sizes)
            outputs.append(steps)
            finals.append(final if mode == "LSTM" else (final,))
        input = outputs[0] if directions == 1 else fn.cat(outputs, input.dim() - 1)
        if dropout > 0 and train and layer < num_layers - 1:
            input = fn.dropout(input, dropout, True)
    return (input, *(fn.stack(list(each)) for each in zip(*finals, strict=True)))


_PADDED = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def _bound(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, for the overload that they match."""
    is_packed = "batch_sizes" in kwargs or "data" in kwargs or (
        len(args) > 2 and isinstance(args[1], Tensor) and (isinstance(args[2], Tensor) or (
            name == "lstm" and len(args) > 3 and isinstance(args[3], list | tuple))))
    names = _PACKED if is_packed else _PADDED
    given = dict(zip(names, args, strict=False))
    if len(args) > len(names) or given.keys() & kwargs.keys() or {*given, *kwargs} != {*names}:
        hx = "tuple of Tensors" if name == "lstm" else "Tensor"
        got = ", ".join([*(type(a).__name__ for a in args), *(f"{k}={type(v).__name__}" for k, v in kwargs.items())])
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({got}), but expected one of:\n"
            f" * (Tensor data, Tensor batch_sizes, {hx} hx, tuple of Tensors params, bool has_biases, int num_layers, "
            "float dropout, bool train, bool bidirectional)\n"
            f" * (Tensor input, {hx} hx, tuple of Tensors params, bool has_biases, int num_layers, float dropout, "
            "bool train, bool bidirectional, bool batch_first)\n")
    return {**given, **kwargs}


def _sequence_function(name: str, mode: str, doc: str) -> Callable[..., tuple[Tensor, ...]]:
    def function(*args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        given = _bound(name, args, kwargs)
        batch_sizes = given.get("batch_sizes")
        batch_first = given.get("batch_first", False)
        input = given["input"] if batch_sizes is None else given["data"]
        if batch_first:
            input = input.transpose(0, 1)
        states = tuple(given["hx"]) if mode == "LSTM" else (given["hx"],)
        if mode == "LSTM" and len(states) != 2:
            raise RuntimeError("lstm expects two hidden states")
        output, *finals = run_layers(
            mode, input, states, list(given["params"]), given["has_biases"], given["num_layers"], given["dropout"],
            given["train"], given["bidirectional"], batch_sizes)
        return (output.transpose(0, 1) if batch_first else output, *finals)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


_ARGUMENTS = """

    Either `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)` or, for a packed
    sequence, `(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)`. See
    `torch.nn.{cls}` for the shapes; `params` lists the weights of all layers as in `{cls}.all_weights`.

    >>> import flambeau as torch
    >>> layer = torch.nn.{cls}(2, 3)
    >>> params = [weight for weights in layer.all_weights for weight in weights]
    >>> hx = {hx}
    >>> torch.{name}(torch.ones(4, 1, 2), hx, params, True, 1, 0., False, False, False)[0].shape
    flambeau.Size([4, 1, 3])
    """

lstm = _sequence_function("lstm", "LSTM", "An LSTM over a sequence: returns the outputs and the final h and c."
                          + _ARGUMENTS.format(name="lstm", cls="LSTM",
                                              hx="(torch.zeros(1, 1, 3), torch.zeros(1, 1, 3))"))
gru = _sequence_function("gru", "GRU", "A GRU over a sequence: returns the outputs and the final h."
                         + _ARGUMENTS.format(name="gru", cls="GRU", hx="torch.zeros(1, 1, 3)"))
rnn_tanh = _sequence_function(
    "rnn_tanh", "RNN_TANH", "An RNN with tanh over a sequence: returns the outputs and the final h."
    + _ARGUMENTS.format(name="rnn_tanh", cls="RNN", hx="torch.zeros(1, 1, 3)"))
rnn_relu = _sequence_function(
    "rnn_relu", "RNN_RELU", "An RNN with relu over a sequence: returns the outputs and the final h."
    + _ARGUMENTS.format(name="rnn_relu", cls="RNN", hx="torch.zeros(1, 1, 3)"))

SEQUENCE_FUNCTIONS = {"LSTM": lstm, "GRU": gru, "RNN_TANH": rnn_tanh, "RNN_RELU": rnn_relu}


# ----- cells ----------------------------------------------------------------------------


def _check_weights(w_ih: Tensor, hidden_size: int, gates: int) -> None:
    if w_ih.size(0) != gates * hidden_size:
        raise RuntimeError(f"weight_ih first dim must be {gates} * hidden_size = {gates * hidden_size}, "
                           f"but got {w_ih.size(0)}")


def lstm_cell(input: Tensor, hx: Sequence[Tensor], w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
              b_hh: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """One step of an LSTM: (h, c) from the input (N, size) and (h, c), (N, H) each.

    Args:
        input: (N, size).
        hx: h and c.
        w_ih: (4H, size).
        w_hh: (4H, H).
        b_ih: (4H,) or None.
        b_hh: (4H,) or None.

    >>> import flambeau as torch
    >>> zeros = torch.zeros(1, 3)
    >>> torch.lstm_cell(torch.ones(1, 2), (zeros, zeros), torch.ones(12, 2), torch.ones(12, 3))[0]
    tensor([[0.6083, 0.6083, 0.6083]])
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    _check_weights(w_ih, hx[0].size(1), 4)
    return lstm_step(fn.linear(input, w_ih, b_ih), (hx[0], hx[1]), w_hh, b_hh)


def gru_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
             b_hh: Tensor | None = None) -> Tensor:
    """One step of a GRU: h from the input (N, size) and h (N, H); weights (3H, ...).

    >>> import flambeau as torch
    >>> torch.gru_cell(torch.ones(1, 2), torch.zeros(1, 3), torch.ones(9, 2), torch.ones(9, 3))
    tensor([[0.1149, 0.1149, 0.1149]])
    """
    _check_weights(w_ih, hx.size(1), 3)
    return gru_step(fn.linear(input, w_ih, b_ih), hx, w_hh, b_hh)


def rnn_tanh_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
                  b_hh: Tensor | None = None) -> Tensor:
    """One step of an RNN with tanh: h from the input (N, size) and h (N, H).

    >>> import flambeau as torch
    >>> torch.rnn_tanh_cell(torch.ones(1, 2), torch.zeros(1, 3), torch.ones(3, 2), torch.ones(3, 3))
    tensor([[0.9640, 0.9640, 0.9640]])
    """
    _check_weights(w_ih, hx.size(1), 1)
    return rnn_step(fn.linear(input, w_ih, b_ih), hx, w_hh, b_hh, "tanh")


def rnn_relu_cell(input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None,
                  b_hh: Tensor | None = None) -> Tensor:
    """One step of an RNN with relu: h from the input (N, size) and h (N, H).

    >>> import flambeau as torch
    >>> torch.rnn_relu_cell(torch.ones(1, 2), torch.zeros(1, 3), torch.ones(3, 2), torch.ones(3, 3))
    tensor([[2., 2., 2.]])
    """
    _check_weights(w_ih, hx.size(1), 1)
    return rnn_step(fn.linear(input, w_ih, b_ih), hx, w_hh, b_hh, "relu")


#: functions of one step, which TorchScript's tracer records as their operators
CELL_FUNCTIONS = (lstm_cell, gru_cell, rnn_tanh_cell, rnn_relu_cell)
