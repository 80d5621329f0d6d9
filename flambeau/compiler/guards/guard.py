"""Guards on Python objects: globals, closure variables, attributes, containers, modules of `nn`, tensor metadata.

A `Guard` is a place and the value that it had in a trace. It is checked by `Guard.holds`, or by the expression that
`guard_expression` writes into a call stub.
"""

from __future__ import annotations

import builtins
import contextvars
import functools
import operator
import random
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..._tensor import Tensor
from ...autograd.composite_spans import unwrap as unwrap_profiled
from ...nn import Module
from ...nn.modules.base.hooks import GLOBAL_HOOKS
from .object_kinds import CONSTANT_TYPES, LRU_CACHE

is_ = operator.is_
MISSING: Any = object()
#: entries of a module's `__dict__` that are not plain attributes: guarded separately, or not used by `forward`
MODULE_INTERNALS = frozenset({"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_state_dict_hooks",
                          "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
                          "_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks",
                          "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
                          "_forward_pre_hooks_with_kwargs", "_compiled_call_impl"})
MODULE_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

#: the message for a value that differs between two traces
CHANGING = "changes from call to call"

# kinds of guards
ITEM, ABSENT, CELL, ATTRIBUTE, LIST, DICT, SET, ARRAY, RNG_STATE, UNSUPPORTED, QUERY, MODULE, TENSOR_MATCH = range(13)


class Guard(NamedTuple):
    """One guard: a place, and the value that it had in the trace.

    Attributes:
        kind: how the value is looked up: ITEM `holder[key]`, ABSENT `key in holder`, CELL (a closure variable),
            ATTRIBUTE, LIST, DICT and SET (all entries of `holder`), ARRAY (elements of a NumPy array), RNG_STATE,
            UNSUPPORTED (never holds), QUERY (a weak reference, context variable, cache, setting or buffer), MODULE
            (`module_snapshot`), TENSOR_MATCH (`tensor_properties`).
        holder: a dict, cell, object or container.
        key: the name or key; None for guards on all of the holder.
        value: the value in the trace; of containers, their entries.
        path: the place as Python source, for messages.
    """

    kind: int
    holder: Any
    key: Any
    value: Any
    path: str

    def current(self) -> Any:
        """Look up the current value."""
        return current_value(self.kind, self.holder, self.key)

    def holds(self) -> bool:
        """Whether the value is the same object as in the trace, or an equal constant."""
        try:
            return values_match(self.kind, self.value, self.current())
        except (LookupError, AttributeError, ValueError, TypeError, RuntimeError):
            return False


def current_value(kind: int, holder: Any, key: Any) -> Any:
    """Look up the current value of a guard."""
    if kind == ITEM:
        return holder[key]
    if kind == ABSENT:
        return key in holder
    if kind == CELL:
        try:
            return holder.cell_contents
        except ValueError:
            return MISSING
    if kind == ATTRIBUTE:
        return getattr(holder, key)
    if kind == DICT:
        return (*holder, *holder.values())
    if kind == ARRAY:
        return holder.copy()
    if kind == RNG_STATE:
        return rng_state(holder)
    if kind == MODULE:
        return module_snapshot(holder, key)
    if kind == UNSUPPORTED:
        return None
    if kind == QUERY:
        return query(holder)
    if kind == TENSOR_MATCH:
        return tensor_properties(holder)
    return (*holder,)


def tensor_properties(tensor: Any) -> tuple[Any, ...]:
    """Return a tensor's metadata: shape, strides, dtype, class, requires_grad, is_leaf."""
    a = tensor._array
    return (*((a.shape, a.strides) if type(a) is np.ndarray else ()), a.dtype, type(tensor),
            tensor._requires_grad, tensor._node is None)


def query(thing: Any) -> Any:
    """Return the content of a weak reference, context variable, lru_cache (its counters) or buffer, or of what asks."""
    if isinstance(thing, weakref.ref):
        return thing()
    if isinstance(thing, contextvars.ContextVar):
        return thing.get(MISSING)
    if isinstance(thing, (types.FunctionType, types.BuiltinFunctionType, functools.partial)):
        return thing()
    if not isinstance(thing, LRU_CACHE):
        return bytes(memoryview(thing))
    return (thing.cache_info().misses, thing.cache_info().currsize)


def is_rng(thing: Any) -> bool:
    """Whether an object is a random number generator of Python or NumPy."""
    return isinstance(thing, random.Random) or ("numpy.random" in sys.modules and isinstance(
        thing, (np.random.RandomState, np.random.Generator)))


def rng_state(generator: Any) -> Any:
    """Return the state of a generator of Python or NumPy, comparable with ==."""
    if isinstance(generator, random.Random):
        return generator.getstate()
    if hasattr(generator, "bit_generator"):
        return repr(generator.bit_generator.state)
    name, keys, *rest = generator.get_state(legacy=True)
    return name, np.asarray(keys).tobytes(), *rest


def _equal(a: Any, b: Any) -> bool:
    return (a is b or (type(a) is type(b) and isinstance(a, CONSTANT_TYPES) and a == b)
            or unwrap_profiled(a) is unwrap_profiled(b))


def values_match(kind: int, a: Any, b: Any) -> bool:
    """Whether two values of one guard are the same."""
    if kind in (LIST, DICT, SET, MODULE):
        return len(a) == len(b) and (all(map(is_, a, b)) or all(map(_equal, a, b)))
    if kind == ARRAY:
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if kind in (RNG_STATE, TENSOR_MATCH):
        return bool(a == b)
    if kind == QUERY:
        return a is b or (isinstance(a, (*CONSTANT_TYPES, tuple)) and type(a) is type(b) and bool(a == b))
    if kind == UNSUPPORTED:
        return False
    return _equal(a, b)


