"""The steps of a plain recurrent network, h = f(h Wᵀ + b + x), forward and backward: a kernel each.

What a step does beside its product is the product's ending, so a step is one pass over the state. None is returned
where NumPy multiplies as quickly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...errstate import run_quietly
from .matmul import kernels

ndarray = np.ndarray
_empty = np.empty


# ----- endings: expressions of the product and of what comes with it ---------------------


def _tanh(product: Any, bias: Any, x: Any) -> Any:
    from ....codegen.scalar.scalar_ir import tanh

    return tanh(product + bias + x)


def _relu(product: Any, bias: Any, x: Any) -> Any:
    from ....codegen.scalar.scalar_ir import maximum

    return maximum(product + bias + x, 0)


def _tanh_back(product: Any, h: Any, waiting: Any = None) -> Any:
    g = product if waiting is None else waiting + product
    return g * (1 - h * h)


def _relu_back(product: Any, h: Any, waiting: Any = None) -> Any:
    from ....codegen.scalar.scalar_ir import select

    return select(h <= 0, 0, product if waiting is None else waiting + product)


_FORWARD, _BACK = {"tanh": _tanh, "relu": _relu}, {"tanh": _tanh_back, "relu": _relu_back}


# ----- steps -----------------------------------------------------------------------------


def forward(h: ndarray, weight: ndarray, bias: ndarray, xs: Sequence[ndarray],
            nonlinearity: str) -> list[ndarray] | None:
    """h = f(h @ weight + bias + x) for one x after the other, f being tanh or relu.

    Args:
        xs: of one shape, and all laid out as the first.

    Returns:
        The states, which are parts of one array along its first dimension: what is made of all of them need not
        collect them first. One that comes alone is an array of its own.
    """
    found = kernels()
    if found is None:
        return None
    states: list[ndarray] = []
    whole: ndarray | None = None
    for share in (xs[:1], xs[1:]):  # the first state may be laid out in any way
        if not share:
            break
        x = share[0]
        key = h.shape, h.strides, weight.shape, weight.strides, h.itemsize, bias.strides, x.strides, nonlinearity
        way = found.ways.get(key)
        if way is None:
            way = found.way(key, h, weight, bias, x, ending=_FORWARD[nonlinearity])
        credit = way.credit
        credit[0] -= way.work * len(share)
        if credit[0] < 0:
            found.settle(way)
        if way.plan is None:
            return None
        if whole is None:
            whole = run_quietly(_empty, way.shape if len(xs) == 1 else (len(xs), *way.shape), way.dtype)
            into = iter([whole] if len(xs) == 1 else whole)
        run_quietly(_step_by_step, way.plan.run, h, weight, bias, share, into, states)
        h = states[-1]
    return states


def _step_by_step(run: Any, h: ndarray, weight: ndarray, bias: ndarray, xs: Sequence[ndarray],
                  into: Iterator[ndarray], states: list[ndarray]) -> None:
    for x in xs:
        result = next(into)
        run((result, h, weight, bias, x))
        states.append(result)
        h = result


def back(g: ndarray, weight: ndarray, h: ndarray, waiting: ndarray | None, nonlinearity: str,
         into: ndarray | None = None) -> ndarray | None:
    """(g @ weight + waiting) · f': from the cotangent of a step's sum to that of the sum before; for quiet contexts.

    Args:
        weight: (out, in), as it is multiplied by h.
        h: the state between the two steps, f of the sum before.
        waiting: the cotangent that the state has from elsewhere; None for none.
        into: where the result is written.
    """
    found = kernels()
    if found is None:
        return None
    extras = (h,) if waiting is None else (h, waiting)
    key = (g.shape, g.strides, weight.strides, h.strides, None if waiting is None else waiting.strides, g.itemsize,
           h.shape, nonlinearity)
    way = found.ways.get(key)
    if way is None:
        way = found.way(key, g, weight, *extras, ending=_BACK[nonlinearity])
    credit = way.credit
    credit[0] -= way.work
    if credit[0] < 0:
        found.settle(way)
    if way.plan is None:
        return None
    result = _empty(way.shape, way.dtype) if into is None else into
    way.plan.run((result, g, weight, *extras))
    return result


__all__ = ["back", "forward"]
