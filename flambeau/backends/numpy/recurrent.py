"""LSTM and GRU layers on arrays, forward and backward; work that does not depend on a step is batched over all."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errstate import run_quietly
from ..compiled import recurrent_kernels, sum_rows
from ..compiled.families.matmul import linear, mm

_exp, _tanh, _add, _multiply = np.exp, np.tanh, np.add, np.multiply


def _sigmoid(x: Any) -> None:
    """Compute σ(x) in place."""
    np.negative(x, x)
    _exp(x, x)
    _add(x, 1, x)
    np.reciprocal(x, x)


def _affine(x: Any, weight: Any, bias: Any) -> Any:
    """Return x Wᵀ + b for all steps (L, N, size)."""
    rows = x.reshape(-1, x.shape[2])
    result = mm(rows, weight.T) if bias is None else linear(rows, weight.T, bias)
    return result.reshape(*x.shape[:2], -1)


def _order(length: int, backwards: bool) -> range:
    return range(length - 1, -1, -1) if backwards else range(length)


def _previous_states(states: Any, first: Any, backwards: bool) -> Any:
    """Return the state before each step, from the states after each step and the initial state."""
    result = np.empty_like(states)
    if backwards:
        result[:-1], result[-1] = states[1:], first
    else:
        result[1:], result[0] = states[:-1], first
    return result


def _copy_or_zeros(x: Any, like: Any) -> Any:
    """Return a row-major copy of `x`, zeros in the shape of `like` where it is None."""
    return np.zeros(like.shape, like.dtype) if x is None else np.array(x, order="C")


def _affine_gradients(by_input: Any, by_state: Any, input: Any, previous: Any, weight_ih: Any,
                      needs: Any) -> tuple[Any, ...]:
    """Return the gradients of the input, the weights and the biases from those of the affine maps (L · N, gates)."""
    by_bias: Any = sum_rows(by_state) if needs[3] or needs[4] else None
    is_shared = by_input is by_state
    return (mm(by_input, weight_ih).reshape(input.shape) if needs[0] else None,
            mm(by_input.T, input.reshape(-1, input.shape[2])) if needs[1] else None,
            mm(by_state.T, previous.reshape(-1, previous.shape[2])) if needs[2] else None,
            (by_bias.copy() if is_shared else sum_rows(by_input)) if needs[3] else None,
            by_bias if needs[4] else None)


# ----- LSTM -----------------------------------------------------------------------------


def _lstm_step(gates: Any, product: Any, cell: Any, new: Any, state: Any) -> None:
    """Compute the gates in place, the new cell and hidden state, from both affine maps."""
    size = cell.shape[1]
    candidate_columns = slice(2 * size, 3 * size)
    _add(gates, product, gates)
    candidate = _tanh(gates[:, candidate_columns])
    _sigmoid(gates)
    gates[:, candidate_columns] = candidate
    _multiply(gates[:, size:2 * size], cell, new)
    _multiply(candidate, gates[:, :size], candidate)
    _add(new, candidate, new)
    _tanh(new, state)
    _multiply(state, gates[:, 3 * size:], state)


def _lstm_layer(input: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, hidden: Any, cell: Any,
                backwards: bool, saved: list[Any]) -> tuple[Any, ...]:
    gates = _affine(input, weight_ih, bias_ih if bias_hh is None else bias_ih + bias_hh)
    output = np.empty((*input.shape[:2], weight_hh.shape[1]), gates.dtype)
    cells = np.empty_like(output)
    weight_t, order = weight_hh.T, _order(len(output), backwards)
    kernels = recurrent_kernels(gates[0].size)
    if kernels is None:
        for t in order:
            _lstm_step(gates[t], mm(hidden, weight_t), cell, cells[t], output[t])
            hidden, cell = output[t], cells[t]
    else:
        run_quietly(kernels.lstm_forward, gates, weight_t, np.ascontiguousarray(hidden), np.ascontiguousarray(cell),
                    output, cells, backwards)
    saved[:] = gates, cells
    last = order[-1]
    return output, output[last].copy(), cells[last].copy()


def _lstm_layer_backward(input: Any, weight_ih: Any, weight_hh: Any, hidden: Any, cell: Any, output: Any,
                         bias_ih: Any = None, bias_hh: Any = None, g0: Any = None, g1: Any = None, g2: Any = None, *,
                         backwards: bool, saved: list[Any], needs: Any) -> tuple[Any, ...]:
    gates, cells = saved
    length, n, size = output.shape
    kernels = recurrent_kernels(gates[0].size)
    if kernels is not None:
        slopes = np.empty_like(gates)
        by_h, by_c = _copy_or_zeros(g1, hidden), _copy_or_zeros(g2, cell)
        run_quietly(kernels.lstm_backward, slopes, gates, cells, np.ascontiguousarray(cell), g0, by_h, by_c, weight_hh,
                    backwards)
        flat = slopes.reshape(length * n, 4 * size)
        previous = _previous_states(output, hidden, backwards) if needs[2] else None
        return (*_affine_gradients(flat, flat, input, previous, weight_ih, needs), by_h, by_c)
    parts = gates.reshape(length, n, 4, size)
    i, f, g, o = (parts[:, :, k] for k in range(4))
    tanh_c = _tanh(cells)
    by_hidden = o * (1 - tanh_c * tanh_c)  # the gradient of the cell state by that of the hidden state
    slopes = parts - parts * parts  # σ', replaced for the tanh gate below
    for k, factor in ((0, g), (1, _previous_states(cells, cell, backwards)), (3, tanh_c)):
        slopes[:, :, k] *= factor
    slopes[:, :, 2] = i * (1 - g * g)
    by_h = np.zeros_like(hidden) if g1 is None else g1
    by_c = np.zeros_like(cell) if g2 is None else g2
    for t in reversed(_order(length, backwards)):
        if g0 is not None:
            by_h = by_h + g0[t]
        by_c = by_c + by_h * by_hidden[t]
        step = slopes[t]
        _multiply(step[:, :3], by_c[:, None], step[:, :3])
        _multiply(step[:, 3], by_h, step[:, 3])
        by_c = by_c * f[t]
        by_h = mm(step.reshape(n, 4 * size), weight_hh)
    flat = slopes.reshape(length * n, 4 * size)
    previous = _previous_states(output, hidden, backwards) if needs[2] else None
    return (*_affine_gradients(flat, flat, input, previous, weight_ih, needs), by_h, by_c)


# ----- GRU ------------------------------------------------------------------------------


def _gru_step(gates: Any, product: Any, bias: Any, candidate_map: Any, hidden: Any, state: Any) -> None:
    """Compute the gates in place, the hidden state's candidate map, and the new hidden state."""
    size = hidden.shape[1]
    both, new = gates[:, :2 * size], gates[:, 2 * size:]
    _add(both, product[:, :2 * size], both)
    _sigmoid(both)
    _add(product[:, 2 * size:], bias, candidate_map)
    _add(new, both[:, :size] * candidate_map, new)
    _tanh(new, new)
    np.subtract(hidden, new, state)
    _multiply(state, both[:, size:], state)
    _add(state, new, state)


