"""The memory of a WebAssembly module with threads: how large it is when it is made, and how large it may become.

Such a module imports its memory, which the loader makes before anything of the module runs. Memory that is shared needs
a limit, and browsers reserve addresses for all of it, so the limit is what the model needs and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..interface import Interface, Operand
from ..interface_ir import ALIGNMENT

#: bytes of a page, the unit of a memory's size
PAGE = 65536
_IMPORTS = 2
_FUNCTION, _TABLE, _MEMORY, _GLOBAL = range(4)


class SharedMemory(NamedTuple):
    """What a loader must know to make a module's memory.

    Attributes:
        pages: of the memory at first, with the module's data and the first thread's stack.
        most: bytes that a run's arguments, results and arena take at most.
    """

    pages: int
    most: int


def imported_pages(module: bytes) -> int:
    """The least number of pages that a module's imported memory has.

    Raises:
        ValueError: it imports none.
    """
    for kind, section in _sections(module):
        if kind == _IMPORTS:
            reader = _Reader(section)
            for _ in range(reader.number()):
                reader.skip(reader.number())  # the names of the module and of the field
                reader.skip(reader.number())
                kind = reader.number()
                if kind != _MEMORY:
                    raise ValueError(f"the module imports something of kind {kind}, which is no memory")
                reader.number()  # whether there is a limit, and whether it is shared
                return reader.number()
    raise ValueError("the module imports no memory")


def most_bytes(interface: Interface, arenas: Mapping[tuple[int, ...], int], tables: int) -> int:
    """The bytes that a run's arguments, results and arena take at most.

    Args:
        interface: of the module.
        arenas: by combination of sizes, bytes of intermediate values.
        tables: bytes in front of them, at most.
    """
    operands = [*interface.inputs, *interface.outputs]
    return max(
        sum(_up(_bytes(each, interface.numbers(sizes))) for each in operands) + arena
        for sizes, arena in arenas.items()
    ) + (_up(tables) + 2 * ALIGNMENT)


def _bytes(operand: Operand, sizes: Mapping[str, int]) -> int:
    count = operand.dtype.itemsize
    for extent in operand.shape:
        count *= extent.value(sizes)
    return count


def _up(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


def _sections(module: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(module)
    reader.skip(8)
    while reader.at < len(module):
        kind, length = reader.number(), reader.number()
        yield kind, module[reader.at : reader.at + length]
        reader.skip(length)


class _Reader:
    """A place in a module, from which numbers are read in LEB128."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def number(self) -> int:
        """The next number."""
        value = shift = 0
        while True:
            byte = self.data[self.at]
            value |= (byte & 127) << shift
            self.at, shift = self.at + 1, shift + 7
            if byte < 128:
                return value

    def skip(self, count: int) -> None:
        """Go on behind some bytes."""
        self.at += count


__all__ = ["PAGE", "SharedMemory", "imported_pages", "most_bytes"]
