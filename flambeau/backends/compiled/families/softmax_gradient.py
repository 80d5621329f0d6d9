"""The kernel of -e^x · value on large matrices, a term of the gradient of log_softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....codegen.elementwise import elementwise
from ....codegen.scalar.scalar_ir import exp, variable
from ....runtime.launch import Spec
from ..launching import PlanCache
from ..plan_families import FAMILIES_OF_PLANS

_plans = PlanCache()


def scaled_negative_exp(x: np.ndarray, value: Any) -> np.ndarray:
    """-e^x · value; to be called in the quiet context.

    Args:
        x: float32 or float64, C-contiguous.
        value: a number of the dtype of `x`.
    """
    key = x.shape, x.dtype
    plan = _plans.plans.get(key)
    scalar = np.full(1, value, x.dtype)
    out = np.empty(x.shape, x.dtype)
    if plan is None:
        expression = 0 - exp(variable(0, x.dtype)) * variable(1, x.dtype)  # +0 where value is 0
        plan = _plans.insert(key, FAMILIES_OF_PLANS.plan(
            "scaled_negative_exp", (), [Spec.of(out), Spec.of(x), Spec.of(scalar)],
            lambda specs: elementwise.launches([expression], specs[:1], specs[1:]), 1))
    plan.run((out, x, scalar))
    return out


__all__ = ["scaled_negative_exp"]
