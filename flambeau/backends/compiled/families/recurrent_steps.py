"""Steps of an Elman network, h = f(h Wᵀ + b + x), forward and backward: one matmul kernel with an epilogue each.

So a step is one pass over the state. Functions return None where NumPy multiplies as fast.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ....errstate import run_quietly
from .matmul import kernels

ndarray = np.ndarray
_empty = np.empty


# ----- epilogues: expressions of the matmul and of the extra operands ----------------------


def _tanh(matmul: Any, bias: Any, x: Any) -> Any:
    from ....codegen.scalar.scalar_ir import tanh

    return tanh(matmul + bias + x)


def _relu(matmul: Any, bias: Any, x: Any) -> Any:
    from ....codegen.scalar.scalar_ir import maximum

    return maximum(matmul + bias + x, 0)


def _tanh_backward(matmul: Any, h: Any, pending: Any = None) -> Any:
    g = matmul if pending is None else pending + matmul
    return g * (1 - h * h)


def _relu_backward(matmul: Any, h: Any, pending: Any = None) -> Any:
    from ....codegen.scalar.scalar_ir import select

    return select(h <= 0, 0, matmul if pending is None else pending + matmul)


_FORWARD, _BACKWARD = {"tanh": _tanh, "relu": _relu}, {"tanh": _tanh_backward, "relu": _relu_backward}


# ----- steps -----------------------------------------------------------------------------


def forward(h: ndarray, weight: ndarray, bias: ndarray, xs: Sequence[ndarray],
            nonlinearity: str) -> list[ndarray] | None:
    """The states h = f(h @ weight + bias + x) of successive inputs x; f is tanh or relu.

    Args:
        xs: inputs of one shape and layout.

    Returns:
        The states, as slices of one array along its first dimension, so that stacking them needs no copy. A single
        state is an array of its own.
    """
    matmuls = kernels()
    if matmuls is None:
        return None
    states: list[ndarray] = []
    all_states: ndarray | None = None
    for inputs in (xs[:1], xs[1:]):  # the layout of the first state may differ
        if not inputs:
            break
        x = inputs[0]
        key = h.shape, h.strides, weight.shape, weight.strides, h.itemsize, bias.strides, x.strides, nonlinearity
        dispatch = matmuls.dispatches.get(key)
        if dispatch is None:
            dispatch = matmuls.choose(key, h, weight, bias, x, epilogue=_FORWARD[nonlinearity])
        budget = dispatch.budget
        budget[0] -= dispatch.work * len(inputs)
        if budget[0] < 0:
            matmuls.remeasure(dispatch)
        if dispatch.plan is None:
            return None
        if all_states is None:
            shape = dispatch.shape if len(xs) == 1 else (len(xs), *dispatch.shape)
            all_states = run_quietly(_empty, shape, dispatch.dtype)
            outputs = iter([all_states] if len(xs) == 1 else all_states)
        run_quietly(_step_by_step, dispatch.plan.run, h, weight, bias, inputs, outputs, states)
        h = states[-1]
    return states


def _step_by_step(run: Any, h: ndarray, weight: ndarray, bias: ndarray, xs: Sequence[ndarray],
                  outputs: Iterator[ndarray], states: list[ndarray]) -> None:
    for x in xs:
        result = next(outputs)
        run((result, h, weight, bias, x))
        states.append(result)
        h = result


def backward(g: ndarray, weight: ndarray, h: ndarray, pending: ndarray | None, nonlinearity: str,
         out: ndarray | None = None) -> ndarray | None:
    """(g @ weight + pending) · f': the cotangent of a step's preactivation from that of the next step.

    To be called in the quiet context.

    Args:
        g: the cotangent of the next step's preactivation.
        weight: (out, in).
        h: the state between the two steps.
        pending: the cotangent of the state from other uses; None for none.
        out: the array for the result.
    """
    matmuls = kernels()
    if matmuls is None:
        return None
    extras = (h,) if pending is None else (h, pending)
    key = (g.shape, g.strides, weight.strides, h.strides, None if pending is None else pending.strides, g.itemsize,
           h.shape, nonlinearity)
    dispatch = matmuls.dispatches.get(key)
    if dispatch is None:
        dispatch = matmuls.choose(key, g, weight, *extras, epilogue=_BACKWARD[nonlinearity])
    budget = dispatch.budget
    budget[0] -= dispatch.work
    if budget[0] < 0:
        matmuls.remeasure(dispatch)
    if dispatch.plan is None:
        return None
    result = _empty(dispatch.shape, dispatch.dtype) if out is None else out
    dispatch.plan.run((result, g, weight, *extras))
    return result


__all__ = ["backward", "forward"]
