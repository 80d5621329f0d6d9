"""From a recipe to functions that ctypes calls: machine code is looked for in memory, then on disk, then made.

A *recipe* is a short text that determines the code (an expression, dtypes, a layout). Together with the sources of
this package, the processor and LLVM's version it names the entry of the disk cache, so that a process that finds
its code there writes no intermediate code at all. Calls through ctypes release the interpreter's lock.

`FLAMBEAU_DEBUG=llvm,asm` prints what is compiled to stderr (`debugging`).
"""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

from ..kernels import threads as limits
from . import debug_output, object_emission, object_loader, target
from .cache_store import CODE

if TYPE_CHECKING:
    from concurrent.futures import Executor

_lock = threading.RLock()
_numbers = itertools.count()


class Library:
    """The compiled functions of one module.

    Attributes:
        recipe: the text that it was made from.
        number: how many libraries this process had before it.
        origin: "disk", or "compiled".
        seconds: how long it took to find or to compile it, and to link it.
        ir: the intermediate code, as generated.
        asm: the machine's instructions.
    """

    def __init__(self, recipe: str, names: tuple[str, ...], generate: Callable[[], str] | None,
                 passes: bool | str = True) -> None:
        self.recipe, self.names = recipe, names
        self.number = len(_loaded)
        self.origin, self.seconds = "disk", 0.0
        self._generate, self._passes = generate, passes
        self._lock = threading.RLock()
        self._code: bytes | None = None  # until it is linked
        self._addresses: dict[str, int] | None = None

    def _link(self, code: bytes) -> dict[str, int]:
        try:
            return object_loader.load(code, self.names)
        except object_loader.NotPlain:
            pass
        import llvmlite.binding as llvm

        with _lock:
            builder = llvm.JITLibraryBuilder()
            builder.add_object_img(code)
            builder.add_current_process()
            for name in self.names:
                builder.export_symbol(name)
            tracker = builder.link(_linker(), f"flambeau.{next(_numbers)}")
            tracker._owned = True  # code lives as long as the process
            return {name: int(tracker[name]) for name in self.names}

    def is_on_disk(self) -> bool:
        """Whether the code is kept on disk; then it is linked."""
        code = self._found()
        if code is None:
            return False
        start = perf_counter()
        try:
            self._addresses = self._link(code)
        except RuntimeError:  # whole, but not what this machine links
            CODE.discard(self._entry)
            return False
        self.seconds += perf_counter() - start
        return True

    def know(self, generate: Callable[[], str], passes: bool | str) -> None:
        """Learn what writes the code, if that was not known: what is found on disk by its recipe runs without."""
        if self._generate is None:
            self._generate, self._passes = generate, passes

    def prepare(self) -> bytes:
        """Find or compile the object code, unless it is there already; what is linked later."""
        with self._lock:
            if self._code is None and self._addresses is None:
                start = perf_counter()
                self._code = self._found() or self._translated()
                self.seconds += perf_counter() - start
            return self._code or b""

    def addresses(self) -> dict[str, int]:
        """Where the functions lie in memory, once they are compiled and linked."""
        found = self._addresses
        if found is None:
            with self._lock:
                found = self._addresses
                if found is None:
                    code = self.prepare()
                    start = perf_counter()
                    try:
                        found = self._link(code)
                    except RuntimeError:  # whole, but not what this machine links
                        if self.origin != "disk":
                            raise
                        CODE.discard(self._entry)
                        found = self._link(self._translated())
                    self._addresses, self._code = found, None
                    self.seconds += perf_counter() - start
        return found

    @cached_property
    def _entry(self) -> str:
        return CODE.key(self.recipe, *map(str, target.host()))

    def _found(self) -> bytes | None:
        return None if debug_output.wanted("llvm", "asm") else CODE.read(self._entry)

    def _translated(self) -> bytes:
        self.origin = "compiled"
        source = self.ir
        if debug_output.wanted("llvm", "asm"):
            title = f"; {self.recipe}".replace("\n", "\n; ")
            tm = target.machine()
            module = target.optimize(source, tm, self._passes)
            if debug_output.wanted("llvm"):
                debug_output.show(f"{title}\n{module}")
            if debug_output.wanted("asm"):
                debug_output.show(f"{title}\n{tm.emit_assembly(module)}")
        code = object_emission.object_code(source, self._passes)
        CODE.write(self._entry, code)
        return code

    def address(self, name: str) -> int:
        """Where a function lies in memory."""
        return self.addresses()[name]

    def symbol(self, name: str) -> Symbol:
        """A function by its name, of which nobody needs to know yet where it lies."""
        return Symbol(self, name)

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """A function to call; the interpreter's lock is released meanwhile."""
        return ctypes.CFUNCTYPE(result, *arguments)(self.address(name))

    @property
    def ir(self) -> str:
        if self._generate is None:
            raise RuntimeError(f"nobody knows how the code of {self.recipe!r} was written, which was found on disk")
        return self._generate()

    @property
    def asm(self) -> str:
        tm = target.machine()
        return tm.emit_assembly(target.optimize(self.ir, tm, self._passes))


class Symbol(NamedTuple):
    """A function of a library that may still be compiled."""

    library: Library
    name: str

    @property
    def address(self) -> int:
        """Where it lies in memory, once it does."""
        return self.library.address(self.name)


#: a number, or a function whose address stands for it once there is one
Word = int | Symbol


@cache
def _linker() -> Any:
    """What puts object code into this process; its code lives as long as the process."""
    import llvmlite.binding as llvm

    linker = llvm.create_lljit_compiler(target.machine())
    linker._owned = True  # threads may still wait in compiled code while the interpreter takes things down
    return linker


_loaded: dict[str, Library] = {}


def count() -> int:
    """How many libraries this process has: those that come later have this number, or a higher one."""
    return len(_loaded)


def kept(recipe: str, names: tuple[str, ...]) -> Library | None:
    """The library of this recipe, if this process has it or its code is on disk."""
    library = _loaded.get(recipe)
    if library is None:
        found = Library(recipe, names, None)
        if not found.is_on_disk():
            return None
        with _lock:
            library = _loaded.setdefault(recipe, found)
    return library


def load(recipe: str, names: tuple[str, ...], generate: Callable[[], str], passes: bool | str = True) -> Library:
    """The library of this recipe, whose functions are `names`; `generate` writes its code where none is kept.

    `passes` False: the code is as it shall be, and only translated, which is several times as quick. "few": only what
    plain loops need (`target.optimize`).
    """
    library = _loaded.get(recipe)
    if library is None:
        with _lock:
            library = _loaded.get(recipe)
            if library is None:
                library = _loaded[recipe] = Library(recipe, names, generate, passes)
        with _lock:  # another thread's block, whose pool this may be, must not end meanwhile
            if _ahead:
                _ahead[-1].submit(library.prepare)
    library.know(generate, passes)
    return library


_ahead: list[Executor] = []
_intervals: list[float] = []

#: seconds after which the interpreter goes over to another thread while several compile: each of them asks for it for
#: moments only, and a processor is idle while it waits
INTERVAL = 0.0005


@contextmanager
def ahead() -> Iterator[None]:
    """A block whose libraries are compiled by other threads meanwhile: who asks for an address waits for it."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max(1, limits.count()), "flambeau compiler") as pool:
        with _lock:
            _ahead.append(pool)
            _intervals.append(sys.getswitchinterval())
            sys.setswitchinterval(INTERVAL)
        try:
            yield
        finally:
            with _lock:
                _ahead.remove(pool)
                usual = _intervals.pop()
                if not _ahead:
                    sys.setswitchinterval(usual)
