"""Reductions among the threads of a block: by shuffles within a warp, through shared memory between warps."""

from __future__ import annotations

from collections.abc import Sequence

from ...scalar.scalar_ir import Node
from ..kernel_ir import WARP, KernelBuilder
from ..statements import Buffer
from .reducers import Reduction


def reduce_groups(b: KernelBuilder, reduction: Reduction, state: Sequence[Node], group: int) -> list[Node]:
    """The merged state of each group of neighbouring threads, known to all of them.

    Every thread of the block takes part.

    Args:
        b: the kernel's builder.
        reduction: merges states.
        state: each thread's.
        group: threads of a group, a power of 2.
    """
    merged = _in_warp(b, reduction, state, min(group, WARP))
    if group <= WARP:
        return merged
    return _between_warps(b, reduction, merged, group // WARP)


def _in_warp(b: KernelBuilder, reduction: Reduction, state: Sequence[Node], group: int) -> list[Node]:
    merged, lanes = list(state), group // 2
    while lanes:
        merged = reduction.merge(merged, [b.shuffle_xor(each, lanes) for each in merged])
        lanes //= 2
    return merged


def _between_warps(b: KernelBuilder, reduction: Reduction, state: Sequence[Node], warps: int) -> list[Node]:
    """The merged state of each group of so many warps, each of which has one state."""
    parts: list[Buffer] = [b.shared(dtype, b.threads // WARP) for dtype in reduction.dtypes]
    warp, lane = b.thread / WARP, b.thread - b.thread / WARP * WARP
    b.barrier()  # a loop may have the last round's states there
    for part, each in zip(parts, state, strict=True):
        b.store(part, warp, each, lane < 1)
    b.barrier()
    first = warp / warps * warps
    some = [b.load(part, first + (lane - lane / warps * warps)) for part in parts]
    return _in_warp(b, reduction, some, warps)


__all__ = ["reduce_groups"]
