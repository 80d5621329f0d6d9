"""Keys: unsigned integers that compare as the elements of an array do.

NaN is above all numbers, whatever its sign, and the two zeros are equal. Keys for a descending order are complemented,
so that equal elements keep their order in both directions.
"""

from __future__ import annotations

import numpy as np

from ....dtypes import BFLOAT16
from ...scalar.scalar_ir import Node, cast, constant, select

UINT32, UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_MANTISSA = {np.dtype(np.float16): 10, BFLOAT16: 7, np.dtype(np.float32): 23, np.dtype(np.float64): 52}


def bits_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of elements' bits: the unsigned integers of their size."""
    return np.dtype(f"u{dtype.itemsize}")


def key_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of keys: uint32, or uint64 for elements of 8 bytes."""
    return UINT64 if dtype.itemsize == 8 else UINT32


def key_bits(dtype: np.dtype) -> int:
    """The number of bits that keys may have set."""
    return 1 if dtype.kind == "b" else 8 * dtype.itemsize


def key_of(bits: Node, dtype: np.dtype, descending: bool = False) -> Node:
    """The key of an element.

    Args:
        bits: of the element, of `bits_dtype`.
        dtype: the element's.
    """
    wide = key_dtype(dtype)
    count = key_bits(dtype)
    sign, most = constant(1 << (8 * dtype.itemsize - 1), wide), constant((1 << count) - 1, wide)
    key = cast(bits, wide)
    mantissa = _MANTISSA.get(dtype)
    if mantissa is not None:
        magnitude = key & constant((1 << (count - 1)) - 1, wide)
        infinity = constant(((1 << (count - 1 - mantissa)) - 1) << mantissa, wide)
        signed = select(key >= sign, most - key, key + sign)
        key = select(magnitude > infinity, most, select(magnitude < 1, sign, signed))
    elif dtype.kind == "i":
        key = key ^ sign
    return most - key if descending else key


__all__ = ["bits_dtype", "key_bits", "key_dtype", "key_of"]
