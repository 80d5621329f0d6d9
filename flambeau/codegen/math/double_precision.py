"""float32 functions computed in double, for formulas that need more than float32's precision."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ..llvm.vectors import Real


def through_double(formula: Callable[..., Real], *args: Real) -> Real:
    """Evaluate a formula in double, with the coefficients for results that are rounded to float32."""
    context = args[0].context
    wide = context.with_element(ir.DoubleType(), "widened")
    return formula(*(a.to(wide) for a in args)).to(context)
