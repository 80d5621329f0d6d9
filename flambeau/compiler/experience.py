"""What earlier processes learned: runs that another one agreed with are kept on disk, by what they did and saw.

Two runs must agree before calls are replayed, since one does not show what changes from call to call. A run that did
what runs of an earlier process did, which agreed, after the same code saw the same numbers and names, is the second of
two already: so from the second process on one run is enough. What is kept is the name of such a run, and which of its
arguments are known to be free; its plan and its code have entries of their own.
"""

from __future__ import annotations

import functools
import hashlib
import json
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import dtypes
from ..ir import keeping
from ..jit import cache as disk
from ..tensor import Tensor
from ..version import __version__
from .seen import Made
from .surroundings import ARRAY, ITERATOR, PLAIN, SET, STREAM, Seen
from .watching import is_users

if TYPE_CHECKING:
    from .trace import Trace

_FORMAT = "run 1"


def name(trace: Trace, call: Sequence[Any]) -> str:
    """The name of the entry for a run.

    Args:
        call: what the call looked like (`Compiled._key`).
    """
    surroundings = trace.surroundings
    assert surroundings is not None
    program = keeping.name(trace.graph, trace.targets, [(g.value, g.outcome) for g in trace.guards])
    codes = sorted(_code(code) for code in surroundings.codes if is_users(code))
    seen = sorted(_seen(each) for each in surroundings.seen.values() if each.kind not in (STREAM, ITERATOR))
    return disk.key(_FORMAT, __version__, sys.version, program, *_run(trace), *map(_argument, call), *codes, *seen)


def read(entry: str) -> list[bool] | None:
    """Which arguments of such a run are free; None if nobody has met it."""
    payload = disk.read(entry)
    if payload is None:
        return None
    try:
        found = json.loads(payload)
    except ValueError:
        disk.discard(entry)
        return None
    return found if isinstance(found, list) and all(isinstance(x, bool) for x in found) else None


def write(entry: str, free: Sequence[bool]) -> None:
    """Keep that runs of this name agree, and which arguments are free."""
    disk.write(entry, json.dumps([*free]).encode())


# ----- what a run did -----------------------------------------------------------------------


def _run(trace: Trace) -> list[str]:
    """What a program's graph does not say of a run: where its leaves come from, what becomes of its results."""
    sources = [(number, source[0], *_plain(source[1:])) for number, source in sorted(trace.sources.items())]
    results = [each._replace(base=None) if isinstance(each, Made) else (each[0], *_plain(each[1:]))
               for each in trace.results]
    gradients = [(held.kind, *_plain((held.which,)), shown) for held, shown in trace.gradients]
    without = [(held.kind, *_plain((held.which,))) for held in trace.without]
    decisions = [(key, index, compare.__name__, other, outcome)
                 for _, key, index, compare, other, outcome in trace.decisions]
    joint = None if trace.joint is None else [v if v is None else v.number for v in trace.joint.gradients]
    return [repr(each) for each in (sources, results, gradients, without, decisions, joint, trace.tree, trace.starts,
                                    trace.bumps, trace.written)]


def _plain(things: Sequence[Any]) -> list[str]:
    return [_said(x) for x in things]


def _argument(x: Any) -> str:
    """What of a call's key another process can have, too."""
    return repr(x[0]) if isinstance(x, tuple) and x and x[0] == "object" else repr(x)


# ----- what it saw --------------------------------------------------------------------------


def _seen(each: Seen) -> str:
    value = each.value
    if each.kind == ARRAY:
        said = f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    elif each.kind == SET:
        said = repr(sorted(map(_said, value)))
    else:
        said = _said(value)
    key = sorted(each.key) if isinstance(each.key, frozenset) else each.key if isinstance(each.key, str) else None
    return f"{each.kind} {each.path} {key} {said}"


def _said(x: Any) -> str:
    """A thing as every process would describe it: numbers and texts themselves, code, the kinds of all others."""
    if isinstance(x, (*PLAIN, np.generic, np.dtype, dtypes.dtype, range, slice)):
        return repr(x)
    if isinstance(x, tuple):
        return f"({', '.join(map(_said, x))})"
    if isinstance(x, types.MethodType):
        return f"method {_said(x.__func__)}"
    if isinstance(x, types.FunctionType):
        return f"function {_code(x.__code__)}"
    if isinstance(x, types.CodeType):
        return f"code {_code(x)}"
    if isinstance(x, type):
        return f"class {x.__module__}.{x.__qualname__}"
    if isinstance(x, types.ModuleType):
        return f"module {x.__name__}"
    if isinstance(x, Tensor):
        return f"tensor {x._array.dtype} {x._array.shape} {x._requires_grad}"
    if isinstance(x, np.ndarray):
        return f"array {x.dtype} {x.shape}"
    return f"a {type(x).__module__}.{type(x).__qualname__}"


@functools.lru_cache(4096)
def _code(code: types.CodeType) -> str:
    """What a piece of code does, by a hash."""
    parts = [code.co_qualname, code.co_code.hex(), str(code.co_names), str(code.co_varnames), str(code.co_freevars)]
    parts += [_said(x) if not isinstance(x, frozenset) else repr(sorted(map(_said, x))) for x in code.co_consts]
    return disk.key(*parts)


__all__ = ["name", "read", "write"]
