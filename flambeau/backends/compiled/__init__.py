"""Operators on large arrays: their own declarations, traced over expressions, run as compiled kernels.

`sizes` says which arrays are large. The rest is imported when the first one is met, and needs `codegen.available()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ... import dtypes
from ...kernels.random import accelerated
from ..errstate import run_quietly
from .thresholds import DRAWN, JOINS, MET, MOVES, NARROW_CASTS, NORMALS, STEPS, SUMS, TURNS

if TYPE_CHECKING:
    from .operators import Operators

_operators: list[Operators | None] = []


def ready() -> bool:
    """Whether kernels can be compiled here; large arrays' memory is kept from then on."""
    from ... import codegen
    from .thresholds import lower

    MET[0] = True
    if not codegen.available():
        return False
    from .allocator import allocator
    from .updates import fuses

    allocator()
    if fuses():
        lower("updates of float32", 0)
    return True


def kernels_of(registry: dict[str, Any]) -> Operators | None:
    """The declared operators' kernels, made ready when first asked for; None where there are none.

    Args:
        registry: the operators by name.
    """
    if not _operators:
        if ready():
            from .operators import Operators

            _operators.append(Operators(registry))
        else:
            _operators.append(None)
    return _operators[0]


@cache
def _module(name: str) -> Any:
    """A module of this package, made ready when first asked for; None where there are no kernels."""
    return import_module(f"{__name__}.{name}") if ready() else None


def reduced(ops: Sequence[str], of: str, arrays: Sequence[Any], dim: Any, keepdim: bool) -> Any:
    """Reductions of large arrays by their kernel (`reductions.reduced`); None: NumPy is to compute them."""
    found = _module("families.reductions")
    return None if found is None else found.reduced(ops, of, arrays, dim, keepdim)


def row_sum(x: np.ndarray) -> np.ndarray:
    """The sum of a matrix' rows, a vector: NumPy adds one after the other, less exactly where they are many."""
    found = reduced(("sum",), "", (x,), 0, False) if MET[0] and x.size > SUMS[0] else None
    total: np.ndarray = np.add.reduce(x, 0) if found is None else found[0]
    return total


def negative_share(x: np.ndarray, value: Any) -> np.ndarray | None:
    """-e^x · value of a large matrix (`shares.negative_share`); None where there are no kernels."""
    found = _module("families.softmax_gradient")
    result: np.ndarray | None = None if found is None else found.negative_share(x, value)
    return result


def scanned(name: str, arrays: Sequence[Any], dim: int, back: bool = False) -> Any:
    """Scans of large arrays by their kernel (`scanning.scanned`); None: NumPy is to compute them."""
    found = _module("families.scans")
    return None if found is None else found.scanned(name, arrays, dim, back)


def best(rows: Any, count: int, largest: bool) -> Any:
    """Where the best elements of large arrays' rows are (`selecting.best`); None: NumPy is to find them."""
    found = _module("families.sorting")
    return None if found is None else found.best(rows, count, largest)


def ordered(rows: Any, back: bool) -> Any:
    """Large arrays' rows in order (`selecting.ordered`); None: NumPy is to sort them."""
    found = _module("families.sorting")
    return None if found is None else found.ordered(rows, back)


def special(name: str, x: np.ndarray) -> np.ndarray | None:
    """A special function of an array by its kernel (`special.computed`); None: NumPy is to compute it."""
    found = _module("families.special")
    return None if found is None else found.computed(name, x)


def update(rule: Callable[..., None], arrays: list[Any], missing: int, scalars: tuple[Any, ...],
           row_major: bool) -> bool:
    """Run an optimizer's rule on large arrays by its kernel (`updates.update`); whether there is one."""
    found = _module("updates")
    return found is not None and found.update(rule, arrays, missing, scalars, row_major)


def converted(array: np.ndarray, to: np.dtype) -> np.ndarray | None:
    """A large array in another dtype (`casting.converted`); None: NumPy is to convert it."""
    found = _module("families.casting")
    return None if found is None else found.converted(array, to)


dtypes.convert_by(NARROW_CASTS, converted)


#: modules by name that do something for many numbers, once many were asked for: from then on for few, too
_met: dict[str, Any] = {}


def _module_for(name: str, count: int, least: int) -> Any:
    if count > least and name not in _met:
        _met[name] = _module(name)
    return _met.get(name)


