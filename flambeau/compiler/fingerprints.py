"""Fingerprints: descriptions of Python objects that are the same in every process.

The persistent cache compares them: numbers and texts by value, code by its instructions, library objects by module
and name, other objects by class and by what they hold for good.
"""

from __future__ import annotations

import enum
import functools
import importlib
import re
import sys
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor import Tensor
from ..nn import Module
from ..optim.optimizer import Optimizer
from ..runtime.cache_store import digest
from .guards.environment import CONSTANT_TYPES, LRU_CACHE, is_range_or_slice, is_stable_module, is_traversable
from .guards.tensor_state import is_hooked

_PACKAGE = __name__.partition(".")[0]
#: kinds of things that are all that they say; what inherits from them may be more
_VALUES = frozenset({*CONSTANT_TYPES, type(Ellipsis), type(NotImplemented)})
#: the number or text in what inherits from them
_PLAINLY: dict[type, Callable[[Any], str]] = {
    kind: vars(kind)["__repr__"] for kind in (int, float, complex, str, bytes)}


class BypassCache(Exception):
    """Something that another process could not find, or could not tell from another."""


def is_value(x: Any) -> bool:
    """Whether a thing is all that it says: what another process makes of the same bytes is the same."""
    if x.__class__ is frozenset:
        return all(map(is_value, x))
    return x.__class__ in _VALUES or is_range_or_slice(x) or isinstance(x, (np.generic, np.dtype, dtypes.dtype))


