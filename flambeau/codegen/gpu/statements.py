"""The statements of kernel IR, and what they access: buffers and local variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..scalar.scalar_ir import Node


class Buffer:
    """An array that a kernel accesses by element.

    Attributes:
        dtype: of the elements.
        space: "global", "shared", "indirect" or "constant".
        position: of a global buffer, its number among the parameters; of a shared one, its offset in bytes.
        size: the number of elements of a shared buffer.
        table: of an indirect buffer, the global buffer of int64 addresses.
        slot: of an indirect buffer, the index in the table.
        values: of a constant buffer, its elements.
    """

    __slots__ = ("dtype", "position", "size", "slot", "space", "table", "values")

    def __init__(self, dtype: np.dtype, space: str, position: int, size: int = 0, table: Buffer | None = None,
                 slot: Node | None = None, values: tuple[int, ...] = ()) -> None:
        self.dtype, self.space, self.position, self.size = dtype, space, position, size
        self.table, self.slot, self.values = table, slot, values

    def __repr__(self) -> str:
        if self.table is not None:
            return f"{self.table}[{self.slot}]"
        if self.values:
            return f"{self.dtype}{self.values}"
        return f"{self.space}{self.position}"


class Local:
    """A mutable variable of each thread."""

    __slots__ = ("dtype", "number")

    def __init__(self, dtype: np.dtype, number: int) -> None:
        self.dtype, self.number = dtype, number

    def __repr__(self) -> str:
        return f"local{self.number}"


#: writes an expression
Text = Callable[[Node], str]


def _where(text: Text, where: Node | None) -> str:
    return "" if where is None else f" where {text(where)}"


def _present(*nodes: Node | None) -> tuple[Node, ...]:
    return tuple([each for each in nodes if each is not None])


def _names(text: Text, nodes: Sequence[Node]) -> str:
    return ", ".join(map(text, nodes))


class Load(NamedTuple):
    """Read consecutive elements, from an index that is a multiple of their number; 0 where `where` is false."""

    results: tuple[Node, ...]
    buffer: Buffer
    at: Node
    where: Node | None

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated."""
        return _present(self.at, self.where, self.buffer.slot)

    def line(self, text: Text) -> str:
        """The statement as text."""
        return f"{_names(repr, self.results)} = load {self.buffer}[{text(self.at)}]{_where(text, self.where)}"


class Store(NamedTuple):
    """Write consecutive elements, from an index that is a multiple of their number."""

    buffer: Buffer
    at: Node
    values: tuple[Node, ...]
    where: Node | None

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated."""
        return (*_present(self.at, self.where, self.buffer.slot), *self.values)

    def line(self, text: Text) -> str:
        """The statement as text."""
        values = _names(text, self.values)
        return f"store {self.buffer}[{text(self.at)}] = {values}{_where(text, self.where)}"


class Atomic(NamedTuple):
    """Combine an element with a value, indivisibly; the order among threads is undefined."""

    op: str
    buffer: Buffer
    at: Node
    value: Node
    where: Node | None

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated."""
        return (*_present(self.at, self.where, self.buffer.slot), self.value)

    def line(self, text: Text) -> str:
        """The statement as text."""
        return f"atomic {self.op} {self.buffer}[{text(self.at)}] {text(self.value)}{_where(text, self.where)}"


class Barrier(NamedTuple):
    """Wait for all threads of the block; what they wrote before is visible after."""

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated."""
        return ()

    def line(self, text: Text) -> str:
        """The statement as text."""
        return "barrier"


class Shuffle(NamedTuple):
    """The value of the thread of this warp whose number differs by `lanes` (exclusive or)."""

    result: Node
    value: Node
    lanes: int

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated."""
        return (self.value,)

    def line(self, text: Text) -> str:
        """The statement as text."""
        return f"{self.result} = shuffle {text(self.value)} xor {self.lanes}"


class SetLocal(NamedTuple):
    """Assign to a local variable."""

    local: Local
    value: Node

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated."""
        return (self.value,)

    def line(self, text: Text) -> str:
        """The statement as text."""
        return f"{self.local} = {text(self.value)}"


class GetLocal(NamedTuple):
    """The present value of a local variable."""

    result: Node
    local: Local

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated."""
        return ()

    def line(self, text: Text) -> str:
        """The statement as text."""
        return f"{self.result} = {self.local}"


class Loop(NamedTuple):
    """Run the body for counter = start, start + step, ... below stop."""

    counter: Node
    start: Node
    stop: Node
    step: Node
    body: list[Any]

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated, but for those of the body."""
        return self.start, self.stop, self.step

    def line(self, text: Text) -> str:
        """The head as text."""
        return f"for {self.counter} in {text(self.start)}, {text(self.stop)}, {text(self.step)}"


class While(NamedTuple):
    """Run the body as long as a local variable is true, which the body sets."""

    going: Local
    body: list[Any]

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated."""
        return ()

    def line(self, text: Text) -> str:
        """The head as text."""
        return f"while {self.going}"


class If(NamedTuple):
    """Run the body where the condition holds."""

    condition: Node
    body: list[Any]

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated, but for those of the body."""
        return (self.condition,)

    def line(self, text: Text) -> str:
        """The head as text."""
        return f"if {text(self.condition)}"


class Mma(NamedTuple):
    """d = a b + c of small matrices that the registers of a warp hold (`fragments`)."""

    shape: str
    results: tuple[Node, ...]
    a: tuple[Node, ...]
    b: tuple[Node, ...]
    c: tuple[Node, ...]

    def expressions(self) -> tuple[Node, ...]:
        """The expressions that are evaluated."""
        return (*self.a, *self.b, *self.c)

    def line(self, text: Text) -> str:
        """The statement as text."""
        operands = " | ".join(_names(text, each) for each in (self.a, self.b, self.c))
        return f"{_names(repr, self.results)} = mma {self.shape} {operands}"


__all__ = ["Atomic", "Barrier", "Buffer", "GetLocal", "If", "Load", "Local", "Loop", "Mma", "SetLocal", "Shuffle",
           "Store", "While"]
