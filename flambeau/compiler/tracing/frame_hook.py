"""The frame hook: records which Python code runs during a trace, on which objects, and its side effects.

It is a profile function (`sys.setprofile`). Frames of this package and of NumPy are ignored; those of the standard
library count if user code calls them. A program replays tensor operators only, so a call with side effects (prints,
files, Python's random numbers) cannot be replayed.
"""

from __future__ import annotations

import builtins
import contextvars
import functools
import gc
import io
import os
import random
import re
import sys
import sysconfig
import threading
import types
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.creation.generators import Generator
from ...config import module_of
from ...engine.grad_mode import grad_mode, inference
from .break_frames import BreakFrame, break_frames

_USER, _LIBRARY, _INTERNAL = range(3)
_NAME = __name__.partition(".")[0]
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
#: folders of this package that may read and write files: the caches
_CACHING = tuple(_PACKAGE + folder + os.sep for folder in (
    "compiler", "ir", "codegen", "runtime", "backends", os.path.join("_tensor", "argument_errors")))
_NUMPY = os.path.dirname(np.__file__) + os.sep
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_SITE_PACKAGES = tuple(sysconfig.get_paths()[kind] + os.sep for kind in ("purelib", "platlib"))
#: llvmlite, which may run during a trace
_LLVMLITE = tuple(folder + "llvmlite" + os.sep for folder in _SITE_PACKAGES)
_WARNINGS = warnings.__file__
_IMPORTING = "<frozen importlib"

#: names of C functions with side effects; `_note_effect_call` checks what they belong to
_EFFECT_NAMES = frozenset({
    "print", "input", "open", "breakpoint", "write", "writelines", "read", "readline", "readlines", "readinto", "seek",
    "truncate", "random", "getrandbits", "seed", "setstate", "sample", "system", "mkdir", "remove", "unlink", "rename",
    "rmdir", "replace", "putenv", "unsetenv", "urandom", "fork_exec", "send", "sendall", "recv", "warn",
    "warn_explicit"})
#: names of C functions that read state of the system or the process, with what they belong to and what is read
_READS = {name: (of, what) for of, what, names in (
    ("time", "the clock is read", ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns",
                                   "process_time", "process_time_ns", "thread_time", "thread_time_ns", "sleep")),
    ("datetime", "the clock is read", ("now", "utcnow", "today")),
    ("posix", "a file, a folder or the system is looked up",
     ("stat", "lstat", "fstat", "access", "listdir", "scandir", "readlink", "getpid", "getppid", "getloadavg", "times",
)),
    ("_thread", "the identity of the thread is read", ("get_ident", "get_native_id")),
    ("sys", "references are counted", ("getrefcount",)),
) for name in names}
#: files of the standard library that read the identity of the thread, only to notice recursion
_RECURSION_GUARDS = tuple(_STANDARD + name for name in ("reprlib.py", "dataclasses.py"))
_SYSTEM_MODULES = frozenset({"posix", "nt", "_posixsubprocess", "_winapi"})
#: modules of pure C functions, and classes with pure methods: the result depends on the arguments only
_PURE_MODULES = frozenset({
    "builtins", "math", "cmath", "_operator", "itertools", "_functools", "_collections", "_bisect", "_heapq", "_struct",
    "_abc", "_weakref", "_thread", "_contextvars", "_typing", "_sre", "_string", "numpy._core._multiarray_umath"})
_PURE_CLASSES = (
    str, bytes, bytearray, list, dict, tuple, set, frozenset, int, float, complex, range, deque, np.ndarray, np.generic,
    np.dtype, contextvars.ContextVar, types.MappingProxyType, types.GeneratorType, re.Pattern, re.Match, slice,
    memoryview, weakref.ref, functools.partial, type(threading.Lock()), type(threading.RLock()))
#: exceptions in those modules: `id` and the hash of a str differ between processes
_IMPURE_BUILTINS = frozenset({"id", "hash", "input", "open", "breakpoint"})
#: arguments that are not recorded: constants, and tensors, which have guards of their own; exceptions, because their
#: tracebacks would keep frames and autograd graphs alive
_NOT_RECORDED = (bool, int, float, complex, str, bytes, type(None), Tensor, types.BuiltinFunctionType, BaseException)
_SEEDED = "the random number generator is seeded"
#: functions of this package with side effects, by identity of their code
_EFFECTS_BY_CODE = {id(f.__code__): _SEEDED for f in (Generator.manual_seed, Generator.seed, Generator.set_state)}
_code_kinds: dict[int, tuple[types.CodeType, int]] = {}


