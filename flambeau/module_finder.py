"""Finder of this package's modules: fewer system calls a module than `importlib`'s finder of files.

`importlib.machinery.FileFinder` looks for extension modules first, reads the folder's time and composes the path of the
bytecode twice. Modules of this package are files of Python, and `import flambeau` needs more than a hundred of them: a
quarter of its time went into that. What this finder does not know it leaves to `importlib`: archives, sources without
bytecode or with older one, bytecode that is elsewhere or was compiled under another path.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import MAGIC_NUMBER
from types import CodeType, ModuleType

_SUFFIX = f".{sys.implementation.cache_tag}.pyc"
#: what bytecode begins with that was compiled from a source of a certain time and size
_HEADER = MAGIC_NUMBER + bytes(4)


class BytecodeLoader(SourceFileLoader):
    """A loader of a module's source, or of its bytecode where that is as new.

    Args:
        name: the module's.
        path: of the source.
        bytecode: the bytecode's path.
        status: `os.stat` of the source.
    """

    def __init__(self, name: str, path: str, bytecode: str, status: os.stat_result) -> None:
        super().__init__(name, path)
        self._bytecode = bytecode
        self._stamp = (int(status.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little") + (
            status.st_size & 0xFFFFFFFF).to_bytes(4, "little")

    def get_code(self, fullname: str) -> CodeType | None:
        """The module's code; compiled, and the bytecode written, where there is none or an older one."""
        try:
            with open(self._bytecode, "rb", 0) as file:
                data = file.read()
        except OSError:
            return super().get_code(fullname)
        if data[:8] != _HEADER or data[8:16] != self._stamp:
            return super().get_code(fullname)
        code: CodeType = marshal.loads(memoryview(data)[16:])
        return code if code.co_filename == self.path else super().get_code(fullname)


class ModuleFinder:
    """A finder, in `sys.meta_path`, of the modules of one package that is a folder.

    Args:
        package: its name.
    """

    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."

    def find_spec(self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> (
            ModuleSpec | None):
        """The specification of a module below the package; None if it is none, or no file."""
        if path.__class__ is not list or len(path) != 1 or not fullname.startswith(self._prefix):
            return None
        name = fullname.rpartition(".")[2]
        folder: str = path[0]
        locations = None
        source = f"{folder}/{name}.py"
        try:
            status = os.stat(source)
        except OSError:
            folder = f"{folder}/{name}"
            source, name, locations = f"{folder}/__init__.py", "__init__", [folder]
            try:
                status = os.stat(source)
            except OSError:
                return None
        bytecode = f"{folder}/__pycache__/{name}{_SUFFIX}"
        spec = ModuleSpec(fullname, BytecodeLoader(fullname, source, bytecode, status), origin=source)
        spec.submodule_search_locations = locations
        spec.has_location = True
        spec.cached = bytecode
        return spec


def install() -> None:
    """Use the finder for this package, where bytecode lies beside its source."""
    if os.sep == "/" and sys.pycache_prefix is None and not sys.flags.optimize and sys.implementation.cache_tag:
        sys.meta_path.insert(0, ModuleFinder(__name__.partition(".")[0]))


__all__ = ["BytecodeLoader", "ModuleFinder", "install"]
