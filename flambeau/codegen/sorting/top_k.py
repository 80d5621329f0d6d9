"""Top-k launches: the k largest or smallest elements of every row and their indices, sorted.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.sorting import top_k
>>> x, values, places, ambiguous = np.float32([[3, 1, 4, 2]]), np.float32([[4, 3]]), np.int64([[2, 0]]), np.uint8([0])
>>> if codegen.available():
...     arrays = [values, places, ambiguous, x]
...     launch.run(top_k.top_k(*map(launch.Spec.of, arrays), largest=True), arrays)
>>> print(values, places, ambiguous)
[[4. 3.]] [[2 0]] [0]
"""

from __future__ import annotations

from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.scalar_ir import FLOAT32, FLOAT64

#: maximum k
MAX_K = 64
#: elements that one thread processes in about 10 µs
GRAIN = 1 << 15


def top_k(values: Spec, places: Spec, ambiguous: Spec, x: Spec, *, largest: bool) -> list[Launch]:
    """The launches that select the k best elements of every row; NaN is the largest value.

    Args:
        values: output, (rows, k) of x's dtype, contiguous: the elements.
        places: output, (rows, k) int64, contiguous: their indices; k is at most `MAX_K`.
        ambiguous: output, (rows,) uint8: 1 where ties make the indices ambiguous, or fewer than k elements differ from
            the worst possible one. The other outputs of such a row are not valid.
        x: (rows, n) float32 or float64, contiguous.
        largest: whether the largest are selected; else the smallest.

    Returns:
        Launches over the pointers of these four.
    """
    rows, count = places.shape
    n = x.shape[1]
    if x.dtype not in (FLOAT32, FLOAT64):
        raise TypeError(f"cannot select elements of dtype {x.dtype}")
    if not 1 <= count <= min(n, MAX_K):
        raise ValueError(f"top {count} of {n} elements")
    chunks, chunk_rows = iteration_space.blocks(rows, max(1, GRAIN // n), 1)
    lanes = 4 * max(2, target.host().vector_bits // 8 // x.dtype.itemsize)

    def generate() -> str:
        from . import top_k_code

        return top_k_code.Emitter(x.dtype, lanes, largest, MAX_K).module()

    library = compilation.load(f"top_k {x.dtype} {lanes} {largest} {MAX_K}", ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), chunks, (n, rows, chunk_rows, count))]


__all__ = ["MAX_K", "top_k"]
