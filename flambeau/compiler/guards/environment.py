"""What a function saw without being handed it: names, attributes, entries of lists and dicts, as they were.

From the code that ran (`watching`) it is known which globals, variables of functions around it and attributes it names
(`naming`). Beginning with those, and with the objects that were handed about, everything is followed that these names
lead to, and written down as it is when the run is over: lists and dicts with all their entries, of objects the
attributes that are named. What two runs do not agree on changes from call to call, or is changed by the function
itself: such a run is not replayed. What they agree on must be so at every later call.

Modules of `nn` have a counter of changes (`modes.configured`) and are looked at only when it has moved.
"""

from __future__ import annotations

import builtins
import contextvars
import functools
import gc
import operator
import os
import random
import sys
import types
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ... import switches
from ..._tensor import Tensor
from ...autograd.composite_spans import unwrap as unwrap_profiled
from ...nn import Module
from ...nn.modules.hooks import GLOBAL_HOOKS
from ...optim.optimizer import Optimizer
from ..tracing.frame_hook import FrameHook, is_stdlib_file, is_user_code
from .bytecode_names import code_names

is_ = operator.is_

_PACKAGE = __name__.partition(".")[0]
CONSTANT_TYPES = (bool, int, float, complex, str, bytes, type(None))


def is_range_or_slice(x: Any) -> bool:
    """Whether a thing is a range, or a slice between plain numbers: all that it is stands in its `repr`."""
    if x.__class__ is slice:
        return all(part is None or part.__class__ is int for part in (x.start, x.stop, x.step))
    return x.__class__ is range


#: what is not followed any further
_CLOSED = (*CONSTANT_TYPES, types.BuiltinFunctionType, types.CodeType, np.generic, np.dtype, range, slice, frozenset)
#: packages whose own attributes do not change
_STEADY = frozenset({_PACKAGE, "numpy", "llvmlite", *sys.stdlib_module_names})
#: more entries of containers and other things than this are not looked at in every call
LIMIT = 10_000
#: more than this is not looked at even once
MOST = 200_000
MISSING: Any = object()
#: the flag of classes that are written in Python
_HEAP = 1 << 9
#: classes of the standard library that hold what the user hangs on them
_OPEN = frozenset({("types", "SimpleNamespace"), ("argparse", "Namespace")})
_MEMORY = frozenset({"array", "ctypes", "_ctypes", "mmap"})
LRU_CACHE = type(functools.lru_cache(int))
#: what of a module is no attribute that decides what it computes
_MODULES_OWN = frozenset({"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_state_dict_hooks",
                          "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
                          "_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks",
                          "_forward_hooks_with_kwargs", "_forward_hooks_always_called",
                          "_forward_pre_hooks_with_kwargs", "_compiled_call_impl"})
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")

#: functions that say how the process is set
_SWITCHES = {name: getattr(switches, name) for name in switches.__all__ if name.startswith(("get_", "are_", "is_"))}
_TOO_MANY = "the function may depend on too many things outside, of lists and dicts on all their entries"
_UNKNOWN = "an iterator, of which nobody knows what it gives next"
#: what is said of something that two runs did not see alike
CHANGING = "changes from call to call"

# kinds of what was seen
ITEM, ABSENT, CELL, ATTRIBUTE, LIST, DICT, SET, ARRAY, RNG_STATE, UNSUPPORTED, QUERY, MODULE, TENSOR_MATCH = range(13)


class Guard(NamedTuple):
    """One thing that was seen.

    Attributes:
        kind: how it is looked up.
        holder: where: a dict of names, a cell, an object, a container.
        key: the name; None where it is the whole of a container.
        value: what was there; of containers, their entries.
        path: how the user reaches it.
    """

    kind: int
    holder: Any
    key: Any
    value: Any
    path: str

    def now(self) -> Any:
        """What is there now."""
        return _now(self.kind, self.holder, self.key)

    def holds(self) -> bool:
        """Whether it is what it was: the same object, or an equal number."""
        try:
            return values_match(self.kind, self.value, self.now())
        except (LookupError, AttributeError, ValueError, TypeError, RuntimeError):
            return False


