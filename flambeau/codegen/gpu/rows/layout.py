"""How the threads of a block share rows, and how many blocks there are.

A row has `across` threads, a power of 2; a block has `down` rows at a time. Each thread has every `across`-th element
of its row, so that neighbouring threads read neighbouring elements.
"""

from __future__ import annotations

from typing import NamedTuple

#: the most elements of a row that a thread holds, and the most registers that they take; longer rows are read once by
#: each loop. A block of 1024 threads has 64 registers a thread
MAX_HELD, MAX_REGISTERS = 16, 32
#: threads of a block if rows are short, and elements of a thread at which a row gets more threads
THREADS, ELEMENTS = 256, 8
#: blocks that are enough for a GPU to be busy; threads that it runs at once, about
RESIDENT_BLOCKS, RESIDENT_THREADS = 216, 1 << 18
#: the fewest rows that a block adds up per column, if there are more blocks than that: each writes a row of sums
ROWS_OF_SUMS = 16
#: rows of at least LONG elements are divided if there are fewer than FEW of them
LONG, FEW, PIECE = 1 << 14, 64, 1 << 13
#: elements of an artificial row, where results do not depend on rows
FLAT = 1 << 12


class RowLayout(NamedTuple):
    """Threads of a row, rows of a block, elements of a thread (0: a loop), and blocks."""

    across: int
    down: int
    held: int
    blocks: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.across * self.down


def power_of_two(n: int) -> int:
    """The least power of 2 that is not below n.

    >>> power_of_two(1), power_of_two(5), power_of_two(64)
    (1, 8, 64)
    """
    return 1 << max(0, n - 1).bit_length()


def row_layout(rows: int, length: int, persistent: bool, registers: int = 1, columns: bool = False) -> RowLayout:
    """The layout of so many rows of this length.

    Args:
        rows: their number.
        length: elements of a row.
        persistent: whether a block adds something up over its rows, so that few blocks should do.
        registers: that an element takes, with what is added up for its column.
        columns: whether a block adds something up for each column.

    >>> row_layout(4096, 768, False)
    RowLayout(across=128, down=2, held=6, blocks=2048)
    >>> row_layout(1, 100_000, False)
    RowLayout(across=1024, down=1, held=0, blocks=1)
    """
    most = max(1, min(MAX_HELD, MAX_REGISTERS // registers))
    wanted = power_of_two(-(-length // min(most, ELEMENTS)))
    across = power_of_two(length) if length <= 32 else min(1024, max(32, wanted))
    down = max(1, THREADS // across)
    while down > 1 and across * down > 32 and -(-rows // down) < RESIDENT_BLOCKS:
        down //= 2
    down = max(down, -(-32 // across))
    held = -(-length // across)
    blocks = -(-rows // down)
    if persistent:
        resident = max(RESIDENT_BLOCKS, RESIDENT_THREADS // (across * down))
        if columns:
            resident = max(RESIDENT_BLOCKS, min(resident, rows // (ROWS_OF_SUMS * down)))
        blocks = min(blocks, resident)
    return RowLayout(across, down, held if held <= most else 0, blocks)


__all__ = ["FEW", "FLAT", "LONG", "PIECE", "RESIDENT_BLOCKS", "RowLayout", "power_of_two", "row_layout"]
