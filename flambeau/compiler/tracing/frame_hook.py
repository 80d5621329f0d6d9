"""What runs while a function is written down: which code of the user's, on what objects, and what it does to the world.

Python tells of each call by `sys.setprofile`. Code of this package, of NumPy and of the standard library is not looked
at, except for what the user's code calls of the latter. A program repeats nothing of what Python does besides tensors,
so prints, files and Python's random numbers are *effects*: a run with one cannot be replayed.
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
from typing import Any

import numpy as np

from ... import dtypes
from ..._tensor import Tensor
from ..._tensor.creation.random import Generator
from ...engine.grad_mode import grad_mode, inference

_USER, _LIBRARY, _FOREIGN = range(3)
_NAME = __name__.partition(".")[0]
_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(__file__))) + os.sep
_SILENT = tuple(_PACKAGE + folder + os.sep for folder in ("compiler", "ir", "codegen", "runtime", "backends"))
_NUMPY = os.path.dirname(np.__file__) + os.sep
_STANDARD = sysconfig.get_paths()["stdlib"] + os.sep
_SITES = tuple(sysconfig.get_paths()[kind] + os.sep for kind in ("purelib", "platlib"))
#: what this package compiles with, which may happen while a function is written down
_TOOLS = tuple(folder + "llvmlite" + os.sep for folder in _SITES)
_WARNINGS = warnings.__file__
_IMPORTING = "<frozen importlib"

#: C functions by name, if they are of the module or the class that is looked for beside
_CALLS = frozenset({
    "print", "input", "open", "breakpoint", "write", "writelines", "read", "readline", "readlines", "readinto", "seek",
    "truncate", "random", "getrandbits", "seed", "setstate", "sample", "system", "mkdir", "remove", "unlink", "rename",
    "rmdir", "replace", "putenv", "unsetenv", "urandom", "fork_exec", "send", "sendall", "recv"})
_SYSTEM = frozenset({"posix", "nt", "_posixsubprocess", "_winapi"})
#: modules whose C functions give what their arguments say, and classes whose methods do
_PURE = frozenset({"builtins", "math", "cmath", "_operator", "itertools", "_functools", "_collections", "_bisect",
                   "_heapq", "_struct", "_abc", "_weakref", "_thread", "_contextvars", "_typing", "_sre", "_string",
                   "numpy._core._multiarray_umath"})
_PLAIN = (str, bytes, bytearray, list, dict, tuple, set, frozenset, int, float, complex, range, deque, np.ndarray,
          np.generic, np.dtype, contextvars.ContextVar, types.MappingProxyType, types.GeneratorType, re.Pattern,
          re.Match, slice, memoryview, weakref.ref, functools.partial, type(threading.Lock()), type(threading.RLock()))
#: C functions of those modules that do not: identities and hashes of texts are others in each process
_OTHERS = frozenset({"id", "hash", "input", "open", "breakpoint"})
#: what says all by its identity, or is looked at elsewhere; exceptions hold the frames that they went through, and with
#: them graphs that end during the run otherwise
_SETTLED = (bool, int, float, complex, str, bytes, type(None), Tensor, types.BuiltinFunctionType, BaseException)
_STREAM = "the stream of random numbers is set"
#: functions of this package that do what a program does not repeat, by their code
_TOLD = {id(f.__code__): _STREAM for f in (Generator.manual_seed, Generator.seed, Generator.set_state)}
_signatures: dict[int, tuple[types.CodeType, int]] = {}


def _kind_of(frame: Any) -> int:
    """Whose the code of a frame is: the user's, the standard library's, or this package's and NumPy's."""
    code = frame.f_code
    known = _signatures.get(id(code))
    if known is None:
        known = _signatures[id(code)] = code, _kind_of_code(code.co_filename, frame.f_globals.get("__name__") or "")
    return known[1]


def _kind_of_code(file: str, module: str) -> int:
    if file.startswith((_PACKAGE, _NUMPY, *_TOOLS)):
        return _FOREIGN
    if file.startswith("<") and not file.startswith("<doctest"):  # written by a program
        if module.partition(".")[0] in (_NAME, "numpy"):
            return _FOREIGN
        if module.startswith("namedtuple_"):
            return _LIBRARY
    return _LIBRARY if is_stdlib_file(file) else _USER


def is_stdlib_file(file: str) -> bool:
    """Whether a file is of the standard library."""
    return file.startswith("<frozen") or (file.startswith(_STANDARD) and not file.startswith(_SITES))


def is_own_function(rule: Any) -> bool:
    """Whether a function is of this package: what it does while it computes arrays is known."""
    return getattr(rule, "__module__", "").partition(".")[0] == _NAME


def is_user_code(code: types.CodeType) -> bool:
    """Whether a piece of code that was watched is the user's."""
    return id(code) in _signatures and _signatures[id(code)][1] == _USER