def normal_numbers(uniforms: np.ndarray) -> bool:
    """Turn many uniforms into normal numbers in place (`normals.box_muller`); False: NumPy is to do that."""
    found = _module_for("families.normals", uniforms.size, NORMALS[0])
    return found is not None and found.box_muller(uniforms)


def words_of(generator: Any, count: int) -> np.ndarray | None:
    """So many words of a generator (`words.draw`), if many were asked for, now or before; None: NumPy is to draw."""
    found = _module_for("families.random_words", count, DRAWN[0])
    return None if found is None else found.draw(generator, count)


def shuffled(words: np.ndarray) -> np.ndarray | None:
    """0 ... n, shuffled by n words (`words.shuffled`), if they are many; None: NumPy is to shuffle them."""
    found = _module("families.random_words") if words.size > DRAWN[0] else None
    return None if found is None else np.asarray(found.shuffled(words))


accelerated.SHUFFLES.append(shuffled)
accelerated.NORMALS.append(normal_numbers)
accelerated.WORDS.append(words_of)


def mover() -> Any:
    """What copies and fills large arrays, of more than `MOVES` elements (`moving`); None: NumPy is to do that."""
    return _module("families.copying")


def indexer() -> Any:
    """What indexes large arrays, of more than `INDEXED` elements (`indexing`); None: NumPy is to do that."""
    return _module("families.indexing")


def steps_of(elements: int) -> Any:
    """What does the steps of recurrent layers (`recurrent`), with gates of so many elements; None: NumPy is to."""
    return _module("families.recurrent") if elements > STEPS[0] else None


def room(shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
    """A new array that is to be written: a large one in memory that was used before, if there is some."""
    kept = MET[0] or (prod(shape) > MOVES[0] and ready())
    found: np.ndarray = run_quietly(np.empty, shape, dtype) if kept else np.empty(shape, dtype)
    return found


def room_like(like: np.ndarray, dtype: np.dtype, order: Literal["C", "K"] = "K") -> np.ndarray:
    """`room` for an array that lies in memory as another one does ("K"), or row by row."""
    kept = MET[0] or (like.size > MOVES[0] and ready())
    given = (like, dtype, order, False)
    found: np.ndarray = run_quietly(np.empty_like, *given) if kept else np.empty_like(*given)
    return found


def copy(to: np.ndarray, source: Any) -> None:
    """Write an array or a number over an array."""
    by = mover() if to.size > MOVES[0] or (to.size > TURNS[0] and turns(to, source)) else None
    if by is None or not by.copy(to, source):
        to[...] = source


def turns(to: np.ndarray, source: Any) -> bool:
    """Whether an array's rows do not lie in memory as those do that they are copied to."""
    strides = getattr(source, "strides", None)
    if not strides or to.shape != source.shape:
        return False
    return bool(strides[-1] != to.strides[-1])


def pieces_mover(size: int, pieces: int) -> Any:
    """`mover` for a result that is put together of several pieces, large enough on an average; None: NumPy is."""
    return mover() if size > JOINS[0] and size > TURNS[0] * pieces else None


def copied_like(x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """A copy of an array that lies in memory as another one of its shape does, which is dense."""
    if x.size > TURNS[0]:
        found = room_like(like, x.dtype)
        copy(found, x)
        return found
    found = np.empty_like(like, x.dtype)
    found[...] = x
    return found


def copied(x: np.ndarray, order: Literal["C", "K"] = "C") -> np.ndarray:
    """A copy of an array: row by row, or "K", in the order in which its elements lie."""
    if x.size <= TURNS[0]:
        return np.array(x, order=order, copy=True)
    scattered = order == "C" and x.ndim and (x.strides[-1] != x.itemsize or (
        x.size > 2 * TURNS[0] and not x.flags.c_contiguous))
    by = mover() if scattered or x.size > MOVES[0] else None
    if by is not None:
        found: np.ndarray = by.copied(x, order)
        return found
    found = room_like(x, x.dtype, order)
    found[...] = x
    return found


__all__ = ["best", "converted", "copied", "copied_like", "copy", "indexer", "kernels_of", "mover", "negative_share",
           "ordered", "pieces_mover", "ready", "reduced", "row_sum", "scanned", "steps_of", "update"]
