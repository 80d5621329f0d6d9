"""Functions of C libraries in Python: stand-ins that check calls as the header declares them.

`c_function("int f(void *x, int n)")` decorates a Python function with that prototype. Whoever calls it has set
`argtypes` as for ctypes; they must have the prototype's sizes, and arguments must convert.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

#: C's types by value -> size and whether they are floating-point numbers
_BY_VALUE = {"signed char": (1, False), "int": (4, False), "unsigned int": (4, False), "int32_t": (4, False),
             "uint32_t": (4, False), "int64_t": (8, False), "uint64_t": (8, False),
             "long long int": (8, False), "long long": (8, False),
             "size_t": (8, False), "unsigned long long": (8, False), "float": (4, True), "double": (8, True)}


def _parameter(text: str, opaque: frozenset[str]) -> tuple[int, bool, str]:
    """Size, whether a floating-point number, and name of a declared parameter."""
    words = re.findall(r"\w+|\*|\[", text)
    name = next(each for each in reversed(words) if re.match(r"\w", each) and not each.isdigit())
    kind = " ".join(each for each in words[:-1] if each not in ("const", "struct"))
    if "*" in words or "[" in words or kind in opaque:
        return 8, False, name
    size, is_float = _BY_VALUE.get(kind, (4, False))  # the rest are enumerations
    return size, is_float, name


class CFunction:
    """A C function that is a Python function.

    Args:
        prototype: its declaration.
        function: called with plain numbers, addresses among them, by position.
        opaque: names of types that are pointers, handles for example.
    """

    def __init__(self, prototype: str, function: Callable[..., Any], opaque: frozenset[str]) -> None:
        self.prototype, self.function = prototype, function
        match = re.search(r"(\w+)\s*\((.*)\)", prototype, re.DOTALL)
        assert match is not None
        self.name = match.group(1)
        declared = [each for each in match.group(2).split(",") if each.strip() not in ("", "void")]
        self.parameters = [_parameter(each, opaque) for each in declared]
        self.argtypes: Any = None
        self.restype: Any = None

    def __call__(self, *args: Any) -> Any:
        """Call it, if the declared types are the prototype's and the arguments convert to them."""
        assert self.argtypes is not None, f"{self.name} has no argtypes"
        assert len(self.argtypes) == len(args) == len(self.parameters), (self.name, len(args), len(self.parameters))
        values = []
        for kind, value, (size, is_float, name) in zip(self.argtypes, args, self.parameters, strict=True):
            assert ctypes.sizeof(kind) == size, (self.name, name)
            assert (kind in (ctypes.c_float, ctypes.c_double)) == is_float, (self.name, name)
            kind.from_param(value)  # raises what ctypes raises
            values.append(_plain(kind, value))
        return self.function(*values)


def _plain(kind: Any, value: Any) -> Any:
    """A number as the function sees it: of pointers, their address."""
    if hasattr(value, "_obj"):  # byref
        return ctypes.addressof(value._obj)
    if issubclass(kind, ctypes._Pointer):
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    if isinstance(value, (ctypes.Array, ctypes.Structure)):
        return ctypes.addressof(value)
    if isinstance(value, ctypes._Pointer):
        return ctypes.cast(value, ctypes.c_void_p).value or 0
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    if value is None:
        return 0
    made = kind(value).value
    assert made is None or made == value or kind in (ctypes.c_float, ctypes.c_void_p), (kind, value)
    return 0 if made is None else made


def c_function(prototype: str, *opaque: str) -> Callable[[Callable[..., Any]], CFunction]:
    """A decorator: the function is a C function of this prototype.

    Args:
        opaque: names of types that are pointers.
    """
    return lambda function: CFunction(prototype, function, frozenset(opaque))


def store(address: int, value: Any, kind: Any = ctypes.c_void_p) -> None:
    """Write a result to where a parameter points."""
    kind.from_address(address).value = value


__all__ = ["CFunction", "c_function", "store"]
