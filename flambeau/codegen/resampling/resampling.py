"""Launches of resampling along one dimension.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.codegen.resampling import resampling; from flambeau.runtime import launch
>>> x, out = np.float32([1, 3]), np.float32([2, 3])
>>> if codegen.available():
...     launch.run(resampling.launches(x.dtype, 1, 2, 1, np.array([[0, 1], [1, 1]]), np.array([[0.5, 0], [0.5, 1]])),
...                [out, x])
>>> out
array([2., 3.], dtype=float32)
"""

from __future__ import annotations

import numpy as np

from ...runtime import compilation, target
from ...runtime.launch import Launch

#: products of a chunk: about 10 us of one thread's work
GRAIN = 1 << 16
#: the most taps
MAX_TAPS = 16


def launches(dtype: np.dtype, lines: int, size: int, inner: int, positions: np.ndarray,
             weights: np.ndarray) -> list[Launch]:
    """The launch over the pointers of: out (lines, outputs, inner), x (lines, size, inner), row-major.

    Args:
        dtype: float32 or float64.
        positions: (taps, outputs), in [0, size).
        weights: (taps, outputs); where one is 0, the tap adds nothing.
    """
    taps, outputs = positions.shape
    lanes = target.host().vector_bits // 8 // dtype.itemsize
    units = lines * outputs if inner > 1 else lines
    share = max(1, GRAIN // max(1, taps * (inner if inner > 1 else outputs)))
    chunks = max(1, -(-units // share))
    share = -(-units // chunks)
    bits = weights.astype(dtype).view(f"i{dtype.itemsize}").astype(np.int64)
    words = (units, size, outputs, inner, share, *positions.ravel().tolist(), *bits.ravel().tolist())
    recipe = f"resample {'across' if inner > 1 else 'along'} {dtype} {taps} {lanes}"

    def generate() -> str:
        from . import code

        return code.generate(inner > 1, dtype, taps, lanes)

    library = compilation.load(recipe, ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), -(-units // share), words)]


__all__ = ["MAX_TAPS", "launches"]
