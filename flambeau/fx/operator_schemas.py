"""Signatures of functions and modules, and arguments that are matched to them."""

from __future__ import annotations

import enum
import inspect
import math
import numbers
import re
import types
import typing
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple, Optional

import flambeau as torch

from ..ops.overloads import OpOverload, OpOverloadPacket
from ..ops.schemas import Argument, FunctionSchema, aten_out_overloads, aten_overloads, aten_schema
from ._compatibility import compatibility
from .code.torch_names import find

__all__ = ["ArgsKwargsPair", "check_for_mutable_operation", "create_type_hint", "get_signature_for_torch_op",
           "normalize_function", "normalize_module", "type_matches"]


@compatibility(is_backward_compatible=False)
class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


_SCALAR_TYPES: dict[str, Any] = {
    "Tensor": torch.Tensor, "int": int, "SymInt": int, "float": float, "bool": bool, "str": str, "complex": complex,
    "Scalar": numbers.Number, "ScalarType": int, "Layout": int, "MemoryFormat": int, "QScheme": int,
    "Device": torch.device, "Generator": Any, "Storage": Any, "Stream": Any, "Dimname": str, "AnyEnumType": enum.Enum}


def _python_type(text: str) -> Any:
    """The Python type of a type in a schema: `int[]?` is `Optional[List[int]]`."""
    text = text.strip()
    if "(" in text:  # an alias annotation
        head, _, rest = text.partition("(")
        text = head + rest.partition(")")[2]
    if text.endswith("?"):
        return Optional[_python_type(text[:-1])]  # noqa: UP045
    if text.endswith("]"):
        return typing.List[_python_type(text.rpartition("[")[0])]  # type: ignore[misc]  # noqa: UP006
    return _SCALAR_TYPES.get(text, Any)


def _torchscript_type_to_python_type(ts_type: Any) -> Any:
    """The Python type of a type of TorchScript: `List[int]` is `typing.List[int]`."""
    return eval(ts_type.annotation_str, {**vars(typing), **_SCALAR_TYPES, "NoneType": type(None),
                                         "number": numbers.Number})


def _default(arg: Argument) -> Any:
    """The default of an argument; that of `int[2]` is a list of two."""
    size = re.fullmatch(r"\w+\[(\d+)\]", arg.type)
    value = arg.default_value
    return value if size is None or value is None or isinstance(value, list) else [value] * int(size.group(1))


def _signature(schema: FunctionSchema) -> inspect.Signature:
    """A schema as a signature; the parameter `self` is called `input`."""
    parameters: list[inspect.Parameter] = []
    for arg in schema.arguments:
        name = "input" if arg.name == "self" else arg.name
        kind: Any = inspect.Parameter.KEYWORD_ONLY if arg.kwarg_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        if name == "from":  # a keyword of Python: it and what precedes it are positional
            kind = inspect.Parameter.POSITIONAL_ONLY
            parameters = [p.replace(kind=kind) for p in parameters]
        default = _default(arg) if arg.has_default else inspect.Parameter.empty
        parameters.append(inspect.Parameter("from_" if name == "from" else name, kind, default=default,
                                            annotation=_python_type(str(arg.type))))
    returns = [_python_type(str(each.type)) for each in schema.returns]
    return inspect.Signature(parameters, return_annotation=(
        None if not returns else returns[0] if len(returns) == 1 else tuple(returns)))


def is_compiled_in_pytorch(target: Any) -> bool:
    """Whether a function is part of PyTorch's extension, whose functions have schemas instead of signatures."""
    if not isinstance(target, types.FunctionType):
        return isinstance(target, types.BuiltinFunctionType)
    name = find(target)
    if name is None:
        return False
    return name.startswith("torch._C.") or (name.count(".") == 1 and bool(aten_overloads(name.split(".")[1])))


_MATH = frozenset(name for name in dir(math) if callable(getattr(math, name)))


def _schemas_of(op: Any) -> list[FunctionSchema] | None:
    if isinstance(op, OpOverload):
        return [op._schema]
    if isinstance(op, OpOverloadPacket):
        name = op.__name__
    elif is_compiled_in_pytorch(op) and isinstance(op, types.FunctionType):
        name = (find(op) or "").rpartition(".")[2]
    elif isinstance(op, types.FunctionType) and (find(op) or "").startswith("torch.functional."):
        name = op.__name__
    else:
        return None
    found = [aten_schema(name, overload) for overload in dict.fromkeys((*aten_overloads(name),
                                                                       *aten_out_overloads(name)))]
    known = [schema for schema in found if schema is not None and all(a.name != "..." for a in schema.arguments)]
    return known or None


