"""A step of a recurrent layer, but for its product, by one kernel: gates made in their place, and the new state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ....runtime import thread_pool
from ..elementwise import Runner
from ..tracing.namespace import FUNCTIONS
from ..tracing.scalars import Numbers
from ..tracing.symbolic_elements import Symbol, Trace

_sigmoid, _tanh = FUNCTIONS["sigmoid"], FUNCTIONS["tanh"]


def _lstm(xi: Symbol, xf: Symbol, xg: Symbol, xo: Symbol, hi: Symbol, hf: Symbol, hg: Symbol, ho: Symbol,
          cell: Symbol) -> Sequence[Symbol]:
    i, f, g, o = _sigmoid(xi + hi), _sigmoid(xf + hf), _tanh(xg + hg), _sigmoid(xo + ho)
    new = f * cell + i * g
    return i, f, g, o, new, o * _tanh(new)


def _gru(xr: Symbol, xu: Symbol, xn: Symbol, hr: Symbol, hu: Symbol, hn: Symbol, bias: Symbol,
         hidden: Symbol) -> Sequence[Symbol]:
    r, u, own = _sigmoid(xr + hr), _sigmoid(xu + hu), hn + bias
    n = _tanh(xn + own * r)
    return r, u, n, own, (hidden - n) * u + n


@cache
def _runner(line: Callable[..., Sequence[Symbol]], dtype: np.dtype) -> Runner:
    count = line.__code__.co_argcount
    trace = Trace(Numbers(()), count)
    found = line(*[trace.variable(i, dtype) for i in range(count)])
    return Runner([symbol.node for symbol in found], [dtype] * count)


def _entering(line: Callable[..., Sequence[Symbol]], outs: Sequence[np.ndarray], arrays: Sequence[np.ndarray]) -> Any:
    """What runs a step on arrays that lie in memory as these do."""
    runner = _runner(line, outs[0].dtype)
    key = tuple([each for x in (*outs, *arrays) for each in (x.shape, x.strides)])
    plan = runner.plans.found.get(key)
    if plan is None:
        plan = runner.plans.keep(key, runner.plan_into(outs, arrays))
    return plan.enter


def _parts(x: np.ndarray, count: int) -> np.ndarray:
    """(N, count · H) as (count, N, H)."""
    return x.reshape(x.shape[0], count, -1).swapaxes(0, 1)


def lstm_step() -> Callable[..., None]:
    """What does an LSTM's steps: `(gates, product, cell, new cell, state)`, the gates holding the input's share."""
    enter: Any = None

    def step(gates: np.ndarray, product: np.ndarray, cell: np.ndarray, new: np.ndarray, state: np.ndarray) -> None:
        nonlocal enter
        parts = tuple(_parts(gates, 4))
        outs, arrays = (*parts, new, state), (*parts, *_parts(product, 4), cell)
        if enter is None:
            enter = _entering(_lstm, outs, arrays)
        enter(thread_pool.pool(), *outs, *arrays)

    return step


def gru_step() -> Callable[..., None]:
    """What does a GRU's: `(gates, product, bias of the new gate, its share of the state, state before, state)`."""
    enter: Any = None

    def step(gates: np.ndarray, product: np.ndarray, bias: np.ndarray, own: np.ndarray, hidden: np.ndarray,
             state: np.ndarray) -> None:
        nonlocal enter
        parts = tuple(_parts(gates, 3))
        outs, arrays = (*parts, own, state), (*parts, *_parts(product, 3), bias, hidden)
        if enter is None:
            enter = _entering(_gru, outs, arrays)
        enter(thread_pool.pool(), *outs, *arrays)

    return step


__all__ = ["gru_step", "lstm_step"]
