"""Gradient rules that take many passes over large arrays, as programs of fused kernels.

A rule is a function over `xp` like an operator's forward, so it is traced over IR values once per shapes and parameters
(`composites.ProgramCache`), and the program runs from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import codegen
from ...backends.compiled.thresholds import LARGE_SEEN
from ...backends.compiled.thresholds import MIN_ELEMENTS as SIZES
from ...ops.backward_plan import BackwardPlan
from ...ops.declare import REGISTRY
from .composites import NO_RESULT, ProgramCache

ndarray = np.ndarray

#: the operators, by registry key
OPERATORS = ("smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
             "soft_margin_loss", "glu", "linalg_vector_norm", "_norm_in_dims", "dist", "renorm", "var", "std",
             "var_mean", "std_mean", "logsumexp", "amax", "amin", "aminmax", "_max_all", "_min_all")
#: elements from which programs are faster than NumPy
MIN_ELEMENTS = 4096


def with_programs(plan: BackwardPlan, arrays: Any) -> None:
    """Replace the rules of a backward plan by programs for large arrays, if the operator is in `OPERATORS`.

    Args:
        plan: the backward plan of one use of an operator.
        arrays: the namespace of arrays.
    """
    op = plan.op
    if all(REGISTRY.declared(key) is not op for key in OPERATORS):
        return
    if plan.joint is None:
        plan.steps = tuple([(i, _wrapped(f"gradient of {op.name}", function, arrays), pick)
                            for i, function, pick in plan.steps])
    else:
        function, pick = plan.joint
        plan.joint = (_wrapped(f"gradients of {op.name}", function, arrays), pick)


def _wrapped(title: str, rule: Callable[..., Any], arrays: Any) -> Callable[..., Any]:
    names = rule.__code__.co_varnames[:rule.__code__.co_argcount]
    if "xp" not in names:
        return rule
    xp_index = names.index("xp")
    programs = ProgramCache(title, lambda xp: lambda *args: rule(*args[:xp_index], xp, *args[xp_index:]))

    def run(*args: Any) -> Any:
        if LARGE_SEEN[0] and args[xp_index] is arrays and _any_large(args) and codegen.available():
            arguments = [np.asarray(x) if isinstance(x, np.generic) else x for x in args]
            del arguments[xp_index]
            result = programs.run(arguments, {}) if all(map(_is_supported, arguments)) else NO_RESULT
            if result is not NO_RESULT:
                return result
        return rule(*args)

    return run


def _any_large(args: Sequence[Any]) -> bool:
    return any(x.__class__ is ndarray and x.size >= MIN_ELEMENTS and x.size > SIZES[0] for x in args)


def _is_supported(x: Any) -> bool:
    """Whether it is a float array that is C-contiguous or broadcast from a scalar; true of other objects."""
    return x.__class__ is not ndarray or (x.dtype.kind == "f" and (x.flags.c_contiguous or not any(x.strides)))


__all__ = ["MIN_ELEMENTS", "OPERATORS", "with_programs"]
