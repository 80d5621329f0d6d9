"""Calls with `out=` and `resize_` as operators, for handlers of `__torch_dispatch__`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ops.aten import declarations_of
from ...ops.declare import COMPOSITE
from ...ops.overloads import OpOverload
from ..tensor import Tensor
from .aten_arguments import aten_overload
from .dispatch import ask, dispatch_modes, handling_inputs, no_dispatch
from .entry_points import below_overrides, called_with_out
from .overload_calls import functional_overload, resolve

_NAMESPACES = ("torch.", "torch.linalg.", "torch.special.", "torch.fft.")


def _overload_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> OpOverload | None:
    """The overload of a public function's call with `out=`; None: PyTorch composes the function of others.

    Args:
        name: the function's qualified name.
        args, kwargs: the call's arguments, as the schema names them.
    """
    from ...ops import aten

    space, _, function = name.rpartition(".")
    if f"{space}." not in _NAMESPACES:
        return None
    prefix = "" if space == "torch" else f"{space.rpartition('.')[2]}_"
    packet: Any = getattr(aten, prefix + function, None)
    stand_in = next(x for x in kwargs.values() if isinstance(x, Tensor))
    operands = tuple(stand_in if isinstance(x, (int, float, complex)) else x for x in args)
    for given in (args, operands):  # numbers are operands of some overloads
        try:
            overload = resolve(packet, given, kwargs)
            schema = overload._given_schema
            assert schema is not None
            functional = functional_overload(overload, schema)
        except (AttributeError, RuntimeError):
            continue
        if any(a.is_out for a in schema.arguments) and any(
                op.kind != COMPOSITE for op in declarations_of(functional)):
            return overload
    return None


def _into_out(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a handler for a call with `out=`; NotImplemented where there is none."""
    if no_dispatch.get():
        return NotImplemented
    out = kwargs["out"]
    outs = tuple(out) if isinstance(out, (tuple, list)) else (out,)
    found = handling_inputs((*args, *kwargs.values(), *outs))
    if not found and not dispatch_modes.get():
        return NotImplemented
    others = {key: value for key, value in kwargs.items() if key != "out"}
    for names in _names_of_outs(name, len(outs)):
        given = others | dict(zip(names, outs, strict=True))
        overload = _overload_of(name, args, given)
        if overload is not None:
            schema = overload._given_schema
            assert schema is not None
            bound = schema.bind(args, given)
            for argument in schema.arguments:
                value = bound.get(argument.name)
                if argument.type_name.startswith("int[") and isinstance(value, int):
                    bound[argument.name] = [value]
            positional, named = schema.normalized(bound)
            return ask(overload, found, positional, named)
    return NotImplemented


def _names_of_outs(name: str, count: int) -> list[tuple[str, ...]]:
    """The names that overloads of a function give to so many `out=` tensors."""
    from ...ops import aten

    space, _, function = name.rpartition(".")
    packet = getattr(aten, ("" if space == "torch" else f"{space.rpartition('.')[2]}_") + function, None)
    found: list[tuple[str, ...]] = []
    for overload in () if packet is None else packet._overloads.values():
        schema = overload._given_schema
        names = () if schema is None else tuple(a.name for a in schema.arguments if a.is_out)
        if len(names) == count and names not in found:
            found.append(names)
    return found


def _resized(implementation: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x.resize_(...)`: the operator `resize_`."""
    found = handling_inputs(args[:1])
    if no_dispatch.get() or not (found or dispatch_modes.get()) or not isinstance(args[0], Tensor):
        return implementation(*args, **kwargs)
    sizes = args[1:]
    if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)):
        sizes = tuple(sizes[0])
    return ask(aten_overload("resize_", "default"), found, (args[0], list(sizes)), kwargs)


called_with_out[0] = _into_out
below_overrides["torch.Tensor.resize_"] = _resized

__all__ = ["called_with_out"]
