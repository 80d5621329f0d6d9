"""Transcendental functions as LLVM instructions, for `float`, `double` and vectors of them.

Every function is branch-free and calls no math library. (sin, cos and tan have one branch, to the reduction of huge
angles, and fmod and remainder a loop: each in an internal function of the module that is always inlined, so the
caller's basic blocks do not change.) Infinities, NaN, signed zeros and subnormal numbers are those of C and PyTorch.

Largest errors found, in ulp (tests/codegen/sweep.py; float32 on 10^8 bit patterns and more, double on about 10^6
arguments). Below 2.5 is within 2 ulp of the correctly rounded result.

    at most 1     exp2, log, log2, log10, sqrt; float32: erfc and pow 0.52; double: exp; fmod is exact
    at most 1.6   exp (float32 1.02), erf (float32 1.50), log1p, cosh, acos, asinh, acosh, atanh, rsqrt, atan2;
                  double: erf, pow
    at most 2     expm1, sinh, softplus, log_sigmoid, sin, cos, asin, atan
    above 2       tanh 2.43, sigmoid 2.34, tan 2.26, erfinv 2.2; erfc in double 2.77
    absolute      lgamma and digamma, near their negative zeros

softplus is log(1 + e^x) for all x; the caller applies the threshold of PyTorch's operator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..llvm.vectors import Real, VectorContext
from . import (
    box_muller,
    error_function,
    exponential,
    gamma,
    inverse_trigonometric,
    logarithm,
    power,
    remainder,
    trigonometric,
)


def _sqrt(x: Real) -> Real:
    return x.sqrt()


def _rsqrt(x: Real) -> Real:
    return 1.0 / x.sqrt()


FUNCTIONS: dict[str, Callable[..., Real]] = {
    "exp": exponential.exp, "exp2": exponential.exp2, "expm1": exponential.expm1,
    "sigmoid": exponential.sigmoid, "tanh": exponential.tanh, "sinh": exponential.sinh, "cosh": exponential.cosh,
    "log": logarithm.log, "log2": logarithm.log2, "log10": logarithm.log10, "log1p": logarithm.log1p,
    "softplus": logarithm.softplus, "log_sigmoid": logarithm.log_sigmoid,
    "asinh": logarithm.asinh, "acosh": logarithm.acosh, "atanh": logarithm.atanh,
    "sin": trigonometric.sin, "cos": trigonometric.cos, "tan": trigonometric.tan,
    "asin": inverse_trigonometric.asin, "acos": inverse_trigonometric.acos, "atan": inverse_trigonometric.atan,
    "erf": error_function.erf, "erfc": error_function.erfc, "erfinv": error_function.erfinv,
    "lgamma": gamma.lgamma, "digamma": gamma.digamma,
    "sqrt": _sqrt, "rsqrt": _rsqrt,
    "atan2": inverse_trigonometric.atan2, "pow": power.pow, "fmod": remainder.fmod,
    "remainder": remainder.remainder,
}
#: for float32 only
FLOAT32_ONLY: dict[str, Callable[..., Real]] = {
    "normal_radius": box_muller.radius, "normal_sine": box_muller.sine, "normal_cosine": box_muller.cosine,
    "erf_from_exp": error_function.erf_from_exp}
BINARY = frozenset({"atan2", "pow", "fmod", "remainder"})


def emit(name: str, builder: Any, args: Sequence[Any], type_: Any, *, fused: bool | None = None) -> Any:
    """Emit a function; return its value.

    Args:
        name: a key of FUNCTIONS or FLOAT32_ONLY.
        builder: an `llvmlite.ir.IRBuilder` positioned in a block; it stays in that block.
        args: one value of the type, or two for BINARY; `erf_from_exp` takes two.
        type_: float, double, or a vector of 2 or more of them.
        fused: whether to use fused multiply-add; None: as on the target.

    Raises:
        KeyError: there is no such function.
        TypeError: the type is not supported.
    """
    context = VectorContext(builder, type_, fused)
    return (FUNCTIONS.get(name) or FLOAT32_ONLY[name])(*(Real(context, a) for a in args)).ir
