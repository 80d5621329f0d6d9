"""Sorting the elements of short rows, equal ones in their own order: an element's place is how many come before it.

All are compared with all, which vectors do quicker than any sort of so few.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.sorting import rank_sort as ranking
>>> x, values, order, repeated = np.float32([[3, 1, 2]]), np.float32([[1, 2, 3]]), np.int64([[1, 2, 0]]), np.uint8([0])
>>> if codegen.available():
...     arrays = [values, order, repeated, x]
...     launch.run(ranking.order(*map(launch.Spec.of, arrays), back=False), arrays)
>>> print(values, order, repeated)
[[1. 2. 3.]] [[1 2 0]] [0]
"""

from __future__ import annotations

from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.scalar_ir import FLOAT32

#: elements that a row may have
MOST = 256
#: comparisons that one thread does in some ten microseconds
GRAIN = 1 << 18


def order(values: Spec, places: Spec, repeated: Spec, x: Spec, *, back: bool) -> list[Launch]:
    """The work of sorting every row, NaN the largest of all.

    Args:
        values: (rows, n) of float32, dense: the elements in their order.
        places: (rows, n) of int64, dense: where they were.
        repeated: (rows,) of uint8: whether a row has equal elements.
        x: (rows, n) of float32, dense, n from 1 to `MOST`.
        back: whether the largest come first.

    Returns:
        Launches over the pointers of the four.
    """
    rows, n = x.shape
    if x.dtype != FLOAT32:
        raise TypeError(f"elements of {x.dtype} are not ranked")
    if not 1 <= n <= MOST:
        raise ValueError(f"rows of {n} elements")
    chunks, tall = iteration_space.blocks(rows, max(1, GRAIN // (n * n)), 1)
    lanes = 2 * target.host().vector_bits // 32

    def generate() -> str:
        from . import rank_sort_code

        return rank_sort_code.Writer(lanes, back, MOST).module()

    library = compilation.load(f"rank {x.dtype} {lanes} {back} {MOST}", ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), chunks, (n, rows, tall))]


__all__ = ["MOST", "order"]
