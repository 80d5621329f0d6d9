"""Arrays that are alike: what they have in common, and the extents in which they differ.

Two sets of arrays are *alike* if the same of their extents are equal, those of 1 are the same, and strides arise from
extents in the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np


class ShapeSignature(NamedTuple):
    """What arrays that are alike have in common, and the extents in which they differ.

    Attributes:
        key: what they have in common.
        extents: those that may be others, each once.
        arrays: of each array, its dtype, its dimensions (the number of an extent, or -1 and the extent itself), and its
            strides: the dimension whose elements follow each other at this distance, or -1 and the stride.
    """

    key: tuple[Any, ...]
    extents: tuple[int, ...]
    arrays: tuple[tuple[np.dtype, tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]], ...]

    def arrays_of_extents(self, extents: Sequence[int]) -> list[np.ndarray]:
        """Arrays that are alike, of other extents; they have no memory."""
        found = []
        for dtype, dims, nested in self.arrays:
            shape = [extents[number] if number >= 0 else extent for number, extent in dims]
            strides: list[int | None] = [None] * len(shape)

            def stride(dim: int, shape: list[int] = shape, strides: list[int | None] = strides,
                       nested: tuple[tuple[int, int], ...] = nested) -> int:
                within, known = nested[dim]
                if strides[dim] is None:
                    strides[dim] = known if within < 0 else shape[within] * stride(within)
                return strides[dim]  # type: ignore[return-value]

            laid = [stride(dim) for dim in range(len(shape))]
            found.append(np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, laid, writeable=False))
        return found


def shape_signature(arrays: Sequence[np.ndarray], fixed: frozenset[int] = frozenset()) -> ShapeSignature | None:
    """What these arrays have in common with others; None where one of them has no elements.

    Args:
        fixed: extents that are to be the same in others.

    >>> a, b = shape_signature([np.ones((3, 4)), np.ones(4)]), shape_signature([np.ones((5, 7)), np.ones(7)])
    >>> a.key == b.key, a.extents, b.extents
    (True, (3, 4), (5, 7))
    >>> shape_signature([np.ones((3, 4)), np.ones((4, 1))[:, 0]]).key == a.key
    True
    >>> shape_signature([np.ones((4, 3)).T, np.ones(4)]).key == a.key
    False
    """
    numbers: dict[int, int] = {}
    found = []
    for a in arrays:
        if not a.size:
            return None
        shape, strides = a.shape, a.strides
        dims, nested = [], []
        for dim, (extent, stride) in enumerate(zip(shape, strides, strict=True)):
            if extent == 1:
                dims.append((-1, 1))
                nested.append((-1, a.itemsize))
                continue
            dims.append((-1, extent) if extent in fixed else (numbers.setdefault(extent, len(numbers)), 0))
            within = -1
            for k, (other, its) in enumerate(zip(shape, strides, strict=True)):
                if k != dim and other > 1 and its > 0 and its * other == stride:
                    within = k
                    break
            nested.append((within, 0 if within >= 0 else stride))
        found.append((a.dtype, tuple(dims), tuple(nested)))
    kept = tuple(found)
    # by size too, roughly: plans for little and for much differ
    return ShapeSignature((kept, max(a.size for a in arrays).bit_length() // 4), tuple(numbers), kept)


__all__ = ["ShapeSignature", "shape_signature"]
