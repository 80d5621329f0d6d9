"""The arguments of a declared operator as those of PyTorch's overload, and the reverse."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextvars import ContextVar
from math import prod
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import resolve
from ...engine.tensor_interface import layer
from ...ops.aten import overload_of
from ...ops.declare import Op
from ...ops.overloads import OpOverload, namespace_of
from ...ops.schemas import FunctionSchema, aten_overloads
from ..tensor import Tensor, wrap
from .dispatch import SavedStatistics

#: name in a schema -> the names that declarations use instead
_OTHER_NAMES = {"self": ("input", "A", "B", "L", "base", "x"), "x": ("input",), "b": ("B",), "input2": ("L",),
                "grad_output": ("grad", "g"), "grad": ("g",), "output": ("out",),
                "upscale_factor": ("factor",), "downscale_factor": ("factor",)}


@functools.cache
def _positions(op: Op, schema: FunctionSchema) -> tuple[dict[str, tuple[str, Any]], bool]:
    """Name in the schema -> ("input", position) or ("param", name); whether all of the declaration's names have one."""
    found: dict[str, tuple[str, Any]] = {}
    for argument in schema.arguments:
        for name in (argument.name, *_OTHER_NAMES.get(argument.name, ())):
            if name in op.inputs and ("input", op.inputs.index(name)) not in found.values():
                found[argument.name] = "input", op.inputs.index(name)
                break
            if name in op.params:
                found[argument.name] = "param", name
                break
    tensors = [a.name for a in schema.arguments if a.name not in found and a.type_name in ("Tensor", "Tensor?")]
    rest = [i for i in range(len(op.inputs)) if ("input", i) not in found.values()]
    if len(tensors) == len(rest) and not op.variadic:  # of other names: in order
        found.update((name, ("input", i)) for name, i in zip(tensors, rest, strict=True))
    covered = len(found) == len(op.inputs) + len(op.params)
    return found, covered


def call_arguments(op: Op, inputs: Sequence[Any], params: dict[str, Any],
                   in_place: bool = False) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]]:
    """The overload of an operator call, and its arguments in the schema's order, without those that are defaults."""
    overload = overload_of(op, inputs, in_place, params.get("dim"))
    schema = overload._given_schema
    if schema is None:
        fitting = _fitting_overload(op, inputs, params, in_place)
        if fitting is not None:
            overload, schema = fitting, fitting._schema
    if schema is None:
        return _internal_call(op, inputs, params)
    positions, _ = _positions(op, schema)
    bound: dict[str, Any] = {}
    for argument in schema.arguments:
        where = positions.get(argument.name)
        if where is None:
            continue
        kind, key = where
        if kind == "input":
            value: Any = list(inputs[key:]) if op.variadic and key == len(op.inputs) - 1 else (
                inputs[key] if key < len(inputs) else None)
            if op.variadic and key == len(op.inputs) - 1 and not argument.type_name.startswith("Tensor"):
                value = value[0]
        elif key in params:
            value = params[key]
        else:
            continue
        bound[argument.name] = _as_declared(value, argument.type_name)
    name = overload.overloadpacket.__name__
    if name == "_reshape_alias" and bound.get("stride") is None:
        bound.pop("stride", None)
        overload = aten_overload("view", "default")
        schema = overload._schema
    if isinstance(hidden := params.get("saved"), SavedStatistics):
        bound.update(hidden.arguments)
    adjust = _ADJUST.get(name)
    if adjust is not None:
        adjust(bound)
    if any(a.type_name == "Tensor" and not a.has_default and bound.get(a.name) is None for a in schema.arguments):
        return _internal_call(op, inputs, params)  # the declaration's tensors are not the overload's
    return overload, *schema.normalized(bound)


def _internal_call(op: Op, inputs: Sequence[Any], params: dict[str, Any],
                   ) -> tuple[OpOverload, tuple[Any, ...], dict[str, Any]]:
    """A call of the overload that has the declaration's own arguments."""
    args = (list(inputs),) if op.variadic and len(op.inputs) == 1 else tuple(inputs)
    return internal_overload(op), args, dict(params)


