"""The C library's functions of one number over an array, in one call."""

from __future__ import annotations

import ctypes.util
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from llvmlite import ir

from ...runtime import entry_points
from ..llvm.array_function import ArrayFunction
from ..llvm.kernel_entry import FunctionPointer
from ..llvm.loop_nests import POINTER, i64, loop

_REAL = ir.DoubleType()
_TYPE = ir.FunctionType(_REAL, [_REAL])
#: words of a block: how many numbers, the address of the function
_COUNT, _FUNCTION, _WORDS = range(3)
_NAME = "scalar_function"


def _generate() -> str:
    """The function `(None, array)`, which overwrites the array: the array."""
    f = ArrayFunction(_NAME, _WORDS, 1)
    b, (x,) = f.b, f.data
    compute = FunctionPointer(b.inttoptr(f.word(_FUNCTION), POINTER), _TYPE)
    with loop(b, i64(0), f.word(_COUNT)) as i:
        place = b.gep(x, [i], source_etype=_REAL)
        b.store(b.call(compute, [b.load(place, typ=_REAL, align=8)]), place, align=8)
    f.leave(1)
    return str(f.module)


@cache
def _maker() -> Callable[[np.ndarray], Callable[..., Any]]:
    return entry_points.builtin_function_maker(_NAME, _generate())


@cache
def _address(name: str) -> int | None:
    """The address of a function of the C library; None where it is not found."""
    for library in (None, ctypes.util.find_library("m")):
        try:
            return ctypes.cast(getattr(ctypes.CDLL(library), name), ctypes.c_void_p).value
        except (OSError, AttributeError):
            continue
    return None


@lru_cache(256)
def function(name: str, count: int) -> Callable[..., Any] | None:
    """The built-in function `(None, array)`, which overwrites an array of float64; None without such a C function.

    Args:
        name: of the C function.
        count: how many numbers the array has, contiguous.
    """
    address = _address(name)
    return None if not address else _maker()(np.array([count, address, *entry_points.block_fields()], np.int64))


__all__ = ["function"]
