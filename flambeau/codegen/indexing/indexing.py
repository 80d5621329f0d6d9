"""Kernels that go by an index: elements taken from where an index says, and elements put, or added, there.

`take` is `gather`, `index_select` and the lookup of an embedding; `put` is `scatter`, `scatter_add`, `index_add` and an
embedding's gradient. Concatenating, padding and slicing need neither: they are copies (`elementwise.launches` of a
variable) from or to a part of an array.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.codegen.indexing import indexing; from flambeau.runtime import launch
>>> table, index = np.float32([[1, 2], [3, 4], [5, 6]]), np.array([[2], [0]])
>>> out, flag = np.float32([[5, 6], [1, 2]]), np.zeros(2, np.int64)
>>> if codegen.available():
...     specs = [launch.Spec.of(each) for each in (out, flag, table, index)]
...     launch.run(indexing.take(*specs, dim=0), [out, flag, table, index])
>>> print(out)
[[5. 6.]
 [1. 2.]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.scalar_ir import BOOL, variable

#: bytes that one thread copies in some ten microseconds, and indices that it follows
COPIED, FOLLOWED = 1 << 17, 1 << 13
#: bytes of a row, at least, that are one chunk's where rows are added to: where each element has an index of its own,
#: and where whole rows have one, whose pieces lie far apart
SHARE, RUN = 256, 2048
#: chunks that a destination is cut into, at most: each reads all of the index
RANGES = 4
#: what a flag looks like
FLAG = np.dtype(np.int64)


class _Operands(NamedTuple):
    """Strides of an array of elements, of the one that is indexed (0 along what the index says), and of the index."""

    shape: tuple[int, ...]
    plain: list[int]
    indexed: list[int]
    indices: list[int]
    size: int
    stride: int


def _operands(plain: Spec, indexed: Spec, index: Spec, flag: Spec, dim: int) -> _Operands:
    rank = len(plain.shape)
    if not -rank <= dim < rank:
        raise IndexError(f"dimension {dim} of arrays of {rank} dimensions")
    dim %= rank
    if len(indexed.shape) != rank:
        raise ValueError(f"arrays of shapes {plain.shape} and {indexed.shape} have unlike ranks")
    if plain.dtype != indexed.dtype:
        raise TypeError(f"elements of {plain.dtype} and {indexed.dtype}")
    if index.dtype.kind not in "iu" or index.dtype == np.dtype(np.uint64):
        raise TypeError(f"an index of {index.dtype}")
    if flag.dtype != FLAG or flag.shape != (2,) or flag.strides != (8,):
        raise ValueError(f"a flag is two integers of {FLAG}, not {flag.dtype} of shape {flag.shape}")
    one = (*indexed.shape[:dim], 1, *indexed.shape[dim + 1:])
    strides = iteration_space.spread(one, indexed.strides, plain.shape)
    return _Operands(plain.shape, iteration_space.stretched(plain.shape, plain.strides, plain.shape), strides,
                     iteration_space.spread(index.shape, index.strides, plain.shape), indexed.shape[dim],
                     indexed.strides[dim])


def take(out: Spec, flag: Spec, x: Spec, index: Spec, dim: int, wrap: bool = False) -> list[Launch]:
    """The work of `out[p] = x[p, but index[p] along dim]` for every place p of `out`.

    Args:
        out: the result.
        flag: two int64, which are written: whether an index is out of range (0 or 1), and which. The result is 0 there.
        x: of the result's shape, but for `dim`; where an extent is 1 instead, it is repeated.
        index: integers, of a shape that broadcasts to the result's. For rows of a table, (n, 1).
        dim: the dimension that the index is for.
        wrap: whether -1 is the last.

    Returns:
        Launches over the pointers of `out`, `flag`, `x`, `index`, and of the scratch memory that they ask for.

    Raises:
        TypeError, ValueError, IndexError: dtypes, shapes or a dimension that do not fit.
    """
    found = _operands(out, x, index, flag, dim)
    every = [found.plain, found.indexed, found.indices]
    empty = iteration_space.elements(found.shape) == 0
    dims = iteration_space.collapse(found.shape, every, iteration_space.memory_order(found.shape, every))
    if empty or not dims.extents:
        dims = iteration_space.Dims([1], [[0], [0], [0]])
    itemsize = out.dtype.itemsize
    rows = dims.strides[2][0] == 0 and dims.extents[0] > 1
    steps = iteration_space.steps(dims, [itemsize, itemsize, index.dtype.itemsize])
    n = dims.extents[0]
    grain = max(1, COPIED // itemsize) if rows else FOLLOWED
    across, block = iteration_space.blocks(n, grain)
    lines = 0 if empty else iteration_space.elements(dims.extents[1:])
    down, tall = iteration_space.blocks(lines, max(1, grain // min(n, block)), 1)
    words = [found.size, found.stride, n, block, across, lines, tall, len(dims.extents) - 1,
             *(each[0] for each in dims.strides), *dims.extents[1:], *(s for each in dims.strides for s in each[1:])]
    lanes = _lanes(itemsize if rows else max(4, itemsize))
    recipe = f"take {'rows' if rows else 'elements'} {itemsize} {steps} {index.dtype} {lanes} {wrap}"

    def generate() -> str:
        from . import code as indexing_code

        return indexing_code.Take(_bits(itemsize), index.dtype, steps, lanes, wrap).module(rows)

    return _launches(recipe, generate, across * down, words)


def put(out: Spec, flag: Spec, source: Spec, index: Spec, dim: int, op: str = "add", fill: bool = True,
        wrap: bool = False) -> list[Launch]:
    """The work of `out[p, but index[p] along dim] += source[p]` for every place p of `source`, in order.

    Args:
        out: the result, of the source's shape, but for `dim`; where an extent is 1 instead, all of them go there.
        flag: two int64, which are written: whether an index is out of range (0 or 1), and which. It is passed over.
        source: the elements.
        index: integers, of a shape that broadcasts to the source's. For rows of a table, (n, 1).
        dim: the dimension that the index is for.
        op: "add", or "set": then the last one stays.
        fill: whether the result begins as zeros; else as it is.
        wrap: whether -1 is the last.

    Returns:
        Launches over the pointers of `out`, `flag`, `source`, `index`, and of the scratch memory that they ask for.

    Raises:
        TypeError, ValueError, IndexError: dtypes, shapes or a dimension that do not fit.
    """
    if op not in ("add", "set"):
        raise ValueError(f"put {op!r}: it is add or set")
    if op == "add" and source.dtype == BOOL:
        raise TypeError("bool is not added")
    found = _operands(source, out, index, flag, dim)
    dim %= len(found.shape)
    itemsize = out.dtype.itemsize
    # where the places in `out` differ whatever the index says, and where they may meet: those are gone through in order
    free = [d for d, stride in enumerate(found.indexed) if stride and found.shape[d] > 1]
    meeting = [d for d in range(len(found.shape)) if d not in free]
    every = [found.indexed, found.plain, found.indices]

    def part(chosen: Sequence[int], order: Sequence[int]) -> iteration_space.Dims:
        shape = [found.shape[d] for d in chosen]
        return iteration_space.collapse(shape, [[each[d] for d in chosen] for each in every], order)

    over = part(free, iteration_space.memory_order(tuple([found.shape[d] for d in free]),
                                          [[each[d] for d in free] for each in every]))
    through = part(meeting, range(len(meeting)))
    count, lines = (iteration_space.elements(each.extents) for each in (through, over))
    if count == 0:
        through = iteration_space.Dims([], [[], [], []])
    if lines == 0:
        over = iteration_space.Dims([], [[], [], []])
    # what goes through a run, innermost: a free dimension, unless those in order are closer together
    near = bool(over.extents) and (not through.extents or (
        over.strides[1][0], over.strides[2][0]) <= (through.strides[1][0], through.strides[2][0]))
    run = near and over.strides[2][0] == 0
    first = 1 if near else 0
    n = over.extents[0] if near else 1
    inner = [each[0] if near else 0 for each in over.strides]
    lines //= n
    steps = "".join("c" if stride == itemsize else "s" for stride in (inner[0], inner[1], found.stride))
    # chunks: parts of the lines, and of a line; where that is little, parts of the destination
    share = RUN if run else SHARE
    across, block = iteration_space.blocks(n, max(1, share // itemsize), 1) if n * itemsize >= 2 * share else (1, n)
    work = max(count, found.size) * n
    down, tall = iteration_space.blocks(lines, max(1, FOLLOWED // max(1, work)), 1)
    ranges, reach = 1, found.size
    wanted = min(RANGES, lines * work // FOLLOWED)
    if across * down < wanted:
        ranges, reach = iteration_space.blocks(found.size, -(-found.size * across * down // wanted), 1)
    # what is gone through in order has a loop of its own along its innermost dimension
    beside = [each[0] if through.extents else 0 for each in through.strides[1:]]
    together = through.extents[0] if through.extents else 1
    words = [found.size, found.stride, n, block, across, lines, tall, ranges, reach, count // together, together,
             *beside, len(over.extents) - first, len(through.extents[1:]), *inner,
             *over.extents[first:], *(s for each in over.strides for s in each[first:]),
             *through.extents[1:], *(s for each in through.strides for s in each[1:])]
    dtype = out.dtype if op == "add" else _bits(itemsize)
    variable(0, dtype)  # whether there are kernels for it
    lanes = _lanes(max(4, itemsize))
    kind = "run" if run else "each" if near else "single"
    recipe = f"put {kind} {op} {dtype} {steps} {index.dtype} {lanes} {wrap} {fill}"

    def generate() -> str:
        from . import code as indexing_code

        return indexing_code.Put(dtype, index.dtype, steps, lanes, wrap).module(kind, op, fill)

    return _launches(recipe, generate, across * down * ranges, words)


def _bits(itemsize: int) -> np.dtype:
    """Elements of this size that are only copied."""
    return np.dtype(f"u{itemsize}")


def _lanes(itemsize: int) -> int:
    return max(4, target.host().vector_bits // 8 // itemsize)


def _launches(recipe: str, generate: Callable[[], str], chunks: int, words: Sequence[int]) -> list[Launch]:
    library = compilation.load(recipe, ("body", "report"), generate, "few")
    words = (chunks, *words)
    body, report = (library.symbol(name) for name in ("body", "report"))
    return [Launch(library, body, chunks, words, report, 16 * chunks)]
