"""Compiled code as built-in functions of Python's, which take array objects: through ctypes a call costs a microsecond.

Such a function has CPython's `METH_FASTCALL` signature, `(self, arguments, count)`, and its `self` is an array of
words, a *block*, that says what there is to do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from . import compilation, numpy_abi

_METH_FASTCALL = 0x80
#: Python's own functions that such code may call, in the order of their names below
_FUNCTIONS = ("PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef", "PyLong_AsVoidPtr", "PyFloat_AsDouble",
              "PyErr_SetString", "PyErr_Occurred")
#: words that a block has of `words`, as code names them: the class of arrays, what is raised at anything else, and its
#: text; the functions
_NAMES = ("ndarray", "error", "text", "save", "restore", "refer", "address_of", "float_of", "raise_error", "occurred")
WORDS = len(_NAMES)
#: where a built-in function has the block, and an object its class, in bytes
DATA, TYPE = numpy_abi.DATA, numpy_abi.HEAD - 8


class _Method(ctypes.Structure):
    """Python's `PyMethodDef`."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p))


#: where code goes that is handed anything but arrays; it has `%block`
REFUSE = """
refuse:
  %raise.at = getelementptr i64, ptr %block, i64 {raise_error}
  %raise = load ptr, ptr %raise.at
  %error.at = getelementptr i64, ptr %block, i64 {error}
  %error = load ptr, ptr %error.at
  %text.at = getelementptr i64, ptr %block, i64 {text}
  %text = load ptr, ptr %text.at
  call void %raise(ptr %error, ptr %text)
  ret ptr null
""".removeprefix("\n")

_kept: list[Any] = []


@cache
def words() -> tuple[int, ...]:
    """The addresses that code asks a block for, as many as `WORDS`."""
    text = ctypes.create_string_buffer(b"a kernel takes arrays, and none of their subclasses")
    _kept.append(text)
    return (id(np.ndarray), id(TypeError), ctypes.addressof(text),
            *(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS))


def places(first: int) -> dict[str, int]:
    """Where a block has the addresses, by the names that code has for them, from a word on."""
    return dict(zip(_NAMES, range(first, first + WORDS), strict=True))


def maker(name: str, source: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    """What makes a built-in function of a block.

    Args:
        name: the name of the function in the source.
        source: LLVM's text.
    """
    api: Any = ctypes.pythonapi
    library = compilation.load(f"{name}\n{source}", (name,), lambda: source)
    method = _Method(name.encode(), library.address(name), _METH_FASTCALL, None)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", api))
    _kept.extend((library, method))
    address = ctypes.addressof(method)

    def made(block: np.ndarray) -> Callable[..., Any]:
        found: Callable[..., Any] = new(address, block, None)
        return found

    return made


__all__ = ["DATA", "REFUSE", "TYPE", "WORDS", "maker", "places", "words"]