def _now(kind: int, holder: Any, key: Any) -> Any:
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
        return _state_of(holder)
    if kind == MODULE:
        return module_snapshot(holder, key)
    if kind == UNSUPPORTED:
        return None
    if kind == QUERY:
        return _answer(holder)
    if kind == TENSOR_MATCH:
        return tensor_properties(holder)
    return (*holder,)


def tensor_properties(tensor: Any) -> tuple[Any, ...]:
    """What of a tensor Python can ask for besides its numbers: how it lies there, whether it requires gradients."""
    a = tensor._array
    return (*((a.shape, a.strides) if type(a) is np.ndarray else ()), a.dtype, type(tensor),
            tensor._requires_grad, tensor._node is None)


def _answer(thing: Any) -> Any:
    """What a weak reference, a context variable, a cache, a switch or memory of numbers gives when it is asked."""
    if isinstance(thing, weakref.ref):
        return thing()
    if isinstance(thing, contextvars.ContextVar):
        return thing.get(MISSING)
    if isinstance(thing, types.FunctionType):
        return thing()
    if not isinstance(thing, LRU_CACHE):
        return bytes(memoryview(thing))
    return (thing.cache_info().misses, thing.cache_info().currsize)


def _is_stream(thing: Any) -> bool:
    """Whether it gives random numbers: NumPy's, where somebody has asked for NumPy's, among others."""
    return isinstance(thing, random.Random) or ("numpy.random" in sys.modules and isinstance(
        thing, (np.random.RandomState, np.random.Generator)))


def _state_of(stream: Any) -> Any:
    if isinstance(stream, random.Random):
        return stream.getstate()
    if hasattr(stream, "bit_generator"):
        return repr(stream.bit_generator.state)
    name, keys, *rest = stream.get_state(legacy=True)
    return name, np.asarray(keys).tobytes(), *rest


def _equal(a: Any, b: Any) -> bool:
    return (a is b or (type(a) is type(b) and isinstance(a, CONSTANT_TYPES) and a == b)
            or unwrap_profiled(a) is unwrap_profiled(b))


def values_match(kind: int, a: Any, b: Any) -> bool:
    """Whether two looks at one thing show the same."""
    if kind in (LIST, DICT, SET, MODULE):
        return len(a) == len(b) and (all(map(is_, a, b)) or all(map(_equal, a, b)))
    if kind == ARRAY:
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if kind in (RNG_STATE, TENSOR_MATCH):
        return bool(a == b)
    if kind == QUERY:
        return a is b or (isinstance(a, (*CONSTANT_TYPES, tuple)) and type(a) is type(b) and bool(a == b))
    if kind == UNSUPPORTED:  # what it gives next, nobody knows
        return False
    return _equal(a, b)


def module_snapshot(module: Any, names: frozenset[str] | None) -> tuple[Any, ...]:
    """What of a module decides what it computes, apart from its parameters' numbers; of its attributes, `names`."""
    own = module.__dict__
    found: list[Any] = [len(GLOBAL_HOOKS.any), *GLOBAL_HOOKS.any]
    found += [type(module), type(module).forward, own.get("forward"), own["training"]]
    for kind in ("_parameters", "_buffers", "_modules", *_HOOKS):
        members = own[kind]
        found += [len(members), *members, *members.values()]
    for name, value in own.items():
        if name not in _MODULES_OWN and (names is None or name in names):
            found += [name, value]
    return tuple(found)


