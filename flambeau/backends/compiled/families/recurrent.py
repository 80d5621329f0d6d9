"""Kernels of LSTM and GRU steps after the matmul: gates computed in place, and the new state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ....runtime import thread_pool
from ..elementwise import ElementwiseKernel
from ..tracing.namespace import FUNCTIONS
from ..tracing.scalars import ScalarParameters
from ..tracing.symbolic_elements import SymbolicElement as Element
from ..tracing.symbolic_elements import Trace

_sigmoid, _tanh = FUNCTIONS["sigmoid"], FUNCTIONS["tanh"]


def _lstm(xi: Element, xf: Element, xg: Element, xo: Element, hi: Element, hf: Element, hg: Element, ho: Element,
          cell: Element) -> Sequence[Element]:
    i, f, g, o = _sigmoid(xi + hi), _sigmoid(xf + hf), _tanh(xg + hg), _sigmoid(xo + ho)
    new = f * cell + i * g
    return i, f, g, o, new, o * _tanh(new)


def _gru(xr: Element, xu: Element, xn: Element, hr: Element, hu: Element, hn: Element, bias: Element,
         hidden: Element) -> Sequence[Element]:
    r, u, own = _sigmoid(xr + hr), _sigmoid(xu + hu), hn + bias
    n = _tanh(xn + own * r)
    return r, u, n, own, (hidden - n) * u + n


@cache
def _kernel(rule: Callable[..., Sequence[Element]], dtype: np.dtype) -> ElementwiseKernel:
    count = rule.__code__.co_argcount
    trace = Trace(ScalarParameters(()), count)
    results = rule(*[trace.variable(i, dtype) for i in range(count)])
    return ElementwiseKernel([symbol.node for symbol in results], [dtype] * count)


def _entry_point(rule: Callable[..., Sequence[Element]], outs: Sequence[np.ndarray],
                 arrays: Sequence[np.ndarray]) -> Any:
    """The entry point of a step for arrays of these layouts."""
    runner = _kernel(rule, outs[0].dtype)
    key = tuple([each for x in (*outs, *arrays) for each in (x.shape, x.strides)])
    plan = runner.plans.plans.get(key)
    if plan is None:
        plan = runner.plans.insert(key, runner.plan_into(outs, arrays))
    return plan.enter


def _gates(x: np.ndarray, count: int) -> np.ndarray:
    """(N, count · H) as (count, N, H)."""
    return x.reshape(x.shape[0], count, -1).swapaxes(0, 1)


def lstm_step() -> Callable[..., None]:
    """Runs an LSTM step, `(gates, matmul, cell, new cell, state)`; the gates hold the input projection."""
    enter: Any = None

    def step(gates: np.ndarray, matmul: np.ndarray, cell: np.ndarray, new: np.ndarray, state: np.ndarray) -> None:
        nonlocal enter
        parts = tuple(_gates(gates, 4))
        outs, arrays = (*parts, new, state), (*parts, *_gates(matmul, 4), cell)
        if enter is None:
            enter = _entry_point(_lstm, outs, arrays)
        enter(thread_pool.pool(), *outs, *arrays)

    return step


def gru_step() -> Callable[..., None]:
    """A function that runs a GRU step, `(gates, matmul, bias of n, state's share of n, old state, new state)`."""
    enter: Any = None

    def step(gates: np.ndarray, matmul: np.ndarray, bias: np.ndarray, own: np.ndarray, hidden: np.ndarray,
             state: np.ndarray) -> None:
        nonlocal enter
        parts = tuple(_gates(gates, 3))
        outs, arrays = (*parts, own, state), (*parts, *_gates(matmul, 3), bias, hidden)
        if enter is None:
            enter = _entry_point(_gru, outs, arrays)
        enter(thread_pool.pool(), *outs, *arrays)

    return step


__all__ = ["gru_step", "lstm_step"]
