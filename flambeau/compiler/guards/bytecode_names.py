"""Names in bytecode: the globals, attributes and imported modules that a code object may read or write.

They are collected from all instructions, whichever branch runs.
"""

from __future__ import annotations

import dis
import types
from typing import NamedTuple

_GLOBAL = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "IMPORT_FROM"})
#: names with which code reads attributes whose names are not in its instructions
_REFLECTION = frozenset({"globals", "getattr", "setattr", "hasattr", "delattr", "vars", "__dict__", "attrgetter",
                         "asdict", "astuple", "__getattribute__", "__getattr__", "__setattr__"})
#: exceptions with which code handles a missing attribute
_ATTRIBUTE_ERRORS = frozenset({"AttributeError", "Exception", "BaseException"})


class CodeNames(NamedTuple):
    """The names in one code object.

    Attributes:
        global_names: names of globals.
        attributes: names of attributes, of any object.
        imports: names of imported modules.
        any_attribute: whether it may read attributes by computed names.
        strings: constants that may be such names, and attributes whose absence it may handle.
        lines: by name, the line on which it is first written, or else read.
    """

    global_names: tuple[str, ...]
    attributes: frozenset[str]
    imports: tuple[str, ...]
    any_attribute: bool
    strings: frozenset[str]
    lines: dict[str, int]


_cache: dict[int, tuple[types.CodeType, CodeNames]] = {}


def code_names(code: types.CodeType) -> CodeNames:
    """Return the names in a code object.

    >>> names = code_names((lambda model, x: model.scale * x + shift).__code__)
    >>> names.global_names, sorted(names.attributes)
    (('shift',), ['scale'])
    """
    cached = _cache.get(id(code))
    if cached is not None:
        return cached[1]
    global_names: dict[str, None] = {}
    attributes: dict[str, None] = {}
    imports: dict[str, None] = {}
    read: dict[str, int] = {}
    written: dict[str, int] = {}
    line = code.co_firstlineno
    for each in dis.get_instructions(code):
        if each.positions is not None and each.positions.lineno is not None:
            line = each.positions.lineno
        opcode, name = each.opname, each.argval
        if opcode in _GLOBAL:
            global_names[name] = None
        elif opcode in _ATTRIBUTE:
            attributes[name] = None
        elif opcode == "IMPORT_NAME":
            imports[name] = None
        elif "DEREF" not in opcode:
            continue
        (written if opcode.startswith(("STORE", "DELETE")) else read).setdefault(name, line)
    any_attribute = not _REFLECTION.isdisjoint(global_names) or not _REFLECTION.isdisjoint(attributes)
    strings = [x for x in code.co_consts if isinstance(x, str) and x.isidentifier()] if any_attribute else []
    if not _ATTRIBUTE_ERRORS.isdisjoint(global_names):
        strings += attributes
    names = CodeNames(tuple(global_names), frozenset(attributes), tuple(imports), any_attribute, frozenset(strings),
                      read | written)
    _cache[id(code)] = code, names
    return names


__all__ = ["CodeNames", "code_names"]
