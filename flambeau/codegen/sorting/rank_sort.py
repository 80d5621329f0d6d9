"""Rank sort launches: a stable sort of short rows, where an element's rank is the number of elements before it.

All pairs are compared; for short rows vectors do this faster than any sort.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.sorting import rank_sort
>>> x, values, order, repeated = np.float32([[3, 1, 2]]), np.float32([[1, 2, 3]]), np.int64([[1, 2, 0]]), np.uint8([0])
>>> if codegen.available():
...     arrays = [values, order, repeated, x]
...     launch.run(rank_sort.order(*map(launch.Spec.of, arrays), descending=False), arrays)
>>> print(values, order, repeated)
[[1. 2. 3.]] [[1 2 0]] [0]
"""

from __future__ import annotations

from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.scalar_ir import FLOAT32

#: maximum elements of a row
MAX_ROW = 256
#: comparisons that one thread computes in about 10 µs
GRAIN = 1 << 18


def order(values: Spec, places: Spec, repeated: Spec, x: Spec, *, descending: bool) -> list[Launch]:
    """The launches that sort every row; NaN is the largest value.

    Args:
        values: output, (rows, n) float32, contiguous: the sorted elements.
        places: output, (rows, n) int64, contiguous: the sorting indices.
        repeated: output, (rows,) uint8: whether a row has equal elements.
        x: (rows, n) float32, contiguous, n from 1 to `MAX_ROW`.
        descending: whether the largest come first.

    Returns:
        Launches over the pointers of these four.
    """
    rows, n = x.shape
    if x.dtype != FLOAT32:
        raise TypeError(f"cannot sort elements of dtype {x.dtype}")
    if not 1 <= n <= MAX_ROW:
        raise ValueError(f"rows of {n} elements")
    chunks, chunk_rows = iteration_space.blocks(rows, max(1, GRAIN // (n * n)), 1)
    lanes = 2 * target.host().vector_bits // 32

    def generate() -> str:
        from . import rank_sort_code

        return rank_sort_code.Emitter(lanes, descending, MAX_ROW).module()

    library = compilation.load(f"rank {x.dtype} {lanes} {descending} {MAX_ROW}", ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), chunks, (n, rows, chunk_rows))]


__all__ = ["MAX_ROW", "order"]
