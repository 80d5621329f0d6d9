"""Evaluation of scalar IR on the CPU, for many elements at once.

Values are NumPy arrays, one element a thread; of float16 and bfloat16 their float32 values. Transcendental functions
are the compiled ones of the CPU's kernels, so that both devices have the same formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ....dtypes import BFLOAT16, HALF, NARROW, to_bfloat16, widen
from ....runtime import launch
from ....runtime.launch import Spec
from ...elementwise import elementwise
from ...scalar import scalar_ir
from ...scalar.scalar_ir import BOOL, DEVICE_ONLY, FLOAT32_ONLY, TRANSCENDENTAL, Node, variable

Array = np.ndarray


def evaluate(node: Node, args: list[Array]) -> Array:
    """The value of one node, no input, from the values of its arguments.

    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> evaluate(variable(0, "int32") / 0, [np.int32([5, -7]), np.int32([2, 2])])
    array([ 2, -3], dtype=int32)
    """
    op = node.op
    if op == "constant":
        return np.frombuffer(node.const, node.dtype)
    if op in TRANSCENDENTAL or op in FLOAT32_ONLY:
        return _compiled(op, node.dtype, args)
    if op == "cast":
        return _cast(args[0], node.args[0].dtype, node.dtype)
    if op == "bitcast":
        return np.ascontiguousarray(args[0]).view(node.dtype)
    if op in DEVICE_ONLY:
        return _APPROXIMATIONS[op](args)
    if op == "select":
        return np.where(args[0], args[1], args[2])
    if op == "div" and node.dtype.kind != "f":
        return _divide(args[0], args[1])
    if op == "fma":
        return _fma(args)
    return _FUNCTIONS[op](*args).astype(BOOL if op in scalar_ir.COMPARISON else node.dtype, copy=False)


def _divide(x: Array, y: Array) -> Array:
    """Integer division, truncated; 0 for a divisor of 0."""
    safe = np.where(y == 0, np.ones((), y.dtype), y)
    quotient = x // safe
    if x.dtype.kind == "i":
        quotient = quotient + ((x - quotient * safe != 0) & ((x < 0) != (safe < 0))).astype(x.dtype)
    return np.where(y == 0, np.zeros((), x.dtype), quotient)


def _fma(args: list[Array]) -> Array:
    if args[0].dtype == np.float32:  # the product of two float32 is exact in float64
        wide = args[0].astype(np.float64) * args[1] + args[2]
        return wide.astype(np.float32)
    return _compiled("fma", args[0].dtype, args)


def _rounded(function: Callable[..., Array]) -> Callable[[list[Array]], Array]:
    """A function whose float32 results are float64 results, rounded: a GPU's differ by a few ulp."""
    def evaluated(args: list[Array]) -> Array:
        made: Array = function(*[each.astype(np.float64) for each in args]).astype(args[0].dtype)
        return made

    return evaluated


def _fma_down(args: list[Array]) -> Array:
    """float32: the product is exact in float64, and so is the sum, of numbers that are not far apart."""
    wide = args[0].astype(np.float64) * args[1] + args[2]
    near = wide.astype(np.float32)
    below: Array = np.where(near > wide, np.nextafter(near, np.float32(-np.inf)), near)
    return below


def _cast(x: Array, source: np.dtype, to: np.dtype) -> Array:
    if to in NARROW:
        return round_to(x, to)
    if source.kind == "f" and to.kind in "iu" and to.itemsize < 8:
        between = np.int64 if to == np.dtype(np.uint32) else np.int32
        return x.astype(between).astype(to)
    return x.astype(to)


def round_to(x: Array, dtype: np.dtype) -> Array:
    """float32 values rounded to a narrow dtype."""
    if dtype == BFLOAT16:
        return widen(to_bfloat16(np.ascontiguousarray(x, np.float32)))
    return x.astype(np.float16).astype(np.float32)


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "neg": np.negative, "abs": np.abs,
    "minimum": np.minimum, "maximum": np.maximum, "fmin": np.fmin, "fmax": np.fmax, "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x), "recip": lambda x: 1 / x, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "round": np.rint, "copysign": np.copysign, "and": np.bitwise_and, "or": np.bitwise_or,
    "xor": np.bitwise_xor, "not": np.invert, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
    "gt": np.greater, "ge": np.greater_equal,
}


_APPROXIMATIONS: dict[str, Callable[[list[Array]], Array]] = {
    "exp2_approx": _rounded(np.exp2), "log2_approx": _rounded(np.log2), "sin_approx": _rounded(np.sin),
    "cos_approx": _rounded(np.cos), "recip_approx": _rounded(np.reciprocal),
    "rsqrt_approx": _rounded(lambda x: 1 / np.sqrt(x)), "div_approx": _rounded(np.divide), "fma_down": _fma_down}


@lru_cache(256)
def _kernel(op: str, dtype: np.dtype, arity: int) -> Any:
    return scalar_ir.apply(op, *[variable(i, dtype) for i in range(arity)])


def _compiled(op: str, dtype: np.dtype, args: list[Array]) -> Array:
    arrays = [np.ascontiguousarray(each) for each in np.broadcast_arrays(*args)]
    out = np.empty(arrays[0].shape, dtype)
    node = _kernel(op, dtype, len(arrays))
    launches = elementwise.launches([node], [Spec.of(out)], [Spec.of(each) for each in arrays])
    launch.run(launches, [out, *arrays])
    return out


def held(dtype: np.dtype) -> np.dtype:
    """The dtype in which the evaluator holds values of a dtype."""
    return np.dtype(np.float32) if dtype in (BFLOAT16, HALF) else dtype


__all__ = ["evaluate", "held", "round_to"]
