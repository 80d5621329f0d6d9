"""Index arithmetic: coordinates of a linear index, and offsets of operands, as scalar IR.

Extents and strides are constants, so that LLVM turns divisions into multiplications; they are in elements here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..scalar import scalar_ir
from ..scalar.scalar_ir import Node, cast

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
_UNSIGNED: dict[np.dtype, np.dtype] = {INT32: np.dtype(np.uint32), INT64: np.dtype(np.uint64)}


def index_dtype(extents: Sequence[int], strides: Sequence[Sequence[int]], count: int | None = None) -> np.dtype:
    """int32, unless an index or an offset might not fit.

    >>> print(index_dtype([1 << 16, 1 << 16], [[1, 1 << 16]]), index_dtype([4, 4], [[1, 4]]))
    int64 int32
    """
    number = count or int(np.prod([1, *extents], dtype=object))
    reach = [sum(abs(stride) * (extent - 1) for stride, extent in zip(each, extents, strict=True)) for each in strides]
    return INT32 if max([number, *reach]) < 2**30 else INT64  # a grid's last block may exceed the count


def coordinates(linear: Node, extents: Sequence[int]) -> list[Node]:
    """The coordinates of a linear index that is not negative, innermost first.

    >>> from flambeau.codegen.scalar.scalar_ir import variable
    >>> coordinates(variable(0, "int32"), [4])
    [x0]
    """
    if not extents:
        return []
    dtype: np.dtype = linear.dtype
    found: list[Node] = []
    rest: Node = cast(linear, _UNSIGNED[dtype])
    for extent in extents[:-1]:
        quotient = rest / extent
        found.append(cast(rest - quotient * extent, dtype))
        rest = quotient
    return [*found, cast(rest, dtype) if found else linear]


def offset(coordinate: Sequence[Node], strides: Sequence[int], zero: Node) -> Node:
    """The offset of an element; `zero` where all strides are."""
    total: Node | None = None
    for each, stride in zip(coordinate, strides, strict=True):
        if stride:
            term = each if stride == 1 else each * stride
            total = term if total is None else total + term
    return zero if total is None else total


def count_blocks(elements: int, per_block: int) -> int:
    """The number of blocks for so many elements."""
    return -(-elements // per_block)


def constant(value: int, dtype: np.dtype) -> Node:
    """An index constant."""
    return scalar_ir.constant(value, dtype)


__all__ = ["INT32", "INT64", "constant", "coordinates", "count_blocks", "index_dtype", "offset"]
