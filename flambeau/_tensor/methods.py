"""The tensor's methods and operators, filled in from the declarations."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from .. import dtypes
from ..modes import active_tracer, special
from ..ops.declare import ELEMENTWISE, REGISTRY
from . import attributes, autograd_methods, functions, memory, pickling, printing, storage, view_history
from .creation import constants, from_data, random
from .dispatch.apply import apply
from .dispatch.binding import functions_of, in_place
from .dispatch.inplace import fast_binary
from .linalg import decompositions, einsum, norms
from .linalg import matmul as products
from .neural import activation
from .neural import layers as neural
from .pointwise import arithmetic, comparison, complex, selection
from .reduction import ordering
from .reduction import reductions as reducing
from .reduction import scans as scanning
from .shape import copying, indexing, joining, reshaping, scattering, strides
from .tensor import Tensor
from .tracer_notifications import tell_reading

_FAMILIES = (activation, arithmetic, attributes, autograd_methods, comparison, complex, constants, einsum,
             copying, from_data, decompositions, indexing, joining, memory, neural, norms, ordering, products, random,
             pickling, reducing, scanning, scattering, selection, reshaping, printing, storage, strides, view_history)


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
    for family in _FAMILIES:
        for name, method in getattr(family, "METHODS", {}).items():
            setattr(Tensor, name, method)


# ----- operators -----

def _operand(x: Any) -> bool:
    return isinstance(x, (Tensor, bool, int, float, _Complex, np.generic))


_Complex = builtins.complex


def operator(name: str) -> Any:
    """The operator form of a binary function: it declines what is neither tensor nor number."""
    functions_of(REGISTRY[name])
    short = REGISTRY[name].operator_method
    return declining(getattr(functions, name)) if short is None else short


def declining(call: Any) -> Any:
    """A binary function as an operator: it declines what is neither tensor nor number."""
    def method(self: Any, other: Any) -> Any:
        return call(self, other) if _operand(other) else NotImplemented

    method.__name__ = method.__qualname__ = call.__name__
    return method


def reflected(call: Any) -> Any:
    """A binary function as a right-hand operator."""
    def method(self: Any, other: Any) -> Any:
        return call(other, self) if _operand(other) else NotImplemented

    method.__name__ = method.__qualname__ = "r" + call.__name__
    return method


def comparing(name: str) -> Any:
    """A comparison as an operator: equality with what is neither tensor nor number is Python's affair."""
    method = operator(name)
    if name != "eq":
        return method

    def equal(self: Any, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return method(self, functions.as_tensor(other))
        return method(self, other)

    return equal


def assigning(name: str) -> Any:
    """The augmented assignment of an in-place method, `x += y`."""
    write = getattr(Tensor, name)

    def method(self: Any, other: Any) -> Any:
        return write(self, other) if _operand(other) else NotImplemented

    method.__name__ = method.__qualname__ = name
    op = REGISTRY.get(name.removesuffix("_"))
    if op is not None and op.kind == ELEMENTWISE and not op.params and len(op.inputs) == 2:
        return fast_binary(op, method)
    return method


def _rsub(self: Tensor, other: Any) -> Any:
    if type(other) is float or (type(other) is int and self._array.dtype.kind != "b"):
        return apply(_rsub_scalar, [self], {"other": other, "alpha": 1})
    return functions.rsub(self, other) if _operand(other) else NotImplemented


def _rtruediv(self: Tensor, other: Any) -> Any:
    return functions.reciprocal(self) * other


def _pow(self: Tensor, other: Any) -> Any:
    kind = type(other)
    if (kind is int or kind is float) and self._array.dtype.kind == "f":
        return arithmetic.float_to_number(self, other)
    return functions.pow(self, other) if _operand(other) else NotImplemented


def _matmul(self: Tensor, other: Any) -> Any:
    return functions.matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def _rmatmul(self: Tensor, other: Any) -> Any:
    return functions.matmul(other, self) if isinstance(other, Tensor) else NotImplemented


def _invert(self: Tensor) -> Tensor:
    if self._array.dtype.kind not in "iub":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return functions.bitwise_not(self)


# ----- one element as a Python number -----

def _bool(self: Tensor) -> bool:
    a = self._array
    if a.size != 1:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if not a.size else
                           "Boolean value of Tensor with more than one value is ambiguous")
    found = bool(dtypes.widen(a).item())
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            tracer.on_truth(self, found)
    return found


