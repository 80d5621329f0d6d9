"""Fingerprints: strings that describe Python objects and are equal in every process.

The persistent cache compares them: constants by value, code by its instructions, library objects by module and name,
other objects by class and by their immutable references (`permanent_references`).
"""

from __future__ import annotations

import enum
import functools
import importlib
import re
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor import Tensor
from ..config import module_of
from ..nn import Module
from ..optim.optimizer import Optimizer
from ..runtime.cache_store import digest
from .guards.object_kinds import CONSTANT_TYPES, LRU_CACHE, is_range_or_slice, is_stable_module, is_traversable
from .guards.tensor_state import is_hooked

_PACKAGE = __name__.partition(".")[0]
#: exact types whose objects are values; subclasses may have more content
_VALUE_TYPES = frozenset({*CONSTANT_TYPES, type(Ellipsis), type(NotImplemented)})
#: the `repr` of the value in an object of a subclass
_BASE_REPRS: dict[type, Callable[[Any], str]] = {
    kind: vars(kind)["__repr__"] for kind in (int, float, complex, str, bytes)}


class BypassCache(Exception):
    """An object cannot be identified or compared in another process; the program is not stored, or not loaded."""


def is_value(x: Any) -> bool:
    """Whether an object is a constant, which another process can restore from its `repr` or pickle."""
    if x.__class__ is frozenset:
        return all(map(is_value, x))
    return x.__class__ in _VALUE_TYPES or is_range_or_slice(x) or isinstance(x, (np.generic, np.dtype, dtypes.dtype))


def library_name(x: Any) -> str | None:
    """Return "module:name" of a function, class or module of a library; None for other objects."""
    if isinstance(x, types.ModuleType):
        return f"{x.__name__}:" if is_stable_module(x.__name__) and sys.modules.get(x.__name__) is x else None
    if not isinstance(x, (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
        return None
    home = (module_of(x) if isinstance(x, type) else getattr(x, "__module__", None)) or "builtins"
    name = getattr(x, "__qualname__", None) or getattr(x, "__name__", "")
    if not is_stable_module(home):
        return None
    for module in (home, *_EXPORTING_MODULES) if home.startswith(_PACKAGE) else (home,):
        if resolve_library_name(f"{module}:{name}") is x:
            return f"{module}:{name}"
    return None


#: modules of this package that export functions made elsewhere
_EXPORTING_MODULES = (_PACKAGE, f"{_PACKAGE}.nn.functional", f"{_PACKAGE}.special", f"{_PACKAGE}.linalg")


def resolve_library_name(library_name: str) -> Any:
    """Return the object of a name that `library_name` gave; None if there is none."""
    module, _, name = library_name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        return None
    for part in name.split(".") if name else ():
        found = getattr(found, part, None)
    return found


def value_fingerprint(x: Any) -> str:
    """Return the fingerprint of a guarded value: constants by value, functions by code, other objects by class."""
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
    """Return a hash of a code object's instructions, names and constants."""
    parts = [code.co_qualname, code.co_code.hex(), str(code.co_names), str(code.co_varnames), str(code.co_freevars)]
    parts += [value_fingerprint(x) if not isinstance(x, frozenset) else repr(sorted(map(value_fingerprint, x)))
              for x in code.co_consts]
    return digest(*parts)


def object_fingerprint(x: Any) -> str:
    """Return the fingerprint of an object at a source, without the contents that guards compare.

    Raises:
        BypassCache: it may have contents that cannot be compared.
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
        if is_stable_module(x.__globals__.get("__name__")):  # closures of library functions have no guards
            bound = library_name(x) or [object_fingerprint(cell.cell_contents) for cell in x.__closure__ or ()] + [
                object_fingerprint(x.__defaults__ or ())]
        return f"{value_fingerprint(x)} {bound}"
    if isinstance(x, enum.Enum):
        return f"{value_fingerprint(x)} {x.name} {_content_fingerprint(x.value)}"
    if isinstance(x, Tensor):
        a = x._array
        if type(a) is not np.ndarray or module_of(type(x)).partition(".")[0] != _PACKAGE:
            raise BypassCache(f"a tensor of class {type(x).__qualname__}")
        if x._node is not None or is_hooked(x):
            raise BypassCache("a tensor with hooks or with a grad_fn")
        return (f"{type(x).__name__} {dtypes.OF_NUMPY.get(a.dtype, a.dtype)} {a.shape} {a.strides} "
                f"{x._requires_grad} {x._inference}")
    if isinstance(x, np.ndarray):
        return f"array {x.dtype} {x.shape} {x.strides}"
    if isinstance(x, weakref.ref):
        return f"reference to {object_fingerprint(x())}"
    cls = type(x)
    if isinstance(x, (*_TRANSPARENT, Module, Optimizer)) or is_traversable(x) or (
            is_compiled(x) or module_of(cls) in _DECLARATIVE_MODULES):
        base_value = next((show(x) for kind, show in _BASE_REPRS.items() if isinstance(x, kind)), "")
        keywords = [*x.keywords] if isinstance(x, functools.partial) else ""
        contents = [*map(_content_fingerprint, permanent_references(x))]
        return f"{cls.__module__}.{cls.__qualname__} {base_value} {contents} {keywords}"
    raise BypassCache(f"a {cls.__module__}.{cls.__qualname__}, whose contents cannot be compared")


def argument_fingerprint(x: Any) -> str:
    """Return the fingerprint of an argument that is not a tensor.

    Raises:
        BypassCache: it may have contents that cannot be compared.
    """
    return f"{type(x).__qualname__} {x!r}" if is_value(x) else library_name(x) or object_fingerprint(x)


def permanent_references(x: Any) -> tuple[Any, ...]:
    """Return the objects that an immutable object refers to; they have no guards, but may differ between processes."""
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
    """Whether an object is a compiled function, or another object of this package's compiler."""
    return module_of(type(x)).startswith(f"{_PACKAGE}.compiler")


def _content_fingerprint(x: Any) -> str:
    """Return the fingerprint of a permanent reference; "" for objects that have a source of their own."""
    return object_fingerprint(x) if isinstance(x, tuple) or is_value(x) else library_name(x) or ""


#: modules whose objects describe classes and do not change
_DECLARATIVE_MODULES = frozenset({"dataclasses", "typing", "_abc"})
#: classes whose contents are all reachable by sources
_TRANSPARENT = (list, dict, set, deque, tuple, LRU_CACHE, types.CellType, types.MethodType, functools.partial,
                staticmethod, classmethod, property)

__all__ = [
    "BypassCache",
    "argument_fingerprint",
    "code_fingerprint",
    "is_compiled",
    "is_value",
    "library_name",
    "object_fingerprint",
    "permanent_references",
    "resolve_library_name",
    "value_fingerprint",
]
