"""Poisson counts from the state of a Mersenne Twister by one built-in function, as `kernels.random.counts` draws them.

Exponentials and logarithms are the C library's, as in PyTorch: how many uniforms a count takes depends on them.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import ArrayFunction
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import I32, I64, POINTER, as_opaque_pointer, at, i64, local, loop
from ..llvm.lowering import intrinsic
from . import mersenne_twister

_DOUBLE = ir.DoubleType()
_DRAWING, _REAL = ir.FunctionType(I64, [POINTER, I64, POINTER, I64]), ir.FunctionType(_DOUBLE, [_DOUBLE])
_FUNCTIONS = ("exp", "log", "lgamma")
#: words of a block: how many counts, the addresses of the state, of `mersenne_twister.draw` and of the functions
_COUNT, _STATE, _DRAW, _EXP, _LOG, _LGAMMA, _WORDS = range(7)
#: rates from which counts are drawn by transformed rejection
_LARGE = 10.0


def _number(value: float) -> Any:
    return ir.Constant(_DOUBLE, value)


def _generate(name: str) -> str:
    """The function `(result, rates)`: the result."""
    f = ArrayFunction(name, _WORDS, 2, 0)
    b, (out, rates) = f.b, f.data
    state = b.inttoptr(f.word(_STATE), POINTER)
    draw = FunctionPointer(b.inttoptr(f.word(_DRAW), POINTER), _DRAWING)
    exp, log, lgamma = (FunctionPointer(b.inttoptr(f.word(each), POINTER), _REAL) for each in (_EXP, _LOG, _LGAMMA))
    buffer, position_at = as_opaque_pointer(b, local(b, I32, 2)), at(b, state, 4 * mersenne_twister.WORDS)
    product, count = f.variable(_DOUBLE, _number(0.0)), f.variable(_DOUBLE, _number(0.0))

    def uniform() -> Any:
        position = b.sext(b.load(position_at, typ=I32), I64)
        b.store(b.trunc(b.call(draw, [buffer, i64(2), state, position]), I32), position_at)
        first, second = (b.zext(b.load(b.gep(buffer, [i64(k)], source_etype=I32), typ=I32), I64) for k in range(2))
        bits = b.or_(b.shl(b.and_(first, i64((1 << 21) - 1)), i64(32)), second)
        return b.fmul(b.sitofp(bits, _DOUBLE), _number(2.0**-53))

    def few(rate: Any) -> None:
        """The number of factors of a product of uniforms until it falls to exp(-rate)."""
        stop = b.call(exp, [b.fneg(rate)])
        b.store(_number(1.0), product)
        b.store(_number(-1.0), count)
        head, after = (b.append_basic_block(each) for each in ("factor", "few"))
        b.branch(head)
        b.position_at_end(head)
        b.store(b.fmul(b.load(product, typ=_DOUBLE), uniform()), product)
        b.store(b.fadd(b.load(count, typ=_DOUBLE), _number(1.0)), count)
        b.cbranch(b.fcmp_ordered(">", b.load(product, typ=_DOUBLE), stop), head, after)
        b.position_at_end(after)

    def many(rate: Any) -> None:
        """Hörmann's transformed rejection."""
        scale = b.fadd(_number(0.931), b.fmul(_number(2.53), intrinsic(b, "sqrt", _DOUBLE, [rate])))
        shape = b.fadd(_number(-0.059), b.fmul(_number(0.02483), scale))
        inverse = b.fadd(_number(1.1239), b.fdiv(_number(1.1328), b.fsub(scale, _number(3.4))))
        sure = b.fsub(_number(0.9277), b.fdiv(_number(3.6224), b.fsub(scale, _number(2.0))))
        log_rate = b.call(log, [rate])
        head, quick, squeeze, compare, after = (
            b.append_basic_block(each) for each in ("attempt", "quick", "squeeze", "compare", "many"))
        b.branch(head)
        b.position_at_end(head)
        u = b.fsub(uniform(), _number(0.5))
        v = uniform()
        edge = b.fsub(_number(0.5), intrinsic(b, "fabs", _DOUBLE, [u]))
        b.cbranch(b.fcmp_ordered("==", edge, _number(0.0)), head, quick)
        b.position_at_end(quick)
        twice = b.fdiv(b.fmul(_number(2.0), shape), edge)
        place = b.fadd(b.fadd(b.fmul(b.fadd(twice, scale), u), rate), _number(0.43))
        k = intrinsic(b, "floor", _DOUBLE, [place])
        b.store(k, count)
        b.cbranch(b.and_(b.fcmp_ordered(">=", edge, _number(0.07)), b.fcmp_ordered("<=", v, sure)), after, squeeze)
        b.position_at_end(squeeze)
        outside = b.and_(b.fcmp_ordered("<", edge, _number(0.013)), b.fcmp_ordered(">", v, edge))
        b.cbranch(b.or_(b.fcmp_ordered("<", k, _number(0.0)), outside), head, compare)
        b.position_at_end(compare)
        width = b.fadd(b.fdiv(shape, b.fmul(edge, edge)), scale)
        left = b.fsub(b.fadd(b.call(log, [v]), b.call(log, [inverse])), b.call(log, [width]))
        right = b.fsub(b.fadd(b.fneg(rate), b.fmul(k, log_rate)), b.call(lgamma, [b.fadd(k, _number(1.0))]))
        b.cbranch(b.fcmp_ordered("<=", left, right), after, head)
        b.position_at_end(after)

    with loop(b, i64(0), f.word(_COUNT)) as i:
        rate = b.load(b.gep(rates, [i], source_etype=_DOUBLE), typ=_DOUBLE, align=1)
        b.store(_number(0.0), count)
        with b.if_then(b.fcmp_ordered(">", rate, _number(0.0))):
            with b.if_else(b.fcmp_ordered(">=", rate, _number(_LARGE))) as (large, small):
                with large:
                    many(rate)
                with small:
                    few(rate)
        b.store(b.load(count, typ=_DOUBLE), b.gep(out, [i], source_etype=_DOUBLE), align=1)
    f.leave(0)
    return str(f.module)


@cache
def _maker() -> Callable[[np.ndarray], Callable[..., Any]]:
    return entry_points.builtin_function_maker("poisson_counts", _generate("poisson_counts"))


@cache
def _library() -> tuple[int, ...] | None:
    """The addresses of the C library's functions; None where they are not found."""
    for name in (None, ctypes.util.find_library("m")):
        try:
            library = ctypes.CDLL(name)
            return tuple([ctypes.cast(getattr(library, each), ctypes.c_void_p).value or 0 for each in _FUNCTIONS])
        except (OSError, AttributeError):
            continue
    return None


def function(state: int) -> tuple[Callable[..., Any], np.ndarray] | None:
    """The built-in function `(counts, rates)` and its block, whose first number is how many there are; None where the C
    library's functions are not found. Both arrays are contiguous and of float64, no rate is negative.

    Args:
        state: the address of 624 words and the position.
    """
    functions = _library()
    if functions is None:
        return None
    block = np.array([0, state, mersenne_twister.address(), *functions, *entry_points.block_fields()], np.int64)
    return _maker()(block), block


__all__ = ["function"]