def _only(self: Tensor) -> Any:
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return self.item()


def _real_only(self: Tensor, what: str) -> Any:
    value = _only(self)
    if isinstance(value, _Complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {what} without overflow")
        return value.real
    return value


def _int(self: Tensor) -> int:
    return int(_real_only(self, "int64_t"))


def _float(self: Tensor) -> float:
    return float(_real_only(self, "double"))


def _complex(self: Tensor) -> Any:
    return _Complex(_only(self))


def _index(self: Tensor) -> int:
    a = self._array
    if a.size != 1 or a.dtype.kind not in "iub":
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if special[0]:
        tell_reading(self, "an index")
    return int(a.item())


def _hash(self: Tensor) -> int:
    return id(self)


def _contains(self: Tensor, element: Any) -> bool:
    if not _operand(element):
        raise RuntimeError("Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                           f"{type(element)}.")
    if special[0]:
        tell_reading(self, "the operator in")
    return bool(np.any(functions.eq(self, element)._array))


_install()
_rsub_scalar = REGISTRY["_rsub_scalar"]
_add, _sub, _mul, _div = (operator(name) for name in ("add", "sub", "mul", "div"))
_rpow = reflected(functions.pow)
_floordiv, _mod = operator("floor_divide"), declining(functions.remainder)
_and, _or, _xor = (declining(getattr(functions, f"bitwise_{name}")) for name in ("and", "or", "xor"))
_lshift, _rshift = declining(functions.bitwise_left_shift), declining(functions.bitwise_right_shift)

_OPERATORS: dict[str, Any] = {
    "add": _add, "radd": _add, "sub": _sub, "rsub": _rsub, "mul": _mul, "rmul": operator("mul"),
    "truediv": _div, "div": _div, "rtruediv": _rtruediv, "rdiv": _rtruediv, "floordiv": _floordiv,
    "rfloordiv": reflected(functions.floor_divide), "mod": _mod, "rmod": reflected(functions.remainder),
    "pow": _pow, "rpow": _rpow, "matmul": _matmul, "rmatmul": _rmatmul,
    "and": _and, "rand": _and, "or": _or, "ror": _or, "xor": _xor, "rxor": _xor, "lshift": _lshift,
    "rlshift": reflected(functions.bitwise_left_shift), "rshift": _rshift,
    "rrshift": reflected(functions.bitwise_right_shift),
    "eq": comparing("eq"), "ne": comparing("ne"), "lt": comparing("lt"), "le": comparing("le"),
    "gt": comparing("gt"), "ge": comparing("ge"), "hash": _hash,
    "neg": functions_of(REGISTRY["neg"]), "pos": functions.positive, "abs": functions.abs, "invert": _invert,
    "bool": _bool, "nonzero": _bool, "int": _int, "float": _float, "complex": _complex, "index": _index,
    "contains": _contains,
    "iadd": assigning("add_"), "isub": assigning("sub_"), "imul": assigning("mul_"), "itruediv": assigning("div_"),
    "idiv": assigning("div_"), "ifloordiv": assigning("floor_divide_"), "imod": assigning("remainder_"),
    "ipow": assigning("pow_"), "iand": assigning("bitwise_and_"), "ior": assigning("bitwise_or_"),
    "ixor": assigning("bitwise_xor_"), "ilshift": assigning("bitwise_left_shift_"),
    "irshift": assigning("bitwise_right_shift_"),
}
for _name, _method in _OPERATORS.items():
    setattr(Tensor, f"__{_name}__", _method)