class GuardSet:
    """What one run saw.

    Args:
        watch: what ran.
        modules: that were called.
        tensors: that were found outside.
        is_outside: whether a tensor was there before, and was not given.

    Attributes:
        seen: all of it, by how it is looked up.
        failed: what about it cannot be looked at, or None.
        hung: attributes that somebody may have looked for, and that tensors have only if a user hung them there.
        asked_outside: what it asked of the system, as `Watch.asked_outside` says.
    """

    def __init__(self, hook: FrameHook, modules: Sequence[Any], tensors: Sequence[Any] = (),
                 is_outside: Callable[[Any], bool] = lambda tensor: True) -> None:
        self.seen: dict[tuple[int, int, Any], Guard] = {}
        self.failure: str | None = None
        self._is_outside = is_outside
        self.external_call = hook.external_call
        self._codes = {key: code for key, (code, _) in hook.codes.items()}
        self._known: dict[int, Any] = {}
        self._size = 0
        self._pending: list[tuple[Any, str]] = []
        names: set[str] = set()
        self._anything = False
        self._asked: set[str] = set()  # attributes that somebody may have looked for
        for code, space in hook.codes.values():
            said = code_names(code)
            names |= said.attributes
            names.add(code.co_name)
            if space is not None:
                self._anything |= said.anything
                self._asked |= said.strings
        names -= {"__init__", "__class__", "__dict__", "__name__", "<lambda>", "<module>", "<listcomp>", "<genexpr>"}
        self._reached: set[str] = set()  # attributes that C code names
        self.names = frozenset(names | self._asked)
        self.user_attributes = frozenset(
            name for name in self._asked if not (name.startswith("_") or hasattr(Tensor, name)))
        for name in names & _SWITCHES.keys():
            self._see(QUERY, _SWITCHES[name], None, _SWITCHES[name](), name)
        if "getenv" in names:
            self._pending.append((os.environ, "os.environ"))
        for code, space in hook.codes.values():
            if space is not None:
                self._named(code, space)
        for name, thing in hook.objects.values():
            self._pending.append((thing, name))
        self._pending += [(module, type(module).__name__) for module in modules]
        self._pending += [(tensor, "a tensor") for tensor in tensors]
        begin = [*self._pending]
        for tensor in tensors:
            for hooks in (tensor._hooks, tensor._post_accumulate_hooks):
                self._pending += [(hook, "a hook") for hook in (hooks or {}).values()]
        self._follow()
        if not self._reached <= self.names:
            self.names |= self._reached
            self._known.clear()
            self._pending = begin
            self._follow()
        self._look_for_the_rest(hook)
        self._known.clear()
        del self._is_outside

    # ----- what there is to see -----

    def _see(self, kind: int, holder: Any, key: Any, value: Any, path: str, of: Any = None) -> None:
        name = None if kind == MODULE else key
        self.seen.setdefault((kind, id(holder if of is None else of), name), Guard(kind, holder, key, value, path))
        self._size += len(value) if isinstance(value, tuple) and kind != MODULE else 1
        if self._size > MOST and self.failure is None:
            self.failure = _TOO_MANY

    def _named(self, code: types.CodeType, space: dict[str, Any]) -> None:
        said = code_names(code)
        for name in (*said.spaces, *(x for x in said.strings if x in space)):
            if name in space:
                value = space[name]
                self._see(ITEM, space, name, value, name)
                self._pending.append((value, name))
            else:
                self._see(ABSENT, space, name, False, name)
        for name in said.imports:
            module = sys.modules.get(name)
            if module is not None:
                self._pending.append((module, name))
                top = sys.modules.get(name.partition(".")[0])
                self._pending.append((top, name.partition(".")[0]))

    def _follow(self) -> None:
        while self._pending and self.failure is None:
            thing, path = self._pending.pop()
            if isinstance(thing, _CLOSED) or id(thing) in self._known:
                continue
            self._known[id(thing)] = thing
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
            found = _answer(thing)
            self._see(QUERY, thing, None, found, path)
            self._pending.append((found, path))
            wrapped = getattr(thing, "__wrapped__", None)
            if isinstance(wrapped, types.FunctionType) and not is_stdlib_file(wrapped.__code__.co_filename):
                self._codes[id(wrapped.__code__)] = wrapped.__code__  # it ran once, or will
                self._reached |= code_names(wrapped.__code__).attributes
                self._named(wrapped.__code__, wrapped.__globals__)
                self._pending.append((wrapped, path))
        elif isinstance(thing, (operator.attrgetter, operator.methodcaller)):
            self._reached |= {part for name in thing.__reduce__()[1] if isinstance(name, str)
                              for part in name.split(".")}
        elif _is_stream(thing):
            self._see(RNG_STATE, thing, None, _state_of(thing), path)
        else:
            self._container(thing, path)
            self._object(thing, path)

    def _array(self, array: np.ndarray, path: str) -> None:
        if array.dtype.kind == "O" and array.size > LIMIT:
            self._see(UNSUPPORTED, array, _TOO_MANY, None, path)
        elif array.dtype.kind != "O":
            self._see(ARRAY, array, None, array.copy(), path)
        elif array.ndim == 1:
            self._see(LIST, array, None, (*array,), path)
            self._pending += [(x, f"{path}[{i}]") for i, x in enumerate(array)]
        else:
            self._see(UNSUPPORTED, array, _UNKNOWN, None, path)

    def _tensor(self, tensor: Any, path: str) -> None:
        """How a tensor looks, and what a user has hung on it."""
        own = tensor.__dict__
        if self._is_outside(tensor):  # of arguments and of what the run makes other things say how they look
            self._see(TENSOR_MATCH, tensor, None, tensor_properties(tensor), path)
            for name in self.user_attributes.difference(own):
                self._see(ABSENT, own, name, False, f"{path}.{name}")
        for name in self.names.intersection(own):
            if not name.startswith("_"):
                self._see(ITEM, own, name, own[name], f"{path}.{name}")
                self._pending.append((own[name], f"{path}.{name}"))

    def _container(self, thing: Any, path: str) -> None:
        if isinstance(thing, (list, dict, tuple, set, deque)) and len(thing) > LIMIT:
            self._see(UNSUPPORTED, thing, _TOO_MANY, None, path)
        elif isinstance(thing, tuple):
            self._pending += [(x, f"{path}[{i}]") for i, x in enumerate(thing)]
        elif isinstance(thing, (list, deque)):
            self._see(LIST, thing, None, (*thing,), path)
            self._pending += [(x, f"{path}[{i}]") for i, x in enumerate(thing)]
        elif isinstance(thing, dict):
            if "__builtins__" not in thing:  # a module's names are looked at one by one
                self._see(DICT, thing, None, (*dict.keys(thing), *dict.values(thing)), path)
                self._pending += [(x, f"{path}[{key!r}]") for key, x in dict.items(thing)]
        elif isinstance(thing, (set, bytearray)):
            self._see(SET, thing, None, (*thing,), path)
            self._pending += [(x, path) for x in thing]
        elif not hasattr(thing, "__dict__") and hasattr(type(thing), "__next__"):
            self._see(UNSUPPORTED, thing, _UNKNOWN, None, path)
        elif not type(thing).__flags__ & _HEAP or type(thing).__module__ in _MEMORY:
            try:
                self._see(QUERY, thing, None, _answer(thing), path)
            except (TypeError, ValueError, BufferError, AttributeError):
                pass  # nothing to be seen

    def _function(self, function: types.FunctionType, path: str) -> None:
        own = function.__dict__
        for name in self.names.intersection(own):
            self._see(ITEM, own, name, own[name], f"{path}.{name}")
            self._pending.append((own[name], f"{path}.{name}"))
        if "__wrapped__" in own:
            self._pending.append((own["__wrapped__"], path))
        if id(function.__code__) not in self._codes:
            return
        self._see(ATTRIBUTE, function, "__code__", function.__code__, f"{path}.__code__")
        if function.__defaults__ is not None:
            self._see(ATTRIBUTE, function, "__defaults__", function.__defaults__, f"{path}.__defaults__")
            self._pending.append((function.__defaults__, f"{path}.__defaults__"))
        if function.__kwdefaults__ is not None:
            self._see(ATTRIBUTE, function, "__kwdefaults__", function.__kwdefaults__, f"{path}.__kwdefaults__")
            self._pending.append((function.__kwdefaults__, f"{path}.__kwdefaults__"))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            value = _now(CELL, cell, None)
            self._see(CELL, cell, None, value, name)
            if value is not MISSING:
                self._pending.append((value, name))

    def _class(self, cls: type, path: str) -> None:
        for each in cls.__mro__:
            if not is_stable_module(each.__module__):
                own = each.__dict__
                for name in self.names.intersection(own) if not self._anything else [*own]:
                    if not (name.startswith("__") and name.endswith("__") and isinstance(
                            own[name], (*CONSTANT_TYPES, dict))):
                        self._see(ITEM, own, name, own[name], f"{each.__name__}.{name}", each)
                        self._pending.append((own[name], f"{each.__name__}.{name}"))
                        for nearer in cls.__mro__[:cls.__mro__.index(each)]:
                            if name not in nearer.__dict__ and not is_stable_module(nearer.__module__):
                                self._see(ABSENT, nearer.__dict__, name, False, f"{nearer.__name__}.{name}", nearer)

    def _python_module(self, module: types.ModuleType, path: str) -> None:
        own, steady = module.__dict__, is_stable_module(module.__name__)
        for name in self.names.intersection(own):
            value = own[name]
            if module.__name__.partition(".")[0] == _PACKAGE:
                if isinstance(value, (types.FunctionType, type)):  # people put functions of their own there
                    self._see(ITEM, own, name, unwrap_profiled(value), f"{path}.{name}")
                elif isinstance(value, types.ModuleType):
                    self._pending.append((value, f"{path}.{name}"))
                continue
            if steady and (isinstance(value, (type, types.ModuleType)) or callable(value)):
                continue
            self._see(ITEM, own, name, value, f"{path}.{name}")
            self._pending.append((value, f"{path}.{name}"))

    def _module(self, module: Any, path: str) -> None:
        cls, own = type(module), module.__dict__
        names = None if self._anything or _is_ours(cls) else self.names
        self._see(MODULE, module, names, module_snapshot(module, names), path)
        if _is_ours(cls):
            home = next(each for each in cls.__mro__ if "forward" in each.__dict__)
            self._see(ATTRIBUTE, home, "forward", home.__dict__["forward"], f"{home.__name__}.forward")
        self._class(cls, cls.__name__)
        for name, value in own["_modules"].items():
            self._pending.append((value, f"{path}[{name}]" if name.isdigit() else f"{path}.{name}"))
        for kind in ("_parameters", "_buffers"):
            self._pending += [(x, f"{path}.{name}") for name, x in own[kind].items() if x is not None]
        for kind in _HOOKS:
            self._pending += [(hook, f"a hook of {path}") for hook in own[kind].values()]
        for name, value in own.items():
            if name not in _MODULES_OWN and (names is None or name in names):
                self._pending.append((value, f"{path}.{name}"))

    def _object(self, thing: Any, path: str) -> None:
        cls = type(thing)
        own = getattr(thing, "__dict__", None)
        names: Any = self.names
        is_open = _is_open(cls) or not is_stable_module(cls.__module__)
        if cls.__module__.partition(".")[0] == _PACKAGE:
            if cls.__module__.startswith(f"{_PACKAGE}.compiler"):
                self._pending.append((getattr(thing, "function", None), path))
                return
            if isinstance(thing, Optimizer):
                pass
            elif cls.__module__.startswith((f"{_PACKAGE}.optim", f"{_PACKAGE}.amp")):
                names = frozenset(own or ())
            else:
                return
        elif self._anything and is_open:
            names = frozenset(own or ()) | self.names
        if not is_stable_module(cls.__module__):
            self._see(ATTRIBUTE, thing, "__class__", cls, f"{path}.__class__")
        if type(own) is dict:
            for name in names.intersection(own):
                self._see(ITEM, own, name, own[name], f"{path}.{name}")
                self._pending.append((own[name], f"{path}.{name}"))
            if is_open:
                for name in self._asked.difference(own):
                    self._see(ABSENT, own, name, False, f"{path}.{name}")
        for each in cls.__mro__:
            if is_stable_module(each.__module__):
                continue
            for name in names.intersection(each.__dict__):
                value = each.__dict__[name]
                if isinstance(value, types.MemberDescriptorType):
                    held = getattr(thing, name, MISSING)
                    if held is not MISSING:
                        self._see(ATTRIBUTE, thing, name, held, f"{path}.{name}")
                        self._pending.append((held, f"{path}.{name}"))
                elif type(own) is dict and name not in own and not hasattr(type(value), "__set__"):
                    self._see(ABSENT, own, name, False, f"{path}.{name}")
        self._class(cls, cls.__name__)

    def _look_for_the_rest(self, hook: FrameHook) -> None:
        """Functions that ran and that no name led to are looked for among all there are, for what they close over."""
        met = {id(f.__code__) for f in self._known.values() if isinstance(f, types.FunctionType)}
        inside = {id(c) for code, _ in hook.codes.values() for c in code.co_consts if isinstance(c, types.CodeType)}
        wanted = [code for key, (code, space) in hook.codes.items() if space is not None and key not in met
                  and key not in inside and code.co_freevars]
        if wanted:
            ids = {id(code) for code in wanted}
            self._pending += [(f, f.__name__) for f in gc.get_referrers(*wanted)
                              if isinstance(f, types.FunctionType) and id(f.__code__) in ids]
            self._follow()

    @property
    def codes(self) -> list[types.CodeType]:
        """The code that ran, the user's and what that called of the standard library."""
        return [*self._codes.values()]

    # ----- comparison -----

    def difference(self, other: GuardSet) -> str | None:
        """What two runs saw that was not the same; None where all was."""
        if sum(len(mine.value) if isinstance(mine.value, tuple) and mine.kind != MODULE else 1
               for mine, _ in self._pairs(other)) > LIMIT:
            return _TOO_MANY
        for mine, theirs in self._pairs(other):
            if mine.kind == MODULE and mine.key != theirs.key:
                return "other functions were called in one call than in the next"
            if not values_match(mine.kind, mine.value, theirs.value):
                if mine.kind == UNSUPPORTED:
                    return f"{mine.path}: {mine.key}{self._line(mine.path)}"
                return f"{_part(mine, theirs.value)} {CHANGING}{self._line(mine.path)}"
        return None

    def _pairs(self, other: GuardSet) -> Iterator[tuple[Guard, Guard]]:
        """What both runs saw."""
        for key, mine in self.seen.items():
            theirs = other.seen.get(key)
            if theirs is not None:
                yield mine, theirs

    def moved(self) -> set[int]:
        """What is not as this run left it: the identities of what was seen."""
        return {id(each) for each in self.seen.values() if not each.holds()}

    def changed(self, after: GuardSet, moved: set[int]) -> str | None:
        """What a later run changed itself, if it is one of those that had not `moved` before it; None: nothing."""
        for mine, theirs in self._pairs(after):
            if (mine.kind not in (MODULE, UNSUPPORTED) or mine.key == theirs.key) and id(mine) not in moved and (
                    not values_match(mine.kind, mine.value, theirs.value)):
                return (f"{_part(mine, theirs.value)} is changed by the function, which a program does not repeat"
                        f"{self._line(mine.path)}")
        return None

    def _line(self, path: str) -> str:
        name = path.rpartition("]")[2].rpartition(".")[2] or path.partition("[")[0].rpartition(".")[2]
        for code in self._codes.values():
            if is_user_code(code) and name in code_names(code).lines:
                return f" ({code.co_filename}:{code_names(code).lines[name]})"
        first = next(iter(self._codes.values()), None)
        return "" if first is None else f" ({first.co_filename}:{first.co_firstlineno})"

    def common_guards(self, other: GuardSet) -> list[Guard]:
        """What both runs saw, and a later call must see too: modules last."""
        found = [mine for key, mine in self.seen.items() if key in other.seen and mine.kind != RNG_STATE]
        return sorted(found, key=lambda each: each.kind == MODULE)


