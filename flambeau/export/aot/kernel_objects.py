"""Kernels as object files: the code libraries of a plan, with symbols that are unique in a program.

A library's functions are called `body` or `epilogue` in every library. Here each name gets a prefix from the library's
recipe and the target, and is hidden, so that several libraries can be linked into one file. Object code is kept in the
persistent cache.
"""

from __future__ import annotations

import hashlib
import re

from ...runtime import object_emission, target
from ...runtime.cache_store import CODE
from ...runtime.compilation import Library, Symbol

_DEFINED = re.compile(r'^(?:define [^@\n]*|)@("?)([\w.$-]+)\1(?=\(| =)', re.MULTILINE)
_LOCAL = re.compile(r"^define (?!internal|private|hidden)", re.MULTILINE)


def symbol_name(symbol: Symbol) -> str:
    """The name of a kernel's function in object files."""
    return f"{_prefix(symbol.library)}.{symbol.name}"


def _prefix(library: Library) -> str:
    return "k" + hashlib.sha256("\n".join((library.recipe, *map(str, target.host()))).encode()).hexdigest()[:20]


def kernel_object(library: Library) -> bytes:
    """The object file of a library for the current target."""
    key = CODE.key("object file", library.recipe, *map(str, target.host()))
    code = CODE.read(key)
    if code is None:
        code = object_emission.emit_object(_renamed(library.ir, _prefix(library), library.names), library.passes)
        CODE.write(key, code)
    return code


def _renamed(source: str, prefix: str, exported: tuple[str, ...]) -> str:
    """The module with a prefix before each name that it defines; functions that are not exported are internal."""
    names = {name for _, name in _DEFINED.findall(source) if not name.startswith("llvm.")}
    pattern = re.compile('@("?)(' + "|".join(sorted(map(re.escape, names), key=len, reverse=True)) + r")\1(?![\w.$-])")
    source = pattern.sub(lambda match: f'@"{prefix}.{match[2]}"', source)

    def visibility(match: re.Match[str]) -> str:
        line = source[match.start() : source.index("(", match.start())]
        is_exported = any(line.endswith(f'@"{prefix}.{name}"') for name in exported)
        return "define hidden " if is_exported else "define internal "

    return _LOCAL.sub(visibility, source)


__all__ = ["kernel_object", "symbol_name"]
