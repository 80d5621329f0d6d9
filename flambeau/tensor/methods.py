"""The tensor's methods and operators, filled in from the declarations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.declare import REGISTRY
from . import arithmetic, creation, functions, indexing, memory, neural, random, reducing, shaping
from .apply import apply
from .binding import functions_of, in_place
from .tensor import Tensor


def _install() -> None:
    for op in REGISTRY.values():
        if "method" in op.expose:
            call = getattr(functions, op.name)
            for name in (op.name, *op.aliases):
                setattr(Tensor, name, call)
        if "inplace" in op.expose:
            write = in_place(op)
            for name in (op.name, *op.aliases):
                setattr(Tensor, name + "_", write)
    for family in (arithmetic, creation, indexing, memory, neural, random, reducing, shaping):
        for name, method in getattr(family, "METHODS", {}).items():
            setattr(Tensor, name, method)


def _operand(x: Any) -> bool:
    return isinstance(x, (Tensor, bool, int, float, complex, np.generic))


def operator(name: str) -> Any:
    """The operator form of a binary function: it declines what is neither tensor nor number."""
    op = REGISTRY[name]
    call = functions_of(op)
    short = getattr(op, "short", None)
    if short is None:
        def method(self: Any, other: Any) -> Any:
            return call(self, other) if _operand(other) else NotImplemented
    else:
        def method(self: Any, other: Any) -> Any:
            result = short(self, other)
            if result is not NotImplemented:
                return result
            return call(self, other) if _operand(other) else NotImplemented
    method.__name__ = method.__qualname__ = name
    return method


def assigning(name: str) -> Any:
    """The augmented assignment of an in-place method, `x += y`."""
    write = getattr(Tensor, name)

    def method(self: Any, other: Any) -> Any:
        return write(self, other) if _operand(other) else NotImplemented

    method.__name__ = method.__qualname__ = name
    return method


def _rsub(self: Tensor, other: Any) -> Any:
    return apply(REGISTRY["_rsub_number"], [self], {"other": other}) if _operand(other) else NotImplemented


def _rtruediv(self: Tensor, other: Any) -> Any:
    return functions.reciprocal(self) * other if _operand(other) else NotImplemented


def _pow(self: Tensor, other: Any) -> Any:
    return functions.pow(self, other) if _operand(other) else NotImplemented


def _rpow(self: Tensor, other: Any) -> Any:
    return functions.pow(other, self) if _operand(other) else NotImplemented


#: operator -> declared operator; with the right-hand form where it commutes
_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}
_COMMUTATIVE = {"add", "mul"}

_install()
for _dunder, _name in _BINARY.items():
    _method = operator(_name)
    setattr(Tensor, f"__{_dunder}__", _method)
    if _dunder in _COMMUTATIVE:
        setattr(Tensor, f"__r{_dunder}__", _method)
    if hasattr(Tensor, _name + "_"):
        setattr(Tensor, f"__i{_dunder}__", assigning(_name + "_"))
for _dunder, _method in {"neg": functions_of(REGISTRY["neg"]), "rsub": _rsub, "rtruediv": _rtruediv, "pow": _pow,
                         "rpow": _rpow, "hash": object.__hash__}.items():
    setattr(Tensor, f"__{_dunder}__", _method)
