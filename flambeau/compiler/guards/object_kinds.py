"""Predicates on Python objects: constants, library modules and classes, objects whose attributes can be guarded."""

from __future__ import annotations

import functools
import re
import sys
import types
from typing import Any

import numpy as np

from ...config import module_of
from ...nn import Module
from ...optim.optimizer import Optimizer
from ..tracing.frame_hook import is_stdlib_file

PACKAGE = __name__.partition(".")[0]
#: types whose objects are compared by value
CONSTANT_TYPES = (bool, int, float, complex, str, bytes, type(None))
_IMMUTABLE_TYPES = (*CONSTANT_TYPES, range, slice, frozenset, np.generic, np.dtype, type(Ellipsis), re.Pattern)
_IMMUTABLE_MODULES = frozenset({PACKAGE, "fractions", "decimal", "datetime", "pathlib"})
#: packages whose attributes are assumed not to change
_STABLE_PACKAGES = frozenset({PACKAGE, "numpy", "llvmlite", *sys.stdlib_module_names})
#: Py_TPFLAGS_HEAPTYPE: the class is written in Python
HEAP_TYPE_FLAG = 1 << 9
#: classes of the standard library with user attributes
_NAMESPACE_CLASSES = frozenset({("types", "SimpleNamespace"), ("argparse", "Namespace")})
LRU_CACHE = type(functools.lru_cache(int))


def is_range_or_slice(x: Any) -> bool:
    """Whether an object is a range or a slice of ints: its `repr` determines its value."""
    if x.__class__ is slice:
        return all(part is None or part.__class__ is int for part in (x.start, x.stop, x.step))
    return x.__class__ is range


def is_immutable(x: Any) -> bool:
    """Whether an object never changes, so that a replay may return the same instead of an equal one."""
    return isinstance(x, _IMMUTABLE_TYPES) or module_of(type(x)).partition(".")[0] in _IMMUTABLE_MODULES


@functools.lru_cache(4096)
def is_stable_module(module: str | None) -> bool:
    """Whether a module belongs to this package, NumPy or the standard library, and is not a user's of that name."""
    top = (module or "").partition(".")[0]
    if top not in _STABLE_PACKAGES:
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    return top not in sys.stdlib_module_names or file is None or is_stdlib_file(file)


def is_package_module(cls: type) -> bool:
    """Whether a module class is of this package, or derives from one other than `Module`."""
    return any(module_of(each).partition(".")[0] == PACKAGE and issubclass(each, Module) and each is not Module
               for each in cls.__mro__)


def is_namespace_class(cls: type) -> bool:
    """Whether a class is a namespace of the standard library (`types.SimpleNamespace`), or derives from one."""
    return any((each.__module__, each.__qualname__) in _NAMESPACE_CLASSES for each in cls.__mro__)


def is_traversable(thing: Any) -> bool:
    """Whether an object's attributes can be guarded: objects of user classes, and a few others."""
    cls = type(thing)
    if is_namespace_class(cls) or isinstance(thing, (types.MethodType, functools.partial, np.ndarray)):
        return True
    module = module_of(cls)
    if module.partition(".")[0] == PACKAGE:
        return isinstance(thing, Optimizer) or module.startswith(
            (f"{PACKAGE}.optim", f"{PACKAGE}.devices", f"{PACKAGE}._tensor.creation.generators"))
    return bool(cls.__flags__ & HEAP_TYPE_FLAG) and not is_stable_module(module) and (
        module in sys.modules or isinstance(getattr(thing, "__dict__", None), dict))


__all__ = ["CONSTANT_TYPES", "HEAP_TYPE_FLAG", "LRU_CACHE", "PACKAGE", "is_immutable", "is_namespace_class",
           "is_package_module", "is_range_or_slice", "is_stable_module", "is_traversable"]
