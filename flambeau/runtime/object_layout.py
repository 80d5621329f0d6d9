"""The layout of Python's tuples, lists, floats and slots, which generated code reads without the interpreter.

The fields are those of CPython's structures, after the object header; `readable` verifies them on objects, and the
offset of a slot is found on an object.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from functools import cache
from typing import Any

from . import numpy_abi
from .numpy_abi import HEAD

#: bytes from an object's address to its class, the length of a tuple, its first item, a list's items, a float's value
TYPE, LENGTH, ITEMS, LIST_ITEMS, FLOAT = HEAD - 8, HEAD, HEAD + 8, HEAD + 8, HEAD


def _word(address: int) -> int:
    return ctypes.c_int64.from_address(address).value


@cache
def readable() -> bool:
    """Whether objects have this layout, as they do with CPython that has a global lock."""
    if not numpy_abi.readable() or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return False
    first, second, number = object(), object(), float("1.5")
    pair, items = (first, second), [first, second]
    return (_word(id(pair) + TYPE) == id(tuple) and _word(id(pair) + LENGTH) == 2
            and [_word(id(pair) + ITEMS + 8 * i) for i in (0, 1)] == [id(first), id(second)]
            and [_word(_word(id(items) + LIST_ITEMS) + 8 * i) for i in (0, 1)] == [id(first), id(second)]
            and ctypes.c_double.from_address(id(number) + FLOAT).value == number)


def slot_offset(cls: type, name: str) -> int | None:
    """Bytes from the address of an object of a class to its slot; None where it cannot be found."""
    each: Any = object.__new__(cls)
    mark = object()
    setattr(each, name, mark)
    found = [at for at in range(HEAD, cls.__basicsize__, 8) if _word(id(each) + at) == id(mark)]
    return found[0] if len(found) == 1 and sys.getrefcount(mark) else None


__all__ = ["FLOAT", "ITEMS", "LENGTH", "LIST_ITEMS", "TYPE", "readable", "slot_offset"]
