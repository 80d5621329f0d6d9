"""LSTM and GRU layers: the products and gates of all steps, forward and backward, in a few calls.

A step is a product with the hidden state's weight and one kernel for all gates. The weight is packed once for all
steps. Arrays of all steps are row-major; (L, N, gates · H) has the gates of a step side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from ....codegen.elementwise import elementwise
from ....codegen.matmul import matmul
from ....runtime.launch import ALIGNMENT, Launch, Spec
from ....runtime.repeated_launches import RepeatedLaunches
from ..tracing.namespace import FUNCTIONS
from ..tracing.scalars import ScalarParameters
from ..tracing.symbolic_elements import SymbolicElement as Element
from ..tracing.symbolic_elements import Trace

ndarray = np.ndarray
_sigmoid, _tanh = FUNCTIONS["sigmoid"], FUNCTIONS["tanh"]
#: the most cached layers, by their layouts
LAYERS = 64
#: pairs of the index of an address and an offset
_Pointers = list[tuple[int, int]]


# ----- gates of one step ------------------------------------------------------------------


def _lstm(xi: Element, xf: Element, xg: Element, xo: Element, hi: Element, hf: Element, hg: Element, ho: Element,
          cell: Element) -> Sequence[Element]:
    i, f, g, o = _sigmoid(xi + hi), _sigmoid(xf + hf), _tanh(xg + hg), _sigmoid(xo + ho)
    new = f * cell + i * g
    return i, f, g, o, new, o * _tanh(new)


def _lstm_slopes(i: Element, f: Element, g: Element, o: Element, before: Element, cell: Element, by_state: Element,
                 by_cell: Element, by_output: Element | None = None) -> Sequence[Element]:
    """The gradients of the gates' arguments, and of the cell before the step."""
    tanh_c = _tanh(cell)
    h = by_state if by_output is None else by_state + by_output
    c = by_cell + h * o * (1 - tanh_c * tanh_c)
    return (c * g * (i * (1 - i)), c * before * (f * (1 - f)), c * i * (1 - g * g), h * tanh_c * (o * (1 - o)), c * f)


def _gru(xr: Element, xu: Element, xn: Element, hr: Element, hu: Element, hn: Element, bias: Element,
         hidden: Element) -> Sequence[Element]:
    r, u, own = _sigmoid(xr + hr), _sigmoid(xu + hu), hn + bias
    n = _tanh(xn + own * r)
    return r, u, n, own, (hidden - n) * u + n


def _gru_slopes(r: Element, u: Element, n: Element, before: Element, own: Element, by_state: Element, kept: Element,
                by_output: Element | None = None) -> Sequence[Element]:
    """The gradients of the state's map, of the input's map, and that of the state before the step, not by the map."""
    h = kept + by_state if by_output is None else kept + by_state + by_output
    by_n = h * (1 - u) * (1 - n * n)
    by_r, by_u = by_n * own * (r * (1 - r)), h * (before - n) * (u * (1 - u))
    return by_r, by_u, by_n * r, by_r, by_u, by_n, h * u


@cache
def _nodes(rule: Callable[..., Sequence[Element]], count: int, dtype: np.dtype) -> tuple[Any, ...]:
    """The expressions of a rule's results of `count` arrays."""
    trace = Trace(ScalarParameters(()), count)
    return tuple([each.node for each in rule(*[trace.variable(i, dtype) for i in range(count)])])


# ----- steps ------------------------------------------------------------------------------


class _Steps(NamedTuple):
    """The launches of a layer's steps: those that pack the weight before the first, and the bytes that it takes."""

    packing: RepeatedLaunches
    steps: RepeatedLaunches
    scratch: int


def _product(left: Spec, weight: Spec, pointers: _Pointers) -> tuple[list[Any], list[Any], int]:
    """The launches of a product with the weight: those that pack it, those of each step, and bytes of scratch memory.

    Args:
        pointers: of the result, the left operand, the weight and scratch memory.
    """
    result = Spec.dense((left.shape[0], weight.shape[1]), left.dtype)
    found: list[Launch] = matmul.launches([result], left, weight, constant=(False, True), repeated=True)
    pairs = [(each, pointers) for each in found]
    return ([pair for pair in pairs if pair[0].preparation is not None],
            [pair for pair in pairs if pair[0].preparation is None], max(each.scratch for each in found))


def _gates(rule: Callable[..., Sequence[Element]], outs: Sequence[tuple[Spec, tuple[int, int]]],
           ins: Sequence[tuple[Spec, tuple[int, int]]]) -> list[Any]:
    """The launches of a step's gates over operands, each a layout with its pointer."""
    nodes = _nodes(rule, len(ins), outs[0][0].dtype)
    pointers = [pointer for _, pointer in (*outs, *ins)]
    return [(each, pointers) for each in elementwise.launches(nodes, [spec for spec, _ in outs],
                                                              [spec for spec, _ in ins])]


