"""Pairwise reduction: LLVM code that stores, loads and merges the states of a reducer.

Blocks of elements are reduced to states, and states are merged like the bits of a binary counter carry. This is
pairwise summation: its rounding error grows with the logarithm of the number of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from .loop_nests import I64, i64, local, loop
from .reducers import Reducer

#: elements per vector lane that one accumulator takes before states are merged pairwise
BLOCK = 16
#: largest number of levels, which is the number of bits of the block counter
LEVELS = 40


@contextmanager
def tree_pairs(builder: ir.IRBuilder, count: Any) -> Iterator[tuple[Any, Any]]:
    """Emit a tree reduction over `count` states: yields the indices of two states, to be merged into the first.

    Neighbours come first, then neighbours among the merged states. In the end state 0 holds the result.
    """
    distance = local(builder, I64)
    builder.store(i64(1), distance)
    head, level, after = (builder.append_basic_block(name) for name in ("distances", "distance", "combined"))
    builder.branch(head)
    builder.position_at_end(head)
    apart = builder.load(distance, typ=I64)
    builder.cbranch(builder.icmp_signed("<", apart, count), level, after)
    builder.position_at_end(level)
    with loop(builder, i64(0), builder.sub(count, apart), builder.shl(apart, i64(1))) as first:
        yield first, builder.add(first, apart)
    builder.store(builder.shl(apart, i64(1)), distance)
    builder.branch(head)
    builder.position_at_end(after)


class ReductionState:
    """The states of a reducer in a function under construction: on the stack, and as vectors.

    Args:
        builder: the function's.
        reducer: defines a state's components, identity and merge.
        lanes: elements per vector.
    """

    def __init__(self, builder: ir.IRBuilder, reducer: Reducer, lanes: int) -> None:
        self.b, self.reducer, self.lanes = builder, reducer, lanes
        self.types = reducer.types(lanes)

    def allocate(self, count: int | None = None) -> list[Any]:
        """Stack memory for a state, or for `count` of them."""
        return [local(self.b, type_, count) for type_ in self.types]

    def allocate_identity(self) -> list[Any]:
        """Stack memory that holds the identity."""
        pointers = self.allocate()
        self.store(pointers, self.reducer.identity(self.lanes))
        return pointers

    def store(self, pointers: Sequence[Any], state: Sequence[Any]) -> None:
        """Store a state."""
        for pointer, value in zip(pointers, state, strict=True):
            self.b.store(value, pointer, align=1)

    def load(self, pointers: Sequence[Any], types: Sequence[ir.Type] | None = None) -> list[Any]:
        """Load a state."""
        return [self.b.load(pointer, typ=type_, align=1)
                for pointer, type_ in zip(pointers, types or self.types, strict=True)]

    def select(self, mask: Any, state: Sequence[Any]) -> list[Any]:
        """The state in the lanes of the mask, and the identity in the others."""
        return [self.b.select(mask, value, identity)
                for value, identity in zip(state, self.reducer.identity(self.lanes), strict=True)]

    def merge_tree(self, states: list[list[Any]]) -> list[Any]:
        """Merge several states pairwise."""
        while len(states) > 1:
            pairs = [self.reducer.merge(self.b, states[i], states[i + 1]) for i in range(0, len(states) - 1, 2)]
            states = pairs + states[len(pairs) * 2:]
        return states[0]

    def horizontal(self, state: Sequence[Any]) -> list[Any]:
        """Merge the lanes of a state into a scalar state."""
        b, lanes, parts = self.b, self.lanes, list(state)
        while lanes > 1:
            lanes //= 2
            halves = [[b.shuffle_vector(each, ir.Constant(each.type, ir.Undefined), ir.Constant(
                ir.VectorType(ir.IntType(32), lanes), list(range(start, start + lanes)))) for each in parts]
                for start in (0, lanes)]
            parts = self.reducer.merge(b, *halves)
        return [b.extract_element(each, ir.Constant(ir.IntType(32), 0)) for each in parts]

    def allocate_levels(self, width: int = 1) -> Callable[..., list[Any]]:
        """Stack memory for a state of `width` vectors per level; returns the function (level, vector) -> pointers."""
        memory = self.allocate(LEVELS * width)

        def pointers_at(level: Any, vector: Any = None) -> list[Any]:
            index = level if width == 1 else self.b.add(self.b.mul(level, i64(width)), vector)
            return [self.b.gep(each, [index], source_etype=type_)
                    for each, type_ in zip(memory, self.types, strict=True)]

        return pointers_at

    def carry(self, state: Sequence[Any], bits: Any, level_of: Callable[..., list[Any]]) -> None:
        """Emit the addition of a block's state to a binary counter: a carry out of a level merges two states.

        Args:
            state: the block's.
            bits: the counter; a level holds a state if its bit is set.
            level_of: the pointers of a level (`allocate_levels`).
        """
        b = self.b
        current = self.allocate()
        self.store(current, state)
        level = local(b, I64)
        b.store(i64(0), level)
        rest = local(b, I64)
        b.store(bits, rest)
        head, merge, after = (b.append_basic_block(name) for name in ("carry", "merge", "carried"))
        b.branch(head)
        b.position_at_end(head)
        left = b.load(rest, typ=I64)
        b.cbranch(b.icmp_signed("!=", b.and_(left, i64(1)), i64(0)), merge, after)
        b.position_at_end(merge)
        at_level = b.load(level, typ=I64)
        self.store(current, self.reducer.merge(b, self.load(level_of(at_level)), self.load(current)))
        b.store(b.add(at_level, i64(1)), level)
        b.store(b.lshr(left, i64(1)), rest)
        b.branch(head)
        b.position_at_end(after)
        self.store(level_of(b.load(level, typ=I64)), self.load(current))

    def fold(self, bits: Any, level_of: Callable[..., list[Any]], first: Sequence[Any] | None = None) -> list[Any]:
        """Merge the states of all levels of the counter, and the one stored at `first` if it is given."""
        b = self.b
        current = self.allocate()
        self.store(current, self.reducer.identity(self.lanes) if first is None else self.load(first))
        rest = local(b, I64)
        b.store(bits, rest)
        level = local(b, I64)
        b.store(i64(0), level)
        head, step, after = (b.append_basic_block(name) for name in ("fold", "level", "folded"))
        b.branch(head)
        b.position_at_end(head)
        left = b.load(rest, typ=I64)
        b.cbranch(b.icmp_signed("!=", left, i64(0)), step, after)
        b.position_at_end(step)
        at_level = b.load(level, typ=I64)
        with b.if_then(b.icmp_signed("!=", b.and_(left, i64(1)), i64(0))):
            self.store(current, self.reducer.merge(b, self.load(level_of(at_level)), self.load(current)))
        b.store(b.add(at_level, i64(1)), level)
        b.store(b.lshr(left, i64(1)), rest)
        b.branch(head)
        b.position_at_end(after)
        return self.load(current)
