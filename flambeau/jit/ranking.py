"""Sorting the elements of short rows, equal ones in their own order: an element's place is how many come before it.

All are compared with all, which vectors do quicker than any sort of so few.

>>> import numpy as np
>>> from flambeau import jit
>>> from flambeau.jit import launch, ranking
>>> x, values, order, repeated = np.float32([[3, 1, 2]]), np.float32([[1, 2, 3]]), np.int64([[1, 2, 0]]), np.uint8([0])
>>> if jit.available():
...     arrays = [values, order, repeated, x]
...     launch.run(ranking.order(*map(launch.Spec.of, arrays), back=False), arrays)
>>> print(values, order, repeated)
[[1. 2. 3.]] [[1 2 0]] [0]
"""

from __future__ import annotations

from . import compiled, layout, target
from .expression import FLOAT32
from .launch import Launch, Spec

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
    chunks, tall = layout.blocks(rows, max(1, GRAIN // (n * n)), 1)
    lanes = 2 * target.host().vector_bits // 32

    def generate() -> str:
        from . import ranking_code

        return ranking_code.Writer(lanes, back, MOST).module()

    library = compiled.load(f"rank {x.dtype} {lanes} {back} {MOST}", ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), chunks, (n, rows, tall))]


__all__ = ["MOST", "order"]
