"""Radix sort launches: the stable order of every row's elements (least significant digit first).

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.sorting import radix_sort
>>> x, order, repeated = np.float32([[3, 1, 2]]), np.int64([[1, 2, 0]]), np.zeros(1, np.uint8)
>>> if codegen.available():
...     launch.run(radix_sort.order(*map(launch.Spec.of, (order, repeated, x)), descending=False), [order, repeated, x])
>>> print(order, repeated)
[[1 2 0]] [0]
"""

from __future__ import annotations

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from .. import iteration_space
from ..scalar.scalar_ir import FLOAT32

#: elements that one thread sorts in about 10 µs
GRAIN = 1 << 12
#: maximum bytes of scratch memory, and maximum number of chunks
MAX_SCRATCH, MAX_CHUNKS = 1 << 26, 64


def order(places: Spec, repeated: Spec, x: Spec, *, descending: bool) -> list[Launch]:
    """The launches that compute the order of every row; NaN is the largest value.

    Args:
        places: output, (rows, n) int64, contiguous: the sorting indices.
        repeated: output, (rows,) uint8: whether a row has equal elements.
        x: (rows, n) float32, contiguous, n below 2^32.
        descending: whether the largest come first.

    Returns:
        Launches over the pointers of these three and scratch.
    """
    rows, n = x.shape
    if x.dtype != FLOAT32:
        raise TypeError(f"cannot sort elements of dtype {x.dtype}")
    chunk_bytes = 2 * 8 * n
    max_chunks = min(MAX_CHUNKS, max(1, MAX_SCRATCH // max(1, chunk_bytes)))
    chunks, chunk_rows = iteration_space.blocks(rows, max(1, GRAIN // max(1, n), -(-rows // max_chunks)), 1)

    def generate() -> str:
        from . import radix_sort_code

        return radix_sort_code.Emitter(descending).module()

    library = compilation.load(f"order {x.dtype} {descending}", ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), chunks, (n, rows, chunk_rows), 0, chunks * chunk_bytes)]


__all__ = ["order"]
