"""The transcendental functions as LLVM instructions, for `float`, `double` and vectors of them.

Every function is a formula over lanes without branches and without calls of a mathematical library. (sin, cos and
tan hold one branch, to the reduction of huge angles, and fmod and remainder a loop: each in an internal function
of the module that is inlined afterwards, so that the caller's basic blocks stay as they are.)
Infinities, NaN, signed zeros and subnormal numbers are those of C and PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import error_function, exponential, inverse_trigonometric, logarithm, power, remainders, trigonometric
from .lanes import Lanes, Real


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
    "sqrt": _sqrt, "rsqrt": _rsqrt,
    "atan2": inverse_trigonometric.atan2, "pow": power.pow, "fmod": remainders.fmod,
    "remainder": remainders.remainder,
}
BINARY = frozenset({"atan2", "pow", "fmod", "remainder"})


def emit(name: str, builder: Any, args: Sequence[Any], type_: Any, *, fused: bool | None = None) -> Any:
    """The value of a function, computed where the builder stands.

    Args:
        name: a key of FUNCTIONS.
        builder: an `llvmlite.ir.IRBuilder` inside a block; it stays in that block.
        args: one value, two for BINARY, of the type.
        type_: float, double, or a vector of 2 or more of them.
        fused: whether to multiply and add with a single rounding; None asks the machine.

    Raises:
        KeyError: there is no such function.
        TypeError: the type is none of these.
    """
    lanes = Lanes(builder, type_, fused)
    return FUNCTIONS[name](*(Real(lanes, a) for a in args)).ir