class ModuleNames(NamedTuple):
    """What a guard on a module compares: attributes `names` (None: all), without some."""

    names: frozenset[str] | None
    attributes: frozenset[str]
    buffers: frozenset[str]
    parameters: frozenset[str]


def module_snapshot(module: Any, names: frozenset[str] | ModuleNames | None) -> tuple[Any, ...]:
    """Return the classes, mode, parameters, buffers, submodules and hooks of a module, and its attributes `names`.

    None stands for all attributes.
    """
    own = module.__dict__
    without: dict[str, frozenset[str]] = {}
    attributes: frozenset[str] = frozenset()
    if isinstance(names, ModuleNames):
        attributes, without = names.attributes, {"_buffers": names.buffers, "_parameters": names.parameters}
        names = names.names
    found: list[Any] = [len(GLOBAL_HOOKS.any), *GLOBAL_HOOKS.any]
    found += [type(module), type(module).forward, own.get("forward"), own["training"]]
    for kind in ("_parameters", "_buffers", "_modules", *MODULE_HOOKS):
        members = own[kind]
        if without.get(kind):
            members = {name: value for name, value in members.items() if name not in without[kind]}
        found += [len(members), *members, *members.values()]
    for name, value in own.items():
        if name not in MODULE_INTERNALS and (names is None or name in names) and name not in attributes:
            found += [name, value]
    return tuple(found)


def differing_part(mine: Guard, theirs: Any) -> str:
    """Return the path of the part that differs between two values of a guard."""
    if mine.kind == MODULE:
        for i, (a, b) in enumerate(zip(mine.value, theirs, strict=False)):
            if not _equal(a, b):
                before = mine.value[i - 1]
                return f"{before} of {mine.path}" if isinstance(before, str) else f"something of {mine.path}"
    return mine.path


def guard_expression(each: Guard, name: Callable[[Any, str], str]) -> str:
    """Return the Python expression that checks a guard.

    Args:
        each: the guard.
        name: returns a variable name for an object, given a prefix.
    """
    holder = name(each.holder, "names")
    if each.kind == ITEM:
        key = repr(each.key) if isinstance(each.key, str) else name(each.key, "key")
        return f"{holder}[{key}] is {name(each.value, 'value')}"
    if each.kind == ABSENT:
        return f"{each.key!r} not in {holder}"
    if each.kind == CELL and each.value is not MISSING:
        return f"{holder}.cell_contents is {name(each.value, 'value')}"
    if each.kind == ATTRIBUTE:
        return f"{holder}.{each.key} is {name(each.value, 'value')}"
    if each.kind == TENSOR_MATCH:
        known, (*_, cls, requires_grad, is_leaf) = name(weakref.ref(each.holder._array), "array"), each.value
        return (f"({known}() is {holder}._array or {name(each.holds, 'same')}()) and {holder}.__class__ is "
                f"{name(cls, 'type_')} and {holder}._requires_grad is {requires_grad} and "
                f"({holder}._node is None) is {is_leaf}")
    if each.kind in (LIST, DICT) and type(each.holder) in (list, dict):
        count = len(each.value) // (2 if each.kind == DICT else 1)
        conditions = [f"len({holder}) == {count}"]
        values = each.value[-count:] if count else ()
        if each.kind == DICT and not all(type(key) is str for key in each.value[:count]):
            return f"{name(each.holds, 'same')}()"
        if count > _MAX_UNROLLED:
            if each.kind == DICT:
                conditions.append(f"all(map(is_, {holder}, {name(each.value[:count], 'keys')}))")
                holder += ".values()"
            conditions.append(f"all(map(is_, {holder}, {name(values, 'values')}))")
        elif each.kind == DICT:
            conditions += [f"{holder}[{key!r}] is {name(value, 'value')}"
                     for key, value in zip(each.value[:count], values, strict=True)]
        else:
            conditions += [f"{holder}[{i}] is {name(value, 'value')}" for i, value in enumerate(values)]
        return " and ".join(conditions)
    return f"{name(each.holds, 'same')}()"


#: the largest containers whose entries are compared one by one in the generated code
_MAX_UNROLLED = 6


def user_paths(guards: Sequence[Guard]) -> Iterator[str]:
    """Yield the paths of guards that `explain` lists: those on values that users change."""
    for each in guards:
        if each.kind in (MODULE, TENSOR_MATCH) or each.path.endswith("__"):
            continue
        value = each.value
        if each.kind in (ITEM, CELL, ATTRIBUTE) and not isinstance(
                value, (*CONSTANT_TYPES, Tensor, types.FunctionType, types.MethodType, Module)):
            continue
        if each.kind == ABSENT and ("." in each.path or hasattr(builtins, each.key)):
            continue
        if "." in each.path and isinstance(value, types.FunctionType):
            continue
        yield each.path


__all__ = ["ABSENT", "ARRAY", "ATTRIBUTE", "CELL", "CHANGING", "DICT", "ITEM", "LIST", "MISSING", "MODULE",
           "MODULE_HOOKS", "MODULE_INTERNALS", "QUERY", "RNG_STATE", "SET", "TENSOR_MATCH", "UNSUPPORTED", "Guard",
           "ModuleNames",
           "current_value", "differing_part", "guard_expression", "is_", "is_rng", "module_snapshot", "query",
           "rng_state", "tensor_properties", "user_paths", "values_match"]
