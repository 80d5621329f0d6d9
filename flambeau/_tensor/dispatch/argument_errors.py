"""The error of a call that fits none of a function's overloads, in the words of PyTorch's argument parser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ..tensor import Tensor


def type_name(value: Any) -> str:
    """The name of a value's type in messages."""
    return "Tensor" if isinstance(value, Tensor) else "torch.Size" if type(value).__name__ == "Size" else (
        type(value).__name__)


def invalid_combination(name: str, signatures: Iterable[str], args: Sequence[Any],
                        kwargs: dict[str, Any]) -> TypeError:
    """The error for arguments that fit no signature.

    Args:
        name: the function's.
        signatures: texts such as `int dim, Tensor index, Number value`.
    """
    given = ", ".join([*map(type_name, args), *(f"{key}={type_name(value)}" for key, value in kwargs.items())])
    text = f"{name}() received an invalid combination of arguments - got ({given}), but expected one of:\n"
    for signature in signatures:
        text += f" * ({signature})\n"
        parameters = _parameters(signature)  # PyTorch counts the star, and so never explains such a signature
        if len(args) + len(kwargs) == len(parameters) and "*" not in signature:
            text += f"      didn't match because {_mismatch(parameters, args, kwargs)}\n"
    return TypeError(text)


def _parameters(signature: str) -> dict[str, str]:
    """The types of a signature's parameters, by name."""
    parts = [part.partition(" = ")[0].rpartition(" ") for part in signature.split(", ") if part != "*"]
    return {name: kind for kind, _, name in parts}


def _mismatch(parameters: dict[str, str], args: Sequence[Any], kwargs: dict[str, Any]) -> str:
    unknown = [key for key in kwargs if key not in parameters]
    if unknown:
        return f"some of the keywords were incorrect: {', '.join(unknown)}"
    kinds = list(parameters.values())
    said = [_marked("", value, kind) for value, kind in zip(args, kinds, strict=False)]
    said += [_marked(f"{key}=", value, parameters[key]) for key, value in kwargs.items()]
    return f"some of the arguments have invalid types: ({', '.join(said)})"


def _marked(prefix: str, value: Any, kind: str) -> str:
    """A value's type, between exclamation marks unless it is the parameter's."""
    name = type_name(value)
    if isinstance(value, (list, tuple)):
        elements = ", ".join(map(type_name, value))
        name += f" of [{elements}]" if isinstance(value, list) else f" of ({elements})"
    return prefix + name if name == kind else f"!{prefix}{name}!"


__all__ = ["invalid_combination", "type_name"]
