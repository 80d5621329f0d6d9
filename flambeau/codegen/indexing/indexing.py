"""Gather and scatter launches.

`take` computes `gather`, `index_select` and embedding lookups; `put` computes `scatter`, `scatter_add`, `index_add` and
embedding gradients. Concatenation, padding and slicing are plain copies (`elementwise.launches` of a variable) from or
to a part of an array.

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

#: bytes that one thread copies, and indices that it processes, in about 10 µs
COPY_GRAIN, INDEX_GRAIN = 1 << 17, 1 << 13
#: minimum bytes of a chunk's part of a row in scatter-adds: of rows whose elements have their own index, and of rows
#: that have one index
ELEMENT_ROW_BYTES, ROW_BYTES = 256, 2048
#: maximum ranges that a destination is divided into; each of their chunks reads the entire index
MAX_RANGES = 4
#: how scattered elements are combined
OPERATIONS = ("add", "mul", "maximum", "minimum", "set")
#: dtype of the out-of-range flag
FLAG = np.dtype(np.int64)


class _Operands(NamedTuple):
    """Strides of the array of elements, of the indexed array (0 along the indexed dimension) and of the index."""

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
        raise ValueError(f"arrays of shapes {plain.shape} and {indexed.shape} differ in rank")
    if plain.dtype != indexed.dtype:
        raise TypeError(f"elements of dtypes {plain.dtype} and {indexed.dtype}")
    if index.dtype.kind not in "iu" or index.dtype == np.dtype(np.uint64):
        raise TypeError(f"an index of dtype {index.dtype}")
    if flag.dtype != FLAG or flag.shape != (2,) or flag.strides != (8,):
        raise ValueError(f"a flag is two integers of {FLAG}, not {flag.dtype} of shape {flag.shape}")
    one = (*indexed.shape[:dim], 1, *indexed.shape[dim + 1:])
    strides = iteration_space.checked_broadcast_strides(one, indexed.strides, plain.shape)
    index_strides = iteration_space.checked_broadcast_strides(index.shape, index.strides, plain.shape)
    return _Operands(plain.shape, iteration_space.broadcast_strides(plain.shape, plain.strides, plain.shape), strides,
                     index_strides, indexed.shape[dim], indexed.strides[dim])


def take(out: Spec, flag: Spec, x: Spec, index: Spec, dim: int, wrap: bool = False) -> list[Launch]:
    """Launches of a gather: out[p] = x[p with index[p] along dim] at strides position p of `out`.

    Args:
        out: the result.
        flag: output, two int64: whether an index is out of range (0 or 1), and its value. The result is 0 there.
        x: of the result's shape except along `dim`; extents of 1 broadcast.
        index: integers, of a shape that broadcasts to the result's; (n, 1) for rows of a table.
        dim: the indexed dimension.
        wrap: whether negative indices count from the end.

    Returns:
        Launches over the pointers of `out`, `flag`, `x`, `index`, scratch.

    Raises:
        TypeError, ValueError, IndexError: invalid dtypes, shapes or dimension.
    """
    operands = _operands(out, x, index, flag, dim)
    strides = [operands.plain, operands.indexed, operands.indices]
    empty = iteration_space.numel(operands.shape) == 0
    dims = iteration_space.collapse(operands.shape, strides, iteration_space.memory_order(operands.shape, strides))
    if empty or not dims.extents:
        dims = iteration_space.Dims([1], [[0], [0], [0]])
    itemsize = out.dtype.itemsize
    rows = dims.strides[2][0] == 0 and dims.extents[0] > 1
    steps = iteration_space.access_patterns(dims, [itemsize, itemsize, index.dtype.itemsize])
    n = dims.extents[0]
    grain = max(1, COPY_GRAIN // itemsize) if rows else INDEX_GRAIN
    across, block = iteration_space.blocks(n, grain)
    lines = 0 if empty else iteration_space.numel(dims.extents[1:])
    down, chunk_lines = iteration_space.blocks(lines, max(1, grain // min(n, block)), 1)
    words = [operands.size, operands.stride, n, block, across, lines, chunk_lines, len(dims.extents) - 1,
             *(each[0] for each in dims.strides), *dims.extents[1:], *(s for each in dims.strides for s in each[1:])]
    lanes = _lanes(itemsize if rows else max(4, itemsize))
    recipe = f"take {'rows' if rows else 'elements'} {itemsize} {steps} {index.dtype} {lanes} {wrap}"

    def generate() -> str:
        from . import code

        return code.Take(_bits(itemsize), index.dtype, steps, lanes, wrap).module(rows)

    return _launches(recipe, generate, across * down, words)


def put(out: Spec, flag: Spec, source: Spec, index: Spec, dim: int, op: str = "add", fill: bool = True,
        wrap: bool = False) -> list[Launch]:
    """Launches of a scatter: out[p with index[p] along dim] += source[p] at strides position p of `source`, in order.

    The operation is `op` instead of the sum.

    Args:
        out: the result, of the source's shape except along `dim`; extents of 1 receive all elements.
        flag: output, two int64: whether an index is out of range (0 or 1), and its value. Such elements are skipped.
        source: the elements.
        index: integers, of a shape that broadcasts to the source's; (n, 1) for rows of a table.
        dim: the indexed dimension.
        op: "add", or "set", where the last element wins.
        fill: whether the result is zeroed first.
        wrap: whether negative indices count from the end.

    Returns:
        Launches over the pointers of `out`, `flag`, `source`, `index`, scratch.

    Raises:
        TypeError, ValueError, IndexError: invalid dtypes, shapes or dimension.
    """
    if op not in OPERATIONS:
        raise ValueError(f"op {op!r} is none of {', '.join(OPERATIONS)}")
    if op != "set" and source.dtype == BOOL:
        raise TypeError(f"bool arrays cannot be combined by {op}")
    if op in ("maximum", "minimum") and source.dtype.kind not in "iuf":
        raise TypeError(f"a scatter by {op} of {source.dtype}")
    operands = _operands(source, out, index, flag, dim)
    dim %= len(operands.shape)
    itemsize = out.dtype.itemsize
    # free dimensions select distinct positions of `out` for any index; along the others elements may collide, so
    # that they are processed in order
    free = [d for d, stride in enumerate(operands.indexed) if stride and operands.shape[d] > 1]
    colliding = [d for d in range(len(operands.shape)) if d not in free]
    strides = [operands.indexed, operands.plain, operands.indices]

    def collapsed(chosen: Sequence[int], order: Sequence[int]) -> iteration_space.Dims:
        shape = [operands.shape[d] for d in chosen]
        return iteration_space.collapse(shape, [[each[d] for d in chosen] for each in strides], order)

    over = collapsed(free, iteration_space.memory_order(tuple([operands.shape[d] for d in free]),
                                          [[each[d] for d in free] for each in strides]))
    through = collapsed(colliding, range(len(colliding)))
    count, lines = (iteration_space.numel(each.extents) for each in (through, over))
    if count == 0:
        through = iteration_space.Dims([], [[], [], []])
    if lines == 0:
        over = iteration_space.Dims([], [[], [], []])
    # the innermost loop is over a free dimension, unless the ordered ones have smaller strides
    inner_is_free = bool(over.extents) and (not through.extents or (
        over.strides[1][0], over.strides[2][0]) <= (through.strides[1][0], through.strides[2][0]))
    run = inner_is_free and over.strides[2][0] == 0
    first = 1 if inner_is_free else 0
    n = over.extents[0] if inner_is_free else 1
    inner = [each[0] if inner_is_free else 0 for each in over.strides]
    lines //= n
    steps = "".join("c" if stride == itemsize else "s" for stride in (inner[0], inner[1], operands.stride))
    # chunks: parts of the lines and of a line; where these are few, ranges of the destination
    share = ROW_BYTES if run else ELEMENT_ROW_BYTES
    across, block = iteration_space.blocks(n, max(1, share // itemsize), 1) if n * itemsize >= 2 * share else (1, n)
    work = max(count, operands.size) * n
    down, chunk_lines = iteration_space.blocks(lines, max(1, INDEX_GRAIN // max(1, work)), 1)
    ranges, reach = 1, operands.size
    min_chunks = min(MAX_RANGES, lines * work // INDEX_GRAIN)
    if across * down < min_chunks:
        ranges, reach = iteration_space.blocks(operands.size, -(-operands.size * across * down // min_chunks), 1)
    # the ordered dimensions have a separate innermost loop
    inner_steps = [each[0] if through.extents else 0 for each in through.strides[1:]]
    inner_count = through.extents[0] if through.extents else 1
    words = [operands.size, operands.stride, n, block, across, lines, chunk_lines, ranges, reach, count // inner_count,
             inner_count,
             *inner_steps, len(over.extents) - first, len(through.extents[1:]), *inner,
             *over.extents[first:], *(s for each in over.strides for s in each[first:]),
             *through.extents[1:], *(s for each in through.strides for s in each[1:])]
    dtype = out.dtype if op != "set" else _bits(itemsize)
    variable(0, dtype)  # raises unless kernels support the dtype
    lanes = _lanes(max(4, itemsize))
    kind = "run" if run else "each" if inner_is_free else "single"
    recipe = f"put {kind} {op} {dtype} {steps} {index.dtype} {lanes} {wrap} {fill}"

    def generate() -> str:
        from . import code

        return code.Put(dtype, index.dtype, steps, lanes, wrap).module(kind, op, fill)

    return _launches(recipe, generate, across * down * ranges, words)


def _bits(itemsize: int) -> np.dtype:
    """The unsigned dtype of this size: elements that are only copied."""
    return np.dtype(f"u{itemsize}")


def _lanes(itemsize: int) -> int:
    return max(4, target.host().vector_bits // 8 // itemsize)


def _launches(recipe: str, generate: Callable[[], str], chunks: int, words: Sequence[int]) -> list[Launch]:
    library = compilation.load(recipe, ("body", "report"), generate, "few")
    words = (chunks, *words)
    body, report = (library.symbol(name) for name in ("body", "report"))
    return [Launch(library, body, chunks, words, report, 16 * chunks)]
