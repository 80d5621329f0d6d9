"""`GuardSet`: the guards of one trace, collected from the code that ran and the objects that it can reach.

The frame hook records which code ran; its bytecode names globals, closure variables and attributes
(`bytecode_names.py`). From these and from the call's arguments all reachable objects are visited: containers with all
their entries, objects with the named attributes. Each place becomes a `Guard` with its value after the call. Places on
which two traces disagree change from call to call, or are changed by the function: then the call is not compiled.

Modules of `nn` are compared only if the counter of module changes (`modes.module_changes`) has moved.
"""

from __future__ import annotations

import contextvars
import functools
import gc
import operator
import os
import sys
import threading
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ... import config, switches
from ..._tensor import Tensor
from ...autograd.composite_spans import unwrap as unwrap_profiled
from ...config import module_of
from ...nn import Module
from ...optim.optimizer import Optimizer
from ..tracing.frame_hook import FrameHook, is_stdlib_file, is_user_code
from .bytecode_names import code_names
from .guard import (
    ABSENT,
    ARRAY,
    ATTRIBUTE,
    CELL,
    CHANGING,
    DICT,
    ITEM,
    LIST,
    MISSING,
    MODULE,
    MODULE_HOOKS,
    MODULE_INTERNALS,
    QUERY,
    RNG_STATE,
    SET,
    TENSOR_MATCH,
    UNSUPPORTED,
    Guard,
    ModuleNames,
    current_value,
    differing_part,
    is_rng,
    module_snapshot,
    query,
    rng_state,
    tensor_properties,
    values_match,
)
from .object_kinds import (
    CONSTANT_TYPES,
    HEAP_TYPE_FLAG,
    LRU_CACHE,
    PACKAGE,
    is_namespace_class,
    is_package_module,
    is_stable_module,
)

#: types whose contents are not traversed
_LEAF_TYPES = (*CONSTANT_TYPES, types.BuiltinFunctionType, types.CodeType, np.generic, np.dtype, range, slice,
               frozenset)
#: the largest number of objects and entries of containers that are compared at every call
MAX_GUARDED_ENTRIES = 10_000
#: the largest number that are visited once, after a trace
MAX_VISITED_ENTRIES = 200_000
_BUFFER_MODULES = frozenset({"array", "ctypes", "_ctypes", "mmap"})
#: by name, getters of process-wide settings
_SWITCHES = {name: getattr(switches, name) for name in switches.__all__ if name.startswith(("get_", "are_", "is_"))}
#: functions of Python's library that return state of the process, by name
_PROCESS_STATE: dict[str, Any] = {each.__name__: each for each in (
    os.getcwd, sys.getrecursionlimit, sys.getswitchinterval)}
_TOO_MANY = "the function may depend on too many things outside, of lists and dicts on all their entries"
_UNKNOWN = "an iterator, whose next item cannot be guarded"
_LOCK = "a lock, which a program does not acquire"
_LOCKS = (type(threading.Lock()), type(threading.RLock()))