def _nonzero_signatures() -> list[inspect.Signature]:
    tensor = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=torch.Tensor)
    as_tuple = inspect.Parameter("as_tuple", inspect.Parameter.KEYWORD_ONLY, annotation=bool)
    return [inspect.Signature([tensor], return_annotation=None),
            inspect.Signature([tensor, as_tuple], return_annotation=None)]


_manual_overrides: dict[Any, list[inspect.Signature]] = {torch.nonzero: _nonzero_signatures()}


@compatibility(is_backward_compatible=False)
def get_signature_for_torch_op(op: Callable[..., Any], return_schemas: bool = False) -> Any:
    """The signatures of the overloads of a function of `torch`.

    Args:
        op: the function.
        return_schemas: whether the schemas are returned, too.

    Returns:
        A list of signatures, or None if the function has none; with `return_schemas`, this and the schemas.

    >>> import flambeau as torch
    >>> from flambeau.fx.operator_schemas import get_signature_for_torch_op
    >>> [list(signature.parameters) for signature in get_signature_for_torch_op(torch.relu)][0]
    ['input']
    """
    override = _manual_overrides.get(op)
    if override:
        return (override, None) if return_schemas else None
    schemas = _schemas_of(op)
    if schemas is None:
        return (None, None) if return_schemas else None
    signatures = [_signature(schema) for schema in schemas]
    return (signatures, schemas) if return_schemas else signatures


