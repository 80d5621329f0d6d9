"""Selection: where the largest, or smallest, elements of every row are, the best first.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.sorting import top_k as selecting
>>> x, values, places, doubtful = np.float32([[3, 1, 4, 2]]), np.float32([[4, 3]]), np.int64([[2, 0]]), np.uint8([0])
>>> if codegen.available():
...     arrays = [values, places, doubtful, x]
...     launch.run(selecting.best(*map(launch.Spec.of, arrays), largest=True), arrays)
>>> print(values, places, doubtful)
[[4. 3.]] [[2 0]] [0]
"""

from __future__ import annotations

from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.scalar_ir import FLOAT32, FLOAT64

#: how many elements of a row can be asked for
MOST = 64
#: elements that one thread looks at in some ten microseconds
GRAIN = 1 << 15


def best(values: Spec, places: Spec, doubtful: Spec, x: Spec, *, largest: bool) -> list[Launch]:
    """The work of finding the best elements of every row, NaN the largest of all.

    Args:
        values: (rows, count) of x's dtype, dense: the elements.
        places: (rows, count) of int64, up to `MOST` of them, dense: where they are.
        doubtful: (rows,) of uint8: 1 where equal elements could be exchanged for each other, or a row had too few that
            differ from the worst there can be. What is said of such a row is not to be used.
        x: (rows, n) of float32 or float64, dense.
        largest: whether the largest are the best; else the smallest.

    Returns:
        Launches over the pointers of the four.
    """
    rows, count = places.shape
    n = x.shape[1]
    if x.dtype not in (FLOAT32, FLOAT64):
        raise TypeError(f"elements of {x.dtype} are not selected")
    if not 1 <= count <= min(n, MOST):
        raise ValueError(f"{count} of {n} elements")
    chunks, tall = iteration_space.blocks(rows, max(1, GRAIN // n), 1)
    lanes = 4 * max(2, target.host().vector_bits // 8 // x.dtype.itemsize)

    def generate() -> str:
        from . import top_k_code

        return top_k_code.Writer(x.dtype, lanes, largest, MOST).module()

    library = compilation.load(f"best {x.dtype} {lanes} {largest} {MOST}", ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), chunks, (n, rows, tall, count))]


__all__ = ["MOST", "best"]
