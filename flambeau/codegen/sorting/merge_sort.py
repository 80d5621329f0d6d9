"""Merge sort launches: a stable sort of rows of any length and of most dtypes.

It has no limits, so programs that are compiled ahead of time use it; the process itself sorts by faster kernels for
some dtypes and lengths (`rank_sort`, `radix_sort`, `top_k`).

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.runtime import launch; from flambeau.codegen.sorting import merge_sort
>>> x, values, places = np.float32([[3, 1, 2]]), np.float32([[1, 2, 3]]), np.int64([[1, 2, 0]])
>>> if codegen.available():
...     arrays = [values, places, x]
...     launch.run(merge_sort.order(*map(launch.Spec.of, arrays), descending=False), arrays)
>>> print(values, places)
[[1. 2. 3.]] [[1 2 0]]
"""

from __future__ import annotations

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from .. import iteration_space

#: elements that one thread sorts in about 10 µs
GRAIN = 1 << 9
#: elements of the runs that are sorted by insertion before they are merged
RUN = 8
DTYPES = ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "bool")


def order(values: Spec, places: Spec, x: Spec, *, descending: bool) -> list[Launch]:
    """The launches that sort every row; equal elements keep their order, and NaN is the largest value.

    Args:
        values: output, (rows, n) of x's dtype, contiguous: the sorted elements.
        places: output, (rows, n) int64, contiguous: the sorting indices.
        x: (rows, n) of one of `DTYPES`, contiguous.
        descending: whether the largest come first.

    Returns:
        Launches over the pointers of these three, and scratch.
    """
    rows, n = x.shape
    if x.dtype.name not in DTYPES:
        raise TypeError(f"cannot sort elements of dtype {x.dtype}")
    if not rows * n:
        return []
    chunks, chunk_rows = iteration_space.blocks(rows, max(1, GRAIN // n), 1)
    merges = max(0, -(-n // RUN) - 1).bit_length()

    def generate() -> str:
        from . import merge_sort_code

        return merge_sort_code.Emitter(x.dtype, descending, RUN).module()

    library = compilation.load(f"merge sort {x.dtype} {descending} {RUN}", ("body",), generate, "few")
    words = (n, rows, chunk_rows, merges)
    return [Launch(library, library.symbol("body"), chunks, words, 0, chunks * 32 * n)]


__all__ = ["DTYPES", "order"]