def _binds(signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


@compatibility(is_backward_compatible=False)
def check_for_mutable_operation(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Refuse a call that writes to its arguments.

    Raises:
        RuntimeError: the only overload that accepts the arguments writes to one.
    """
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    if not signatures or not schemas:
        return
    matching = [schema for signature, schema in zip(signatures, schemas, strict=True)
                if _binds(signature, args, kwargs)]
    if len(matching) == 1 and matching[0].is_mutable:
        raise RuntimeError(f"Tried to trace mutable operation {matching[0]}. FX only supports functional code, so "
                           "operations that mutate operands in-place (e.g. via `out` arguments) are not supported")


@compatibility(is_backward_compatible=False)
def create_type_hint(x: Any) -> Any:
    """The type of a list or tuple of types: of their common base among them, or of anything; else the value itself.

    >>> from flambeau.fx.operator_schemas import create_type_hint
    >>> create_type_hint([int, bool])
    list[int]
    """
    try:
        if isinstance(x, (list, tuple)):
            def container(item: Any) -> Any:
                return list[item] if isinstance(x, list) else tuple[item, ...]

            if not x:
                return container(Any)
            base = x[0]
            for each in x:
                if issubclass(each, base):
                    continue
                if not issubclass(base, each):
                    return container(Any)
                base = each
            return container(base)
    except Exception:
        warnings.warn(f"We were not able to successfully create type hint from the type {x}", stacklevel=2)
    return x


@compatibility(is_backward_compatible=False)
def type_matches(signature_type: Any, argument_type: Any) -> bool:
    """Whether a parameter of one type accepts an argument of another.

    >>> from typing import List
    >>> from flambeau.fx.operator_schemas import type_matches
    >>> type_matches(List[int], int), type_matches(float, str)
    (True, False)
    """
    if signature_type is argument_type:
        return True
    origin = getattr(signature_type, "__origin__", signature_type)
    if origin is typing.Union and signature_type != argument_type:
        return any(type_matches(each, argument_type) for each in typing.get_args(signature_type))
    if getattr(signature_type, "__origin__", None) is list:
        item = typing.get_args(signature_type)[0]
        if argument_type is int and item is int:
            return True
        if not inspect.isclass(item):
            warnings.warn(f"Does not support nested parametric types, got {signature_type}. Please file a bug.",
                          stacklevel=2)
            return False
        arguments = typing.get_args(argument_type)
        if getattr(argument_type, "__origin__", None) is list:
            return issubclass(arguments[0], item)
        return typing.get_origin(argument_type) is tuple and (
            arguments == ((),) or all(each is Ellipsis or issubclass(each, item) for each in arguments))
    if signature_type is int and argument_type is torch.dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    return inspect.isclass(argument_type) and inspect.isclass(signature_type) and (
        issubclass(argument_type, signature_type))


@compatibility(is_backward_compatible=False)
def normalize_function(target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
                       arg_types: tuple[Any, ...] | None = None, kwarg_types: dict[str, Any] | None = None,
                       normalize_to_only_use_kwargs: bool = False) -> ArgsKwargsPair | None:
    """The arguments of a call matched to the function's signature, defaults included.

    Args:
        target: the function.
        args: the positional arguments.
        kwargs: the keyword arguments.
        arg_types: the types of the positional arguments, to choose among overloads.
        kwarg_types: the types of the keyword arguments.
        normalize_to_only_use_kwargs: whether all arguments are given by keyword.

    Returns:
        The arguments; None if no signature accepts them.

    Raises:
        RuntimeError: several overloads accept them, and no types are given.

    >>> import flambeau as torch
    >>> from flambeau.fx.operator_schemas import normalize_function
    >>> normalize_function(torch.nn.functional.relu, (1,), normalize_to_only_use_kwargs=True)
    ArgsKwargsPair(args=(), kwargs={'input': 1, 'inplace': False})
    """
    kwargs = kwargs or {}
    compiled = is_compiled_in_pytorch(target) or isinstance(target, (OpOverload, OpOverloadPacket))
    if not compiled and hasattr(target, "_op"):
        target = target._op
        compiled = isinstance(target, (OpOverload, OpOverloadPacket))
    if not compiled:
        if not callable(target):
            raise AssertionError(f"target_for_analysis must be callable, got {type(target)}")
        signature = inspect.signature(inspect.unwrap(target))
        return _args_kwargs_to_normalized_args_kwargs(signature, args, kwargs, normalize_to_only_use_kwargs)
    signatures = get_signature_for_torch_op(target) or []
    matching = [signature for signature in signatures if _binds(signature, args, kwargs)]
    if not matching:
        return None
    if len(matching) == 1:
        return _args_kwargs_to_normalized_args_kwargs(matching[0], args, kwargs, normalize_to_only_use_kwargs)
    if arg_types is None and kwarg_types is None:
        lines = "\n".join(map(str, matching))
        raise RuntimeError(
            f"Tried to normalize arguments to {torch.typename(target)} but the schema match was ambiguous! Please "
            f"provide argument types to the normalize_arguments() call. Available schemas:\n{lines}")
    for signature in signatures:
        try:
            bound = signature.bind(*(arg_types or ()), **(kwarg_types or {}))
        except TypeError:
            continue
        if all(type_matches(signature.parameters[name].annotation, kind) for name, kind in bound.arguments.items()):
            return _args_kwargs_to_normalized_args_kwargs(signature, args, kwargs, normalize_to_only_use_kwargs)
    return None


def _normalize_function_or_error(target: Callable[..., Any], args: tuple[Any, ...], *more: Any,
                                 **options: Any) -> ArgsKwargsPair:
    result = normalize_function(target, args, *more, **options)
    if result is None:
        kwargs = more[0] if more else options.get("kwargs")
        raise RuntimeError(f"Failed to normalize function {target} with args {args} and kwargs {kwargs}")
    return result


@compatibility(is_backward_compatible=False)
def normalize_module(root: Any, target: str, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None,
                     normalize_to_only_use_kwargs: bool = False) -> ArgsKwargsPair | None:
    """The arguments of the call of a submodule matched to the signature of its `forward`, defaults included.

    Args:
        root: the module that contains it.
        target: its path.
        args: the positional arguments.
        kwargs: the keyword arguments.
        normalize_to_only_use_kwargs: whether all arguments are given by keyword.

    Returns:
        The arguments; None if its class is not one of `torch.nn`.

    Raises:
        RuntimeError: there is no such submodule.
    """
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(f"Tried to normalize node with target {target} but root did not have that target!"
                           ) from error
    if getattr(torch.nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(inspect.unwrap(module.forward))
    return _args_kwargs_to_normalized_args_kwargs(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _args_kwargs_to_normalized_args_kwargs(sig: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any],
                                           normalize_to_only_use_kwargs: bool) -> ArgsKwargsPair | None:
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(p.kind not in plain for p in sig.parameters.values()) and (
            list(sig.parameters) != ["input", "from_", "to", "generator"]):
        return None
    bound = sig.bind(*args, **kwargs)
    bound.apply_defaults()
    positional = 0 if normalize_to_only_use_kwargs else len(args)
    values = [(name, bound.arguments[name]) for name in sig.parameters]
    return ArgsKwargsPair(tuple(value for _, value in values[:positional]), dict(values[positional:]))
