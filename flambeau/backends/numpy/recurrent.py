"""All steps of a recurrent layer on arrays, and back: what does not wait for its step is done for all at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled.products import mm

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
    return (mm(by_input, weight_ih).reshape(input.shape) if needs[0] else None,
            mm(by_input.T, input.reshape(-1, input.shape[2])) if needs[1] else None,
            mm(by_state.T, before.reshape(-1, before.shape[2])) if needs[2] else None,
            _add.reduce(by_input, 0) if needs[3] else None,
            _add.reduce(by_state, 0) if needs[4] else None)


# ----- LSTM -----------------------------------------------------------------------------


def _lstm_layer(input: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, hidden: Any, cell: Any,
                backwards: bool, kept: list[Any]) -> tuple[Any, ...]:
    gates = _mapped(input, weight_ih, bias_ih, bias_hh)
    length, n, size = input.shape[0], input.shape[1], weight_hh.shape[1]
    output = np.empty((length, n, size), gates.dtype)
    cells = np.empty_like(output)
    turned = weight_hh.T
    middle = slice(2 * size, 3 * size)
    for t in _order(length, backwards):
        step, new, state = gates[t], cells[t], output[t]
        _add(step, mm(hidden, turned), step)
        squashed = _tanh(step[:, middle])
        _sigmoid(step)
        step[:, middle] = squashed
        _multiply(step[:, size:2 * size], cell, new)
        _multiply(squashed, step[:, :size], squashed)
        _add(new, squashed, new)
        _tanh(new, state)
        _multiply(state, step[:, 3 * size:], state)
        hidden, cell = state, new
    kept[:] = gates, cells
    return output, hidden.copy(), cell.copy()


def _lstm_layer_backward(input: Any, weight_ih: Any, weight_hh: Any, hidden: Any, cell: Any, output: Any, bias_ih: Any,
                         bias_hh: Any, g0: Any, g1: Any, g2: Any, *, backwards: bool, kept: list[Any],
                         needs: Any) -> tuple[Any, ...]:
    gates, cells = kept
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


def _gru_layer(input: Any, weight_ih: Any, weight_hh: Any, bias_ih: Any, bias_hh: Any, hidden: Any, backwards: bool,
               kept: list[Any]) -> tuple[Any, ...]:
    gates = _mapped(input, weight_ih, bias_ih)
    length, n, size = input.shape[0], input.shape[1], weight_hh.shape[1]
    output = np.empty((length, n, size), gates.dtype)
    own = np.empty((length, n, 3 * size), gates.dtype)
    turned = weight_hh.T
    for t in _order(length, backwards):
        step, mapped, state = gates[t], own[t], output[t]
        if bias_hh is None:
            mapped[...] = mm(hidden, turned)
        else:
            _add(mm(hidden, turned), bias_hh, mapped)
        both, new = step[:, :2 * size], step[:, 2 * size:]
        _add(both, mapped[:, :2 * size], both)
        _sigmoid(both)
        _add(new, step[:, :size] * mapped[:, 2 * size:], new)
        _tanh(new, new)
        np.subtract(hidden, new, state)
        _multiply(state, step[:, size:2 * size], state)
        _add(state, new, state)
        hidden = state
    kept[:] = gates, own
    return output, hidden.copy()


def _gru_layer_backward(input: Any, weight_ih: Any, weight_hh: Any, hidden: Any, output: Any, bias_ih: Any,
                        bias_hh: Any, g0: Any, g1: Any, *, backwards: bool, kept: list[Any],
                        needs: Any) -> tuple[Any, ...]:
    gates, own = kept
    length, n, size = output.shape
    parts = gates.reshape(length, n, 3, size)
    r, u, new = (parts[:, :, k] for k in range(3))
    before = _before(output, hidden, backwards)
    slopes = np.empty_like(parts)  # of what the states are mapped to, by the new state
    by_new = (1 - u) * (1 - new * new)
    slopes[:, :, 0] = by_new * own[:, :, 2 * size:] * (r - r * r)
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