def _kind_of(frame: Any) -> int:
    """Return whether a frame runs user code (_USER), the standard library (_LIBRARY), or this package (_INTERNAL)."""
    code = frame.f_code
    known = _code_kinds.get(id(code))
    if known is None:
        known = _code_kinds[id(code)] = code, _kind_of_code(code.co_filename, frame.f_globals.get("__name__") or "")
    return known[1]


def is_internal_frame(frame: Any) -> bool:
    """Whether a frame runs code of this package or of NumPy."""
    return _kind_of(frame) == _INTERNAL


def _kind_of_code(file: str, module: str) -> int:
    if file.startswith((_PACKAGE, _NUMPY, *_LLVMLITE)):
        return _INTERNAL
    if file.startswith("<") and not file.startswith("<doctest"):  # generated code
        if module.partition(".")[0] in (_NAME, "numpy"):
            return _INTERNAL
        if module.startswith("namedtuple_"):
            return _LIBRARY
    return _LIBRARY if is_stdlib_file(file) else _USER


def is_stdlib_file(file: str) -> bool:
    """Whether a file belongs to the standard library."""
    return file.startswith("<frozen") or (file.startswith(_STANDARD) and not file.startswith(_SITE_PACKAGES))


def is_own_function(rule: Any) -> bool:
    """Whether a function belongs to this package."""
    module = module_of(rule) if isinstance(rule, type) else getattr(rule, "__module__", "")
    return module.partition(".")[0] == _NAME


def is_user_code(code: types.CodeType) -> bool:
    """Whether a code object that the hook has recorded is user code."""
    return id(code) in _code_kinds and _code_kinds[id(code)][1] == _USER


class SideEffect(BaseException):
    """Raised before a side effect of code that must not have any; no handler of user code may stop it."""


class _GarbageCollectorPause:
    """Disables the garbage collector while any hook is on: finalizers do not belong to the traced function."""

    def __init__(self) -> None:
        self._lock, self._num_hooks, self._was_enabled = threading.Lock(), 0, False

    def begin(self) -> None:
        with self._lock:
            if not self._num_hooks:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._num_hooks += 1

    def end(self) -> None:
        with self._lock:
            self._num_hooks -= 1
            if not self._num_hooks and self._was_enabled:
                gc.enable()


_gc_pause = _GarbageCollectorPause()