@functools.lru_cache(4096)
def is_stable_module(module: str | None) -> bool:
    """Whether a module is this package's, NumPy's or the standard library's, and not one of the user's of that name."""
    top = (module or "").partition(".")[0]
    if top not in _STEADY:
        return False
    file = getattr(sys.modules.get(top), "__file__", None)
    return top not in sys.stdlib_module_names or file is None or is_stdlib_file(file)


def _is_ours(cls: type) -> bool:
    """Whether a class of modules is this package's, or made of one that is more than `Module`."""
    return any(each.__module__.partition(".")[0] == _PACKAGE and issubclass(each, Module) and each is not Module
               for each in cls.__mro__)


def _is_open(cls: type) -> bool:
    return any((each.__module__, each.__qualname__) in _OPEN for each in cls.__mro__)


def is_traversable(thing: Any) -> bool:
    """Whether it is an object whose attributes can be looked at: of the user's classes, and a few others."""
    cls = type(thing)
    if _is_open(cls) or isinstance(thing, (types.MethodType, functools.partial, np.ndarray)):
        return True
    if cls.__module__.partition(".")[0] == _PACKAGE:
        return isinstance(thing, Optimizer) or cls.__module__.startswith(
            (f"{_PACKAGE}.optim", f"{_PACKAGE}.devices", f"{_PACKAGE}.tensor.random"))
    return bool(cls.__flags__ & _HEAP) and not is_stable_module(cls.__module__) and (
        cls.__module__ in sys.modules or isinstance(getattr(thing, "__dict__", None), dict))