class _Collector:
    """The garbage collector waits while anybody watches: what it calls belongs to no function that is captured."""

    def __init__(self) -> None:
        self._lock, self._watching, self._was_on = threading.Lock(), 0, False

    def wait(self) -> None:
        """From now on."""
        with self._lock:
            if not self._watching:
                self._was_on = gc.isenabled()
                gc.disable()
            self._watching += 1

    def go_on(self) -> None:
        """Unless somebody else watches."""
        with self._lock:
            self._watching -= 1
            if not self._watching and self._was_on:
                gc.enable()


_collector = _Collector()


class FrameHook:
    """Watches this thread while it is on.

    Attributes:
        codes: the user's code that ran, with its globals, by identity.
        objects: what it was handed: arguments that are neither tensors nor plain, by identity.
        effect: the first thing that was done to the world, and the line; None where there is none.
        asked_outside: the first thing whose answer, or whose effect, may be another in another process though nothing
            looks different there: what the user's code asked of the system, a warning; None where there is none.
    """

    def __init__(self) -> None:
        self.codes: dict[int, tuple[types.CodeType, dict[str, Any] | None]] = {}
        self.objects: dict[int, tuple[str, Any]] = {}
        self.effect: str | None = None
        self.external_call: str | None = None
        self._before: Any = None
        self._on, self._paused = False, 0
        self._finder: Any = None  # the frame of what Python asks for a module, while it runs

    def start(self) -> None:
        """Watch from now on."""
        self._state = _state()
        _collector.wait()
        self._before = before = sys.getprofile()
        if before is not None and not callable(before):  # cProfile's
            before.disable()
        self._on = True
        sys.setprofile(self._call)

    def stop(self) -> None:
        """Watch no longer, and see what is not as it was."""
        if not self._on:
            return
        self._on = False
        _collector.go_on()
        before = self._before
        if before is not None and not callable(before):
            sys.setprofile(None)
            before.enable()
        else:
            sys.setprofile(before)
        for mine, now, what in zip(self._state, _state(), _STATES, strict=True):
            if mine != now and self.effect is None:
                self.effect = what if not self.codes else f"{what} ({self._first_line()})"

    def _first_line(self) -> str:
        code = next(iter(self.codes.values()))[0]
        return f"{code.co_filename}:{code.co_firstlineno}"

    def hand(self, name: str, thing: Any) -> None:
        """Take note of something that is given to the run."""
        self.objects.setdefault(id(thing), (name, thing))

    def pause(self) -> None:
        """See nothing for a while."""
        self._paused += 1
        if self._on and self._paused == 1:
            sys.setprofile(None)

    def resume(self) -> None:
        """See again, if this ends the outermost pause."""
        self._paused -= 1
        if self._on and not self._paused:
            sys.setprofile(self._call)

    # ----- what Python tells -----

    def _call(self, frame: Any, event: str, arg: Any) -> None:
        if self._finder is not None:
            if event == "return" and frame is self._finder:
                self._finder = None
        elif event == "call":
            code = frame.f_code
            known = _signatures.get(id(code))
            kind = _kind_of(frame) if known is None else known[1]
            if kind == _USER:
                if frame.f_back is not None and frame.f_back.f_code.co_filename.startswith(_IMPORTING) and (
                        code.co_name != "<module>"):
                    self._finder = frame  # it looks for a module, for whoever imports one
                    return
                if id(code) not in self.codes:
                    self.codes[id(code)] = code, frame.f_globals
                self._handed(frame, code)
            elif kind == _LIBRARY:
                if id(code) not in self.codes and self._is_called(frame):
                    self.codes[id(code)] = code, None
            elif id(code) in _TOLD:
                self._does(frame, _TOLD[id(code)])
        elif event == "c_call":
            name = arg.__name__
            if self.external_call is None and (name == "warn" or _kind_of(frame) != _FOREIGN) and not _says_all(arg):
                self._asked(frame, arg)
            if name in _CALLS and self.effect is None:
                self._called(frame, arg)

    def _is_called(self, frame: Any) -> bool:
        """Whether the user's code calls the library's that begins here."""
        caller = frame.f_back
        while caller is not None and _kind_of(caller) == _LIBRARY:
            if id(caller.f_code) in self.codes:
                return True
            caller = caller.f_back
        return caller is not None and _kind_of(caller) == _USER

    def _handed(self, frame: Any, code: types.CodeType) -> None:
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 4) + bool(code.co_flags & 8)  # *args and **kwargs
        if count:
            values = frame.f_locals
            for name in code.co_varnames[:count]:
                value = values.get(name)
                if not isinstance(value, _SETTLED) and id(value) not in self.objects:
                    self.objects[id(value)] = name, value

    def _asked(self, frame: Any, function: Any) -> None:
        """A C function was called that does not depend on its arguments alone."""
        if function.__name__ == "warn" or _kind_of(frame) == _USER or (
                _kind_of(frame) == _LIBRARY and self._is_called(frame)):
            self.external_call = f"a call of {function.__name__}()"

    def _called(self, frame: Any, function: Any) -> None:
        """A C function was called whose name is one of those that do something."""
        name, of = function.__name__, function.__self__
        if of is builtins:
            what = f"{name}() does something that a program does not repeat"
        elif isinstance(of, io.IOBase):
            what = "a file is read or written"
        elif isinstance(of, random.Random):
            what = "Python's random numbers are drawn"
        elif isinstance(of, types.ModuleType) and of.__name__ in _SYSTEM:
            what = f"{name}() does something that a program does not repeat"
        else:
            return
        if not (isinstance(of, random.Random) and _kind_of(frame) == _FOREIGN):
            self._does(frame, what)

    def _does(self, frame: Any, what: str) -> None:
        above, is_imported = frame, False
        while above is not None and (kind := _kind_of(above)) != _USER:
            name = above.f_code.co_filename
            if name == _WARNINGS or name.startswith(_SILENT) or (is_imported and kind == _FOREIGN):
                return  # a warning is shown once; what this package keeps on disk, or imports, is its own matter
            is_imported |= name.startswith(_IMPORTING)
            above = above.f_back
        if self.effect is None and above is not None:
            self.effect = f"{what} ({above.f_code.co_filename}:{above.f_lineno})"


