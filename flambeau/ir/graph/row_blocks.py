"""A product whose rows are read one part after another is computed in blocks of rows, each just before it is read.

The projection of all inputs of a recurrent layer is one product, and each step reads its rows. Where the result exceeds
the L2 cache, it is written to memory and read again; a block of it stays in the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from ...runtime import cpu_cache
from ...runtime.symbolic_integers import typical
from . import view_algebra as algebra
from .rewrites import rebuild
from .value import Graph, Value, reachable

#: bytes of a block, as a share of the L2 cache; the largest share of the right operand, which each block reads again
BLOCK_SHARE, RIGHT_SHARE = 0.25, 0.5
#: the fewest parts that are read one after another
MIN_PARTS = 4


class _Product(NamedTuple):
    """A product, what is computed of it row by row, and the parts of its rows that are read."""

    matmul: Value
    sums: tuple[Value, ...]  # additions of a row to each row of the product, one after another
    parts: tuple[Value, ...]  # views of the last of them, in the order of rows


def compute_in_row_blocks(graph: Graph, outputs: Sequence[Value],
                          is_constant: Callable[[Value], bool]) -> dict[Value, Value]:
    """Cut products with constant right operands: the replacement of each value that the outputs depend on."""
    live = reachable(outputs)
    readers: dict[Value, list[Value]] = {}
    for value in live:
        for arg in value.args:
            readers.setdefault(arg, []).append(value)
    kept = set(outputs)
    blocks: dict[Value, _Block] = {}
    for value in live:
        if value.op == "matmul" and value.ndim == 2 and is_constant(value.args[1]):
            product = _product(value, readers, kept)
            if product is not None and _is_worth_it(product, readers):
                blocks |= _cut(product)
    replacements: dict[Value, Value] = {}

    def replaced(value: Value) -> Value:
        if value in blocks:  # only now, so that the block's number, and its place in the schedule, is late
            return blocks[value].part(graph, value, replacements)
        return replacements[value]

    for value in live:
        if value not in blocks:
            args = [replaced(each) for each in value.args]
            changed = any(new is not old for new, old in zip(args, value.args, strict=True))
            replacements[value] = rebuild(graph, value, args) if changed else value
    return replacements


def _product(matmul: Value, readers: dict[Value, list[Value]], kept: set[Value]) -> _Product | None:
    """The product with its sums and parts; None if it is read in another way."""
    value, sums, columns = matmul, list[Value](), matmul.shape[1]
    while value not in kept and len(readers.get(value, ())) == 1:
        [reader] = readers[value]
        if reader.op == "view" and not reader.offset and reader.size == value.size and _is_dense(reader):
            value = reader
        elif reader.op == "add" and sum(_is_row(each, columns) for each in reader.args) == 1:
            sums.append(reader)
            value = reader
        else:
            return None
    parts = readers.get(value, [])
    if value in kept or len(parts) < MIN_PARTS or kept.intersection(parts):
        return None
    if not all(each.op == "view" and _is_dense(each) and each.shape[-1:] == (columns,) for each in parts):
        return None
    parts = sorted(parts, key=lambda each: typical(each.offset))
    if any(part.offset + part.size > after.offset for part, after in pairwise(parts)):
        return None
    return _Product(matmul, tuple(sums), tuple(parts))


def _is_dense(view: Value) -> bool:
    return algebra.is_dense(view.shape, view.strides)


def _is_row(value: Value, columns: int) -> bool:
    """Whether a value is a row, repeated."""
    return (value.op == "view" and value.shape[-1:] == (columns,) and value.strides[-1] == 1
            and not any(value.strides[:-1]))


def _is_worth_it(product: _Product, readers: dict[Value, list[Value]]) -> bool:
    """Whether the result exceeds the cache, the right operand does not, and what reads a part needs an earlier one."""
    matmul, (_, right) = product.matmul, product.matmul.args
    size, cache = matmul.dtype.itemsize, cpu_cache.l2_size()
    if typical(matmul.size) * size <= cache or typical(right.size) * size > RIGHT_SHARE * cache:
        return False
    ends = [readers.get(part, []) for part in (product.parts[0], product.parts[-1])]
    if not all(ends):
        return False
    first, last = (each[0] for each in ends)
    return first in reachable([last]) or last in reachable([first])


class _Block:
    """Rows of a product that are computed together, when one of its parts is first replaced."""

    def __init__(self, product: _Product, parts: Sequence[Value]) -> None:
        self._product = product
        columns = product.matmul.shape[1]
        self._begin = parts[0].offset // columns
        self._rows = (parts[-1].offset + parts[-1].size) // columns - self._begin
        self._block: Value | None = None

    def part(self, graph: Graph, part: Value, replacements: dict[Value, Value]) -> Value:
        """A part, from the block instead of the whole result."""
        columns = self._product.matmul.shape[1]
        if self._block is None:
            left, right = (replacements[each] for each in self._product.matmul.args)
            by_row, by_k = left.strides if left.op == "view" else (left.shape[1], 1)
            rows = graph.view(left.base, (self._rows, left.shape[1]), (by_row, by_k),
                              left.offset + self._begin * by_row)
            self._block = graph.matmul(rows, right)
        value = graph.view(self._block, part.shape, part.strides, part.offset - self._begin * columns)
        for total in self._product.sums:
            # rows are added to parts, not to the block: such an addition is fused with what reads the part
            args = [value, value]
            for i, each in enumerate(total.args):
                if _is_row(each, columns):
                    row = replacements[each]
                    args[i] = graph.view(row.base, part.shape, (0,) * (part.ndim - 1) + (1,), row.offset)
            value = graph.apply("add", *args)
            graph.late.add(value)
        return value


def _cut(product: _Product) -> dict[Value, _Block]:
    """By part, the block that it is in."""
    limit = BLOCK_SHARE * cpu_cache.l2_size() / product.matmul.dtype.itemsize
    groups: list[list[Value]] = []
    size = 0
    for part in product.parts:
        size += typical(part.size)
        if not groups or size > limit or groups[-1][-1].offset + groups[-1][-1].size != part.offset:
            groups.append([])
            size = typical(part.size)
        groups[-1].append(part)
    return {part: block for group in groups for block in [_Block(product, group)] for part in group}
