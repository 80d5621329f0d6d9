"""Functions of the bits of floats: neighbours, mantissas and exponents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....dtypes import BFLOAT16
from ...scalar.scalar_ir import Node, cast, constant, eq, ne, select, to_opmath
from ..sorting.keys import key_dtype

#: bits of the mantissa, but for the first one
_MANTISSA = {np.dtype(np.float16): 10, BFLOAT16: 7, np.dtype(np.float32): 23, np.dtype(np.float64): 52}


def nextafter(elements: Sequence[Node], bits: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """The bits of the next float after x towards y."""
    x, y = (to_opmath(each) for each in elements)
    kind = key_dtype(dtype)
    from_x, from_y = (cast(each, kind) for each in bits)
    sign = constant(1 << (8 * dtype.itemsize - 1), kind)
    zero = constant(0.0, x.dtype)
    moved = select((x < y) ^ (x > zero), from_x - 1, from_x + 1)
    tiny = (from_y & sign) + 1
    mantissa = _MANTISSA[dtype]
    exponent = ((1 << (8 * dtype.itemsize - 1 - mantissa)) - 1) << mantissa
    nan = constant(exponent | 1 << (mantissa - 1), kind)
    result = select(eq(x, zero), tiny, moved)
    result = select(eq(x, y), from_y, result)
    return [cast(select(ne(x, x) | ne(y, y), nan, result), bits[0].dtype)]


def frexp(elements: Sequence[Node], bits: Sequence[Node], dtype: np.dtype) -> list[Node]:
    """The bits of the mantissa, from 1/2 on below 1, and the exponent, for float32 and float64."""
    [from_x] = bits
    mantissa, kind = _MANTISSA[dtype], from_x.dtype
    exponents = (1 << (8 * dtype.itemsize - 1 - mantissa)) - 1
    scale, fraction = constant(1 << mantissa, kind), constant((1 << mantissa) - 1, kind)
    sign = from_x & constant(1 << (8 * dtype.itemsize - 1), kind)
    magnitude = from_x - sign
    exponent, left = magnitude / scale, magnitude & fraction
    biased = cast(exponent, np.dtype(np.int32))
    for shift in (32, 16, 8, 4, 2, 1):  # a subnormal number is moved up, until its first bit is that of a normal one
        if shift > mantissa:
            continue
        subnormal = (exponent < 1) & (left < constant(1 << (mantissa - shift + 1), kind)) & (left > 0)
        left = select(subnormal, left * constant(1 << shift, kind), left)
        biased = select(subnormal, biased - shift, biased)
    was_subnormal = (exponent < 1) & (left > 0)
    biased = select(was_subnormal, biased + 1, biased)
    half = constant((exponents // 2 - 1) << mantissa, kind)
    special = (exponent >= exponents) | (magnitude < 1)
    found = sign + half + (left & fraction)
    return [select(special, from_x, found),
            select(special, constant(0, np.dtype(np.int32)), biased - (exponents // 2 - 1))]


__all__ = ["frexp", "nextafter"]
