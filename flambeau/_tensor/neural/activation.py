"""Activations whose arguments a declaration cannot express: `prelu`, `selu`, `relu6`, `rrelu`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...devices import CPU
from ...modes import special
from ...ops.declare import REGISTRY
from ..argument_errors.type_names import not_a_tensor
from ..creation.constants import empty
from ..dispatch.apply import apply
from ..dispatch.handlers import handlers
from ..dispatch.promotion import check_dtype_supported
from ..dispatch.public_functions import inplace_function, public_function
from ..dispatch.write_checks import check_writable, is_tracked
from ..fastpath.repeated_calls import repeated
from ..meta import is_meta
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_created, notify_read

__all__ = ["prelu", "relu6", "rrelu", "rrelu_", "selu", "selu_"]

#: of self-normalizing networks (Klambauer et al., 2017)
_SELU = {"alpha": 1.6732632423543772848170429916717, "scale": 1.0507009873554804934193349852946}


def selu(input: Tensor) -> Tensor:
    """scale · (max(0, x) + min(0, alpha · (eˣ - 1))).

    >>> import flambeau as torch
    >>> torch.selu(torch.tensor([-1., 1.]))
    tensor([-1.1113,  1.0507])
    """
    return public_function(REGISTRY["elu"])(input, **_SELU)


def selu_(input: Tensor) -> Tensor:
    """In-place `selu`.

    >>> import flambeau as torch
    >>> torch.selu_(torch.tensor([-1., 2.]))
    tensor([-1.1113,  2.1014])
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("selu_", input)
    return inplace_function(REGISTRY["elu"])(input, **_SELU)


def relu6(input: Tensor) -> Tensor:
    """min(max(0, x), 6).

    >>> import flambeau as torch
    >>> torch.nn.functional.relu6(torch.tensor([-1., 8.]))
    tensor([0., 6.])
    """
    return public_function(REGISTRY["hardtanh"])(input, min_val=0, max_val=6)


@repeated
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where x > 0, else weight · x.

    Args:
        weight: one element, or one for each channel (dimension 1).

    Raises:
        RuntimeError: another number of weights.

    >>> import flambeau as torch
    >>> torch.prelu(torch.tensor([-2., 2.]), torch.tensor([0.25]))
    tensor([-0.5000,  2.0000])
    """
    for position, (name, x) in enumerate((("input", input), ("weight", weight)), 1):
        if not isinstance(x, Tensor):
            raise not_a_tensor("prelu", x, name, position)
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


def _rrelu_noise(input: Tensor, lower: float, upper: float, training: bool, generator: Any = None) -> Tensor:
    """The slopes: sampled in memory order where x ≤ 0, 1 elsewhere; zeros in evaluation mode."""
    a = input._array
    if is_meta(input):
        return empty(a.shape, dtype=input.dtype, device=input.device)
    if not training:
        if input._device is not CPU:
            unused: Tensor = handlers.uninitialised(handlers.stand_in(input), input._device)
            return unused
        zeros = np.zeros(a.shape, a.dtype)
        if special[0]:
            notify_created(zeros)
        return wrap(zeros)
    if special[0]:
        from ..dispatch.batched_tensor import active_levels

        notify_read(input, "rrelu in training")
        if active_levels():
            raise RuntimeError("vmap: we do not yet support aten::rrelu. Please file an issue")
    if input._device is not CPU:
        return handlers.rrelu_slopes_on_device(generator, input, lower, upper)
    slopes = np.ones(a.shape, np.float64)
    nonpositive = dtypes.widen(a) <= 0
    samples = empty(int(nonpositive.sum()), dtype=dtypes.float64).uniform_(lower, upper, generator=generator)
    slopes[nonpositive] = samples._array
    return wrap(dtypes.cast(slopes, a.dtype))


def _bounds(*bounds: Any) -> tuple[float, ...]:
    """Bounds as floats.

    Raises:
        RuntimeError: one is complex, or the lower one is greater.
    """
    if any(isinstance(bound, complex) for bound in bounds):
        raise RuntimeError("value cannot be converted to type double without overflow")
    lower, upper = map(float, bounds)
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    return lower, upper


def rrelu(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
          generator: Any = None) -> Tensor:
    """x where x > 0, else x times a slope sampled from [lower, upper]; in evaluation mode the mean slope.

    >>> import flambeau as torch
    >>> torch.rrelu(torch.tensor([-1., 2.]))
    tensor([-0.2292,  2.0000])
    """
    lower, upper = _bounds(lower, upper)
    op, params = REGISTRY["_rrelu_with_noise"], {"lower": lower, "upper": upper, "training": training}
    check_dtype_supported(op, input.dtype, [input], params)  # before numbers are drawn
    noise = _rrelu_noise(input, lower, upper, training, generator)
    return apply(op, [input, noise], params)


def rrelu_(input: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False,
           generator: Any = None) -> Tensor:
    """In-place `rrelu`.

    >>> import flambeau as torch
    >>> torch.rrelu_(torch.tensor([-1., 2.]))
    tensor([-0.2292,  2.0000])
    """
    lower, upper = _bounds(lower, upper)
    op, params = REGISTRY["_rrelu_with_noise"], {"lower": lower, "upper": upper, "training": training}
    check_dtype_supported(op, input.dtype, [input], params)
    check_writable(input, is_tracked([input]))
    noise = _rrelu_noise(input, lower, upper, training, generator)
    return inplace_function(REGISTRY["_rrelu_with_noise"])(
        input, noise, lower=lower, upper=upper, training=training)


METHODS: dict[str, Any] = {"prelu": prelu}
