"""Installs the methods and operators of the tensor, from the declarations and from the METHODS of each module."""

from __future__ import annotations

import builtins
from types import FunctionType
from typing import Any

import numpy as np

from ... import dtypes
from ...engine.api import grad
from ...modes import active_tracer, is_grad_enabled, special
from ...ops.declare import ELEMENTWISE, REGISTRY
from ...warning_location import warn_once
from .. import functions, printing
from ..creation import from_data
from ..dispatch.apply import apply
from ..dispatch.handlers import host_elements
from ..dispatch.inplace import inplace_fast_path
from ..dispatch.public_functions import public_function
from ..memory import access as memory
from ..overriding.default_handler import run_and_convert
from ..overriding.dispatch import DISABLED_DISPATCH
from ..overriding.entry_points import another_function, register_namespace
from ..overriding.lazy_methods import install_lazy_methods, resolve_all
from ..overriding.protocol import OVERRIDES, kind_of
from ..pointwise import arithmetic, complex
from ..shape import indexing, transposing
from ..tensor import Tensor, TensorBase
from ..tracer_notifications import notify_read
from ..views import history as view_history
from . import attributes
from . import sparse as sparse_methods

#: modules of `lazy_modules.METHODS` with properties, or special methods that most programs call
SPECIAL = (attributes, complex, from_data, indexing, memory, printing, sparse_methods, transposing, view_history)


def _install() -> None:
    install_lazy_methods()
    for family in SPECIAL:
        for name, method in family.METHODS.items():
            if method.__class__ is not FunctionType:
                setattr(Tensor, name, method)
            elif name.startswith("__"):
                setattr(Tensor, name, another_function(method, name, f"Tensor.{name}"))


# ----- operators -----

def _is_operand(x: Any) -> bool:
    return isinstance(x, (Tensor, bool, int, float, _Complex, np.generic)) or kind_of(type(x)) == OVERRIDES


_Complex = builtins.complex


def operator(name: str) -> Any:
    """The operator method of a binary operator: NotImplemented for operands that are neither tensor nor scalar."""
    public_function(REGISTRY[name])
    fast_path = REGISTRY[name].operator_method
    return returning_not_implemented(getattr(functions, name)) if fast_path is None else fast_path


def returning_not_implemented(call: Any) -> Any:
    """A binary function as an operator method: NotImplemented for operands that are neither tensor nor scalar."""
    def method(self: Any, other: Any) -> Any:
        return call(self, other) if _is_operand(other) else NotImplemented

    method.__name__ = method.__qualname__ = call.__name__
    return method


def reflected(call: Any) -> Any:
    """A binary function as a reflected operator method."""
    def method(self: Any, other: Any) -> Any:
        return call(other, self) if _is_operand(other) else NotImplemented

    method.__name__ = method.__qualname__ = "r" + call.__name__
    return method


def comparison_operator(name: str) -> Any:
    """A comparison as an operator method; `==` also takes arrays."""
    method = operator(name)
    if name != "eq":
        return method

    def equal(self: Any, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return method(self, functions.as_tensor(other))
        return method(self, other)

    return equal


def augmented_assignment(name: str) -> Any:
    """An in-place method as an augmented assignment, `x += y`."""
    inplace = getattr(Tensor, name)

    def method(self: Any, other: Any) -> Any:
        return inplace(self, other) if _is_operand(other) else NotImplemented

    method.__name__ = method.__qualname__ = name
    op = REGISTRY.get(name.removesuffix("_"))
    if op is not None and op.kind == ELEMENTWISE and not op.params and len(op.inputs) == 2:
        return inplace_fast_path(op, method)
    return method


def _rsub(self: Tensor, other: Any) -> Any:
    if type(other) is float or (type(other) is int and self._array.dtype.kind != "b"):
        return apply(_rsub_scalar, [self], {"other": other, "alpha": 1})
    return functions.rsub(self, other) if _is_operand(other) else NotImplemented


def _rtruediv(self: Tensor, other: Any) -> Any:
    return functions.reciprocal(self) * other


def _pow(self: Tensor, other: Any) -> Any:
    kind = type(other)
    if (kind is int or kind is float) and self._array.dtype.kind == "f":
        return arithmetic.pow_scalar(self, other)
    return functions.pow(self, other) if _is_operand(other) else NotImplemented


def _matmul(self: Tensor, other: Any) -> Any:
    return functions.matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def _rmatmul(self: Tensor, other: Any) -> Any:
    return functions.matmul(other, self) if isinstance(other, Tensor) else NotImplemented


def _invert(self: Tensor) -> Tensor:
    if self._array.dtype.kind not in "iub":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return functions.bitwise_not(self)


# ----- conversions of one element to a Python scalar -----

def _bool(self: Tensor) -> bool:
    a = self._array
    if a.size != 1:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous" if not a.size else
                           "Boolean value of Tensor with more than one value is ambiguous")
    result = bool(dtypes.widen(a).item())
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            tracer.on_truth(self, result)
    return result


