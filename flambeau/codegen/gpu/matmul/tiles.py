"""Tiles of matrix products: the sizes that a block computes, and the choice among them.

The table is a start: no entry was measured on a GPU. `choose` takes the tile whose waves of blocks take the least
time by a model: a GPU with `processors` runs one wave after another, each of which takes the time of one tile.

>>> choose(4096, 4096, 4096, 1, "float32").m
128
>>> choose(64, 64, 1024, 1, "float32").m
32
"""

from __future__ import annotations

from typing import NamedTuple

#: multiprocessors of an A100; an H100 has 132
PROCESSORS = 108


class Tile(NamedTuple):
    """A block's part of C (m, n), the depth of a step along K, and the layout of threads.

    Attributes:
        m, n, k: the extents.
        threads: of a block.
        rows, columns: the part of a thread (of a warp, for tensor cores).
        cost: the time of a step, relative to that of a 64 x 64 tile.
    """

    m: int
    n: int
    k: int
    threads: int
    rows: int
    columns: int
    cost: float


#: by kind: products of the cores for float32 and float64, and of the tensor cores
TABLE: dict[str, tuple[Tile, ...]] = {
    "float32": (Tile(128, 128, 8, 256, 8, 8, 1.5), Tile(64, 64, 16, 256, 4, 4, 1.0), Tile(32, 32, 16, 64, 4, 4, 0.4)),
    "float64": (Tile(64, 64, 8, 256, 4, 4, 1.0), Tile(32, 32, 8, 64, 4, 4, 0.4)),
    "bf16": (Tile(128, 128, 32, 256, 64, 32, 2.4), Tile(64, 64, 32, 128, 32, 32, 1.0)),
    "f16": (Tile(128, 128, 32, 256, 64, 32, 2.4), Tile(64, 64, 32, 128, 32, 32, 1.0)),
    "tf32": (Tile(128, 128, 16, 256, 64, 32, 2.4), Tile(64, 64, 16, 128, 32, 32, 1.0)),
}


def choose(m: int, n: int, k: int, batch: int, kind: str) -> Tile:
    """The tile for products of (m, k) and (k, n) matrices."""
    def time(tile: Tile) -> float:
        blocks = batch * -(-m // tile.m) * -(-n // tile.n)
        # blocks that share a multiprocessor take turns, so that a part of a wave takes its part of the time
        waves = max(1.0, blocks / PROCESSORS)
        return waves * tile.cost * -(-k // tile.k) * tile.k

    return min(TABLE[kind], key=time)


__all__ = ["PROCESSORS", "TABLE", "Tile", "choose"]
