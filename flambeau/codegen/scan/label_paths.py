"""The recursion of connectionist temporal classification: logarithms of sums over paths through labels, in one call."""

from __future__ import annotations

import ctypes.util
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import TYPES, ArrayFunction
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import I8, POINTER, i64, loop, word
from ..llvm.lowering import constant

#: words of a block: samples, states of each, whether paths run backward, the addresses of the exponential and logarithm
_SAMPLES, _STATES, _BACK, _EXP, _LOG, _WORDS = range(6)


def _generate(name: str, char: str) -> str:
    """The function `(None, sums, emission, skips, steps, states)`, which overwrites sums: sums."""
    f = ArrayFunction(name, _WORDS, 5)
    b, (sums, emission, skips, steps, sizes), type_ = f.b, f.data, TYPES[char]
    item = np.dtype(char).itemsize
    exp, log = (FunctionPointer(b.inttoptr(f.word(each), POINTER), ir.FunctionType(type_, [type_]))
                for each in (_EXP, _LOG))
    samples, states, back = f.word(_SAMPLES), f.word(_STATES), b.icmp_signed("!=", f.word(_BACK), i64(0))
    nothing, zero, one = constant(-np.inf, type_), constant(0.0, type_), i64(1)

    def load(array: Any, index: Any) -> Any:
        return b.load(b.gep(array, [index], source_etype=type_), typ=type_, align=item)

    def larger(x: Any, y: Any) -> Any:
        return b.select(b.fcmp_ordered(">", x, y), x, y)

    with loop(b, i64(0), samples) as sample:
        count, size = word(b, steps, sample), word(b, sizes, sample)

        def at(k: Any, j: Any, sample: Any = sample, count: Any = count, size: Any = size) -> Any:
            """The element of step k and state j, counted from the end of both if paths run backward."""
            t = b.select(back, b.sub(b.sub(count, one), k), k)
            s = b.select(back, b.sub(b.sub(size, one), j), j)
            return b.add(b.mul(b.add(b.mul(t, samples), sample), states), s)

        with loop(b, i64(0), count) as k, loop(b, i64(0), size) as j:
            here = at(k, j)
            total = f.variable(type_, b.select(b.icmp_signed("<", j, i64(2)), zero, nothing))
            with b.if_then(b.icmp_signed(">", k, i64(0))):
                before = b.sub(k, one)
                has_one, has_two = b.icmp_signed(">", j, i64(0)), b.icmp_signed(">", j, one)
                state = b.select(back, b.sub(b.add(size, one), j), j)
                state = b.select(has_two, state, i64(0))
                flag = b.load(b.gep(skips, [b.add(b.mul(sample, states), state)], source_etype=I8), typ=I8)
                may_skip = b.and_(has_two, b.icmp_signed("!=", flag, ir.Constant(I8, 0)))
                first = load(sums, at(before, j))
                second = b.select(has_one, load(sums, at(before, b.select(has_one, b.sub(j, one), j))), nothing)
                third = b.select(may_skip, load(sums, at(before, b.select(has_two, b.sub(j, i64(2)), j))), nothing)
                most = larger(larger(first, second), third)
                most = b.select(b.fcmp_ordered("==", most, nothing), zero, most)
                parts = [b.call(exp, [b.fsub(each, most)]) for each in (first, second, third)]
                added = b.fadd(b.fadd(parts[0], parts[1]), parts[2])
                b.store(b.fadd(b.call(log, [added]), most), total)
            value = b.fadd(b.load(total, typ=type_), load(emission, here))
            b.store(value, b.gep(sums, [here], source_etype=type_), align=item)
    f.leave(1)
    return str(f.module)


@cache
def _functions(char: str) -> tuple[int, ...] | None:
    """The addresses of the C library's exponential and logarithm; None where they are not found."""
    names = [each + ("f" if char == "f" else "") for each in ("exp", "log")]
    for name in (None, ctypes.util.find_library("m")):
        try:
            library = ctypes.CDLL(name)
            return tuple([ctypes.cast(getattr(library, each), ctypes.c_void_p).value or 0 for each in names])
        except (OSError, AttributeError):
            continue
    return None


@cache
def _maker(char: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    name = f"label_paths_{char}"
    return entry_points.builtin_function_maker(name, _generate(name, char))


@lru_cache(64)
def function(char: str, samples: int, states: int, back: bool) -> Callable[..., Any] | None:
    """The built-in function `(None, sums, emission, skips, steps, states)`: sums; None without a C library.

    sums[t, n, s] is the logarithm of the sum over paths that reach state s of sample n at step t, or, `back`, leave it.

    Args:
        char: "f" or "d", the dtype of `sums` and `emission`, (steps, samples, states), row-major.
        back: whether paths run from the last step of a sample to its first.

    The others are `skips` (samples, states), bool: whether a state is entered from the one two before, and int64
    (samples,): how many steps and states each sample has, at least one state. Only those sums are written.
    """
    addresses = _functions(char)
    if addresses is None:
        return None
    return _maker(char)(np.array([samples, states, back, *addresses, *entry_points.block_fields()], np.int64))


__all__ = ["function"]
