"""Iteration spaces: broadcasting, collapsing and ordering the dimensions over which a kernel's operands are walked.

Shapes are in elements, strides in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from ..runtime.symbolic_integers import greater, is_exact, is_symbolic, typical


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The broadcast shape.

    Raises:
        ValueError: two extents differ, and neither is 1.

    >>> broadcast([(3, 1), (4,)])
    (3, 4)
    """
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        for i, extent in enumerate(shape, rank - len(shape)):
            if extent != result[i] and extent != 1:
                if result[i] != 1:
                    raise ValueError(f"shapes {', '.join(map(str, shapes))} do not broadcast together")
                result[i] = extent
    return tuple(result)


def broadcast_strides(shape: tuple[int, ...], strides: tuple[int, ...], full: tuple[int, ...]) -> list[int]:
    """The strides of an array of `shape` broadcast to the shape `full`: 0 in broadcast dimensions.

    >>> broadcast_strides((3, 1), (4, 4), (2, 3, 5))
    [0, 4, 0]
    """
    missing = len(full) - len(shape)
    return [0] * missing + [0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)]


def checked_broadcast_strides(shape: tuple[int, ...], strides: tuple[int, ...], full: tuple[int, ...]) -> list[int]:
    """`broadcast_strides`, after a check.

    Raises:
        ValueError: `shape` does not broadcast to `full`.
    """
    if shape != full:
        missing = len(full) - len(shape)
        if missing < 0 or any(extent not in (1, target) for extent, target in zip(shape, full[missing:], strict=True)):
            raise ValueError(f"an array of shape {shape} does not broadcast to {full}")
    return broadcast_strides(shape, strides, full)


def bytes_accessed(shape: Sequence[int], operands: Sequence[Sequence[int]], sizes: Sequence[int]) -> int:
    """Bytes of all operands; broadcast elements count once.

    Args:
        shape: the iteration space.
        operands: each operand's strides.
        sizes: each operand's item size.


    >>> bytes_accessed((2, 3), [[12, 4], [0, 4]], [4, 4])
    36
    """
    return sum(size * prod(extent for extent, stride in zip(shape, strides, strict=True) if stride)
               for strides, size in zip(operands, sizes, strict=True))


class Dims(NamedTuple):
    """The dimensions of an iteration space, innermost first: extents, and each operand's strides."""

    extents: list[int]
    strides: list[list[int]]


def memory_order(shape: tuple[int, ...], strides: Sequence[Sequence[int]]) -> list[int]:
    """The dimensions from the slowest to the fastest in memory; the first operand takes precedence."""
    ranks = list(range(len(shape)))
    # a stable insertion sort: dimensions are swapped only if an operand has nonzero strides in both
    for i in range(1, len(ranks)):
        j = i
        while j > 0 and _is_slower(ranks[j], ranks[j - 1], shape, strides):
            ranks[j], ranks[j - 1] = ranks[j - 1], ranks[j]
            j -= 1
    return ranks


def _is_slower(a: int, b: int, shape: tuple[int, ...], strides: Sequence[Sequence[int]]) -> bool:
    """Whether dimension `a`, which follows `b`, has the larger stride."""
    if shape[a] == 1 or shape[b] == 1:
        return False
    for each in strides:
        if each[a] and each[b] and abs(each[a]) != abs(each[b]):
            return abs(each[a]) > abs(each[b])
    return False


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]], order: Sequence[int],
             kind: Callable[[int], int] | None = None) -> Dims:
    """Drop dimensions of extent 1 and merge neighbours that are contiguous with each other in all operands.

    Args:
        shape: the iteration space.
        strides: each operand's strides.
        order: the dimensions, slowest first.
        kind: dimensions are merged only if this function has the same value for them.

    >>> collapse((2, 3, 4), [[48, 16, 4], [0, 0, 4]], [0, 1, 2])
    Dims(extents=[4, 6], strides=[[4, 16], [4, 0]])
    """
    extents: list[int] = []
    collapsed: list[list[int]] = [[] for _ in strides]
    last = -1
    for dim in reversed(order):
        if shape[dim] == 1:
            continue
        if extents and (kind is None or kind(dim) == kind(last)) and all(
                each[dim] == merged[-1] * extents[-1] for each, merged in zip(strides, collapsed, strict=True)):
            extents[-1] *= shape[dim]
        else:
            extents.append(shape[dim])
            for each, merged in zip(strides, collapsed, strict=True):
                merged.append(each[dim])
        last = dim
    return Dims(extents, collapsed)


def move_innermost(dims: Dims, dim: int) -> Dims:
    """Make `dim` the innermost dimension."""
    order = [dim, *(i for i in range(len(dims.extents)) if i != dim)]
    return Dims([dims.extents[i] for i in order], [[each[i] for i in order] for each in dims.strides])


def access_patterns(dims: Dims, itemsizes: Sequence[int]) -> str:
    """Each operand's access pattern along the innermost dimension: "c", "b" or "s" (`llvm.loop_nests`)."""
    return "".join("b" if not dims.extents or each[0] == 0 else "c" if each[0] == size else "s"
                   for each, size in zip(dims.strides, itemsizes, strict=True))


def blocks(extent: int, grain: int, multiple: int = 64) -> tuple[int, int]:
    """Split an extent into equal blocks of about `grain` elements, a `multiple` each: their number, and their size.

    >>> blocks(1000, 300, 1)
    (3, 334)
    """
    if is_exact(extent) or is_exact(grain):
        count = greater(1, extent // greater(1, grain))
        size = -(-extent // count)
        if count > 1:
            size = -(-size // multiple) * multiple
        return -(-extent // size), size
    if is_symbolic(extent):  # of a size that is right for all extents
        size = -(-typical(extent) // max(1, typical(extent) // max(1, typical(grain))))
        size = -(-size // multiple) * multiple
        return -(-extent // size), size
    count = max(1, extent // max(1, grain))
    size = -(-extent // count)
    if count > 1:
        size = -(-size // multiple) * multiple
    return -(-extent // size) if size else 1, size


def numel(shape: Sequence[int]) -> int:
    """The number of elements of an array of this shape."""
    return prod(shape)
