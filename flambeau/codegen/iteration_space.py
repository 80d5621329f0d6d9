"""How several arrays of one shape are walked together: as few dimensions as possible, in the best order.

Everything is integers: shapes, and strides in bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple


def broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that all of these stretch to.

    Raises:
        ValueError: two extents that differ, neither of them 1.

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


def stretched(shape: tuple[int, ...], strides: tuple[int, ...], full: tuple[int, ...]) -> list[int]:
    """Strides of an array of `shape` as one of the shape `full`: 0 where it is repeated.

    >>> stretched((3, 1), (4, 4), (2, 3, 5))
    [0, 4, 0]
    """
    missing = len(full) - len(shape)
    return [0] * missing + [0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)]


def spread(shape: tuple[int, ...], strides: tuple[int, ...], full: tuple[int, ...]) -> list[int]:
    """`stretched`, of an array that need not broadcast to `full`.

    Raises:
        ValueError: it does not.
    """
    if shape != full:
        missing = len(full) - len(shape)
        if missing < 0 or any(extent not in (1, whole) for extent, whole in zip(shape, full[missing:], strict=True)):
            raise ValueError(f"an array of shape {shape} does not broadcast to {full}")
    return stretched(shape, strides, full)


def touched(shape: Sequence[int], operands: Sequence[Sequence[int]], sizes: Sequence[int]) -> int:
    """Bytes of operands, given by their strides over a shape and their elements' bytes; what is repeated counts once.

    >>> touched((2, 3), [[12, 4], [0, 4]], [4, 4])
    36
    """
    return sum(size * prod(extent for extent, stride in zip(shape, strides, strict=True) if stride)
               for strides, size in zip(operands, sizes, strict=True))


class Dims(NamedTuple):
    """Dimensions to walk, the innermost first: extents, and of every operand the strides."""

    extents: list[int]
    strides: list[list[int]]


def memory_order(shape: tuple[int, ...], strides: Sequence[Sequence[int]]) -> list[int]:
    """The dimensions from the slowest to the fastest in memory, as the operands (the first counts most) have them."""
    ranks = list(range(len(shape)))
    # a stable insertion sort: dimensions are swapped only where an operand that steps along both says so
    for i in range(1, len(ranks)):
        j = i
        while j > 0 and _goes_before(ranks[j], ranks[j - 1], shape, strides):
            ranks[j], ranks[j - 1] = ranks[j - 1], ranks[j]
            j -= 1
    return ranks


def _goes_before(a: int, b: int, shape: tuple[int, ...], strides: Sequence[Sequence[int]]) -> bool:
    """Whether dimension `a`, which follows `b`, is the slower one."""
    if shape[a] == 1 or shape[b] == 1:
        return False
    for each in strides:
        if each[a] and each[b] and abs(each[a]) != abs(each[b]):
            return abs(each[a]) > abs(each[b])
    return False


def collapse(shape: Sequence[int], strides: Sequence[Sequence[int]], order: Sequence[int],
             apart: Callable[[int], int] | None = None) -> Dims:
    """The dimensions in `order` (slowest first), those of extent 1 left out, neighbours made one where all agree.

    Args:
        apart: dimensions for which it differs are not made one.

    >>> collapse((2, 3, 4), [[48, 16, 4], [0, 0, 4]], [0, 1, 2])
    Dims(extents=[4, 6], strides=[[4, 16], [4, 0]])
    """
    extents: list[int] = []
    found: list[list[int]] = [[] for _ in strides]
    last = -1
    for dim in reversed(order):
        if shape[dim] == 1:
            continue
        if extents and (apart is None or apart(dim) == apart(last)) and all(
                each[dim] == so_far[-1] * extents[-1] for each, so_far in zip(strides, found, strict=True)):
            extents[-1] *= shape[dim]
        else:
            extents.append(shape[dim])
            for each, so_far in zip(strides, found, strict=True):
                so_far.append(each[dim])
        last = dim
    return Dims(extents, found)


def bring_inside(dims: Dims, dim: int) -> Dims:
    """The same dimensions with number `dim` the innermost."""
    order = [dim, *(i for i in range(len(dims.extents)) if i != dim)]
    return Dims([dims.extents[i] for i in order], [[each[i] for i in order] for each in dims.strides])


def steps(dims: Dims, itemsizes: Sequence[int]) -> str:
    """How each operand steps along the innermost dimension: "c", "b" or "s"."""
    return "".join("b" if not dims.extents or each[0] == 0 else "c" if each[0] == size else "s"
                   for each, size in zip(dims.strides, itemsizes, strict=True))


def blocks(extent: int, grain: int, multiple: int = 64) -> tuple[int, int]:
    """A number of equal blocks of about `grain` elements, and how many elements each has.

    >>> blocks(1000, 300, 1)
    (3, 334)
    """
    count = max(1, extent // max(1, grain))
    size = -(-extent // count)
    if count > 1:
        size = -(-size // multiple) * multiple
    return -(-extent // size) if size else 1, size


def elements(shape: Sequence[int]) -> int:
    """How many elements an array of this shape has."""
    return prod(shape)
