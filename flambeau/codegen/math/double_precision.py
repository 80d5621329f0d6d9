"""float32 functions computed in double: where a float32 formula would need twice the digits, double has them."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from ..llvm.vectors import Real


def through_double(formula: Callable[..., Real], *args: Real) -> Real:
    """The formula on as many lanes of double, with coefficients for a result that is rounded to float32."""
    lanes = args[0].lanes
    wide = lanes.over(ir.DoubleType(), "widened")
    return formula(*(a.to(wide) for a in args)).to(lanes)