def _gru_layer(input: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, hidden: Any, backwards: bool,
               saved: list[Any]) -> tuple[Any, ...]:
    size = weight_hh.shape[1]
    if bias_hh is None:
        bias = np.zeros(size, input.dtype)
    else:  # the candidate's bias is added to the state's map, which the reset gate scales
        bias, bias_ih = np.ascontiguousarray(bias_hh[2 * size:]), bias_ih.copy()
        bias_ih[:2 * size] += bias_hh[:2 * size]
    gates = _affine(input, weight_ih, bias_ih)
    output = np.empty((*input.shape[:2], size), gates.dtype)
    candidate_map = np.empty_like(output)
    weight_t, order = weight_hh.T, _order(len(output), backwards)
    kernels = recurrent_kernels(gates[0].size)
    if kernels is None:
        for t in order:
            _gru_step(gates[t], mm(hidden, weight_t), bias, candidate_map[t], hidden, output[t])
            hidden = output[t]
    else:
        run_quietly(kernels.gru_forward, gates, weight_t, bias, np.ascontiguousarray(hidden), output, candidate_map,
                    backwards)
    saved[:] = gates, candidate_map
    return output, output[order[-1]].copy()


def _gru_layer_backward(input: Any, weight_ih: Any, weight_hh: Any, hidden: Any, output: Any, bias_ih: Any = None,
                        bias_hh: Any = None, g0: Any = None, g1: Any = None, *, backwards: bool, saved: list[Any],
                        needs: Any) -> tuple[Any, ...]:
    gates, candidate_map = saved
    length, n, size = output.shape
    kernels = recurrent_kernels(gates[0].size)
    if kernels is not None:
        by_state, by_input = np.empty_like(gates), np.empty_like(gates)
        by_h, kept = np.zeros((n, size), gates.dtype), _copy_or_zeros(g1, hidden)
        run_quietly(kernels.gru_backward, by_state, by_input, gates, candidate_map, output,
                    np.ascontiguousarray(hidden), g0, by_h, kept, weight_hh, backwards)
        rows = (length * n, 3 * size)
        previous = _previous_states(output, hidden, backwards) if needs[2] else None
        return (*_affine_gradients(by_input.reshape(rows), by_state.reshape(rows), input, previous, weight_ih, needs),
                by_h + kept)
    parts = gates.reshape(length, n, 3, size)
    r, u, new = (parts[:, :, k] for k in range(3))
    previous = _previous_states(output, hidden, backwards)
    slopes = np.empty_like(parts)  # of the hidden state's affine map
    by_new = (1 - u) * (1 - new * new)
    slopes[:, :, 0] = by_new * candidate_map * (r - r * r)
    slopes[:, :, 1] = (previous - new) * (u - u * u)
    slopes[:, :, 2] = by_new * r
    by_h = np.zeros_like(hidden) if g1 is None else g1
    for t in reversed(_order(length, backwards)):
        if g0 is not None:
            by_h = by_h + g0[t]
        step = slopes[t]
        _multiply(step, by_h[:, None], step)
        _multiply(by_new[t], by_h, by_new[t])
        by_h = by_h * u[t]
        by_h += mm(step.reshape(n, 3 * size), weight_hh)
    by_state = slopes.reshape(length * n, 3 * size)
    by_input = np.array(slopes)
    by_input[:, :, 2] = by_new
    flat = by_input.reshape(length * n, 3 * size)
    return (*_affine_gradients(flat, by_state, input, previous, weight_ih, needs), by_h)


PRIMITIVES = {"lstm_layer": _lstm_layer, "_lstm_layer_backward": _lstm_layer_backward, "gru_layer": _gru_layer,
              "_gru_layer_backward": _gru_layer_backward}
