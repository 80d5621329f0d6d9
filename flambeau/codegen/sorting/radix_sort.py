"""Sorting the elements of every row, equal ones in their own order: by digits of their keys, the last digit first.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.sorting import radix_sort as sorting
>>> x, order, repeated = np.float32([[3, 1, 2]]), np.int64([[1, 2, 0]]), np.zeros(1, np.uint8)
>>> if codegen.available():
...     launch.run(sorting.order(*map(launch.Spec.of, (order, repeated, x)), back=False), [order, repeated, x])
>>> print(order, repeated)
[[1 2 0]] [0]
"""

from __future__ import annotations

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.scalar_ir import FLOAT32

#: elements that one thread sorts in some ten microseconds
GRAIN = 1 << 12
#: memory that chunks may ask for, in bytes, and how many chunks there are, at most
ROOM, CHUNKS = 1 << 26, 64


def order(places: Spec, repeated: Spec, x: Spec, *, back: bool) -> list[Launch]:
    """The work of finding the order of every row, NaN the largest of all.

    Args:
        places: (rows, n) of int64, dense.
        repeated: (rows,) of uint8: whether a row has equal elements.
        x: (rows, n) of float32, dense, n below 2^32.
        back: whether the largest come first.

    Returns:
        Launches over the pointers of the three, and of the scratch memory that they ask for.
    """
    rows, n = x.shape
    if x.dtype != FLOAT32:
        raise TypeError(f"elements of {x.dtype} are not sorted")
    each = 2 * 8 * n
    most = min(CHUNKS, max(1, ROOM // max(1, each)))
    chunks, tall = iteration_space.blocks(rows, max(1, GRAIN // max(1, n), -(-rows // most)), 1)

    def generate() -> str:
        from . import radix_sort_code

        return radix_sort_code.Writer(back).module()

    library = compilation.load(f"order {x.dtype} {back}", ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), chunks, (n, rows, tall), 0, chunks * each)]


__all__ = ["order"]
