"""Unique names of values, and the objects that are globals of generated code."""

from __future__ import annotations

import builtins
import functools
import keyword
import math
import re
from typing import Any, NamedTuple

import flambeau as torch

from ...utils import _pytree as pytree
from .. import _pytree as fx_pytree


class _CustomBuiltin(NamedTuple):
    """An object that is a global of all generated code: the statement that imports it, and the object."""

    import_str: str
    obj: Any


#: names that values may not have: keywords, and names of other objects
_illegal_names: dict[str, Any] = {name: object() for name in keyword.kwlist}
_illegal_names.update(vars(builtins))
_custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    _custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _illegal_names[name] = obj


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torch", torch)
_register_custom_builtin("device", "from torch import device", torch.device)
_register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
_register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)

_humps = functools.partial(re.compile(r"(?<=[a-z])([A-Z])").sub, r"_\1")
_illegal_char_regex = re.compile("[^0-9a-zA-Z_]+")
#: a name, and the number at its end
_name_regex = re.compile(r"^([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?$")


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")


def _snake_case(s: str) -> str:
    """`PascalCase` as `pascal_case`."""
    return _humps(s).lower()


class _Namespace:
    """Names that are unique, and the object of each name."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """A name like the candidate that is not used yet; the name that the object has already, if it has one."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        match = _name_regex.match(candidate)
        if match is None:
            candidate = _illegal_char_regex.sub("_", candidate) or "_unnamed"
            if candidate[0].isdigit():
                candidate = f"_{candidate}"
            match = _name_regex.match(candidate)
            if match is None:
                raise AssertionError(f"Name regex failed to match candidate: {candidate}")
        base, number = match.group(1, 2)
        if number is None or candidate in self._used_names:
            count = self._base_count.get(base, 0)
            if _illegal_names.get(candidate, obj) is not obj:
                count += 1
                candidate = f"{base}_{count}"
        else:
            count = int(number)
        while candidate in self._used_names:
            count += 1
            candidate = f"{base}_{count}"
        self._used_names.add(candidate)
        self._base_count[base] = count
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Give an object, which has none yet, a name."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)


def import_statement(statement: str) -> str:
    """The statement of a registered global, runnable where no alias makes `import torch` mean this package."""
    root = __name__.partition(".")[0]
    if torch.config.module_name == "torch":
        return statement
    if statement == "import torch":
        return f"import {root} as torch"
    return re.sub(r"^(import|from) torch\b", rf"\1 {root}", statement)