class GuardSet:
    """The guards that one trace needs.

    Args:
        hook: the code that ran, and the objects that it was passed.
        modules: modules that were called.
        tensors: lifted tensors.
        is_outside: whether a tensor existed before the call and is not an argument.
        excluded: places that are inputs (`state.places.Excluded`), or None.

    Attributes:
        guards: by (kind, identity of the holder, key).
        failure: why the trace cannot be guarded, or None.
        names: names of attributes that the code may read.
        user_attributes: those that a tensor has only if a user set them.
        external_call: as in `FrameHook`.
    """

    def __init__(self, hook: FrameHook, modules: Sequence[Any], tensors: Sequence[Any] = (),
                 is_outside: Callable[[Any], bool] = lambda tensor: True, excluded: Any = None) -> None:
        self.guards: dict[tuple[int, int, Any], Guard] = {}
        self.failure: str | None = None
        self._is_outside, self._excluded = is_outside, excluded
        self.external_call = hook.external_call
        self._codes = {key: code for key, (code, _) in hook.codes.items()}
        self._visited: dict[int, Any] = {}
        self._size = 0
        self._pending: list[tuple[Any, str]] = []
        names: set[str] = set()
        self._any_attribute = False
        self._optional: set[str] = set()  # attributes whose absence the code may handle
        for code, space in hook.codes.values():
            of_code = code_names(code)
            names |= of_code.attributes
            names.add(code.co_name)
            if space is not None:
                self._any_attribute |= of_code.any_attribute
                self._optional |= of_code.strings
        names -= {"__init__", "__class__", "__dict__", "__name__", "<lambda>", "<module>", "<listcomp>", "<genexpr>"}
        self._c_names: set[str] = set()  # attributes that C code reads (attrgetter, lru_cache)
        self.names = frozenset(names | self._optional)
        self.user_attributes = frozenset(
            name for name in self._optional if not (name.startswith("_") or hasattr(Tensor, name)))
        for functions in (_SWITCHES, _PROCESS_STATE):
            for name in names & functions.keys():
                self._add(QUERY, functions[name], None, functions[name](), name)
        if "getenv" in names:
            self._pending.append((os.environ, "os.environ"))
        for code, space in hook.codes.values():
            if space is not None:
                self._add_names(code, space)
        for name, thing in hook.objects.values():
            self._pending.append((thing, name))
        self._pending += [(module, type(module).__name__) for module in modules]
        self._pending += [(tensor, "a tensor") for tensor in tensors]
        roots = [*self._pending]
        for tensor in tensors:
            for hooks in (tensor._hooks, tensor._post_accumulate_hooks):
                self._pending += [(hook, "a hook") for hook in (hooks or {}).values()]
        self._visit_pending()
        if not self._c_names <= self.names:
            self.names |= self._c_names
            self._visited.clear()
            self._pending = roots
            self._visit_pending()
        self._visit_unnamed_closures(hook)
        self._visited.clear()
        if excluded is not None:
            pins = excluded.pins([*self.guards.values()])
            if pins is None:
                self.failure = self.failure or "a container of state is reached in two ways"
            for pin in pins or ():
                self.guards[pin.kind, id(pin.holder), pin.key] = pin
        del self._is_outside, self._excluded

    # ----- collection -----

    def _add(self, kind: int, holder: Any, key: Any, value: Any, path: str, of: Any = None) -> None:
        if self._excluded is not None and self._excluded.covers(kind, holder, key):
            return
        name = None if kind == MODULE else key
        self.guards.setdefault((kind, id(holder if of is None else of), name), Guard(kind, holder, key, value, path))
        self._size += len(value) if isinstance(value, tuple) and kind != MODULE else 1
        if self._size > MAX_VISITED_ENTRIES and self.failure is None:
            self.failure = _TOO_MANY

    def _add_names(self, code: types.CodeType, space: dict[str, Any]) -> None:
        of_code = code_names(code)
        for name in (*of_code.global_names, *(x for x in of_code.strings if x in space)):
            if name in space:
                value = space[name]
                self._add(ITEM, space, name, value, name)
                self._pending.append((value, name))
            else:
                self._add(ABSENT, space, name, False, name)
        for name in of_code.imports:
            module = sys.modules.get(name)
            if module is not None:
                self._pending.append((module, name))
                top = sys.modules.get(name.partition(".")[0])
                self._pending.append((top, name.partition(".")[0]))

    def _visit_pending(self) -> None:
        while self._pending and self.failure is None:
            thing, path = self._pending.pop()
            if isinstance(thing, _LEAF_TYPES) or id(thing) in self._visited:
                continue
            self._visited[id(thing)] = thing
            self._visit(thing, path)

    def _visit(self, thing: Any, path: str) -> None:
        pending = self._pending
        if isinstance(thing, types.FunctionType):
            self._function(thing, path)
        elif isinstance(thing, types.MethodType):
            pending += [(thing.__self__, path.rpartition(".")[0] or path), (thing.__func__, path)]
        elif isinstance(thing, (staticmethod, classmethod)):
            pending.append((thing.__func__, path))
        elif isinstance(thing, property):
            pending += [(f, path) for f in (thing.fget, thing.fset) if f is not None]
        elif isinstance(thing, functools.partial):
            pending += [(thing.func, path), (thing.args, f"{path}.args"), (thing.keywords, f"{path}.keywords")]
        elif isinstance(thing, type):
            self._class(thing, path)
        elif isinstance(thing, types.ModuleType):
            self._python_module(thing, path)
        elif isinstance(thing, Module):
            self._module(thing, path)
        elif isinstance(thing, np.ndarray):
            self._array(thing, path)
        elif isinstance(thing, Tensor):
            self._tensor(thing, path)
        elif isinstance(thing, (weakref.ref, contextvars.ContextVar, LRU_CACHE)):
            content = query(thing)
            self._add(QUERY, thing, None, content, path)
            self._pending.append((content, path))
            wrapped = getattr(thing, "__wrapped__", None)
            if isinstance(wrapped, types.FunctionType) and not is_stdlib_file(wrapped.__code__.co_filename):
                self._codes[id(wrapped.__code__)] = wrapped.__code__  # it ran before the trace
                self._c_names |= code_names(wrapped.__code__).attributes
                self._add_names(wrapped.__code__, wrapped.__globals__)
                self._pending.append((wrapped, path))
        elif isinstance(thing, (operator.attrgetter, operator.methodcaller)):
            self._c_names |= {part for name in thing.__reduce__()[1] if isinstance(name, str)
                              for part in name.split(".")}
        elif is_rng(thing):
            self._add(RNG_STATE, thing, None, rng_state(thing), path)
        else:
            self._container(thing, path)
            self._object(thing, path)

    def _array(self, array: np.ndarray, path: str) -> None:
        if array.dtype.kind == "O" and array.size > MAX_GUARDED_ENTRIES:
            self._add(UNSUPPORTED, array, _TOO_MANY, None, path)
        elif array.dtype.kind != "O":
            self._add(ARRAY, array, None, array.copy(), path)
        elif array.ndim == 1:
            self._add(LIST, array, None, (*array,), path)
            self._pending += [(x, f"{path}[{i}]") for i, x in enumerate(array)]
        else:
            self._add(UNSUPPORTED, array, _UNKNOWN, None, path)

    def _tensor(self, tensor: Any, path: str) -> None:
        """Guard on a tensor's metadata and on its user attributes."""
        own = tensor.__dict__
        if self._is_outside(tensor):  # the metadata of arguments is part of the signature
            self._add(TENSOR_MATCH, tensor, None, tensor_properties(tensor), path)
            for name in self.user_attributes.difference(own):
                self._add(ABSENT, own, name, False, f"{path}.{name}")
        for name in self.names.intersection(own):
            if not name.startswith("_"):
                self._add(ITEM, own, name, own[name], f"{path}.{name}")
                self._pending.append((own[name], f"{path}.{name}"))

    def _container(self, thing: Any, path: str) -> None:
        if isinstance(thing, (list, dict, tuple, set, deque)) and len(thing) > MAX_GUARDED_ENTRIES:
            self._add(UNSUPPORTED, thing, _TOO_MANY, None, path)
        elif isinstance(thing, tuple):
            self._pending += [(x, f"{path}[{i}]") for i, x in enumerate(thing)]
        elif isinstance(thing, (list, deque)):
            self._add(LIST, thing, None, (*thing,), path)
            self._pending += [(x, f"{path}[{i}]") for i, x in enumerate(thing)]
        elif isinstance(thing, dict):
            if "__builtins__" not in thing:  # globals are guarded one by one
                self._add(DICT, thing, None, (*dict.keys(thing), *dict.values(thing)), path)
                self._pending += [(x, f"{path}[{key!r}]") for key, x in dict.items(thing)]
        elif isinstance(thing, (set, bytearray)):
            self._add(SET, thing, None, (*thing,), path)
            self._pending += [(x, path) for x in thing]
        elif isinstance(thing, _LOCKS):
            self._add(UNSUPPORTED, thing, _LOCK, None, path)
        elif not hasattr(thing, "__dict__") and hasattr(type(thing), "__next__"):
            self._add(UNSUPPORTED, thing, _UNKNOWN, None, path)
        elif not type(thing).__flags__ & HEAP_TYPE_FLAG or type(thing).__module__ in _BUFFER_MODULES:
            try:
                self._add(QUERY, thing, None, query(thing), path)
            except (TypeError, ValueError, BufferError, AttributeError):
                pass  # not a buffer

    def _function(self, function: types.FunctionType, path: str) -> None:
        own = function.__dict__
        for name in self.names.intersection(own):
            self._add(ITEM, own, name, own[name], f"{path}.{name}")
            self._pending.append((own[name], f"{path}.{name}"))
        if "__wrapped__" in own:
            self._pending.append((own["__wrapped__"], path))
        if id(function.__code__) not in self._codes:
            return
        self._add(ATTRIBUTE, function, "__code__", function.__code__, f"{path}.__code__")
        if function.__defaults__ is not None:
            self._add(ATTRIBUTE, function, "__defaults__", function.__defaults__, f"{path}.__defaults__")
            self._pending.append((function.__defaults__, f"{path}.__defaults__"))
        if function.__kwdefaults__ is not None:
            self._add(ATTRIBUTE, function, "__kwdefaults__", function.__kwdefaults__, f"{path}.__kwdefaults__")
            self._pending.append((function.__kwdefaults__, f"{path}.__kwdefaults__"))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            value = current_value(CELL, cell, None)
            self._add(CELL, cell, None, value, name)
            if value is not MISSING:
                self._pending.append((value, name))

    def _class(self, cls: type, path: str) -> None:
        if type(cls) is not type:
            self._class(type(cls), type(cls).__name__)
        for each in cls.__mro__:
            if not is_stable_module(module_of(each)):
                own = each.__dict__
                for name in self.names.intersection(own) if not self._any_attribute else [*own]:
                    if not (name.startswith("__") and name.endswith("__") and isinstance(
                            own[name], (*CONSTANT_TYPES, dict))):
                        self._add(ITEM, own, name, own[name], f"{each.__name__}.{name}", each)
                        self._pending.append((own[name], f"{each.__name__}.{name}"))
                        for nearer in cls.__mro__[:cls.__mro__.index(each)]:
                            if name not in nearer.__dict__ and not is_stable_module(module_of(nearer)):
                                self._add(ABSENT, nearer.__dict__, name, False, f"{nearer.__name__}.{name}", nearer)

    def _python_module(self, module: types.ModuleType, path: str) -> None:
        own, is_stable = module.__dict__, is_stable_module(module.__name__)
        for name in self.names.intersection(own):
            value = own[name]
            if module.__name__.partition(".")[0] in (PACKAGE, config.module_name):
                if isinstance(value, (types.FunctionType, type)):  # which users replace
                    self._add(ITEM, own, name, unwrap_profiled(value), f"{path}.{name}")
                elif isinstance(value, types.ModuleType):
                    self._pending.append((value, f"{path}.{name}"))
                continue
            if is_stable and (isinstance(value, (type, types.ModuleType)) or callable(value)):
                continue
            self._add(ITEM, own, name, value, f"{path}.{name}")
            self._pending.append((value, f"{path}.{name}"))

    def _module(self, module: Any, path: str) -> None:
        cls, own = type(module), module.__dict__
        names = None if self._any_attribute or is_package_module(cls) else self.names
        key: Any = names
        if self._excluded is not None and any(without := self._excluded.of_module(module)):
            key = ModuleNames(names, *without)
        self._add(MODULE, module, key, module_snapshot(module, key), path)
        if is_package_module(cls):
            home = next(each for each in cls.__mro__ if "forward" in each.__dict__)
            self._add(ATTRIBUTE, home, "forward", home.__dict__["forward"], f"{home.__name__}.forward")
        self._class(cls, cls.__name__)
        for name, value in own["_modules"].items():
            self._pending.append((value, f"{path}[{name}]" if name.isdigit() else f"{path}.{name}"))
        for kind in ("_parameters", "_buffers"):
            self._pending += [(x, f"{path}.{name}") for name, x in own[kind].items() if x is not None]
        for kind in MODULE_HOOKS:
            self._pending += [(hook, f"a hook of {path}") for hook in own[kind].values()]
        for name, value in own.items():
            if name not in MODULE_INTERNALS and (names is None or name in names):
                self._pending.append((value, f"{path}.{name}"))

    def _object(self, thing: Any, path: str) -> None:
        cls = type(thing)
        own = getattr(thing, "__dict__", None)
        names: Any = self.names
        module = module_of(cls)
        has_user_attributes = is_namespace_class(cls) or not is_stable_module(module)
        if module.partition(".")[0] == PACKAGE:
            if module.startswith(f"{PACKAGE}.compiler"):
                self._pending.append((getattr(thing, "function", None), path))
                return
            if isinstance(thing, Optimizer):
                pass
            elif module.startswith((f"{PACKAGE}.optim", f"{PACKAGE}.amp")):
                names = frozenset(own or ())
            else:
                return
        elif self._any_attribute and has_user_attributes:
            names = frozenset(own or ()) | self.names
        if not is_stable_module(module):
            self._add(ATTRIBUTE, thing, "__class__", cls, f"{path}.__class__")
        if isinstance(thing, threading.local):
            own = thing.__dict__
            for name in names.union(own).difference(cls.__dict__):
                self._add(QUERY, functools.partial(_of_thread, thing, name), name, _of_thread(thing, name),
                          f"{path}.{name}", thing)
                if name in own:
                    self._pending.append((own[name], f"{path}.{name}"))
        elif type(own) is dict:
            for name in names.intersection(own):
                self._add(ITEM, own, name, own[name], f"{path}.{name}")
                self._pending.append((own[name], f"{path}.{name}"))
            if has_user_attributes:
                for name in self._optional.difference(own):
                    self._add(ABSENT, own, name, False, f"{path}.{name}")
        for each in cls.__mro__:
            if is_stable_module(module_of(each)):
                continue
            for name in names.intersection(each.__dict__):
                value = each.__dict__[name]
                if isinstance(value, types.MemberDescriptorType):
                    slot = getattr(thing, name, MISSING)
                    if slot is not MISSING:
                        self._add(ATTRIBUTE, thing, name, slot, f"{path}.{name}")
                        self._pending.append((slot, f"{path}.{name}"))
                elif type(own) is dict and name not in own and not hasattr(type(value), "__set__"):
                    self._add(ABSENT, own, name, False, f"{path}.{name}")
        self._class(cls, cls.__name__)

    def _visit_unnamed_closures(self, hook: FrameHook) -> None:
        """Find closures that ran but that no name leads to, through the garbage collector, and visit them."""
        visited = {id(f.__code__) for f in self._visited.values() if isinstance(f, types.FunctionType)}
        inside = {id(c) for code, _ in hook.codes.values() for c in code.co_consts if isinstance(c, types.CodeType)}
        wanted = [code for key, (code, space) in hook.codes.items() if space is not None and key not in visited
                  and key not in inside and code.co_freevars]
        if wanted:
            ids = {id(code) for code in wanted}
            self._pending += [(f, f.__name__) for f in gc.get_referrers(*wanted)
                              if isinstance(f, types.FunctionType) and id(f.__code__) in ids]
            self._visit_pending()

    @property
    def codes(self) -> list[types.CodeType]:
        """The code objects that ran: user code, and library code that it called."""
        return [*self._codes.values()]

    # ----- comparison -----

    def difference(self, other: GuardSet) -> str | None:
        """Return the first guard on which two traces disagree; None if they agree."""
        if sum(len(mine.value) if isinstance(mine.value, tuple) and mine.kind != MODULE else 1
               for mine, _ in self._pairs(other)) > MAX_GUARDED_ENTRIES:
            return _TOO_MANY
        for mine, theirs in self._pairs(other):
            if mine.kind == MODULE and mine.key != theirs.key:
                return "other functions were called in one call than in the next"
            if not values_match(mine.kind, mine.value, theirs.value):
                if mine.kind == UNSUPPORTED:
                    return f"{mine.path}: {mine.key}{self._line(mine.path)}"
                part = differing_part(mine, theirs.value)
                return f"{part} {CHANGING}{self._line(part if mine.kind == MODULE else mine.path)}"
        return None

    def _pairs(self, other: GuardSet) -> Iterator[tuple[Guard, Guard]]:
        """Yield the guards of both traces that have the same place."""
        for key, mine in self.guards.items():
            theirs = other.guards.get(key)
            if theirs is not None:
                yield mine, theirs

    def violated(self) -> set[int]:
        """Return the identities of the guards that do not hold now."""
        return {id(guard) for guard in self.guards.values() if not guard.holds()}

    def mutation(self, later: GuardSet, violated: set[int]) -> str | None:
        """Return a place that the later traced call changed itself; None if there is none.

        Args:
            later: the guards of the next trace.
            violated: the guards of this trace that did not hold when the next trace began.
        """
        for mine, theirs in self._pairs(later):
            if (mine.kind not in (MODULE, UNSUPPORTED) or mine.key == theirs.key) and id(mine) not in violated and (
                    not values_match(mine.kind, mine.value, theirs.value)):
                part = differing_part(mine, theirs.value)
                return (f"{part} is changed by the function, which a program does not repeat"
                        f"{self._line(part if mine.kind == MODULE else mine.path)}")
        return None

    def _line(self, path: str) -> str:
        path = path.partition(" of ")[0]  # of a module's attribute
        name = path.rpartition("]")[2].rpartition(".")[2] or path.partition("[")[0].rpartition(".")[2]
        for code in self._codes.values():
            if is_user_code(code) and name in code_names(code).lines:
                return f" ({code.co_filename}:{code_names(code).lines[name]})"
        first = next(iter(self._codes.values()), None)
        return "" if first is None else f" ({first.co_filename}:{first.co_firstlineno})"

    def common_guards(self, other: GuardSet) -> list[Guard]:
        """Return the guards that both traces have, and a later call must satisfy: modules last."""
        common = [mine for key, mine in self.guards.items() if key in other.guards and mine.kind != RNG_STATE]
        return sorted(common, key=lambda guard: guard.kind == MODULE)


def _of_thread(local: threading.local, name: str) -> Any:
    """Return an attribute that `threading.local` has in this thread; MISSING if there is none."""
    return local.__dict__.get(name, MISSING)


__all__ = ["GuardSet"]