def _says_all(function: Any) -> bool:
    """Whether a C function gives what its arguments say, in every process."""
    of = getattr(function, "__self__", None)
    if isinstance(of, types.ModuleType):
        return of.__name__ in _PURE and function.__name__ not in _OTHERS
    if isinstance(of, type):  # of a class
        return of in _PLAIN or function.__name__ == "__new__" or of.__module__ == "builtins"
    return of is None or isinstance(of, _PLAIN) or type(of).__module__ in ("itertools", "_operator", "builtins")


_STATES = ("grad mode stays switched", "inference mode stays switched", "the default dtype stays switched",
           "Python's random numbers are drawn", "NumPy's random numbers are drawn")


def _state() -> tuple[Any, ...]:
    """What must be the same after a run."""
    return (grad_mode.get(), inference.get(), dtypes.get_default_dtype(), random.getstate(), _numpys_stream())


def _numpys_stream() -> tuple[Any, ...] | None:
    """Where NumPy's random numbers are; None while nobody has asked for any, and they begin somewhere."""
    if "numpy.random" not in sys.modules:
        return None
    name, keys, *rest = np.random.get_state(legacy=True)
    return name, np.asarray(keys).tobytes(), *rest


__all__ = ["FrameHook", "is_own_function", "is_stdlib_file", "is_user_code"]
