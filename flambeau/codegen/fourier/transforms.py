"""Launches of Fourier transforms of rows.

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.codegen.fourier import transforms; from flambeau.runtime import launch
>>> x, out = np.arange(64, dtype=np.float32), np.empty(33, np.complex64)
>>> if codegen.available():
...     table = transforms.table("r2c", 64, x.dtype)
...     launch.run(transforms.launches("r2c", 64, x.dtype, (1, 1), (0, 0), 1.0), [out, x, table])
...     print(bool(np.allclose(out, np.fft.rfft(x), atol=1e-3)))
True
"""

from __future__ import annotations

import struct

import numpy as np

from ...runtime import compilation, target
from ...runtime.launch import Launch
from . import twiddles

#: kinds of transforms of rows: complex, and real ones from and to one-sided spectra, with their adjoints
KINDS = ("c2c", "c2c_inverse", "r2c", "c2r", "r2c_adjoint", "c2r_adjoint")
#: adjoint -> the kind that computes it, the factor of all elements and that of the ends of the spectrum
_ADJOINTS = {"r2c_adjoint": ("c2r", 0.5, 2.0), "c2r_adjoint": ("r2c", 2.0, 0.5)}
#: elements of a chunk of rows: about 10 us of one thread's work
GRAIN = 1 << 13
#: buffers of a row up to this size are on the stack
STACK_BYTES = 1 << 16
#: elements of a row from which threads share it, and of a chunk of a step
SHARED_ROW = 1 << 14
STEP_GRAIN = 1 << 13
#: rows from which threads do not share a row
MANY_ROWS = 8


def _lanes(dtype: np.dtype) -> int:
    return min(8, target.host().vector_bits // 8 // dtype.itemsize)


def _is_real(kind: str) -> bool:
    return kind[0] == "r" or kind[:3] == "c2r"


def is_supported(kind: str, length: int, dtype: np.dtype) -> bool:
    """Whether there is a kernel for rows of this length (of the signal, if it is real)."""
    if kind not in KINDS:
        return False
    if _is_real(kind):
        return length % 2 == 0 and twiddles.radices(length // 2, _lanes(dtype)) is not None
    return twiddles.radices(length, _lanes(dtype)) is not None


def table(kind: str, length: int, dtype: np.dtype) -> np.ndarray:
    """The table of roots of unity that the launches read."""
    is_real = _is_real(kind)
    return twiddles.tables(length // 2 if is_real else length, _lanes(dtype), dtype, is_real)[2]


def launches(kind: str, length: int, dtype: np.dtype, rows: tuple[int, int], strides: tuple[int, int],
             scale: float) -> list[Launch]:
    """Launches over the pointers of: result, input, table.

    Args:
        kind: one of `KINDS`.
        length: of the signal; a supported one.
        dtype: float32 or float64, of the parts of complex numbers.
        rows: the rows of the input, in two dimensions; those of the result are contiguous.
        strides: bytes from row to row of the input in these dimensions; elements are contiguous.
        scale: multiplies the result.
    """
    from .code import NAMES

    kind, factor, ends = _ADJOINTS.get(kind, (kind, 1.0, 1.0))
    lanes, is_real, size = _lanes(dtype), _is_real(kind), dtype.itemsize
    n = length // 2 if is_real else length
    stages, real_table, _ = twiddles.tables(n, lanes, dtype, is_real)

    def generate() -> str:
        from . import code

        return code.generate(dtype, lanes)

    library = compilation.load(f"fourier {dtype} {lanes}", NAMES, generate, "few")
    buffer = -(-(n + lanes * lanes) // 16) * 16 + 16  # the first stage writes whole blocks; the parts do not alias
    factors = struct.unpack("<qq", struct.pack("<dd", scale * factor, ends))
    out_stride = 2 * size * (n + (kind[0] == "r"))
    total = rows[0] * rows[1]
    if n >= SHARED_ROW and total < MANY_ROWS:
        result: list[Launch] = []
        for row in range(total):
            at = row // rows[1] * strides[0] + row % rows[1] * strides[1]
            result += _steps(kind, library, stages, n, lanes,
                             [at, row * out_stride, 0, 0, 0, n, *factors, buffer, real_table], 4 * buffer * size)
        return result
    share = max(1, GRAIN // n)
    chunks = -(-total // share)
    on_stack = 4 * buffer * size <= STACK_BYTES
    words = (total, share, rows[1], *strides, out_stride, n, *factors, buffer, int(on_stack), real_table, len(stages),
             *(each for stage in stages for each in stage))
    return [Launch(library, library.symbol(kind), chunks, words, 0, 64 if on_stack else chunks * 4 * buffer * size)]


def _steps(kind: str, library: compilation.Library, stages: tuple[twiddles.Stage, ...], n: int, lanes: int,
           words: list[int], scratch: int) -> list[Launch]:
    """The launches of one row that threads share."""
    result = []
    source = 0

    def step(name: str, total: int, each: int, table: int, *stage: int) -> None:
        """A step of `total` units of `each` elements."""
        share = max(1, STEP_GRAIN // each)
        if name in ("store", "store_exchanged", "post", "pre"):
            total, share = n, STEP_GRAIN
        fields = [*words[:2], share, total, source, *words[5:9], table, *stage, *[0] * (3 - len(stage))]
        result.append(Launch(library, library.symbol(f"step_{name}"), -(-total // share), tuple(fields), 0, scratch))

    reads = {"c2c": "complex", "c2c_inverse": "exchanged", "r2c": "complex", "c2r": "split"}
    if kind == "c2r":
        step("pre", n, 1, words[9])
        source ^= 1
    for i, (radix, m, s, at) in enumerate(stages):
        if i:
            step("stage", m * s // lanes, radix * lanes, at, radix, m, s)
        else:
            step(f"first_{reads[kind]}", -(-m // lanes), lanes * lanes, at, radix, m, s)
        source ^= 1
    if kind[0] == "r":
        step("post", n, 1, words[9])
    else:
        step("store" if kind == "c2c" else "store_exchanged", n, 1, 0)
    return result


__all__ = ["KINDS", "is_supported", "launches", "table"]