class FrameHook:
    """Records the Python calls of this thread between `start` and `stop`.

    Attributes:
        codes: by identity, user code that ran, with its globals, and library code that it called, with None.
        objects: by identity, (parameter name, argument) of user functions; neither tensors nor constants.
        effect: the first side effect and its line; None if there was none.
        external_call: the first call whose result or effect may differ in another process (a C function that is not
            pure, a warning); None if there was none. Such programs are not stored in the persistent cache.
        effect_frames, external_frames: the stack at the first side effect, and at the first such call.
        known_codes: identities of the only user code that may run now, without side effects; None for any.
        frame_numbers: by identity of a frame of user code, its number, from 1 on; None: frames are not numbered.
        frame_codes: the codes of frames 1, 2, ...
        on_effect: called at each side effect, the first one and others; or None.
    """

    known_codes: set[int] | None = None
    frame_numbers: dict[int, int] | None = None
    on_effect: Callable[[], None] | None = None

    def __init__(self) -> None:
        self.codes: dict[int, tuple[types.CodeType, dict[str, Any] | None]] = {}
        self.objects: dict[int, tuple[str, Any]] = {}
        self.effect: str | None = None
        self.external_call: str | None = None
        self.effect_frames: tuple[BreakFrame, ...] = ()
        self.external_frames: tuple[BreakFrame, ...] = ()
        self._outer_profiler: Any = None
        self.frame_codes: list[types.CodeType] = []
        self._on, self._paused = False, 0
        self._finder: Any = None  # the frame of an import finder or of a callback of the collector, while it runs

    def start(self) -> None:
        """Begin recording."""
        self._state = global_state()
        _gc_pause.begin()
        self._outer_profiler = outer = sys.getprofile()
        if outer is not None and not callable(outer):  # cProfile's
            outer.disable()
        self._on = True
        sys.setprofile(self._call)

    def stop(self) -> None:
        """End recording; changes of global state count as side effects."""
        if not self._on:
            return
        self._on = False
        _gc_pause.end()
        outer = self._outer_profiler
        if outer is not None and not callable(outer):
            sys.setprofile(None)
            outer.enable()
        else:
            sys.setprofile(outer)
        for before, after, effect in zip(self._state, global_state(), _STATE_EFFECTS, strict=True):
            if before != after and self.effect is None:
                self.effect = effect if not self.codes else f"{effect} ({self._first_line()})"

    def _first_line(self) -> str:
        code = next(iter(self.codes.values()))[0]
        return f"{code.co_filename}:{code.co_firstlineno}"

    def numbered_frames(self) -> list[tuple[int, Any]]:
        """The frames of user code on the stack that have numbers, the outermost first."""
        found = []
        frame: Any = sys._getframe(1)
        numbers = self.frame_numbers or {}
        while frame is not None:
            number = numbers.get(id(frame))
            if number is not None and self.frame_codes[number - 1] is frame.f_code:
                found.append((number, frame))
            frame = frame.f_back
        return found[::-1]

    def add_object(self, name: str, thing: Any) -> None:
        """Record an argument of the call."""
        self.objects.setdefault(id(thing), (name, thing))

    def pause(self) -> None:
        """Suspend recording until the matching `resume`."""
        self._paused += 1
        if self._on and self._paused == 1:
            sys.setprofile(None)

    def resume(self) -> None:
        """Continue recording, if this ends the outermost pause."""
        self._paused -= 1
        if self._on and not self._paused:
            sys.setprofile(self._call)

    # ----- the profile function -----

    def _call(self, frame: Any, event: str, arg: Any) -> None:
        if self._finder is not None:
            if event == "return" and frame is self._finder:
                self._finder = None
        elif event == "call":
            code = frame.f_code
            known = _code_kinds.get(id(code))
            kind = _kind_of(frame) if known is None else known[1]
            if kind == _USER:
                if frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(_IMPORTING) and (
                        code.co_name != "<module>"):
                    self._finder = frame  # a user's import finder, not the function
                    return
                if gc.callbacks and any(getattr(each, "__code__", None) is code for each in gc.callbacks):
                    self._finder = frame  # the collector called it, not the function
                    return
                if self.known_codes is not None and id(code) not in self.known_codes:
                    raise SideEffect(f"{code.co_name} may have one")
                if id(code) not in self.codes:
                    self.codes[id(code)] = code, frame.f_globals
                if self.frame_numbers is not None:
                    self.frame_codes.append(code)
                    self.frame_numbers[id(frame)] = len(self.frame_codes)
                self._note_arguments(frame, code)
            elif kind == _LIBRARY:
                if id(code) not in self.codes and self._is_called(frame):
                    self.codes[id(code)] = code, None
            elif id(code) in _EFFECTS_BY_CODE:
                self._note_effect(frame, _EFFECTS_BY_CODE[id(code)])
        elif event == "c_call":
            name = arg.__name__
            if self.external_call is None and (name == "warn" or _kind_of(frame) != _INTERNAL) and not _is_pure(arg):
                self._note_external_call(frame, arg)
            if name in _EFFECT_NAMES and (
                    self.effect is None or self.known_codes is not None or self.on_effect is not None):
                self._note_effect_call(frame, arg)
            elif name in _READS and (self.effect is None or self.known_codes is not None):
                self._note_read(frame, arg)

    def _is_called(self, frame: Any) -> bool:
        """Whether the library function that begins here was called by user code."""
        caller = frame.f_back
        while caller is not None and _kind_of(caller) == _LIBRARY:
            if id(caller.f_code) in self.codes:
                return True
            caller = caller.f_back
        return caller is not None and _kind_of(caller) == _USER

    def _note_arguments(self, frame: Any, code: types.CodeType) -> None:
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *args and **kwargs
        if count:
            values = frame.f_locals
            for name in code.co_varnames[:count]:
                value = values.get(name)
                if not isinstance(value, _NOT_RECORDED) and id(value) not in self.objects:
                    self.objects[id(value)] = name, value

    def _note_external_call(self, frame: Any, function: Any) -> None:
        """Record a call of a C function that is not pure, if user code makes it."""
        if function.__name__ == "warn" or _kind_of(frame) == _USER or (
                _kind_of(frame) == _LIBRARY and self._is_called(frame)):
            self.external_call = f"a call of {function.__name__}()"
            self.external_frames = break_frames(frame)

    def _note_effect_call(self, frame: Any, function: Any) -> None:
        """Record a call of a C function whose name is in `_EFFECT_NAMES`, if it has side effects."""
        name, of = function.__name__, function.__self__
        if name.startswith("warn"):
            if getattr(of, "__name__", None) != "_warnings" or _kind_of(frame) == _INTERNAL:
                return  # PyTorch's programs do not repeat warnings of operators either
            effect = "a warning is issued"
        elif of is builtins or (isinstance(of, types.ModuleType) and of.__name__ in _SYSTEM_MODULES):
            effect = f"{name}() has a side effect, which a program does not repeat"
        elif isinstance(of, io.IOBase):
            effect = "a file is read or written"
        elif isinstance(of, random.Random):
            effect = "Python's random numbers are drawn"
        else:
            return
        if not (isinstance(of, random.Random) and _kind_of(frame) == _INTERNAL):
            self._note_effect(frame, effect)

    def _note_read(self, frame: Any, function: Any) -> None:
        """Record a call of a C function in `_READS` by user code: no guard is on what it returns."""
        owner, effect = _READS[function.__name__]
        of: Any = function.__self__
        if (of.__module__ if isinstance(of, type) else getattr(of, "__name__", "")) not in (
                owner, "nt" if owner == "posix" else owner):
            return
        above = frame
        while above is not None and (kind := _kind_of(above)) != _USER:
            name = above.f_code.co_filename
            if kind == _INTERNAL or name.startswith((_IMPORTING, *_RECURSION_GUARDS)):
                return
            above = above.f_back
        self._note_effect(frame, effect)

    def _note_effect(self, frame: Any, effect: str) -> None:
        """Record a side effect, unless it is one of a warning, of this package's caches, or of its imports."""
        above, is_imported = frame, False
        while above is not None and (kind := _kind_of(above)) != _USER:
            name = above.f_code.co_filename
            if name == _WARNINGS or name.startswith(_CACHING) or (is_imported and kind == _INTERNAL):
                return
            is_imported |= name.startswith(_IMPORTING)
            above = above.f_back
        if self.known_codes is not None and above is not None:
            raise SideEffect(effect)
        if self.on_effect is not None and above is not None:
            self.on_effect()
        if self.effect is None and above is not None:
            self.effect = f"{effect} ({above.f_code.co_filename}:{above.f_lineno})"
            self.effect_frames = break_frames(frame)


