"""How a NumPy array lies in memory: compiled code is handed the array object itself and reads it.

Asking Python for an array's address, shape and strides takes longer than a small kernel runs. The fields are those
of NumPy's stable C structure (`PyArrayObject_fields`), after the object's own head; `readable` checks them on an
array before anything relies on them.
"""

from __future__ import annotations

import sys
from functools import cache

import numpy as np

#: bytes from the array object's address to its fields
HEAD = object.__basicsize__
DATA, NDIM, SHAPE, STRIDES, DESCR, FLAGS = (HEAD + each for each in (0, 8, 16, 24, 40, 48))

CONTIGUOUS, WRITEABLE = 0x1, 0x400


@cache
def readable() -> bool:
    """Whether arrays lie in memory as this module says: so it is with CPython and NumPy on 64-bit machines."""
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
