"""All steps of a recurrent layer on arrays, and back: what does not wait for its step is done for all at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import steps_of
from ..compiled.families.matmul import mm

_exp, _tanh, _add, _multiply = np.exp, np.tanh, np.add, np.multiply


def _sigmoid(x: Any) -> None:
    """σ(x), written over x."""
    np.negative(x, x)
    _exp(x, x)
    _add(x, 1, x)
    np.reciprocal(x, x)


def _mapped(x: Any, weight: Any, *biases: Any) -> Any:
    """x Wᵀ + b for all steps (L, N, size)."""
    found = mm(x.reshape(-1, x.shape[2]), weight.T)
    for bias in biases:
        if bias is not None:
            _add(found, bias, found)
    return found.reshape(*x.shape[:2], -1)


def _order(length: int, backwards: bool) -> range:
    return range(length - 1, -1, -1) if backwards else range(length)


def _before(states: Any, first: Any, backwards: bool) -> Any:
    """The states that the steps began with, from those they ended with and the first one."""
    found = np.empty_like(states)
    if backwards:
        found[:-1], found[-1] = states[1:], first
    else:
        found[1:], found[0] = states[:-1], first
    return found


def _of_maps(by_input: Any, by_state: Any, input: Any, before: Any, weight_ih: Any, needs: Any) -> tuple[Any, ...]:
    """The cotangents of the input, the weights and the biases, from those of what these give (L · N, gates)."""
    by_bias: Any = _add.reduce(by_state, 0) if needs[3] or needs[4] else None
    same = by_input is by_state
    return (mm(by_input, weight_ih).reshape(input.shape) if needs[0] else None,
            mm(by_input.T, input.reshape(-1, input.shape[2])) if needs[1] else None,
            mm(by_state.T, before.reshape(-1, before.shape[2])) if needs[2] else None,
            (by_bias.copy() if same else _add.reduce(by_input, 0)) if needs[3] else None,
            by_bias if needs[4] else None)


# ----- LSTM -----------------------------------------------------------------------------


def _lstm_step(gates: Any, product: Any, cell: Any, new: Any, state: Any) -> None:
    """Gates, new cell and state, from the gates' share of the input and that of the state before."""
    size = cell.shape[1]
    middle = slice(2 * size, 3 * size)
    _add(gates, product, gates)
    squashed = _tanh(gates[:, middle])
    _sigmoid(gates)
    gates[:, middle] = squashed
    _multiply(gates[:, size:2 * size], cell, new)
    _multiply(squashed, gates[:, :size], squashed)
    _add(new, squashed, new)
    _tanh(new, state)
    _multiply(state, gates[:, 3 * size:], state)


def _lstm_layer(input: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, hidden: Any, cell: Any,
                backwards: bool, saved: list[Any]) -> tuple[Any, ...]:
    gates = _mapped(input, weight_ih, bias_ih, bias_hh)
    output = np.empty((*input.shape[:2], weight_hh.shape[1]), gates.dtype)
    cells = np.empty_like(output)
    turned, cell = weight_hh.T, np.ascontiguousarray(cell)
    by_kernel = steps_of(gates[0].size)
    step = _lstm_step if by_kernel is None else by_kernel.lstm_step()
    for t in _order(len(output), backwards):
        step(gates[t], mm(hidden, turned), cell, cells[t], output[t])
        hidden, cell = output[t], cells[t]
    saved[:] = gates, cells
    return output, hidden.copy(), cell.copy()


def _lstm_layer_backward(input: Any, weight_ih: Any, weight_hh: Any, hidden: Any, cell: Any, output: Any, bias_ih: Any,
                         bias_hh: Any, g0: Any, g1: Any, g2: Any, *, backwards: bool, saved: list[Any],
                         needs: Any) -> tuple[Any, ...]:
    gates, cells = saved
    length, n, size = output.shape
    parts = gates.reshape(length, n, 4, size)
    i, f, g, o = (parts[:, :, k] for k in range(4))
    squashed = _tanh(cells)
    by_hidden = o * (1 - squashed * squashed)  # what the cell's cotangent gets of the state's
    slopes = parts - parts * parts  # those of σ, three of which are right
    for k, factor in ((0, g), (1, _before(cells, cell, backwards)), (3, squashed)):
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
    before = _before(output, hidden, backwards) if needs[2] else None
    return (*_of_maps(flat, flat, input, before, weight_ih, needs), by_h, by_c)


# ----- GRU ------------------------------------------------------------------------------


def _gru_step(gates: Any, product: Any, bias: Any, own: Any, hidden: Any, state: Any) -> None:
    """Gates, the new one's share of the state before, and the state."""
    size = hidden.shape[1]
    both, new = gates[:, :2 * size], gates[:, 2 * size:]
    _add(both, product[:, :2 * size], both)
    _sigmoid(both)
    _add(product[:, 2 * size:], bias, own)
    _add(new, both[:, :size] * own, new)
    _tanh(new, new)
    np.subtract(hidden, new, state)
    _multiply(state, both[:, size:], state)
    _add(state, new, state)


def _gru_layer(input: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, hidden: Any, backwards: bool,
               saved: list[Any]) -> tuple[Any, ...]:
    gates = _mapped(input, weight_ih, bias_ih)
    size = weight_hh.shape[1]
    output = np.empty((*input.shape[:2], size), gates.dtype)
    own = np.empty_like(output)
    turned, hidden = weight_hh.T, np.ascontiguousarray(hidden)
    bias = np.zeros(size, gates.dtype) if bias_hh is None else np.ascontiguousarray(bias_hh[2 * size:])
    if bias_hh is not None:
        gates[..., :2 * size] += bias_hh[:2 * size]
    by_kernel = steps_of(gates[0].size)
    step = _gru_step if by_kernel is None else by_kernel.gru_step()
    for t in _order(len(output), backwards):
        step(gates[t], mm(hidden, turned), bias, own[t], hidden, output[t])
        hidden = output[t]
    saved[:] = gates, own
    return output, hidden.copy()


def _gru_layer_backward(input: Any, weight_ih: Any, weight_hh: Any, hidden: Any, output: Any, bias_ih: Any,
                        bias_hh: Any, g0: Any, g1: Any, *, backwards: bool, saved: list[Any],
                        needs: Any) -> tuple[Any, ...]:
    gates, own = saved
    length, n, size = output.shape
    parts = gates.reshape(length, n, 3, size)
    r, u, new = (parts[:, :, k] for k in range(3))
    before = _before(output, hidden, backwards)
    slopes = np.empty_like(parts)  # of what the states are mapped to, by the new state
    by_new = (1 - u) * (1 - new * new)
    slopes[:, :, 0] = by_new * own * (r - r * r)
    slopes[:, :, 1] = (before - new) * (u - u * u)
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
    return (*_of_maps(by_input.reshape(length * n, 3 * size), by_state, input, before, weight_ih, needs), by_h)


PRIMITIVES = {"lstm_layer": _lstm_layer, "_lstm_layer_backward": _lstm_layer_backward, "gru_layer": _gru_layer,
              "_gru_layer_backward": _gru_layer_backward}
