"""`torch.library.infer_schema`: the schema of a function, from its type hints."""

from __future__ import annotations

import collections.abc
import inspect
import typing
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from .._tensor import Tensor
from ..devices import device
from ..dtypes import dtype

_SCALARS: dict[Any, str] = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str",
                            int | float | bool: "Scalar", dtype: "ScalarType", device: "Device"}
_SEQUENCES = (list, collections.abc.Sequence)


def _supported_parameters() -> dict[Any, str]:
    """Type hint -> the schema's type, of parameters: scalars, optional ones, lists of numbers and of tensors."""
    found: dict[Any, str] = {}
    for hint, text in _SCALARS.items():
        optional: Any = typing.Optional[hint]  # noqa: UP045 - errors show it as PyTorch's do
        found |= {hint: text, optional: f"{text}?"}
        if hint in (str, dtype, device):
            continue
        for sequence in (typing.Sequence, typing.List, *_SEQUENCES):  # noqa: UP006
            found[sequence[hint]] = f"{text}[]"
            if hint is Tensor:
                found[sequence[optional]] = f"{text}?[]"
            elif text != "Scalar":
                found[typing.Optional[sequence[hint]]] = f"{text}[]?"  # noqa: UP045
    return found


SUPPORTED_PARAM_TYPES = _supported_parameters()
SUPPORTED_RETURN_TYPES: dict[Any, str] = {
    Tensor: "Tensor", typing.List[Tensor]: "Tensor[]", list[Tensor]: "Tensor[]",  # noqa: UP006
    int: "SymInt", float: "float", bool: "bool", int | float | bool: "Scalar"}


def _type_text(hint: Any) -> str | None:
    """The schema's type of a parameter's type hint; None for one that schemas do not have."""
    try:
        return SUPPORTED_PARAM_TYPES.get(hint)
    except TypeError:  # a hint that cannot be hashed
        return None


def _default_text(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dtype):
        return value.name
    if isinstance(value, device):
        return f'"{value}"'
    if isinstance(value, float):
        return repr(value)
    return str(value)


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str],
                 op_name: str | None = None, tags: Any = ()) -> str:
    """The schema of a function, from its type hints.

    Args:
        prototype_function: the function; every parameter has a type hint.
        mutates_args: the names of the arguments that it writes to; "unknown": all tensors.
        op_name: the operator's name, in front of the parameters.
        tags: ignored.

    Raises:
        ValueError: a hint is missing, or schemas have no such type.

    >>> import flambeau as torch
    >>> def scale(x: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    ...     return x * by
    >>> torch.library.infer_schema(scale, op_name="scale", mutates_args=())
    'scale(Tensor x, float by=2.0) -> Tensor'
    """
    signature = inspect.signature(prototype_function)

    def fail(what: str) -> NoReturn:
        raise ValueError(f"infer_schema(func): {what} Got func with signature {signature})")

    def resolved(hint: Any) -> Any:
        if not isinstance(hint, str):
            return hint
        try:
            return eval(hint, prototype_function.__globals__)
        except Exception as error:
            fail(f"Unsupported type annotation {hint}. It is not a type. ({type(error).__name__}: {error})")

    if isinstance(mutates_args, str):
        if mutates_args != "unknown":
            raise ValueError("mutates_args must either be a sequence of the names of the arguments that are mutated or "
                             "the string 'unknown'. ")
        written: set[str] | None = None
    else:
        written = set(mutates_args)
    parts: list[str] = []
    for i, (name, parameter) in enumerate(signature.parameters.items()):
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            fail("We do not support positional-only args, varargs, or varkwargs.")
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if parameter.annotation is parameter.empty:
            fail(f"Parameter {name} must have a type annotation.")
        text = _type_text(resolved(parameter.annotation))
        if text is None:
            hint = resolved(parameter.annotation)
            if typing.get_origin(hint) is tuple:
                items = set(typing.get_args(hint)) - {...}
                instead = list[items.pop()] if len(items) == 1 else None  # type: ignore[misc]
                example = f"For example, {instead}." if instead in SUPPORTED_PARAM_TYPES else ""
                fail(f"Parameter {name} has unsupported type {parameter.annotation}. We do not support Tuple inputs in "
                     f"schema. As a workaround, please try to use List instead. {example}\n\nThe valid types are: "
                     f"{SUPPORTED_PARAM_TYPES.keys()}.")
            fail(f"Parameter {name} has unsupported type {parameter.annotation}. The valid types are: "
                 f"{SUPPORTED_PARAM_TYPES.keys()}.")
        if (written is None and text.startswith("Tensor")) or (written is not None and name in written):
            if not text.startswith("Tensor"):
                fail(f"Parameter {name} is in mutable_args but only Tensors or collections of Tensors can be mutated")
            text = f"Tensor(a{i}!){text.removeprefix('Tensor')}"
        default = "" if parameter.default is parameter.empty else f"={_default_text(parameter.default)}"
        parts.append(f"{text} {name}{default}")
    if written is not None and (unknown := written - set(signature.parameters)):
        fail(f"{unknown} in mutates_args were not found in the schema.")
    returns = resolved(signature.return_annotation)
    return f"{op_name or ''}({', '.join(parts)}) -> {_returns_text(returns, fail)}"


def _returns_text(hint: Any, fail: Callable[[str], NoReturn]) -> str:
    if hint is inspect.Signature.empty:
        fail("No return type annotation was provided. Please add one.")
    if hint is None or hint is type(None):
        return "()"
    hints = typing.get_args(hint) if typing.get_origin(hint) is tuple else (hint,)
    for each in hints:
        if not isinstance(each, collections.abc.Hashable) or each not in SUPPORTED_RETURN_TYPES:
            fail(f"Return has unsupported type {each if len(hints) == 1 else hint}. The valid types are: "
                 f"{SUPPORTED_RETURN_TYPES}.")
    joined = ", ".join(SUPPORTED_RETURN_TYPES[each] for each in hints)
    return joined if typing.get_origin(hint) is not tuple else f"({joined})"


__all__ = ["SUPPORTED_PARAM_TYPES", "SUPPORTED_RETURN_TYPES", "infer_schema"]