_TO_SCALAR = ("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
              "Consider using tensor.detach() first.")


def _single_element(self: Tensor) -> Any:
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return self.item()


def _real_element(self: Tensor, what: str) -> Any:
    value = _single_element(self)
    if isinstance(value, _Complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {what} without overflow")
        return value.real
    return value


def _int(self: Tensor) -> int:
    return int(_real_element(self, "int64_t"))


def _float(self: Tensor) -> float:
    if self._requires_grad and is_grad_enabled():
        warn_once(_TO_SCALAR)
    return float(_real_element(self, "double"))


def _complex(self: Tensor) -> Any:
    if self._requires_grad and is_grad_enabled():
        warn_once(_TO_SCALAR)
    return _Complex(_single_element(self))


def _index(self: Tensor) -> int:
    a = self._array
    if a.size != 1 or a.dtype.kind not in "iub":
        raise TypeError("only integer tensors of a single element can be converted to an index")
    if special[0]:
        notify_read(self, "an index")
    return int(a.item())


def _hash(self: Tensor) -> int:
    return id(self)


def _contains(self: Tensor, element: Any) -> bool:
    if not _is_operand(element):
        raise RuntimeError("Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
                           f"{type(element)}.")
    if special[0]:
        notify_read(self, "the operator in")
    found = functions.eq(self, element)
    return bool(np.any(host_elements(found))) if not found.is_meta else found.any().item()  # which raises


_install()
_rsub_scalar = REGISTRY["_rsub_scalar"]
_add, _sub, _mul, _div = (operator(name) for name in ("add", "sub", "mul", "div"))
_rpow = reflected(functions.pow)
_floordiv, _mod = operator("floor_divide"), returning_not_implemented(functions.remainder)
_and, _or, _xor = (returning_not_implemented(getattr(functions, f"bitwise_{name}")) for name in ("and", "or", "xor"))
_lshift, _rshift = map(returning_not_implemented, (functions.bitwise_left_shift, functions.bitwise_right_shift))

_OPERATORS: dict[str, Any] = {
    "add": _add, "radd": _add, "sub": _sub, "rsub": _rsub, "mul": _mul, "rmul": operator("mul"),
    "truediv": _div, "div": _div, "rtruediv": _rtruediv, "rdiv": _rtruediv, "floordiv": _floordiv,
    "rfloordiv": reflected(functions.floor_divide), "mod": _mod, "rmod": reflected(functions.remainder),
    "pow": _pow, "rpow": _rpow, "matmul": _matmul, "rmatmul": _rmatmul,
    "and": _and, "rand": _and, "or": _or, "ror": _or, "xor": _xor, "rxor": _xor, "lshift": _lshift,
    "rlshift": reflected(functions.bitwise_left_shift), "rshift": _rshift,
    "rrshift": reflected(functions.bitwise_right_shift),
    **{name: comparison_operator(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}, "hash": _hash,
    "neg": public_function(REGISTRY["neg"]), "pos": functions.positive, "abs": functions.abs, "invert": _invert,
    "bool": _bool, "nonzero": _bool, "int": _int, "float": _float, "complex": _complex, "index": _index,
    "contains": _contains,
    **{name: augmented_assignment(method) for name, method in (
        ("iadd", "add_"), ("isub", "sub_"), ("imul", "mul_"), ("itruediv", "div_"), ("idiv", "div_"),
        ("ifloordiv", "floor_divide_"), ("imod", "remainder_"), ("ipow", "pow_"), ("iand", "bitwise_and_"),
        ("ior", "bitwise_or_"), ("ixor", "bitwise_xor_"), ("ilshift", "bitwise_left_shift_"),
        ("irshift", "bitwise_right_shift_"))},
}
#: operator -> the method that handlers of `__torch_function__` are given, if that is not the operator itself
_METHODS_OF_OPERATORS = {
    **dict.fromkeys(("add", "radd"), "add"), "sub": "sub", **dict.fromkeys(("mul", "rmul"), "mul"),
    **dict.fromkeys(("truediv", "div"), "div"), "mod": "remainder", "matmul": "matmul",
    **{name: name for name in ("ne", "lt", "le", "gt", "ge", "neg", "abs")}, "pos": "positive",
    "rand": "bitwise_and", "ror": "bitwise_or", "rxor": "bitwise_xor", "iadd": "add_", "isub": "sub_", "imul": "mul_",
    **dict.fromkeys(("itruediv", "idiv"), "div_"), "ifloordiv": "floor_divide_", "imod": "remainder_",
    "rdiv": "__rtruediv__", "nonzero": "__bool__",
}
for _name, _method in _OPERATORS.items():
    setattr(Tensor, f"__{_name}__", another_function(_method))

#: methods without overrides, beside those with a leading underscore
_NEVER_OVERRIDDEN = frozenset((
    "__new__", "__init_subclass__", "__hash__", "__dir__", "__iter__", "__torch_function__", "__torch_dispatch__",
    "__getstate__", "__copy__", "as_subclass", "__array_namespace__",
))
_OVERRIDDEN = frozenset(("_version", "_is_view", "_backward_hooks", "_post_accumulate_grad_hooks", "_grad_fn",
                         "_values", "_indices", "_nnz", "_dimI", "_dimV", "_coalesced_", "_to_dense"))


def _overridable() -> dict[str, Any]:
    """The methods and the accessors of properties that `__torch_function__` overrides, with what handlers are given."""
    resolve_all()
    members = vars(Tensor)
    result: dict[str, Any] = {}
    for name, value in members.items():
        operator_name = name[2:-2] if name.startswith("__") else None
        if name in _NEVER_OVERRIDDEN or (name[0] == "_" and operator_name is None and name not in _OVERRIDDEN):
            continue
        if isinstance(value, property):
            for accessor, function in (("get", value.fget), ("set", value.fset), ("delete", value.fdel)):
                if function is not None:
                    result[f"{name}.__{accessor}__"] = function, getattr(value, f"__{accessor}__")
        elif value.__class__ is FunctionType:
            method = members.get(_METHODS_OF_OPERATORS.get(operator_name or "", ""), value)
            result[name] = value, method
    return result


def _torch_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Run a function on instances of a subclass; its tensors are returned as instances of the subclass.

    Subclasses override it to see, or to replace, the functions applied to them.

    >>> import flambeau as torch
    >>> class Logged(torch.Tensor):
    ...     @classmethod
    ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
    ...         print(func.__name__)
    ...         return super().__torch_function__(func, types, args, kwargs)
    >>> type(torch.ones(2).as_subclass(Logged).mul(2)).__name__
    mul
    'Logged'
    """
    return run_and_convert(cls, func, types, args, kwargs, Tensor, (Tensor.grad.__get__,))


_torch_function.__name__ = _torch_function.__qualname__ = "__torch_function__"
Tensor.__torch_function__ = classmethod(_torch_function)  # type: ignore[attr-defined]
Tensor.__torch_dispatch__ = DISABLED_DISPATCH  # type: ignore[attr-defined]
for _name, _method in vars(Tensor).items():  # PyTorch's methods are those of the base, to which its pickles refer
    if _method.__class__ is FunctionType and not hasattr(object, _name):
        setattr(TensorBase, _name, _method)
register_namespace("torch.Tensor.", _overridable)
register_namespace("torch.autograd.", lambda: {"grad": grad})