def _fitting_overload(op: Op, inputs: Sequence[Any], params: dict[str, Any], in_place: bool) -> OpOverload | None:
    """The first of PyTorch's overloads of an operator's name that has a place for each input and parameter."""
    name = f"{op.name}_" if in_place else op.name
    for each in aten_overloads(name):
        overload = aten_overload(name, each)
        positions, covered = _positions(op, overload._schema)
        if not covered:
            continue
        for argument in overload._schema.arguments:
            kind, key = positions.get(argument.name, ("", None))
            value = params.get(key) if kind == "param" else inputs[key] if kind and key < len(inputs) else None
            is_tensor = isinstance(value, Tensor)
            if value is None:
                if not (argument.has_default or argument.type_name.endswith("?")):
                    break
            elif is_tensor != argument.type_name.startswith("Tensor"):
                break
        else:
            return overload
    return None


def aten_overload(name: str, overload: str) -> OpOverload:
    """One of PyTorch's overloads."""
    from ...ops import aten

    result: OpOverload = getattr(getattr(aten, name), overload)
    return result


def _set_half_to_float(bound: dict[str, Any]) -> None:
    bound["half_to_float"] = False


def _open_end(bound: dict[str, Any]) -> None:
    if bound.get("end") is None:
        bound["end"] = 2**63 - 1


def _default_stride(bound: dict[str, Any]) -> None:
    if bound.get("stride") == bound.get("kernel_size"):
        bound["stride"] = []
    for name, neutral in (("padding", 0), ("dilation", 1)):
        if name in bound and set(_numbers(bound[name])) <= {neutral}:
            del bound[name]


def _numbers(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _batch_norm_arguments(bound: dict[str, Any]) -> None:
    """Running averages are tensors that share the memory of the arrays which the operator reads."""
    bound.setdefault("momentum", 0.1)
    for name in _AVERAGES:
        if type(bound.get(name)) is np.ndarray:
            bound[name] = wrap(bound[name])


def _group_norm_sizes(bound: dict[str, Any]) -> None:
    n, c, *rest = bound["input"]._array.shape
    bound.update(N=n, C=c, HxW=prod(rest))


def _where_tensors(bound: dict[str, Any]) -> None:
    """`where` has no overload for a number that handlers see: it becomes a 0-d tensor."""
    tensors = [bound[name] for name in ("self", "other") if isinstance(bound[name], Tensor)]
    for name in ("self", "other"):
        value = bound[name]
        if not isinstance(value, Tensor):
            dtype = layer.functions.result_type(tensors[0], value) if tensors else None
            bound[name] = layer.functions.scalar_tensor(value, dtype=dtype)


def _masks(bound: dict[str, Any]) -> None:
    """Masks instead of the places that they select."""
    indices: list[Any] = []
    for index in bound["indices"]:
        mask, number = getattr(index, "__dict__", {}).get("_of_mask", (index, 0))
        if not number:
            indices.append(mask)
    bound["indices"] = indices


#: operators whose arguments differ from the declaration's by more than names
_ADJUST = {"where": _where_tensors, "slice": _open_end, "_softmax": _set_half_to_float,
           "_log_softmax": _set_half_to_float, **dict.fromkeys(("index", "index_put", "index_put_"), _masks),
           "native_batch_norm": _batch_norm_arguments, "native_group_norm": _group_norm_sizes,
           **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices", "avg_pool2d", "avg_pool3d"),
                           _default_stride)}


def _as_declared(value: Any, type_name: str) -> Any:
    """A parameter in the form of its declared type: lists for lists of numbers, numbers for reductions."""
    if type_name == "int" and isinstance(value, str):
        return _REDUCTIONS.index(value)
    if "[" in type_name and not type_name.startswith("Tensor"):
        if isinstance(value, int) and not isinstance(value, bool):
            return [value]
        if isinstance(value, tuple):
            return list(value)
    return value


