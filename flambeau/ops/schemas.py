"""Schemas: the signatures of PyTorch's dispatcher, such as `mm(Tensor self, Tensor mat2) -> Tensor`.

`aten_schemas.txt` has one per overload, `aten_out_schemas.txt` those with `out=`. The order and the names of their
arguments are those that handlers of `__torch_dispatch__` see.
"""

from __future__ import annotations

import functools
import os
import re
from typing import Any

_TYPE = re.compile(r"(?P<type>.+?)(?P<alias>\([^()]*\))?(?P<rest>\[[0-9]*\]|\?)*$")
_CONSTANTS = {"None": None, "True": True, "False": False, "inf": float("inf"), "contiguous_format": 0, "Mean": 1,
              "long": 4, "float": 6}


class AliasInfo:
    """The alias annotation of an argument or a return, `(a!)`: the sets it belongs to, and whether it is written."""

    def __init__(self, text: str) -> None:
        text = text.strip("()")
        before, arrow, after = text.partition("->")
        self.is_write = "!" in text
        self.before_set = {part.strip() for part in before.replace("!", "").split("|") if part.strip()}
        self.after_set = {part.strip() for part in after.replace("!", "").split("|")} if arrow else self.before_set


class Argument:
    """One argument or return of a schema.

    >>> from flambeau.ops.schemas import Argument
    >>> argument = Argument("Tensor(a!) out", kwarg_only=True)
    >>> argument.name, argument.type, argument.is_out
    ('out', 'Tensor', True)
    """

    def __init__(self, text: str, kwarg_only: bool = False, is_return: bool = False) -> None:
        declared, equals, default = text.partition("=")
        declared = " ".join(declared.split())
        default = re.sub(r"^(-?\d+\.)0$", r"\1", default.strip())
        self.text = f"{declared}{equals}{default}"
        type_text, _, name = declared.rpartition(" ")
        if is_return and (not type_text or declared.endswith((")", "]"))):
            type_text, name = declared, ""
        self.name = name
        alias = re.search(r"\(([^()]*)\)", type_text)
        self.alias_info = AliasInfo(alias.group(1)) if alias else None
        self.type_name = re.sub(r"\([^()]*\)", "", type_text)
        self.kwarg_only = kwarg_only
        self.has_default = bool(equals)
        self._default = default

    @property
    def is_out(self) -> bool:
        """Whether it is an `out=` argument."""
        return self.kwarg_only and self.alias_info is not None and self.alias_info.is_write

    @property
    def type(self) -> str:
        """Its type, `Tensor?`."""
        return self.type_name

    def has_default_value(self) -> bool:
        """Whether it has a default."""
        return self.has_default

    @property
    def is_tensor(self) -> bool:
        """Whether it is a tensor, or a list of tensors."""
        return self.type_name.startswith("Tensor")

    @property
    def default_value(self) -> Any:
        """The default; None where there is none."""
        text = self._default
        if text in _CONSTANTS or not text:
            return _CONSTANTS.get(text)
        if text.startswith("["):
            return [_number(each) for each in text[1:-1].split(",") if each.strip()]
        if text[0] in "\"'":
            return text[1:-1]
        return _number(text)

    def __repr__(self) -> str:
        return self.text


def _number(text: str) -> Any:
    text = text.strip()
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    try:
        return int(text)
    except ValueError:
        return float(text)


