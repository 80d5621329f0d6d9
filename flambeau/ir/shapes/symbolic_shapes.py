"""Shape signatures: a list of arrays up to the values of its extents.

Two lists of arrays have the same signature if they agree in which extents are equal, in which extents are 1, and in how
strides follow from extents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class ShapeSignature(NamedTuple):
    """The signature of a list of arrays, and its extents.

    Attributes:
        key: equal for all lists of this signature.
        extents: the symbolic extents, each distinct one once.
        arrays: for each array its dtype, its dimensions ((symbol, 0), or (-1, extent) where it is fixed), and its
            strides ((d, 0): stride times extent of dimension d; or (-1, stride) where it is fixed).
    """

    key: tuple[Any, ...]
    extents: tuple[int, ...]
    arrays: tuple[tuple[np.dtype, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]], ...]

    def arrays_of_extents(self, extents: Sequence[int]) -> list[np.ndarray]:
        """Arrays of this signature and these extents; every array is one element with strides, not to be read."""
        arrays = []
        for dtype, dims, stride_rules in self.arrays:
            shape = [extents[symbol] if symbol >= 0 else extent for symbol, extent in dims]
            strides: list[int | None] = [None] * len(shape)

            def stride(dim: int, shape: list[int] = shape, strides: list[int | None] = strides,
                       stride_rules: tuple[tuple[int, int], ...] = stride_rules) -> int:
                inner, constant = stride_rules[dim]
                if strides[dim] is None:
                    strides[dim] = constant if inner < 0 else shape[inner] * stride(inner)
                return strides[dim]  # type: ignore[return-value]

            all_strides = [stride(dim) for dim in range(len(shape))]
            arrays.append(np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, all_strides, writeable=False))
        return arrays


def shape_signature(arrays: Sequence[np.ndarray], fixed: frozenset[int] = frozenset()) -> ShapeSignature | None:
    """The signature of these arrays; None where one of them has no elements.

    Args:
        fixed: extents that are part of the signature instead of symbolic.

    >>> a, b = shape_signature([np.ones((3, 4)), np.ones(4)]), shape_signature([np.ones((5, 7)), np.ones(7)])
    >>> a.key == b.key, a.extents, b.extents
    (True, (3, 4), (5, 7))
    >>> shape_signature([np.ones((3, 4)), np.ones((4, 1))[:, 0]]).key == a.key
    True
    >>> shape_signature([np.ones((4, 3)).T, np.ones(4)]).key == a.key
    False
    """
    symbols: dict[int, int] = {}
    described = []
    for a in arrays:
        if not a.size:
            return None
        shape, strides = a.shape, a.strides
        dims, stride_rules = [], []
        for dim, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
            if extent == 1:
                dims.append((-1, 1))
                stride_rules.append((-1, a.itemsize))
                continue
            dims.append((-1, extent) if extent in fixed else (symbols.setdefault(extent, len(symbols)), 0))
            inner = -1
            for k, (other, inner_stride) in enumerate(zip(shape, strides, strict=True)):
                if k != dim and other > 1 and inner_stride > 0 and inner_stride * other == stride:
                    inner = k
                    break
            stride_rules.append((inner, 0 if inner >= 0 else stride))
        described.append((a.dtype, tuple(dims), tuple(stride_rules)))
    arrays_key = tuple(described)
    # the order of magnitude too, since thresholds make plans differ by size
    return ShapeSignature((arrays_key, max(a.size for a in arrays).bit_length() // 4), tuple(symbols), arrays_key)


__all__ = ["ShapeSignature", "shape_signature"]
