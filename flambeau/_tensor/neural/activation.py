"""Activations whose arguments no declaration can take: weights by channel, constants, random slopes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...modes import special
from ...ops.declare import REGISTRY
from ..creation.constants import empty
from ..dispatch.apply import apply
from ..dispatch.binding import functions_of, in_place
from ..tensor import Tensor, wrap
from ..tracer_notifications import tell_created, tell_reading

__all__ = ["prelu", "relu6", "rrelu", "rrelu_", "selu", "selu_"]

#: of self-normalizing networks (Klambauer et al., 2017)
_SELU = {"alpha": 1.6732632423543772848170429916717, "scale": 1.0507009873554804934193349852946}


def selu(input: Tensor) -> Tensor:
    """scale · (max(0, x) + min(0, alpha · (eˣ - 1))).

    >>> import flambeau as torch
    >>> torch.selu(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return functions_of(REGISTRY["elu"])(input, **_SELU)


def selu_(input: Tensor) -> Tensor:
    """`selu`, in place."""
    return in_place(REGISTRY["elu"])(input, **_SELU)


def relu6(input: Tensor) -> Tensor:
    """min(max(0, x), 6).

    >>> import flambeau as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1., 8.]))
    tensor([0., 6.])
    """
    return functions_of(REGISTRY["hardtanh"])(input, min_val=0.0, max_val=6.0)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else weight · x: one weight, or one for each channel (dimension 1).

    Raises:
        RuntimeError: the weights are neither one nor as many as the channels.

    >>> import flambeau as torch
    >>> torch.prelu(torch.tensor([-2., 2.]), torch.tensor([0.25]))
    tensor([-0.5000,  2.0000])
    """
    for position, (name, x) in enumerate((("input", input), ("weight", weight)), 1):
        if not isinstance(x, Tensor):
            raise TypeError(f"prelu(): argument '{name}' (position {position}) must be Tensor, not {type(x).__name__}")
    if input.dtype is not weight.dtype:
        raise RuntimeError(f"prelu: Type promoting not supported. Got {input.dtype.scalar_name} and "
                           f"{weight.dtype.scalar_name}")
    shape, ndim = input._array.shape, input._array.ndim
    count = weight._array.size
    if count != 1:
        if not ndim:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if ndim >= 2 else 1
        if channels != count:
            raise RuntimeError(f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                               f"{count} and channel size = {channels}.")
    if weight._array.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = "
                           f"{weight._array.ndim}")
    if ndim == 0 and weight._array.ndim:
        weight = weight.reshape(())
    elif ndim and not (ndim == 1 and weight._array.ndim == 1):
        weight = weight.reshape((1, count) + (1,) * (ndim - 2) if ndim >= 2 else (count,))
    return apply(REGISTRY["_prelu_kernel"], [input, weight])


def _noise(input: Tensor, lower: float, upper: float, training: bool) -> Tensor:
    """The slopes: drawn where x ≤ 0, in order of the elements, and 1 elsewhere; zeros where nothing is trained."""
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound, got lower: {lower:g} and "
                           f"upper: {upper:g}")
    a = input._array
    if not training:
        zeros = np.zeros(a.shape, a.dtype)
        if special[0]:
            tell_created(zeros)
        return wrap(zeros)
    if special[0]:
        from ..dispatch.batched_tensor import running

        tell_reading(input, "rrelu in training")
        if running():
            raise RuntimeError("vmap: we do not yet support aten::rrelu. Please file an issue")
    slopes = np.ones(a.shape, np.float64)
    below = dtypes.widen(a) <= 0
    drawn = empty(int(below.sum()), dtype=dtypes.float64).uniform_(lower, upper)
    slopes[below] = drawn._array
    return wrap(dtypes.cast(slopes, a.dtype))


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """x where x > 0, else x times a slope drawn from [lower, upper]; the mean slope where nothing is trained.

    >>> import flambeau as torch
    >>> torch.rrelu(torch.tensor([-1., 2.]))
    tensor([-0.2292,  2.0000])
    """
    noise = _noise(input, lower, upper, training)
    return apply(REGISTRY["_rrelu_with_noise"], [input, noise],
                 {"lower": lower, "upper": upper, "training": training})


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False) -> Tensor:
    """`rrelu`, in place."""
    noise = _noise(input, lower, upper, training)
    return in_place(REGISTRY["_rrelu_with_noise"])(
        input, noise, lower=lower, upper=upper, training=training)


METHODS: dict[str, Any] = {"prelu": prelu}