class FunctionSchema:
    """A parsed schema.

    >>> from flambeau.ops.schemas import FunctionSchema
    >>> schema = FunctionSchema("mylib::scale(Tensor x, float by=2.0) -> Tensor")
    >>> schema.arguments[1].default_value, str(schema)
    (2.0, 'mylib::scale(Tensor x, float by=2.) -> Tensor')
    """

    def __init__(self, text: str) -> None:
        match = re.fullmatch(r"\s*([\w:]+)(?:\.(\w+))?\s*\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
        if match is None:
            raise RuntimeError(f"cannot parse the schema {text!r}")
        self.name, self.overload_name = match.group(1), match.group(2) or ""
        self.arguments: list[Argument] = []
        kwarg_only = False
        for part in _split(match.group(3)):
            if part == "*":
                kwarg_only = True
            else:
                self.arguments.append(Argument(part, kwarg_only))
        returns = match.group(4)
        self._returns_text = returns
        inner = _split(returns[1:-1]) if returns.startswith("(") else [returns]
        self.returns = [Argument(part, is_return=True) for part in inner]

    @property
    def is_mutable(self) -> bool:
        """Whether an argument is written."""
        return any(a.alias_info is not None and a.alias_info.is_write for a in self.arguments)

    def __str__(self) -> str:
        parts: list[str] = []
        for argument in self.arguments:
            if argument.kwarg_only and "*" not in parts:
                parts.append("*")
            parts.append(argument.text)
        name = self.name + (f".{self.overload_name}" if self.overload_name else "")
        return f"{name}({', '.join(parts)}) -> {self._returns_text}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def is_backward_compatible_with(self, old_schema: FunctionSchema) -> bool:
        """Whether every call of an older schema is one of this."""
        from .schema_compatibility import is_backward_compatible

        return is_backward_compatible(self, old_schema)

    def check_forward_compatible_with(self, old_schema: FunctionSchema) -> tuple[bool, str]:
        """Whether calls that leave out the new arguments are calls of an older schema; where they are not, why."""
        from .schema_compatibility import forward_compatibility

        return forward_compatibility(self, old_schema)

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, without defaults.

        Raises:
            RuntimeError: an argument is missing, unknown or given twice.
        """
        positional = [a for a in self.arguments if not a.kwarg_only]
        if len(args) > len(positional):
            raise RuntimeError(f"{self.name}() expected at most {len(positional)} argument(s) but received {len(args)} "
                               f"argument(s). Declaration: {self}")
        bound = {a.name: value for a, value in zip(positional, args, strict=False)}
        names = {a.name for a in self.arguments}
        for name, value in kwargs.items():
            if name not in names:
                raise RuntimeError(f"Unknown keyword argument '{name}' for operator '{self.name}'. Schema: {self}")
            if name in bound:
                raise RuntimeError(f"{self.name}() got multiple values for argument '{name}'")
            bound[name] = value
        for a in self.arguments:
            if a.name not in bound and not a.has_default:
                raise RuntimeError(f"{self.name}() is missing value for argument '{a.name}'. Declaration: {self}")
        return bound

    def normalized(self, bound: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments as handlers get them: by position without trailing defaults, keyword-only ones by name."""
        positional = [a for a in self.arguments if not a.kwarg_only]
        values = [bound.get(a.name, a.default_value) for a in positional]
        while values and _is_default(values[-1], positional[len(values) - 1]):
            values.pop()
        named = {a.name: bound[a.name] for a in self.arguments
                 if a.kwarg_only and a.name in bound and not _is_default(bound[a.name], a)}
        return tuple(values), named


def _is_default(value: Any, argument: Argument) -> bool:
    """Whether a value is an argument's default; as a `Scalar`, 1.0 is not 1."""
    if not argument.has_default:
        return False
    default = argument.default_value
    if type(default) is list and default and type(value) is int:  # one number for all dimensions
        value = [value] * len(default)
    return _same(value, default) and not (argument.type_name.startswith("Scalar") and type(value) is not type(default))


def _same(value: Any, default: Any) -> bool:
    if type(value) in (int, float, bool, str, type(None)):
        return type(default) in (int, float, bool, str, type(None)) and value == default
    return type(value) in (list, tuple) and type(default) is list and list(value) == default


def _split(text: str) -> list[str]:
    """The parts of a list, at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


@functools.cache
def _aten_lines(file: str = "aten_schemas.txt") -> dict[str, dict[str, str]]:
    """Name -> overload name -> schema, of PyTorch's operators."""
    found: dict[str, dict[str, str]] = {}
    with open(os.path.join(os.path.dirname(__file__), file), encoding="utf-8") as lines:
        for line in lines:
            name, _, overload = line.partition("(")[0].partition(".")
            found.setdefault(name, {})[overload or "default"] = line.rstrip("\n")
    return found


def aten_names() -> list[str]:
    """The names of PyTorch's operators."""
    return list(_aten_lines())


def aten_overloads(name: str) -> list[str]:
    """The names of the overloads of one of PyTorch's operators."""
    return list(_aten_lines().get(name, ()))


_WITH_OUT = "aten_out_schemas.txt"
_GENERATED = " generated"  # the end of the lines of overloads that PyTorch generates


def aten_out_overloads(name: str) -> list[str]:
    """The names of the overloads with `out=` of one of PyTorch's operators."""
    return list(_aten_lines(_WITH_OUT).get(name, ()))


@functools.cache
def aten_schema(name: str, overload: str) -> FunctionSchema | None:
    """The schema of one of PyTorch's overloads; None for an unknown one."""
    line = _aten_lines().get(name, {}).get(overload) or _aten_lines(_WITH_OUT).get(name, {}).get(overload)
    return None if line is None else FunctionSchema(f"aten::{line.removesuffix(_GENERATED)}")


def copies_to_out(name: str, overload: str) -> bool:
    """Whether an overload with `out=` is one that PyTorch generates: it copies the result of the one without."""
    return _aten_lines(_WITH_OUT)[name][overload].endswith(_GENERATED)


__all__ = ["AliasInfo", "Argument", "FunctionSchema", "aten_names", "aten_out_overloads", "aten_overloads",
           "aten_schema", "copies_to_out"]
