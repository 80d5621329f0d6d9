"""Normal numbers from uniforms: Box and Muller's transform as expressions."""

from __future__ import annotations

from functools import cache

from ..llvm.vectors import host_has_fma
from ..scalar.scalar_ir import FLOAT32, Node, apply, variable


@cache
def numbers() -> tuple[Node, Node] | None:
    """The two normal numbers of two uniforms; None on processors without fused multiply-add, whose rounding differs."""
    if not host_has_fma():
        return None
    first, second = variable(0, FLOAT32), variable(1, FLOAT32)
    radius = apply("normal_radius", first)
    return radius * apply("normal_cosine", second), radius * apply("normal_sine", second)


__all__ = ["numbers"]
