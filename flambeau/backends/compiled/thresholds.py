"""From how many elements on an operator runs on its compiled kernel: measured, where its kernel wins for good.

A kernel costs a microsecond or so before it begins; NumPy's ufuncs a third of that, for each pass that the operator's
formula takes. Each limit is a list of one number, which the quick ways keep at hand.

`FLAMBEAU_KERNELS_FROM` sets all limits to one number.
"""

from __future__ import annotations

import os
import threading

#: formulas that NumPy computes in one quick pass
_ONE_PASS = ("add", "sub", "mul", "neg", "abs", "eq", "ne", "lt", "le", "gt", "ge", "maximum", "minimum", "square",
             "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "logical_and", "logical_or", "logical_xor",
             "logical_not", "floor", "ceil", "trunc", "round", "isnan", "isinf", "isfinite", "signbit", "clone",
             "conj_physical", "div", "sqrt", "reciprocal", "copysign")
#: all others
_USUAL = 1024
_LIMITS: dict[str, list[int]] = {name: [16384] for name in _ONE_PASS}
#: sums and means, and other reductions
SUMS = _LIMITS["reduced by sums"] = [2048]
REDUCTIONS = _LIMITS["reduced otherwise"] = [1023]
#: the places of extrema: NumPy finds them quickly along elements that follow each other
PLACES = _LIMITS["reduced to places"] = [8192]
#: scans along a dimension
SCANS = _LIMITS["scanned"] = [1024]
#: elements taken, put and added by an index
INDEXED = _LIMITS["indexed"] = [2048]
#: elements replaced by a mask, or outside of a triangle
MASKED = _LIMITS["masked"] = [2048]
#: rows of which the best elements are found
SELECTED = _LIMITS["selected"] = [1023]
#: optimizers' steps
UPDATES = _LIMITS["updates"] = [2048]
#: those of float32, which kernels round as NumPy's way does where processors add to a product with one rounding: they
#: run on kernels, large or small, once there are some
SINGLE_UPDATES = _LIMITS["updates of float32"] = [2048]
#: copies and fills: NumPy's are as quick as the memory, for one thread
MOVES = _LIMITS["moved"] = [131072]
#: results put together of pieces: threads win where the memory is much
JOINS = _LIMITS["joined"] = [3 << 17]
#: copies whose elements lie in another order than they did
TURNS = _LIMITS["turned"] = [16384]
#: conversions to and from float16 and bfloat16, which NumPy does one by one, and others, which it does by vectors
NARROW_CASTS = _LIMITS["narrow converted"] = [1024]
CASTS = _LIMITS["converted"] = [65536]
#: random words
DRAWN = _LIMITS["drawn"] = [1023]
#: uniforms that become normal numbers, for which NumPy takes some ninety passes
NORMALS = _LIMITS["normal numbers"] = [255]
#: the gates of a step of a recurrent layer: NumPy takes some fifteen passes
STEPS = _LIMITS["recurrent steps"] = [255]
#: arrays of which a special function is computed by a kernel even where kernels pause, though it may run but once
ONCE = [1 << 17]
#: the least of all limits: below it nothing else need be asked
LEAST = [_USUAL]
#: [whether an array larger than that has been met]: until then the quickest ways need not ask for sizes. What they
#: miss by that is computed by NumPy, to the same bits.
MET = [False]
_asked = os.environ.get("FLAMBEAU_KERNELS_FROM", "")


_pausing = threading.Lock()
_paused: list[dict[str, int]] = []
_depth = 0


def limit_of(name: str) -> list[int]:
    """The limit of the operators of this name: arrays of more elements run on kernels."""
    found = _LIMITS.get(name)
    if found is None:
        found = _LIMITS[name] = [1 << 62 if _paused else _USUAL]
        if _asked:
            found[0] = int(_asked) - 1
    return found


def lower(name: str, elements: int) -> None:
    """Let the operators of this name run on kernels above so many elements, if they do not already; after a pause."""
    with _pausing:
        before = _paused[-1] if _paused else None
        if before is None:
            _LIMITS[name][0] = min(_LIMITS[name][0], elements)
        else:
            before[name] = min(before[name], elements)


def set_all(elements: int) -> dict[str, int]:
    """Let all operators run on kernels from so many elements on; what the limits were."""
    before = {name: limit[0] for name, limit in _LIMITS.items()} | {"": LEAST[0], "once": ONCE[0]}
    for limit in (LEAST, ONCE, *_LIMITS.values()):
        limit[0] = elements - 1
    MET[0] = True
    return before


def restore(before: dict[str, int]) -> None:
    """Make the limits what they were."""
    LEAST[0], ONCE[0] = before[""], before["once"]
    for name, limit in _LIMITS.items():
        limit[0] = before.get(name, _USUAL)


def pause() -> None:
    """Let NumPy compute everything for a while: what runs once or twice is not worth a kernel of its own."""
    global _depth
    with _pausing:
        _depth += 1
        if _depth == 1 and not _asked:
            _paused.append(set_all(1 << 62))
            ONCE[0] = _paused[-1]["once"]


def resume() -> None:
    """End a pause."""
    global _depth
    with _pausing:
        _depth -= 1
        if not _depth and _paused:
            restore(_paused.pop())


if _asked:
    set_all(int(_asked))

__all__ = ["CASTS", "DRAWN", "INDEXED", "JOINS", "LEAST", "MASKED", "MET", "MOVES", "NARROW_CASTS", "NORMALS", "ONCE",
           "PLACES", "REDUCTIONS", "SCANS", "SELECTED", "SINGLE_UPDATES", "STEPS", "SUMS", "TURNS", "UPDATES",
           "limit_of", "lower", "pause", "restore", "resume", "set_all"]
