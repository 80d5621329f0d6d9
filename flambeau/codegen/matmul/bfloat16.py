"""Launches of products of bfloat16 matrices by AVX512-BF16, rounded once from float32 sums.

Operands of other processors are converted to float32 and multiplied there.
"""

from __future__ import annotations

from collections.abc import Callable

from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec

#: as in `bfloat16_code`, which needs llvmlite
ROWS, COLUMNS = 12, 32
#: blocks of rows, and panels of columns, that a chunk multiplies: their parts of both operands stay in the L2 cache
BLOCK_GROUP, PANEL_GROUP = 8, 8


def is_available() -> bool:
    """Whether the target multiplies bfloat16."""
    this = target.host()
    return this.vector_bits == 512 and this.triple.startswith(("x86_64", "amd64")) and (
        "+avx512bf16" in this.features.split(","))


def layout(x: Spec, is_right: bool) -> str | None:
    """How an operand is packed: "left", "right" (contiguous along K) or "right rows"; None: it has to be copied."""
    along, across = x.strides if not is_right else x.strides[::-1]  # of lines, and of elements along K
    if across == 2 and along % 2 == 0 and along >= 0:
        return "right" if is_right else "left"
    return "right rows" if is_right and along == 2 and across % 2 == 0 and across >= 0 else None


def launches(x: Spec, y: Spec, has_bias: bool) -> list[Launch]:
    """The launches over the pointers of: result (M, N), x (M, K), y (K, N), bias (N), and scratch memory.

    All are bfloat16; the result and the bias are row-major. Without a bias any pointer stands for it.

    Args:
        x, y: of a `layout`.
    """
    (rows, depth), columns = x.shape, y.shape[1]
    blocks, panels, pairs = -(-rows // ROWS), -(-columns // COLUMNS), -(-depth // 2)
    left_bytes = -(-blocks * pairs * 4 * ROWS // 64) * 64
    kinds = layout(x, False), layout(y, True)
    if kinds[0] is None or kinds[1] is None:
        raise ValueError(f"operands of strides {x.strides} and {y.strides} are not packed")
    head = rows, columns, depth
    tail = blocks, panels, BLOCK_GROUP, PANEL_GROUP, int(has_bias), 0, left_bytes
    scratch = left_bytes + panels * pairs * 4 * COLUMNS
    result = []
    for kind, spec, chunks in ((kinds[0], x, blocks), (kinds[1], y, panels)):
        line = spec.strides[0] if kind in ("left", "right rows") else spec.strides[1]
        library = compilation.load(f"bfloat16 pack {kind}", ("pack",), _generator(kind), "few")
        result.append(Launch(library, library.symbol("pack"), chunks, (*head, line // 2, *tail), 0, scratch))
    library = compilation.load("bfloat16 multiply", ("body",), _generator("multiply"), "few")
    chunks = -(-blocks // BLOCK_GROUP) * -(-panels // PANEL_GROUP)
    result.append(Launch(library, library.symbol("body"), chunks, (*head, 0, *tail), 0, scratch))
    return result


def _generator(kind: str) -> Callable[[], str]:
    def generate() -> str:
        from . import bfloat16_code

        return bfloat16_code.generate(kind)

    return generate


__all__ = ["is_available", "launches", "layout"]