def _is_pure(function: Any) -> bool:
    """Whether the result of a C function depends on its arguments only, in every process."""
    of = getattr(function, "__self__", None)
    if isinstance(of, types.ModuleType):
        return of.__name__ in _PURE_MODULES and function.__name__ not in _IMPURE_BUILTINS
    if isinstance(of, type):  # a class method
        return of in _PURE_CLASSES or function.__name__ == "__new__" or of.__module__ == "builtins"
    return of is None or isinstance(of, _PURE_CLASSES) or type(of).__module__ in ("itertools", "_operator", "builtins")


_STATE_EFFECTS = ("grad mode stays switched", "inference mode stays switched", "the default dtype stays switched",
                  "Python's random numbers are drawn", "NumPy's random numbers are drawn")


def global_state() -> tuple[Any, ...]:
    """Return the global state that a call must leave unchanged, in the order of `_STATE_EFFECTS`."""
    return (grad_mode.get(), inference.get(), dtypes.get_default_dtype(), random.getstate(), _numpy_random_state())


def _numpy_random_state() -> tuple[Any, ...] | None:
    """Return the state of NumPy's global generator; None if `numpy.random` is not imported."""
    if "numpy.random" not in sys.modules:
        return None
    name, keys, *rest = np.random.get_state(legacy=True)
    return name, np.asarray(keys).tobytes(), *rest


__all__ = ["FrameHook", "SideEffect", "global_state", "is_internal_frame", "is_own_function", "is_stdlib_file",
           "is_user_code"]
