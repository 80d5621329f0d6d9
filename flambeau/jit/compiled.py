"""From a recipe to functions that ctypes calls: machine code is looked for in memory, then on disk, then made.

A *recipe* is a short text that determines the code (an expression, dtypes, a layout). Together with the sources of
this package, the processor and LLVM's version it names the entry of the disk cache, so that a process that finds
its code there writes no intermediate code at all. Calls through ctypes release the interpreter's lock.

`FLAMBEAU_DEBUG=ir,asm` prints what is compiled to stderr.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from . import cache as disk
from . import target

_lock = threading.RLock()
_numbers = itertools.count()


class Library:
    """The compiled functions of one module.

    Attributes:
        recipe: the text that it was made from.
        ir: the intermediate code, as generated.
        asm: the machine's instructions.
    """

    def __init__(self, recipe: str, names: tuple[str, ...], generate: Callable[[], str], code: bytes) -> None:
        import llvmlite.binding as llvm

        self.recipe = recipe
        self._generate = generate
        builder = llvm.JITLibraryBuilder()
        builder.add_object_img(code)
        builder.add_current_process()
        for name in names:
            builder.export_symbol(name)
        tracker = builder.link(_linker(), f"flambeau.{next(_numbers)}")
        tracker._owned = True  # code lives as long as the process
        self._addresses = {name: int(tracker[name]) for name in names}

    def address(self, name: str) -> int:
        """Where a function lies in memory."""
        return self._addresses[name]

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """A function to call; the interpreter's lock is released meanwhile."""
        return ctypes.CFUNCTYPE(result, *arguments)(self._addresses[name])

    @property
    def ir(self) -> str:
        return self._generate()

    @property
    def asm(self) -> str:
        tm = target.machine()
        return tm.emit_assembly(target.optimize(self.ir, tm))


@cache
def _linker() -> Any:
    """What puts object code into this process; its code lives as long as the process."""
    import llvmlite.binding as llvm

    linker = llvm.create_lljit_compiler(target.machine())
    linker._owned = True  # threads may still wait in compiled code while the interpreter takes things down
    return linker


@cache
def _generator() -> str:
    """A hash of the sources that turn recipes into code."""
    folder = Path(__file__).parent
    return disk.key(*(path.name + path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py"))))


_loaded: dict[str, Library] = {}


def load(recipe: str, names: tuple[str, ...], generate: Callable[[], str]) -> Library:
    """The library of this recipe, whose functions are `names`; `generate` writes its code where none is kept."""
    library = _loaded.get(recipe)
    if library is not None:
        return library
    with _lock:
        library = _loaded.get(recipe)
        if library is None:
            library = _loaded[recipe] = _load(recipe, names, generate)
    return library


def _load(recipe: str, names: tuple[str, ...], generate: Callable[[], str]) -> Library:
    shown = os.environ.get("FLAMBEAU_DEBUG", "").split(",")
    entry = disk.key(recipe, _generator(), *map(str, target.host()))
    code = None if "ir" in shown or "asm" in shown else disk.read(entry)
    if code is not None:
        try:
            return Library(recipe, names, generate, code)
        except RuntimeError:  # whole, but not what this machine links
            disk.discard(entry)
    source = generate()
    tm = target.machine()
    module = target.optimize(source, tm)
    if "ir" in shown:
        print(f"; {recipe}\n{module}".replace("\n", "\n; ", recipe.count("\n")), file=sys.stderr)
    if "asm" in shown:
        print(tm.emit_assembly(module), file=sys.stderr)
    code = tm.emit_object(module)
    disk.write(entry, code)
    return Library(recipe, names, generate, code)
