"""Libraries of generated code: looked up in memory, then in the persistent cache, else compiled by LLVM.

A *recipe* is a short text that determines the code (an expression, dtypes, a layout). With the sources of code
generation, the processor and LLVM's version it is the key of the persistent cache, so a process that finds its code
there generates no IR at all. Calls through ctypes release the GIL.

`FLAMBEAU_DEBUG=llvm,asm` prints the code that is compiled (`debug_output`).
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
_library_numbers = itertools.count()


class Library:
    """The compiled functions of one module.

    Attributes:
        recipe: the text that determines the code.
        number: how many libraries this process had before it.
        origin: "disk" or "compiled".
        seconds: the time that reading or compiling, and linking took.
        ir: the LLVM IR, as generated.
        asm: the assembly.
    """

    def __init__(self, recipe: str, names: tuple[str, ...], generate: Callable[[], str] | None,
                 passes: bool | str = True) -> None:
        self.recipe, self.names = recipe, names
        self.number = len(_loaded)
        self.origin, self.seconds = "disk", 0.0
        self._generate, self._passes = generate, passes
        self._lock = threading.RLock()
        self._code: bytes | None = None  # object code that is not linked yet
        self._addresses: dict[str, int] | None = None

    def _link(self, code: bytes) -> dict[str, int]:
        try:
            return object_loader.load(code, self.names)
        except object_loader.UnsupportedObject:
            pass
        import llvmlite.binding as llvm

        with _lock:
            builder = llvm.JITLibraryBuilder()
            builder.add_object_img(code)
            builder.add_current_process()
            for name in self.names:
                builder.export_symbol(name)
            tracker = builder.link(_linker(), f"flambeau.{next(_library_numbers)}")
            tracker._owned = True  # the code is never unloaded
            return {name: int(tracker[name]) for name in self.names}

    def link_cached(self) -> bool:
        """Link the code if the persistent cache has it; whether it did."""
        code = self._read_cached()
        if code is None:
            return False
        start = perf_counter()
        try:
            self._addresses = self._link(code)
        except RuntimeError:  # undamaged, but no object code that links here
            CODE.discard(self._cache_key)
            return False
        self.seconds += perf_counter() - start
        return True

    def set_generator(self, generate: Callable[[], str], passes: bool | str) -> None:
        """Set the function that generates the IR, which a library loaded by its recipe alone does not have."""
        if self._generate is None:
            self._generate, self._passes = generate, passes

    def prepare(self) -> bytes:
        """Read or compile the object code, which is linked later."""
        with self._lock:
            if self._code is None and self._addresses is None:
                start = perf_counter()
                self._code = self._read_cached() or self._compile()
                self.seconds += perf_counter() - start
            return self._code or b""

    def addresses(self) -> dict[str, int]:
        """The addresses of the functions, compiled and linked if they are not yet."""
        addresses = self._addresses
        if addresses is None:
            with self._lock:
                addresses = self._addresses
                if addresses is None:
                    code = self.prepare()
                    start = perf_counter()
                    try:
                        addresses = self._link(code)
                    except RuntimeError:  # undamaged, but no object code that links here
                        if self.origin != "disk":
                            raise
                        CODE.discard(self._cache_key)
                        addresses = self._link(self._compile())
                    self._addresses, self._code = addresses, None
                    self.seconds += perf_counter() - start
        return addresses

    @cached_property
    def _cache_key(self) -> str:
        return CODE.key(self.recipe, *map(str, target.host()))

    def _read_cached(self) -> bytes | None:
        return None if debug_output.is_enabled("llvm", "asm") else CODE.read(self._cache_key)

    def _compile(self) -> bytes:
        self.origin = "compiled"
        source = self.ir
        if debug_output.is_enabled("llvm", "asm"):
            title = f"; {self.recipe}".replace("\n", "\n; ")
            tm = target.machine()
            module = target.optimize(source, tm, self._passes)
            if debug_output.is_enabled("llvm"):
                debug_output.show(f"{title}\n{module}")
            if debug_output.is_enabled("asm"):
                debug_output.show(f"{title}\n{tm.emit_assembly(module)}")
        code = object_emission.emit_object(source, self._passes)
        CODE.write(self._cache_key, code)
        return code

    def address(self, name: str) -> int:
        """The address of a function."""
        return self.addresses()[name]

    def symbol(self, name: str) -> Symbol:
        """A reference to a function that is resolved to an address later."""
        return Symbol(self, name)

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """A function to call through ctypes, which releases the GIL during the call."""
        return ctypes.CFUNCTYPE(result, *arguments)(self.address(name))

    @property
    def passes(self) -> bool | str:
        """The optimization of the code: see `load`."""
        return self._passes

    @property
    def ir(self) -> str:
        if self._generate is None:
            raise RuntimeError(f"there is no IR of {self.recipe!r}: its object code came from the persistent cache")
        return self._generate()

    @property
    def asm(self) -> str:
        tm = target.machine()
        return tm.emit_assembly(target.optimize(self.ir, tm, self._passes))


class Symbol(NamedTuple):
    """A function of a library whose compilation may not have finished."""

    library: Library
    name: str

    @property
    def address(self) -> int:
        """The address; waits for the compilation."""
        return self.library.address(self.name)


#: a 64-bit word of a plan: a number, or a function, which becomes its address
Word = int | Symbol


@cache
def _linker() -> Any:
    """The ORC JIT that links object code for the rest of the process."""
    import llvmlite.binding as llvm

    linker = llvm.create_lljit_compiler(target.machine())
    linker._owned = True  # threads may still wait in generated code at interpreter shutdown
    return linker


_loaded: dict[str, Library] = {}


def library_count() -> int:
    """How many libraries this process has, which is the `number` of the next one."""
    return len(_loaded)


def load_cached(recipe: str, names: tuple[str, ...]) -> Library | None:
    """The library of this recipe, if this process or the persistent cache has it; else None."""
    library = _loaded.get(recipe)
    if library is None:
        cached = Library(recipe, names, None)
        if not cached.link_cached():
            return None
        with _lock:
            library = _loaded.setdefault(recipe, cached)
    return library


def load(recipe: str, names: tuple[str, ...], generate: Callable[[], str], passes: bool | str = True) -> Library:
    """The library of this recipe with the functions `names`.

    Args:
        recipe: the text that determines the code.
        names: the functions that the library exports.
        generate: returns the LLVM IR; called only if neither this process nor the persistent cache has the code.
        passes: False: no optimization, which is several times as fast. "few": a short pipeline (`target.pipeline`).
    """
    library = _loaded.get(recipe)
    if library is None:
        with _lock:
            library = _loaded.get(recipe)
            if library is None:
                library = _loaded[recipe] = Library(recipe, names, generate, passes)
        with _lock:  # the pool may belong to another thread's block, which must not end meanwhile
            if _background_pools:
                _background_pools[-1].submit(library.prepare)
    library.set_generator(generate, passes)
    return library


_background_pools: list[Executor] = []
_switch_intervals: list[float] = []

#: the interpreter's thread switch interval in seconds while several threads compile: each needs the GIL for moments
#: only, and a processor idles while it waits
SWITCH_INTERVAL = 0.0005


@contextmanager
def compile_in_background() -> Iterator[None]:
    """A block whose libraries are compiled by other threads; requesting an address waits for its library."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max(1, limits.count()), "flambeau compiler") as pool:
        with _lock:
            _background_pools.append(pool)
            _switch_intervals.append(sys.getswitchinterval())
            sys.setswitchinterval(SWITCH_INTERVAL)
        try:
            yield
        finally:
            with _lock:
                _background_pools.remove(pool)
                interval = _switch_intervals.pop()
                if not _background_pools:
                    sys.setswitchinterval(interval)