def output_positions(op: Op, overload: OpOverload) -> list[int] | None:
    """The positions of an operator's outputs among those of an overload that has more; None where both have as many."""
    schema = overload._given_schema
    if schema is None or op.tensor_list or len(schema.returns) <= op.n_outputs or (
            schema.returns[0].type_name.startswith("Tensor[")):
        return None
    names = [r.name for r in schema.returns]
    if op.outputs and set(op.outputs) <= set(names):
        return [names.index(name) for name in op.outputs]
    return list(range(op.n_outputs))


#: parameters of batch normalization that are arrays where it reads them, tensors in PyTorch's overload
_AVERAGES = ("running_mean", "running_var")
_REDUCTIONS = ("none", "mean", "sum")

_internal: dict[int, OpOverload] = {}


def internal_overload(op: Op) -> OpOverload:
    """An overload for an operator that PyTorch does not have."""
    found = _internal.get(id(op))
    if found is None:
        found = _internal[id(op)] = namespace_of("flambeau").packet(op.name)._overload("default", _schema_of(op))
        declared[id(found)] = op
    return found


def _schema_of(op: Op) -> FunctionSchema:
    """A schema for an operator that PyTorch does not have; parameters are of type `Any`."""
    required = len(op.inputs) - op.n_optional
    parts = ["Tensor[] " + name if op.variadic and name == op.inputs[-1] else
             ("Tensor " if i < required else "Tensor? ") + name for i, name in enumerate(op.inputs)]
    if op.params:
        parts += ["*", *(f"Any {name}=None" if name in op.defaults else f"Any {name}" for name in op.params)]
    returns = "Tensor[]" if op.tensor_list else "Tensor" if op.n_outputs == 1 else (
        f"({', '.join(['Tensor'] * op.n_outputs)})")
    return FunctionSchema(f"flambeau::{op.name}({', '.join(parts)}) -> {returns}")


#: the declarations of internal overloads, by id of the overload
declared: dict[int, Op] = {}


#: the operator call that a handler is asked about: (overload, operator, inputs, parameters)
asked: ContextVar[tuple[OpOverload, Op, Sequence[Any], dict[str, Any]] | None] = ContextVar("asked", default=None)


def operator_call(op: Op, schema: FunctionSchema, bound: dict[str, Any],
                  hidden: tuple[Sequence[Any], dict[str, Any]] | None = None,
                  ) -> tuple[list[Any], dict[str, Any]] | None:
    """Inputs and parameters of a declared operator for bound arguments of a schema; None where they do not fit.

    Args:
        hidden: the inputs and parameters that the handler was asked about, for those that the schema lacks.
    """
    positions, covered = _positions(op, schema)
    if not covered and hidden is None and any(name not in op.defaults for name in op.params
                                              if ("param", name) not in positions.values()):
        return None
    inputs: list[Any] = [None] * len(op.inputs)
    params: dict[str, Any] = {}
    if hidden is not None and not op.variadic:
        inputs[:len(hidden[0])] = hidden[0]
        params.update(hidden[1])
    for argument in schema.arguments:
        where = positions.get(argument.name)
        value = bound.get(argument.name, argument.default_value)
        if where is None:
            if argument.name in bound and hidden is None and (
                    isinstance(value, (Tensor, np.ndarray)) or value != argument.default_value):
                return None
            continue
        if hidden is not None and (argument.name not in bound or (type(value) is list and not value)):
            continue
        kind, key = where
        if kind == "param":
            if argument.name in bound or key not in op.defaults:
                if isinstance(op.defaults.get(key), str) and isinstance(value, int):
                    value = _REDUCTIONS[value]
                known = params.get(key)
                if isinstance(known, tuple) and isinstance(value, int):
                    value = (value,) * len(known)
                if key in _AVERAGES and isinstance(value, Tensor):
                    value = dtypes.widen(resolve(value._array))
                params[key] = tuple(value) if isinstance(value, list) else value
        else:
            inputs[key] = value
    if op.variadic:
        tensors = inputs.pop()
        inputs.extend(tensors)
    return inputs, params


#: whether it is an in-place operator
writing: ContextVar[bool] = ContextVar("writing", default=False)


__all__ = [
    "asked",
    "aten_overload",
    "call_arguments",
    "declared",
    "internal_overload",
    "operator_call",
    "output_positions",
    "writing",
]
