"""What programs ask of PyTorch's dispatcher through `torch._C`: schemas, keys of tensors, which kernels there are."""

from __future__ import annotations

from typing import Any

from .._library.registry import operator_named
from .._tensor import Tensor
from .._tensor.dispatch.batched_tensor import BatchedTensor
from .._tensor.overriding.dispatch import handles
from .._tensor.overriding.overload_calls import is_by_hand
from ..ops.aten import declarations_of
from ..ops.declare import COMPOSITE
from ..ops.overloads import OpOverload, namespaces, runner
from ..ops.schemas import FunctionSchema, aten_names, aten_out_overloads, aten_overloads, aten_schema
from ..shapes import Size, broadcast_shapes
from .dispatch_keys import DispatchKey
from .dispatch_keys import dispatch_keys as _dispatch_keys
from .dispatch_keys import dispatch_tls_local_exclude_set as _dispatch_tls_local_exclude_set
from .dispatch_keys import dispatch_tls_local_include_set as _dispatch_tls_local_include_set


def _dispatch_key_set(x: Tensor) -> str:
    return repr(_dispatch_keys(x))


def _dispatch_tls_is_dispatch_key_excluded(key: Any) -> bool:
    return _dispatch_tls_local_exclude_set().has(key)


def _dispatch_tls_is_dispatch_key_included(key: Any) -> bool:
    return _dispatch_tls_local_include_set().has(key)


def _dispatch_find_schema_or_throw(name: str, overload_name: str) -> OpOverload:
    """The operator of a name, `aten::add`, and of an overload.

    Raises:
        RuntimeError: there is none.
    """
    full = f"{name}.{overload_name}" if overload_name else name
    try:
        return operator_named(full)
    except RuntimeError:
        raise RuntimeError(f"Could not find schema for {full}") from None


def _dispatch_call_boxed(handle: OpOverload, *args: Any, **kwargs: Any) -> Any:
    """Call an operator that was found by `_dispatch_find_schema_or_throw`."""
    return handle(*args, **kwargs)


def _dispatch_has_kernel(name: str) -> bool:
    """Whether there is an operator of a name with its overload."""
    try:
        operator_named(name)
    except RuntimeError:
        return False
    return True


def _dispatch_has_kernel_for_dispatch_key(name: str, key: Any) -> bool:
    """Whether an operator has a kernel for a key.

    Those of flambeau have one for CPU, Meta and Autograd, or one that is composed of operators that handlers see.
    """
    key = key if isinstance(key, str) else key.name
    try:
        overload = operator_named(name)
    except RuntimeError:
        raise RuntimeError(f"Could not find schema for {name}") from None
    kernels = getattr(overload, "kernel", None)
    if kernels is None:
        return key == "CompositeImplicitAutograd" if _is_composite(overload) else key in (
            "CPU", "Meta", "Autograd", "AutogradCPU", "AutogradMeta")
    return key in kernels.by_key or (key == "CPU" and kernels.original is not None) or (
        key == "Meta" and kernels.fake is not None)


def _is_composite(overload: OpOverload) -> bool:
    """Whether handlers are not given an operator, but those that it is composed of."""
    if any(op.kind != COMPOSITE for op in declarations_of(overload)) or is_by_hand(overload):
        return False
    kernel = runner.composites().get(str(overload))
    return not hasattr(kernel, "__wrapped__")  # `shown_to_handlers`


def _dispatch_isTensorSubclassLike(x: Tensor) -> bool:
    """Whether an operator on a tensor is more than a kernel: its class handles operators, or it is batched."""
    return handles(type(x)) or isinstance(x, BatchedTensor)


def _jit_get_schemas_for_operator(name: str) -> list[FunctionSchema]:
    """The schemas of an operator's overloads."""
    namespace, _, short = name.partition("::")
    if namespace == "aten":
        found = [aten_schema(short, overload) for overload in (*aten_overloads(short), *aten_out_overloads(short))]
        return [schema for schema in found if schema is not None]
    return [each._schema for each in _custom_overloads() if each._schema.name == name]


def _custom_overloads() -> list[OpOverload]:
    return [overload for namespace in list(namespaces.values()) for packet in list(namespace._packets.values())
            for overload in list(packet._overloads.values()) if getattr(overload, "kernel", None) is not None]


def _jit_get_all_schemas() -> list[FunctionSchema]:
    """The schemas of all operators."""
    return [*(schema for name in aten_names() for schema in _jit_get_schemas_for_operator(f"aten::{name}")),
            *(each._schema for each in _custom_overloads())]


def _dispatch_get_all_op_names() -> list[str]:
    """The names of all operators, with their overloads."""
    return [f"{s.name}.{s.overload_name}" if s.overload_name else s.name for s in _jit_get_all_schemas()]


def parse_schema(text: str, allow_typevars: bool = False) -> FunctionSchema:
    """A schema of its text.

    Raises:
        RuntimeError: it is none.
    """
    return FunctionSchema(text)


def _infer_size(first: Any, second: Any) -> Size:
    """The shape that two shapes are broadcast to.

    Raises:
        RuntimeError: they cannot be, or an argument is no `Size`.
    """
    for i, each in enumerate((first, second)):
        if not isinstance(each, Size):
            raise RuntimeError(f"expected a torch.Size as argument {i + 1}")
    return Size(broadcast_shapes(tuple(first), tuple(second)))


__all__ = ["DispatchKey", "parse_schema"]
