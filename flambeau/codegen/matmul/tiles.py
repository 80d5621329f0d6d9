"""Launches of products of bfloat16 matrices by AMX: operands' roles, packing, groups of tiles.

A tile has 16 rows of 64 bytes. The left operand's tiles are 16 lines of 32 elements along K, read in place where these
are contiguous. The right operand's tiles are 16 pairs along K by 16 lines, and are always packed. Either matrix may be
the left operand: x @ y is the transpose of yᵀ @ xᵀ, whose tiles are transposed before they are stored.
"""

from __future__ import annotations

from typing import NamedTuple

from ...runtime import compilation, tiles
from ...runtime.launch import Launch, Spec

#: as in `tiles_code`, which needs llvmlite: lines of a tile, elements of a step along K, lines of a block
LINES, STEP, BLOCK = 16, 32, 32
#: blocks or panels that a chunk packs at most
GANG = 8
#: bytes of the right operand's panels that a chunk reads for each block, which are to stay in the L2 cache
GROUP_BYTES = 1 << 20
#: chunks at least, if there are as many blocks
CHUNKS = 8
#: cycles to pack 512 elements as a left or right operand, by what is contiguous, and to transpose 256 results
_PACK_LEFT = {"depth": 40, "lines": 140}
_PACK_RIGHT = {"depth": 100, "lines": 40}
_TRANSPOSE = 70


class _Side(NamedTuple):
    """An operand: its lines, the byte strides between them, along K and between matrices, and its pointer's index."""

    lines: int
    stride: int
    along: int
    batch: int
    pointer: int

    @property
    def contiguous(self) -> str | None:
        """What is contiguous: "depth" (K) or "lines"; None: neither, and the operand has to be copied."""
        if any(s < 0 or s % 2 for s in (self.stride, self.along, self.batch)):
            return None
        return "depth" if self.along == 2 else "lines" if self.stride == 2 else None


def is_available() -> bool:
    """Whether products of bfloat16 may use tiles."""
    return tiles.multiply_bfloat16()


def _sides(x: Spec, y: Spec) -> tuple[_Side, _Side]:
    """The operands of x (B, M, K) and y (B, K, N)."""
    shape, (batch, line, along) = x.shape, x.strides
    left = _Side(shape[1], line, along, batch if shape[0] > 1 else 0, 1)
    batch, along, line = y.strides
    return left, _Side(y.shape[2], line, along, batch if shape[0] > 1 else 0, 2)


def are_packable(x: Spec, y: Spec) -> tuple[bool, bool]:
    """Whether kernels read these operands, x (B, M, K) and y (B, K, N), where they are."""
    left, right = _sides(x, y)
    return left.contiguous is not None, right.contiguous is not None


def launches(x: Spec, y: Spec, has_bias: bool) -> list[Launch]:
    """The launches over the pointers of: result (B, M, N), x (B, M, K), y (B, K, N), bias (N), and scratch memory.

    All are bfloat16; the result and the bias are row-major. Without a bias any pointer stands for it.

    Args:
        x, y: see `are_packable`.
    """
    count, depth = x.shape[0], x.shape[2]
    first, second = _sides(x, y)
    plain = _cost(first, second, depth)
    swapped = _cost(second, first, depth) + first.lines * second.lines / 256 * _TRANSPOSE
    is_transposed = swapped < plain
    left, right = (second, first) if is_transposed else (first, second)
    steps = -(-depth // STEP)
    width = LINES if right.lines <= LINES else BLOCK
    blocks, panels = -(-left.lines // BLOCK), -(-right.lines // width)
    right_bytes = panels * steps * width * 2 * STEP
    in_place = left.contiguous == "depth" and depth % STEP == 0
    left_bytes = 0 if in_place else blocks * steps * BLOCK * 2 * STEP
    scratch = count * (right_bytes + left_bytes)
    common = left.lines, right.lines, depth, steps, blocks, panels
    result = []
    if not in_place:
        result.append(_packing(f"left {left.contiguous}", left, common, blocks, count, count * right_bytes, scratch))
    result.append(_packing(f"right {right.contiguous} {width}", right, common, panels, count, 0, scratch))
    library = _load(f"multiply {width} {'transposed' if is_transposed else 'plain'}")
    block_group, panel_group = _groups(blocks, panels, steps * STEP * 2 * BLOCK, count)
    place = ((left.pointer, left.stride, 2 * STEP, LINES * left.stride, left.batch, 0) if in_place else
             (4, 2 * STEP, 2 * STEP * LINES, 2 * STEP * LINES * steps, left_bytes, count * right_bytes))
    chunks = count * -(-blocks // block_group) * -(-panels // panel_group)
    words = *common, *place, block_group, panel_group, int(has_bias), right_bytes
    result.append(Launch(library, library.symbol("body"), chunks, words, 0, scratch))
    return result


def _packing(kind: str, side: _Side, common: tuple[int, ...], groups: int, count: int, target: int,
             scratch: int) -> Launch:
    """The launch that packs an operand."""
    library = _load(f"pack {kind}")
    gang = max(1, min(GANG, groups * count // CHUNKS))
    words = *common, side.pointer, side.stride if side.along == 2 else side.along, side.batch, target, gang
    return Launch(library, library.symbol("pack"), count * -(-groups // gang), words, 0, scratch)


def _cost(left: _Side, right: _Side, depth: int) -> float:
    """Cycles to pack the operands."""
    in_place = left.contiguous == "depth" and depth % STEP == 0
    cycles = 0 if in_place else left.lines * _PACK_LEFT[left.contiguous or ""]
    return (cycles + right.lines * _PACK_RIGHT[right.contiguous or ""]) * depth / 512


def _groups(blocks: int, panels: int, size: int, count: int) -> tuple[int, int]:
    """How many blocks and panels, of `size` bytes each, a chunk multiplies."""
    block_group, panel_group = blocks, min(panels, max(1, GROUP_BYTES // size))
    while count * -(-blocks // block_group) * -(-panels // panel_group) < CHUNKS and max(block_group, panel_group) > 1:
        if block_group >= panel_group:
            block_group = -(-block_group // 2)
        else:
            panel_group = -(-panel_group // 2)
    return block_group, panel_group


def _load(kind: str) -> compilation.Library:
    name = "body" if kind.startswith("multiply") else "pack"

    def generate() -> str:
        from . import tiles_code

        return tiles_code.generate(kind)

    return compilation.load(f"tiles {kind}", (name,), generate, "few")


__all__ = ["are_packable", "is_available", "launches"]
