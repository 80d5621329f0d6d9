"""Entry points: generated code as Python built-in functions that take array objects.

A call through ctypes costs a microsecond, a built-in function a fraction of that. Such a function has CPython's
`METH_FASTCALL` signature, `(self, arguments, count)`. Its `self` is the *block*, an int64 array of parameters: fields
that this module defines, and others of the caller's.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from . import compilation, numpy_abi

_METH_FASTCALL = 0x80
#: functions of CPython's API that such code may call, in the order of their names below
_FUNCTIONS = ("PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef", "PyLong_AsVoidPtr", "PyFloat_AsDouble",
              "PyErr_SetString", "PyErr_Occurred")
#: the block's fields, by the names used in IR: the class of arrays, the class and text of the error for other
#: arguments, the addresses of the functions
_FIELDS = ("ndarray", "error", "text", "save", "restore", "refer", "address_of", "float_of", "raise_error", "occurred")
FIELD_COUNT = len(_FIELDS)
#: byte offsets of an array's data (here: the block's) and of an object's class
DATA, TYPE = numpy_abi.DATA, numpy_abi.HEAD - 8


class _Method(ctypes.Structure):
    """CPython's `PyMethodDef`."""

    _fields_ = (("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int),
                ("doc", ctypes.c_char_p))


#: IR that raises TypeError; code branches to `refuse` when an argument is not an array, with `%block` defined
RAISE_TYPE_ERROR = """
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

_keep_alive: list[Any] = []


@cache
def block_fields() -> tuple[int, ...]:
    """The block's fields: `FIELD_COUNT` addresses."""
    text = ctypes.create_string_buffer(b"a kernel takes arrays, and none of their subclasses")
    _keep_alive.append(text)
    return (id(np.ndarray), id(TypeError), ctypes.addressof(text),
            *(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS))


def field_indices(first: int) -> dict[str, int]:
    """The indices of the block's fields by name, where the first has index `first`."""
    return dict(zip(_FIELDS, range(first, first + FIELD_COUNT), strict=True))


def builtin_function_maker(name: str, source: str) -> Callable[[np.ndarray], Callable[..., Any]]:
    """A function that makes a Python built-in function from a block.

    Args:
        name: the function's name in the source.
        source: LLVM IR.
    """
    api: Any = ctypes.pythonapi
    library = compilation.load(f"{name}\n{source}", (name,), lambda: source)
    method = _Method(name.encode(), library.address(name), _METH_FASTCALL, None)
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)(
        ("PyCFunction_NewEx", api))
    _keep_alive.extend((library, method))
    address = ctypes.addressof(method)

    def make(block: np.ndarray) -> Callable[..., Any]:
        function: Callable[..., Any] = new(address, block, None)
        return function

    return make


__all__ = ["DATA", "FIELD_COUNT", "RAISE_TYPE_ERROR", "TYPE", "block_fields", "builtin_function_maker", "field_indices"]
