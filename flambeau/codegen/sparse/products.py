"""Launches of products of sparse and dense matrices.

A sparse matrix is given by its outer indices, compressed or one for each element, and its inner indices:

    gather    sparse @ dense, rows outer, elements sorted by row: CSR, coalesced COO
    scatter   sparse @ dense, rows inner, elements in any order: CSC, other COO
    sample    dense @ dense.T at the places of a sparse matrix

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.codegen.sparse import products; from flambeau.runtime import launch
>>> starts, columns, values = np.array([0, 1, 1, 3]), np.array([1, 0, 1]), np.float32([2, 3, 4])
>>> out, flag, dense = np.empty((3, 1), np.float32), np.zeros(1, np.int64), np.float32([[1], [10]])
>>> if codegen.available():
...     launch.run(products.launches("gather", values.dtype, starts.dtype, True, 3, 2, 3, 1, (0, 4)),
...                [out, flag, starts, columns, values, dense])
...     print(out.ravel().tolist())
[20.0, 0.0, 43.0]
"""

from __future__ import annotations

import numpy as np

from ...runtime import compilation, target
from ...runtime.launch import Launch

#: multiplications of a chunk: about 10 us of one thread's work
GRAIN = 1 << 16
#: the most chunks of a launch
MAX_CHUNKS = 256
#: columns of a scatter's chunk at least: two threads should not write the same cache line
SCATTER_BYTES = 128


def launches(kind: str, dtype: np.dtype, index: np.dtype, compressed: bool, outer: int, inner: int, count: int,
             width: int, strides: tuple[int, int]) -> list[Launch]:
    """The launch over the pointers of: result, flag (int64, zeroed), outer indices, inner indices, and two operands.

    The operands are the values and the dense matrix, or (sample) the two dense matrices; the result is dense
    (rows, width), or (count,). The flag is not 0 afterwards if an index was out of range or rows were not sorted.

    Args:
        kind: "gather", "scatter" or "sample".
        dtype: float32 or float64.
        index: int32 or int64.
        compressed: whether the outer indices are compressed.
        outer, inner: how many outer and inner indices there are.
        count: the number of elements.
        width: of the dense matrices.
        strides: bytes from row to row of the operands (0 for the values), whose elements are contiguous in a row.
    """
    lanes = target.host().vector_bits // 8 // dtype.itemsize if width > 2 else 1
    if kind == "scatter":
        grain = max(SCATTER_BYTES // dtype.itemsize, -(-width * GRAIN // max(GRAIN, count * width)))
        chunks = max(1, min(MAX_CHUNKS, width // grain))
        share = -(-width // chunks)
        share += -share % (SCATTER_BYTES // dtype.itemsize) if chunks > 1 else 0
        chunks = max(1, -(-width // share)) if share else 1
    else:
        total = count + (outer if compressed else 0)
        chunks = max(1, min(MAX_CHUNKS, total * width // GRAIN))
        share = -(-total // chunks)
        if compressed or kind == "gather":  # the last chunk also has what follows the last element
            chunks = max(1, -(-total // share)) if share else 1
        else:
            chunks = -(-total // share) if share else 1
    recipe = f"sparse {kind} {dtype} {index} {'compressed' if compressed else 'listed'} {lanes}"

    def generate() -> str:
        from . import code

        return code.generate(kind, dtype, index, compressed, lanes)

    library = compilation.load(recipe, ("body",), generate, "few")
    words = (chunks, share, outer, inner, count, width, *strides)
    return [Launch(library, library.symbol("body"), chunks, words)]


__all__ = ["launches"]
