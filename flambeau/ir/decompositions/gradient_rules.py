"""Gradient rules that take many passes over large arrays, as programs of fused kernels.

A rule is a function over `xp` like an operator's forward, so it is traced over IR values once per shapes and parameters
(`composites.ProgramCache`), and the program runs from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ... import codegen, dtypes
from ...backends.compiled.thresholds import LARGE_SEEN
from ...backends.compiled.thresholds import MIN_ELEMENTS as SIZES
from ...ops.backward_plan import BackwardPlan
from ...ops.declare import REGISTRY
from .composites import NO_RESULT, ProgramCache, between_casts

ndarray = np.ndarray

#: the operators, by registry key
OPERATORS = ("smooth_l1_loss", "huber_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits",
             "soft_margin_loss", "glu", "linalg_vector_norm", "_norm_in_dims", "_norm_whole", "dist", "renorm",
             "var", "std", "var_mean", "std_mean", "logsumexp", "amax", "amin", "aminmax", "_max_all", "_min_all")
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

    run.rule = rule  # type: ignore[attr-defined]
    return run


#: operators whose gradients of 16 bits are no programs: those of products, which have kernels of their own
_WIDENED = frozenset(("mm", "bmm", "addmm", "baddbmm", "addbmm", "mv", "dot", "addmv", "convolution",
                      "scaled_dot_product_attention"))
#: stands for the namespace among the arguments of a rule
_NAMESPACE = object()
#: by rule and dtype
_narrow_programs: dict[tuple[Any, Any], ProgramCache] = {}


def narrow_gradients(plan: BackwardPlan, gs: Sequence[Any], needs: Sequence[bool], saved: Sequence[Any],
                     consts: Sequence[Any], types: Sequence[np.dtype]) -> list[Any] | None:
    """The gradients of operands of 16 bits, each by a program that widens what it reads and rounds its result.

    Args:
        plan: the backward plan.
        gs: the cotangents of the results.
        needs: the inputs whose gradients are computed.
        saved, consts: what the node saved.
        types: the dtypes of all inputs.

    Returns:
        A gradient for each input, or None where it is not needed; None where there is no program.
    """
    narrow = next(d for d, needed in zip((*types, None), (*needs, True), strict=True) if needed)
    if narrow is None or narrow not in dtypes.NARROW or plan.op.name in _WIDENED or not codegen.available() or (
            any(needed and d != narrow for d, needed in zip(types, needs, strict=True))):
        return None
    if not _any_large((*gs, *saved)) and not any(map(_is_large_shape, consts)):
        return None
    values = (*gs, _NAMESPACE, tuple(needs), *saved, *consts)
    if plan.joint is not None:
        found = _narrow_gradient(plan, *plan.joint, values, narrow)
        if found is None:
            return None
        result = [*found, *[None] * (len(needs) - len(found))]
        return [each if needed else None for each, needed in zip(result, needs, strict=True)]
    result = [None] * len(needs)
    for i, function, pick in plan.steps:
        if needs[i]:
            result[i] = _narrow_gradient(plan, function, pick, values, narrow)
            if result[i] is None:
                return None
    return result


def _narrow_gradient(plan: BackwardPlan, function: Any, pick: Any, values: tuple[Any, ...], narrow: np.dtype) -> Any:
    arguments = [np.asarray(x) if isinstance(x, np.generic) else x for x in pick(values)]
    rule = getattr(function, "rule", function)
    index = next((i for i, x in enumerate(arguments) if x is _NAMESPACE), None)
    if index is not None:
        del arguments[index]
    if not all(map(_is_readable, arguments)):
        return None
    programs = _narrow_programs.get((rule, narrow))
    if programs is None:
        programs = _narrow_programs[rule, narrow] = between_casts(f"gradient of {plan.op.name}", (
            lambda xp: rule if index is None else lambda *args: rule(*args[:index], xp, *args[index:])),
            dtypes.of(narrow))
    result = programs.run(arguments, {})
    return None if result is NO_RESULT else result


def _is_large_shape(x: Any) -> bool:
    return x.__class__ is tuple and all(n.__class__ is int for n in x) and prod(x) >= MIN_ELEMENTS


def _is_readable(x: Any) -> bool:
    """Whether it is an array that is C-contiguous or broadcast from a scalar, or a constant."""
    return x.flags.c_contiguous or not any(x.strides) if x.__class__ is ndarray else x.__class__ is not list


def _any_large(args: Sequence[Any]) -> bool:
    for x in args:  # noqa: SIM110 - a generator takes three times as long
        if x.__class__ is ndarray and x.size >= MIN_ELEMENTS and x.size > SIZES[0]:
            return True
    return False


def _is_supported(x: Any) -> bool:
    """Whether it is a float array that is C-contiguous or broadcast from a scalar; true of other objects."""
    return x.__class__ is not ndarray or (x.dtype.kind == "f" and (x.flags.c_contiguous or not any(x.strides)))


__all__ = ["MIN_ELEMENTS", "OPERATORS", "narrow_gradients", "with_programs"]
