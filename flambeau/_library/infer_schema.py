"""`torch.library.infer_schema`: the schema of a function, from its type hints."""

from __future__ import annotations

import collections.abc
import inspect
import types
import typing
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from .._tensor import Tensor
from ..devices import device
from ..dtypes import dtype

_SCALARS: dict[Any, str] = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str",
                            int | float | bool: "Scalar", dtype: "ScalarType", device: "Device"}
_SEQUENCES = (list, collections.abc.Sequence)


def _type_text(hint: Any) -> str | None:
    """The schema's type of a type hint; None for one that schemas do not have."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        rest = [each for each in args if each is not type(None)]
        if set(rest) == {int, float, bool}:
            inner: str | None = "Scalar"
        else:
            inner = _type_text(rest[0]) if len(rest) == 1 else None
        return None if inner is None else inner + "?" * (len(rest) < len(args))
    if origin in _SEQUENCES and len(args) == 1:
        inner = _type_text(args[0])
        return None if inner is None or inner.endswith("]") or inner == "str" else f"{inner}[]"
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
                fail(f"Parameter {name} has unsupported type {parameter.annotation}. We do not support Tuple inputs in "
                     "schema. As a workaround, please try to use List instead. ")
            fail(f"Parameter {name} has unsupported type {parameter.annotation}. The valid types are: "
                 f"{list(_SCALARS)}, optional ones and lists of them.")
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
    texts = [_type_text(each) for each in hints]
    for each, text in zip(hints, texts, strict=True):
        if text is None or "?" in text:
            fail(f"Return has unsupported type {each}. The valid types are: {list(_SCALARS)}.")
    joined = ", ".join(str(text) for text in texts)
    return joined if typing.get_origin(hint) is not tuple else f"({joined})"


__all__ = ["infer_schema"]
