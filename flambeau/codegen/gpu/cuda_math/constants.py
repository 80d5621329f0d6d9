"""Constants by their bits, and polynomials in fused multiply-adds, as scalar IR."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from ...scalar.scalar_ir import Node, constant, fma

F32, F64, U32, I32, U64, I64 = (np.dtype(each) for each in ("f4", "f8", "u4", "i4", "u8", "i8"))


def single(bits: int) -> Node:
    """A float32 of these bits.

    >>> single(0x3F800000)
    1.0
    """
    return constant(struct.unpack("<f", struct.pack("<I", bits))[0], F32)


def double(bits: int) -> Node:
    """A float64 of these bits."""
    return constant(struct.unpack("<d", struct.pack("<Q", bits))[0], F64)


def horner(x: Node, coefficients: Sequence[int]) -> Node:
    """The polynomial whose coefficients have these bits, the highest first, one fma for each."""
    made = single if x.dtype == F32 else double
    total = made(coefficients[0])
    for bits in coefficients[1:]:
        total = fma(total, x, made(bits))
    return total


__all__ = ["F32", "F64", "I32", "I64", "U32", "U64", "double", "horner", "single"]
