"""The operators of libraries: definitions, and the kernels registered for them."""

from __future__ import annotations

from typing import Any

from ..ops import aten
from ..ops.overloads import OpOverload, OpOverloadPacket, namespace_of
from ..ops.schemas import FunctionSchema
from .kernels import OperatorKernels
from .schema_types import refuse_unknown_types


def define_operator(namespace: str, schema_text: str, records_itself: bool) -> OpOverload:
    """Define an operator.

    Args:
        schema_text: its schema without the namespace.
        records_itself: whether the operators that its kernel applies are recorded, where it has no derivative.

    Raises:
        RuntimeError: it is defined already, or its schema names an unknown type.
    """
    refuse_unknown_types(schema_text)
    schema = FunctionSchema(f"{namespace}::{schema_text}")
    name = schema.name.rpartition("::")[2]
    packet = namespace_of(namespace).packet(name)
    overload_name = schema.overload_name or "default"
    if overload_name in packet._overloads:
        raise RuntimeError(f"Tried to register an operator ({schema}) with the same name and overload name multiple "
                           "times. Each overload's schema should only be registered with a single call to def().")
    overload = packet._overload(overload_name, schema)
    overload.kernel = OperatorKernels(overload, records_itself)  # type: ignore[attr-defined]
    return overload


def remove_operator(overload: OpOverload) -> None:
    """Undo a definition."""
    packet = overload.overloadpacket
    packet._overloads.pop(overload._overloadname, None)
    if not packet._overloads:
        namespace_of(packet.namespace)._packets.pop(packet.__name__, None)


def operator_named(qualname: str) -> OpOverload:
    """The overload of a qualified name, `mylib::foo` or `mylib::foo.overload`.

    Raises:
        RuntimeError: there is none.
    """
    namespace, _, rest = qualname.partition("::")
    name, _, overload = rest.partition(".")
    library: Any = aten if namespace == "aten" else namespace_of(namespace)
    try:
        return getattr(getattr(library, name), overload or "default")
    except AttributeError:
        raise RuntimeError(f"operator {qualname} does not exist") from None


def kernels_of(op: Any) -> OperatorKernels:
    """The kernels of an operator: a qualified name, an overload, a packet or a custom operator.

    Raises:
        ValueError: it is none of these.
        NotImplementedError: it is one of PyTorch's operators, whose kernels are fixed.
    """
    overload = getattr(op, "_opoverload", op)
    if isinstance(overload, str):
        overload = operator_named(overload)
    if isinstance(overload, OpOverloadPacket):
        overload = overload.default
    if not isinstance(overload, OpOverload):
        raise ValueError(f"register: expected op to be a string, an OpOverload or a CustomOpDef, got {type(op)}")
    kernels = getattr(overload, "kernel", None)
    if not isinstance(kernels, OperatorKernels):
        raise NotImplementedError(f"{overload.name()} is not defined by a torch.library.Library: flambeau does not "
                                  "replace the kernels of its own operators. Define an operator in a namespace of "
                                  "your own.")
    return kernels


__all__ = ["define_operator", "kernels_of", "operator_named", "remove_operator"]
