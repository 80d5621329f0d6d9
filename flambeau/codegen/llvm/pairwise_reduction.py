"""States of a reduction in compiled code: held in variables, merged pairwise.

Blocks of elements become states, and states merge as the bits of a binary counter carry: which is pairwise
summation, whose errors grow as the logarithm of the number of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

from .loop_nests import I64, i64, local, loop
from .reducers import Monoid

#: elements that an accumulator takes in, for each lane, before states are merged pairwise
BLOCK = 16
#: merged blocks of blocks, at most: as many bits as their counter has
LEVELS = 40


@contextmanager
def pairs(builder: ir.IRBuilder, count: Any) -> Iterator[tuple[Any, Any]]:
    """The block written inside runs for each pair of numbers whose states are to be merged into the first's.

    Neighbours come first, then neighbours of what has been merged: in the end number 0 holds the state of all.
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


class States:
    """How a function under construction keeps and merges the states of a monoid.

    Args:
        builder: the function's.
        monoid: what a state is.
        lanes: elements in a vector.
    """

    def __init__(self, builder: ir.IRBuilder, monoid: Monoid, lanes: int) -> None:
        self.b, self.monoid, self.lanes = builder, monoid, lanes
        self.types = monoid.types(lanes)

    def variables(self, count: int | None = None) -> list[Any]:
        """Memory of the function's own for a state, or for `count` of them."""
        return [local(self.b, type_, count) for type_ in self.types]

    def fresh(self) -> list[Any]:
        """Variables that hold the state of no elements."""
        places = self.variables()
        self.write(places, self.monoid.identity(self.lanes))
        return places

    def write(self, places: Sequence[Any], state: Sequence[Any]) -> None:
        """Keep a state."""
        for place, value in zip(places, state, strict=True):
            self.b.store(value, place, align=1)

    def value(self, places: Sequence[Any], types: Sequence[ir.Type] | None = None) -> list[Any]:
        """The state that is kept."""
        return [self.b.load(place, typ=type_, align=1)
                for place, type_ in zip(places, types or self.types, strict=True)]

    def masked(self, mask: Any, state: Sequence[Any]) -> list[Any]:
        """The state in the lanes of the mask, in others that of no elements."""
        return [self.b.select(mask, value, none)
                for value, none in zip(state, self.monoid.identity(self.lanes), strict=True)]

    def tree(self, states: list[list[Any]]) -> list[Any]:
        """Some states merged."""
        while len(states) > 1:
            pairs = [self.monoid.merge(self.b, states[i], states[i + 1]) for i in range(0, len(states) - 1, 2)]
            states = pairs + states[len(pairs) * 2:]
        return states[0]

    def horizontal(self, state: Sequence[Any]) -> list[Any]:
        """The lanes' states merged into one."""
        b, lanes, parts = self.b, self.lanes, list(state)
        while lanes > 1:
            lanes //= 2
            halves = [[b.shuffle_vector(each, ir.Constant(each.type, ir.Undefined), ir.Constant(
                ir.VectorType(ir.IntType(32), lanes), list(range(start, start + lanes)))) for each in parts]
                for start in (0, lanes)]
            parts = self.monoid.merge(b, *halves)
        return [b.extract_element(each, ir.Constant(ir.IntType(32), 0)) for each in parts]

    def levels(self, width: int = 1) -> Callable[..., list[Any]]:
        """Memory of a counter's states, `width` vectors each, and how to find one."""
        memory = self.variables(LEVELS * width)

        def find(level: Any, vector: Any = None) -> list[Any]:
            index = level if width == 1 else self.b.add(self.b.mul(level, i64(width)), vector)
            return [self.b.gep(each, [index], source_etype=type_)
                    for each, type_ in zip(memory, self.types, strict=True)]

        return find

    def carry(self, state: Sequence[Any], bits: Any, level_of: Callable[..., list[Any]]) -> None:
        """Add a block's state to a binary counter whose set bits are states: each carry merges two."""
        b = self.b
        current = self.variables()
        self.write(current, state)
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
        self.write(current, self.monoid.merge(b, self.value(level_of(at_level)), self.value(current)))
        b.store(b.add(at_level, i64(1)), level)
        b.store(b.lshr(left, i64(1)), rest)
        b.branch(head)
        b.position_at_end(after)
        self.write(level_of(b.load(level, typ=I64)), self.value(current))

    def folded(self, bits: Any, level_of: Callable[..., list[Any]],
               first: Sequence[Any] | None = None) -> list[Any]:
        """All states of the counter merged, and that of the variables `first`, where they are given."""
        b = self.b
        current = self.variables()
        self.write(current, self.monoid.identity(self.lanes) if first is None else self.value(first))
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
            self.write(current, self.monoid.merge(b, self.value(level_of(at_level)), self.value(current)))
        b.store(b.add(at_level, i64(1)), level)
        b.store(b.lshr(left, i64(1)), rest)
        b.branch(head)
        b.position_at_end(after)
        return self.value(current)