def _part(mine: Guard, theirs: Any) -> str:
    """What of a thing differs, as the user reaches it."""
    if mine.kind == MODULE:
        for i, (a, b) in enumerate(zip(mine.value, theirs, strict=False)):
            if not _equal(a, b):
                before = mine.value[i - 1]
                return f"{before} of {mine.path}" if isinstance(before, str) else f"something of {mine.path}"
    return mine.path


# ----- at every call --------------------------------------------------------------------------


def expression(each: Guard, name: Callable[[Any, str], str]) -> str:
    """A Python expression that is true while a thing is the same object as it was; `name` names objects."""
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
        said = [f"len({holder}) == {count}"]
        values = each.value[-count:] if count else ()
        if each.kind == DICT and not all(type(key) is str for key in each.value[:count]):
            return f"{name(each.holds, 'same')}()"
        if count > _FEW:
            if each.kind == DICT:
                said.append(f"all(map(is_, {holder}, {name(each.value[:count], 'keys')}))")
                holder += ".values()"
            said.append(f"all(map(is_, {holder}, {name(values, 'values')}))")
        elif each.kind == DICT:
            said += [f"{holder}[{key!r}] is {name(value, 'value')}"
                     for key, value in zip(each.value[:count], values, strict=True)]
        else:
            said += [f"{holder}[{i}] is {name(value, 'value')}" for i, value in enumerate(values)]
        return " and ".join(said)
    return f"{name(each.holds, 'same')}()"


#: containers of so many entries are compared entry by entry
_FEW = 6


def paths(seen: Sequence[Guard]) -> Iterator[str]:
    """How the user reaches what must stay as it is; what nobody would take for changeable is left out."""
    for each in seen:
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


__all__ = [
    "ARRAY",
    "ATTRIBUTE",
    "CHANGING",
    "CONSTANT_TYPES",
    "DICT",
    "ITEM",
    "LIST",
    "LRU_CACHE",
    "MISSING",
    "MODULE",
    "QUERY",
    "RNG_STATE",
    "SET",
    "TENSOR_MATCH",
    "UNSUPPORTED",
    "Guard",
    "GuardSet",
    "expression",
    "is_",
    "is_range_or_slice",
    "is_stable_module",
    "is_traversable",
    "module_snapshot",
    "paths",
    "tensor_properties",
]
