"""Calls of operators in a trace: the overload that a call selects, its arguments in the schema's order, its node."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import flambeau as torch

from ..._tensor.overriding.overload_calls import _fits
from ...ops import aten
from ...ops.overloads import OpOverload
from ...ops.schemas import aten_overloads
from .symbolic_numbers import SymbolicInt, in_lane

#: the types of integers in a trace
INTEGERS = (int, SymbolicInt)
#: what lowers a call: a function of the builder, the public function and its arguments; NotImplemented: nothing does
Lowering = Callable[[Any, Any, tuple[Any, ...], dict[str, Any]], Any]


def overload(name: str, which: str = "default") -> OpOverload:
    """One of PyTorch's overloads."""
    return getattr(getattr(aten, name), which)


@functools.cache
def name_of(func: Any) -> str:
    """The dotted name of a public function, or its own name."""
    name = torch.overrides.resolve_name(func) or getattr(func, "__name__", "")
    return str(name)


def generic(name: str, builder: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Lower a call whose arguments are those of the operator's schema."""
    if kwargs.get("out") is not None or "names" in kwargs:
        return NotImplemented
    found = resolve(name, args, kwargs)
    if found is None:
        return NotImplemented
    which, given, named = found
    return call(builder, which, given, named, func, args, kwargs)


def resolve(name: str, args: tuple[Any, ...],
            kwargs: dict[str, Any]) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]] | None:
    """The overload that a call of a public function selects, and its arguments; None where none fits."""
    named = {_RENAMED.get(key, key): value for key, value in kwargs.items() if not (
        value is None and key in ("dtype", "out", "memory_format", "generator", "layout", "device"))}
    for which in _ordered(name):
        each = overload(name, which)
        schema = each._given_schema
        if schema is None or which.endswith("out") or "Dimname" in str(schema):
            continue
        given = _spread(args, schema)
        names = {a.name for a in schema.arguments}
        own = {("self" if key == "input" and "input" not in names else "input" if (
            key == "self" and "self" not in names) else key): value for key, value in named.items()}
        try:
            bound = schema.bind(given, own)
        except RuntimeError:
            continue
        types = {a.name: a.type_name for a in schema.arguments}
        if all(_matches(name, which, value, types[key]) for key, value in bound.items()):
            return each, given, own
    return None


_RENAMED = {"axis": "dim", "keepdims": "keepdim", "x": "self"}
_PREFERRED = {"floor_divide": ("default",), "mean": ("default", "dim"),
              "std": ("dim", "correction"), "var": ("dim", "correction"),
              "sum": ("default", "dim_IntList"), "where": ("self", "ScalarOther", "ScalarSelf", "Scalar"),
              "clamp": ("default", "Tensor"), "softmax": ("int",), "log_softmax": ("int",), "cumsum": ("default",),
              "transpose": ("int",), "select": ("int",), "repeat_interleave": ("self_int", "self_Tensor"),
              "any": ("default", "dim", "dims"), "all": ("default", "dim", "dims"), "squeeze": ("default", "dim",
                                                                                                "dims"),
              "norm": ("ScalarOpt_dim",), "max": ("default", "dim", "other"), "min": ("default", "dim", "other")}


def _ordered(name: str) -> list[str]:
    """The overloads of a name, those that calls from Python prefer first."""
    names = aten_overloads(name)
    if name.rstrip("_") in ("add", "sub", "mul", "div"):
        return [x for x in ("Tensor", "Tensor_mode") if x in names]
    first = [x for x in _PREFERRED.get(name, ()) if x in names]
    return first + [x for x in names if x not in first]


def _matches(name: str, which: str, value: Any, type_name: str) -> bool:
    value = _plain_number(value)
    if type_name == "Tensor" and name.rstrip("_") in ("add", "sub", "mul", "div", "floor_divide") and isinstance(
            value, (int, float, complex)):
        return True
    if type_name == "float" and isinstance(value, INTEGERS):
        return True
    if name == "std" and which == "dim" and type_name == "bool" and not isinstance(value, bool):
        return False
    return _fits(value, type_name)


def _plain_number(value: Any) -> Any:
    """A value whose numbers are those of the example."""
    if isinstance(value, (list, tuple)):
        return [_plain_number(x) for x in value]
    return in_lane(value, 0)


def _spread(args: tuple[Any, ...], schema: Any) -> tuple[Any, ...]:
    """Positional arguments, those of a size that is given as numbers in one list."""
    positional = [a for a in schema.arguments if not a.kwarg_only]
    for i, argument in enumerate(positional):
        if i < len(args) and argument.type_name in ("SymInt[]", "int[]") and isinstance(args[i], INTEGERS) and (
                len(args) >= len(positional) or all(a.has_default for a in positional[len(args):])):
            rest = args[i:]
            if all(isinstance(x, INTEGERS) for x in rest) and (len(positional) == i + 1):
                return (*args[:i], list(rest))
    return args


def call(builder: Any, which: OpOverload, given: tuple[Any, ...], named: dict[str, Any], func: Any,
         args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A node for an overload; its value is that of the public function on fake tensors."""
    return builder.emit(which, given, named, func, args, kwargs)


def emit(builder: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    """A node for `name.overload`, computed by the overload itself."""
    packet, _, which = name.partition(".")
    found = overload(packet, which or "default")
    return builder.emit(found, args, kwargs, found, args, kwargs)


def lifted(builder: Any, value: Any, detach: bool = False) -> Any:
    """A constant of the program as a value of the trace: a copy, so that writes do not change it."""
    constant = builder.constant(value)
    copy = builder.emit(overload("lift_fresh_copy"), (constant,), {}, _copied, (constant,), {})
    return builder.emit(overload("detach_"), (copy,), {}, lambda x: x, (copy,), {}) if detach else copy


def _copied(x: Any) -> Any:
    out = x.clone()
    out.constant = x.constant
    return out


def bound(names: str, defaults: dict[str, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name: `names` are the positional ones, in one string."""
    return {**defaults, **dict(zip(names.split(), args, strict=False)), **kwargs}


__all__ = ["INTEGERS", "Lowering", "bound", "call", "emit", "generic", "lifted", "name_of", "overload", "resolve"]