def library_name(x: Any) -> str | None:
    """The module and the name of a function, class or module that is not the user's: it is the same everywhere."""
    if isinstance(x, types.ModuleType):
        return f"{x.__name__}:" if is_stable_module(x.__name__) and sys.modules.get(x.__name__) is x else None
    if not isinstance(x, (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
        return None
    home = getattr(x, "__module__", None) or "builtins"
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", "")
    if not is_stable_module(home):
        return None
    for module in (home, *_HOMES) if home.startswith(_PACKAGE) else (home,):
        if resolve_library_name(f"{module}:{name}") is x:
            return f"{module}:{name}"
    return None


#: where functions of this package are found that are made by others
_HOMES = (_PACKAGE, f"{_PACKAGE}.nn.functional", f"{_PACKAGE}.special", f"{_PACKAGE}.linalg")


def resolve_library_name(said: str) -> Any:
    """What `named` gave the name of; None where there is nothing of the kind."""
    module, _, name = said.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        return None
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    return found


def value_fingerprint(x: Any) -> str:
    """A thing as every process would describe it: numbers and texts themselves, code, the kinds of all others."""
    if isinstance(x, (*CONSTANT_TYPES, np.generic, np.dtype, dtypes.dtype, range, slice)):
        return repr(x)
    if isinstance(x, tuple):
        return f"({', '.join(map(value_fingerprint, x))})"
    if isinstance(x, types.MethodType):
        return f"method {value_fingerprint(x.__func__)}"
    if isinstance(x, types.FunctionType):
        return f"function {code_fingerprint(x.__code__)}"
    if isinstance(x, types.CodeType):
        return f"code {code_fingerprint(x)}"
    if isinstance(x, type):
        return f"class {x.__module__}.{x.__qualname__}"
    if isinstance(x, types.ModuleType):
        return f"module {x.__name__}"
    if isinstance(x, Tensor):
        return f"tensor {x._array.dtype} {x._array.shape} {x._requires_grad}"
    if isinstance(x, np.ndarray):
        return f"array {x.dtype} {x.shape}"
    return f"a {type(x).__module__}.{type(x).__qualname__}"


@functools.lru_cache(4096)
def code_fingerprint(code: types.CodeType) -> str:
    """What a piece of code does, by a hash."""
    parts = [code.co_qualname, code.co_code.hex(), str(code.co_names), str(code.co_varnames), str(code.co_freevars)]
    parts += [value_fingerprint(x) if not isinstance(x, frozenset) else repr(sorted(map(value_fingerprint, x)))
              for x in code.co_consts]
    return digest(*parts)


def described(x: Any) -> str:
    """An object as every process would describe it, apart from what is looked at elsewhere: what it holds.

    Raises:
        Unnameable: there may be more to it than anybody can see.
    """
    if is_value(x):
        return repr(x)
    if isinstance(x, (types.GetSetDescriptorType, types.MemberDescriptorType, types.WrapperDescriptorType,
                      types.MethodDescriptorType, types.ClassMethodDescriptorType)):
        return f"{type(x).__name__} {x.__name__} of {x.__objclass__.__qualname__}"
    if isinstance(x, (types.CodeType, type, types.ModuleType)):
        return value_fingerprint(x)
    if isinstance(x, re.Pattern):
        return f"re {x.pattern!r} {x.flags}"
    if isinstance(x, types.FunctionType):
        bound: Any = ""
        if is_stable_module(x.__globals__.get("__name__")):  # their contents are not guarded
            bound = library_name(x) or [described(cell.cell_contents) for cell in x.__closure__ or ()] + [
                described(x.__defaults__ or ())]
        return f"{value_fingerprint(x)} {bound}"
    if isinstance(x, enum.Enum):
        return f"{value_fingerprint(x)} {x.name} {_inside(x.value)}"
    if isinstance(x, Tensor):
        a = x._array
        if type(a) is not np.ndarray or type(x).__module__.partition(".")[0] != _PACKAGE:
            raise BypassCache(f"a tensor of class {type(x).__qualname__}")
        if x._node is not None or is_hooked(x):
            raise BypassCache("a tensor with hooks or with a history")
        return (f"{type(x).__name__} {dtypes.OF_NUMPY.get(a.dtype, a.dtype)} {a.shape} {a.strides} "
                f"{x._requires_grad} {x._inference}")
    if isinstance(x, np.ndarray):
        return f"array {x.dtype} {x.shape} {x.strides}"
    cls = type(x)
    if isinstance(x, (*_TRANSPARENT, Module, Optimizer)) or is_traversable(x) or (
            is_compiled(x) or cls.__module__ in _SAID):
        itself = next((show(x) for kind, show in _PLAINLY.items() if isinstance(x, kind)), "")
        keywords = [*x.keywords] if isinstance(x, functools.partial) else ""
        return f"{cls.__module__}.{cls.__qualname__} {itself} {[*map(_inside, held(x))]} {keywords}"
    raise BypassCache(f"a {cls.__module__}.{cls.__qualname__}, which may hold what nobody can see")


def argument_fingerprint(x: Any) -> str:
    """An argument that is no tensor, as every process would describe it: what decides what a function does with it.

    Raises:
        Unnameable: there may be more to it than anybody can see.
    """
    return f"{type(x).__qualname__} {x!r}" if is_value(x) else library_name(x) or described(x)


def held(x: Any) -> tuple[Any, ...]:
    """What a thing holds for good, which nobody looks into later: in another process it may hold something else."""
    if isinstance(x, tuple):
        return x
    if isinstance(x, functools.partial):
        return x.func, *x.args, *x.keywords.values()
    if isinstance(x, types.MethodType):
        return x.__self__, x.__func__
    if isinstance(x, (staticmethod, classmethod)):
        return (x.__func__,)
    if isinstance(x, property):
        return x.fget, x.fset
    if isinstance(x, LRU_CACHE):
        return (x.__wrapped__,)
    return (x.function,) if is_compiled(x) else ()


def is_compiled(x: Any) -> bool:
    """Return whether an object is a compiled function, or another object of this package's compiler."""
    return type(x).__module__.startswith(f"{_PACKAGE}.compiler")


def _inside(x: Any) -> str:
    """What stands in something that never changes, unless it has a place of its own, where it is described."""
    return described(x) if isinstance(x, tuple) or is_value(x) else library_name(x) or ""


#: modules whose objects say how classes are written, and nothing that changes
_SAID = frozenset({"dataclasses", "typing", "_abc"})
#: what holds nothing but what can be reached
_TRANSPARENT = (list, dict, set, deque, tuple, LRU_CACHE, types.CellType, types.MethodType, functools.partial,
                staticmethod, classmethod, property)

__all__ = [
    "BypassCache",
    "argument_fingerprint",
    "code_fingerprint",
    "described",
    "held",
    "is_compiled",
    "is_value",
    "library_name",
    "resolve_library_name",
    "value_fingerprint",
]