def _parts(base: int, count: int, n: int, size: int, dtype: np.dtype) -> list[tuple[Spec, tuple[int, int]]]:
    """The gates (N, H) that are side by side in (N, count · H)."""
    width = size * dtype.itemsize
    spec = Spec((n, size), (count * width, dtype.itemsize), dtype)
    return [(spec, (base, k * width)) for k in range(count)]


def _address(x: ndarray) -> int:
    address: int = x.ctypes.data
    return address


def _scratch(size: int) -> tuple[ndarray | None, int]:
    """Scratch memory and its aligned address."""
    if not size:
        return None, 0
    memory = np.empty(size + ALIGNMENT, np.uint8)
    return memory, -(-_address(memory) // ALIGNMENT) * ALIGNMENT


#: addresses of a step forward; `_OWN` is the GRU's candidate map
_GATES, _STATE, _CELL, _STATE_BEFORE, _CELL_BEFORE, _PRODUCT, _WEIGHT, _SCRATCH, _BIAS = range(9)
_OWN = _CELL


@lru_cache(LAYERS)
def _forward(rule: Callable[..., Sequence[Element]], n: int, size: int, weight: Spec, sign: int) -> _Steps:
    """The steps of a layer forward.

    Args:
        rule: `_lstm` or `_gru`.
        weight: the layout of the state's weight, transposed: (H, gates · H).
        sign: -1 for steps from the end of the sequence.
    """
    dtype, is_lstm = weight.dtype, rule is _lstm
    count = 4 if is_lstm else 3
    state = Spec.dense((n, size), dtype)
    packing, steps, scratch = _product(state, weight, [(_PRODUCT, 0), (_STATE_BEFORE, 0), (_WEIGHT, 0), (_SCRATCH, 0)])
    gates, product = (_parts(base, count, n, size, dtype) for base in (_GATES, _PRODUCT))
    if is_lstm:
        others = [(state, (_CELL_BEFORE, 0))]
    else:
        others = [(Spec.dense((size,), dtype), (_BIAS, 0)), (state, (_STATE_BEFORE, 0))]
    steps += _gates(rule, [*gates, (state, (_CELL, 0)), (state, (_STATE, 0))], [*gates, *product, *others])
    by_step = sign * n * size * dtype.itemsize
    strides = [count * by_step, by_step, by_step, by_step, by_step, 0, 0, 0, 0]
    return _Steps(RepeatedLaunches(packing, strides), RepeatedLaunches(steps, strides), scratch)


def _run_forward(rule: Callable[..., Sequence[Element]], gates: ndarray, weight: ndarray, hidden: ndarray,
                 cell: ndarray, output: ndarray, cells: ndarray, bias: ndarray, backwards: bool) -> None:
    length, n, size = output.shape
    layer = _forward(rule, n, size, Spec.of(weight), -1 if backwards else 1)
    product = np.empty(gates.shape[1:], gates.dtype)
    memory, scratch = _scratch(layer.scratch)
    order = range(length - 1, -1, -1) if backwards else range(length)
    fixed = [_address(product), _address(weight), scratch, _address(bias)]
    first = [_address(each[order[0]]) for each in (gates, output, cells)]
    begin = [*first, _address(hidden), _address(cell), *fixed]
    layer.packing.run(begin, 1)
    layer.steps.run(begin, 1)
    if length > 1:
        second = [_address(each[order[1]]) for each in (gates, output, cells)]
        layer.steps.run([*second, *first[1:], *fixed], length - 1)
    del memory


def lstm_forward(gates: ndarray, weight: ndarray, hidden: ndarray, cell: ndarray, output: ndarray, cells: ndarray,
                 backwards: bool) -> None:
    """Compute the gates in place, and the hidden states and cells of all steps.

    Args:
        gates: (L, N, 4H), the inputs' share.
        weight: (H, 4H).
        hidden, cell: the state before the first step, (N, H), row-major.
        output, cells: (L, N, H), to be written.
    """
    _run_forward(_lstm, gates, weight, hidden, cell, output, cells, cell, backwards)


def gru_forward(gates: ndarray, weight: ndarray, bias: ndarray, hidden: ndarray, output: ndarray,
                own: ndarray, backwards: bool) -> None:
    """Compute the gates in place, and the states and their candidate maps of all steps.

    Args:
        gates: (L, N, 3H), the inputs' share.
        weight: (H, 3H).
        bias: (H), of the candidate map, row-major.
        hidden: the state before the first step, (N, H), row-major.
        output, own: (L, N, H), to be written.
    """
    _run_forward(_gru, gates, weight, hidden, hidden, output, own, bias, backwards)


#: addresses of a step backward; `_BY_CELL` is the GRU's share of the gradient that passes by the map
_SLOPES, _AT_GATES, _AT_CELL, _BEFORE, _BY_OUTPUT, _BY_INPUT, _BY_STATE, _BY_CELL, _AT_WEIGHT, _AT_SCRATCH = range(10)


@lru_cache(LAYERS)
def _backward(rule: Callable[..., Sequence[Element]], n: int, size: int, weight: Spec,
              by_output: tuple[int, ...] | None, sign: int) -> _Steps:
    """The steps of a layer backward, in the order in which they are run.

    Args:
        rule: `_lstm_slopes` or `_gru_slopes`.
        weight: the layout of the state's weight: (gates · H, H).
        by_output: the strides of the gradient of all states; None where there is none.
        sign: -1 for steps from the end of the sequence.
    """
    dtype, is_lstm = weight.dtype, rule is _lstm_slopes
    count = 4 if is_lstm else 3
    state = Spec.dense((n, size), dtype)
    slopes, gates, by_input = (_parts(base, count, n, size, dtype) for base in (_SLOPES, _AT_GATES, _BY_INPUT))
    kept = (state, (_BY_CELL, 0))
    ins = [*gates, (state, (_BEFORE, 0)), (state, (_AT_CELL, 0)), (state, (_BY_STATE, 0)), kept]
    if by_output is not None:
        ins.append((Spec((n, size), by_output[1:], dtype), (_BY_OUTPUT, 0)))
    steps = _gates(rule, [*slopes, *(() if is_lstm else by_input), kept], ins)
    packing, products, scratch = _product(Spec.dense((n, count * size), dtype), weight, [
        (_BY_STATE, 0), (_SLOPES, 0), (_AT_WEIGHT, 0), (_AT_SCRATCH, 0)])
    by_step = sign * n * size * dtype.itemsize
    strides = [count * by_step, count * by_step, by_step, by_step, 0 if by_output is None else sign * by_output[0],
               count * by_step, 0, 0, 0, 0]
    return _Steps(RepeatedLaunches(packing, strides), RepeatedLaunches(steps + products, strides), scratch)


def _run_backward(rule: Callable[..., Sequence[Element]], slopes: ndarray, gates: ndarray, cells: ndarray,
                  states: ndarray, first: ndarray, by_output: ndarray | None, by_input: ndarray, by_state: ndarray,
                  by_cell: ndarray, weight: ndarray, backwards: bool) -> None:
    """Run the steps backward.

    Args:
        states: of which a step reads the one before it; `first` is that before the first step.
    """
    length, n, size = cells.shape
    layer = _backward(rule, n, size, Spec.of(weight), None if by_output is None else by_output.strides,
                      1 if backwards else -1)
    memory, scratch = _scratch(layer.scratch)
    order = range(length) if backwards else range(length - 1, -1, -1)
    moving = (slopes, gates, cells, by_output, by_input)
    fixed = [_address(each) for each in (by_state, by_cell, weight)]

    def addresses(step: int, before: ndarray) -> list[int]:
        at, own, cell, output, input = [0 if each is None else _address(each[step]) for each in moving]
        return [at, own, cell, _address(before), output, input, *fixed, scratch]

    if length > 1:
        start = addresses(order[0], states[order[1]])
        layer.packing.run(start, 1)
        layer.steps.run(start, length - 1)
        layer.steps.run(addresses(order[-1], first), 1)
    else:
        start = addresses(0, first)
        layer.packing.run(start, 1)
        layer.steps.run(start, 1)
    del memory


def lstm_backward(slopes: ndarray, gates: ndarray, cells: ndarray, cell: ndarray, by_output: ndarray | None,
                  by_state: ndarray, by_cell: ndarray, weight: ndarray, backwards: bool) -> None:
    """Compute the gradients of the gates' arguments of all steps, and those of the state before the first.

    Args:
        slopes: (L, N, 4H), to be written.
        gates, cells: of all steps.
        cell: that before the first step, (N, H), row-major.
        by_output: (L, N, H), of any strides, or None.
        by_state, by_cell: (N, H), row-major: the gradients of the last state, then those of the state before the first
            step.
        weight: (4H, H).
    """
    _run_backward(_lstm_slopes, slopes, gates, cells, cells, cell, by_output, slopes, by_state, by_cell, weight,
                  backwards)


def gru_backward(slopes: ndarray, by_input: ndarray, gates: ndarray, own: ndarray, states: ndarray, hidden: ndarray,
                 by_output: ndarray | None, by_state: ndarray, kept: ndarray, weight: ndarray, backwards: bool) -> None:
    """Compute the gradients of the maps of state and input of all steps, and that of the state before the first.

    Args:
        slopes, by_input: (L, N, 3H), to be written.
        gates, own, states: of all steps.
        hidden: the state before the first step, (N, H), row-major.
        by_output: (L, N, H), of any strides, or None.
        by_state, kept: (N, H), row-major: their sum is the gradient of the last state, then that of the state before
            the first step.
        weight: (3H, H).
    """
    _run_backward(_gru_slopes, slopes, gates, own, states, hidden, by_output, by_input, by_state, kept, weight,
                  backwards)


__all__ = ["gru_backward", "gru_forward", "lstm_backward", "lstm_forward"]
