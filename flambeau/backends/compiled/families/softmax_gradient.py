"""e^x times a number, of large matrices: what each element of a softmax takes from the gradient of its row."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....codegen.elementwise import elementwise
from ....codegen.scalar.scalar_ir import exp, variable
from ....runtime.launch import Spec
from ..launching import Plan, Plans

_plans = Plans()


def negative_share(x: np.ndarray, value: Any) -> np.ndarray:
    """-e^x · value; for quiet contexts.

    Args:
        x: float32 or float64, row by row.
        value: a number of its dtype.
    """
    key = x.shape, x.dtype
    plan = _plans.found.get(key)
    number = np.full(1, value, x.dtype)
    out = np.empty(x.shape, x.dtype)
    if plan is None:
        made = 0 - exp(variable(0, x.dtype)) * variable(1, x.dtype)  # no -0 where nothing is shared
        plan = _plans.keep(key, Plan((), elementwise.launches([made], [Spec.of(out)], [Spec.of(x), Spec.of(number)])))
    plan.run((out, x, number))
    return out


__all__ = ["negative_share"]
