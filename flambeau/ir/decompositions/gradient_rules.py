"""Gradients of large arrays whose rules take many passes: each rule as a program of fused kernels.

A rule is a line over `xp` like an operator's own, so it is written over values once for arrays of these shapes and
parameters (`primitives.Programs`), and the program runs from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import codegen
from ...backends.compiled.thresholds import LEAST as SIZES
from ...backends.compiled.thresholds import MET
from ...ops.backward_plan import BackwardPlan
from ...ops.declare import REGISTRY
from .composites import NOTHING, Programs

ndarray = np.ndarray

#: the operators, by their keys
OPERATORS = ("smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
             "soft_margin_loss", "glu", "linalg_vector_norm", "dist", "renorm", "var", "std", "var_mean", "std_mean",
             "logsumexp", "amax", "amin", "aminmax", "_max_all", "_min_all")
#: from how many elements on programs are quicker than NumPy
ELEMENTS = 4096


def with_programs(plan: BackwardPlan, arrays: Any) -> None:
    """Let an operator's rules, run over arrays, be programs where those are large.

    Args:
        plan: one use of it.
        arrays: the namespace of arrays.
    """
    op = plan.op
    if all(REGISTRY[key] is not op for key in OPERATORS):
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
    at = names.index("xp")
    programs = Programs(title, lambda xp: lambda *args: rule(*args[:at], xp, *args[at:]))

    def run(*args: Any) -> Any:
        if MET[0] and args[at] is arrays and _any_large(args) and codegen.available():
            given = [np.asarray(x) if isinstance(x, np.generic) else x for x in args]
            del given[at]
            found = programs.run(given, {}) if all(map(_lies_plainly, given)) else NOTHING
            if found is not NOTHING:
                return found
        return rule(*args)

    return run


def _any_large(args: Sequence[Any]) -> bool:
    return any(x.__class__ is ndarray and x.size >= ELEMENTS and x.size > SIZES[0] for x in args)


def _lies_plainly(x: Any) -> bool:
    """Whether it is an array of floats that lies row by row, as what NumPy makes of such does; or none at all."""
    return x.__class__ is not ndarray or (x.dtype.kind == "f" and (x.flags.c_contiguous or not any(x.strides)))


__all__ = ["ELEMENTS", "OPERATORS", "with_programs"]
