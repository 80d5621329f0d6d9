"""What a piece of code names: globals, attributes, modules that it imports, and the lines on which it does.

All of it is read off the instructions, whichever way the code takes: what is named may be read, or changed.
"""

from __future__ import annotations

import dis
import types
from typing import NamedTuple

_GLOBAL = frozenset({"LOAD_GLOBAL", "STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_NAME"})
_ATTRIBUTE = frozenset({"LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR", "LOAD_SUPER_ATTR", "IMPORT_FROM"})
#: with these, attributes are reached whose names no instruction says
_ANY = frozenset({"globals", "getattr", "setattr", "hasattr", "delattr", "vars", "__dict__", "attrgetter", "asdict",
                  "astuple", "__getattribute__", "__getattr__", "__setattr__"})
#: what is caught by code that goes on if an attribute is missing
_CAUGHT = frozenset({"AttributeError", "Exception", "BaseException"})


class CodeNames(NamedTuple):
    """What one piece of code names.

    Attributes:
        spaces: names of globals.
        attributes: names of attributes, of whatever objects.
        imports: modules.
        anything: whether it may reach attributes by names that it does not say.
        strings: constants that may be such names, and attributes that may be missing.
        lines: by name, the lines on which it is set, or else read.
    """

    spaces: tuple[str, ...]
    attributes: frozenset[str]
    imports: tuple[str, ...]
    anything: bool
    strings: frozenset[str]
    lines: dict[str, int]


_known: dict[int, tuple[types.CodeType, CodeNames]] = {}


def code_names(code: types.CodeType) -> CodeNames:
    """What `code` names.

    >>> found = code_names((lambda model, x: model.scale * x + shift).__code__)
    >>> found.spaces, sorted(found.attributes)
    (('shift',), ['scale'])
    """
    known = _known.get(id(code))
    if known is not None:
        return known[1]
    spaces: dict[str, None] = {}
    attributes: dict[str, None] = {}
    imports: dict[str, None] = {}
    read: dict[str, int] = {}
    written: dict[str, int] = {}
    line = code.co_firstlineno
    for each in dis.get_instructions(code):
        if each.positions is not None and each.positions.lineno is not None:
            line = each.positions.lineno
        name, said = each.opname, each.argval
        if name in _GLOBAL:
            spaces[said] = None
        elif name in _ATTRIBUTE:
            attributes[said] = None
        elif name == "IMPORT_NAME":
            imports[said] = None
        elif "DEREF" not in name:
            continue
        (written if name.startswith(("STORE", "DELETE")) else read).setdefault(said, line)
    anything = not _ANY.isdisjoint(spaces) or not _ANY.isdisjoint(attributes)
    strings = [x for x in code.co_consts if isinstance(x, str) and x.isidentifier()] if anything else []
    if not _CAUGHT.isdisjoint(spaces):  # it may go on where there is none
        strings += attributes
    found = CodeNames(tuple(spaces), frozenset(attributes), tuple(imports), anything, frozenset(strings),
                      read | written)
    _known[id(code)] = code, found
    return found


__all__ = ["CodeNames", "code_names"]
