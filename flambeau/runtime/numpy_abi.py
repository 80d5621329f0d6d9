"""The layout of NumPy's array object, from which generated code reads addresses, shapes and strides.

Asking Python for an array's address, shape and strides takes longer than a small kernel runs, so generated code takes
the array object itself. The fields are those of NumPy's stable C structure (`PyArrayObject_fields`), after the
object header; `readable` verifies them on an array.
"""

from __future__ import annotations

import importlib
import sys
from functools import cache
from typing import Any

import numpy as np

#: bytes from the array object's address to its fields
HEAD = object.__basicsize__
DATA, NDIM, SHAPE, STRIDES, DESCR, FLAGS = (HEAD + each for each in (0, 8, 16, 24, 40, 48))

CONTIGUOUS, WRITEABLE = 0x1, 0x400
#: positions of functions in the table of NumPy's C API: PyArray_NewFromDescr, PyArray_SetBaseObject
NEW_FROM_DESCRIPTOR, SET_BASE = 94, 282


def function_address(position: int) -> int:
    """The address of a function of NumPy's C API."""
    import ctypes

    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi))
    extension: Any = importlib.import_module("numpy._core._multiarray_umath")
    table = (ctypes.c_void_p * (position + 1)).from_address(pointer(extension._ARRAY_API, None))
    return table[position] or 0


@cache
def readable() -> bool:
    """Whether array objects have this layout, as they do with CPython on 64-bit little-endian machines."""
    if sys.implementation.name != "cpython" or sys.maxsize < 2**32 or sys.byteorder != "little":
        return False
    import ctypes

    def word(address: int) -> int:
        return ctypes.c_int64.from_address(address).value

    array = np.arange(12, dtype=np.float32).reshape(3, 4)[:, 1:3]
    at = id(array)
    flags = ctypes.c_int32.from_address(at + FLAGS).value
    return (word(at + DATA) == array.ctypes.data and ctypes.c_int32.from_address(at + NDIM).value == 2
            and [word(word(at + SHAPE) + 8 * i) for i in (0, 1)] == [3, 2]
            and [word(word(at + STRIDES) + 8 * i) for i in (0, 1)] == [16, 4]
            and word(at + DESCR) == id(array.dtype) and flags & CONTIGUOUS == 0 and flags & WRITEABLE != 0)
