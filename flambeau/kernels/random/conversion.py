"""Conversions of random words to unit uniforms, of float64 to the output dtype, and dtype checks."""

from __future__ import annotations

import numpy as np

from ... import dtypes
from ...dtypes import BFLOAT16, COMPLEX32
from .engine import Engine

FLOATS: frozenset[np.dtype] = frozenset((
    np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), BFLOAT16))
REAL_OF: dict[np.dtype, np.dtype] = {
    COMPLEX32: np.dtype(np.float16), np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64)}

#: dtype -> its C++ name, which PyTorch's range errors print
CPP_NAME = {
    np.dtype(np.float32): "float", np.dtype(np.float64): "double", np.dtype(np.float16): "c10::Half",
    BFLOAT16: "c10::BFloat16", np.dtype(np.bool_): "bool", np.dtype(np.uint8): "unsigned char",
    np.dtype(np.int8): "signed char", np.dtype(np.int16): "short int", np.dtype(np.int32): "int",
    np.dtype(np.int64): "long int", np.dtype(np.uint16): "short unsigned int",
    np.dtype(np.uint32): "unsigned int", np.dtype(np.uint64): "long unsigned int",
    np.dtype(np.complex64): "c10::complex<float>", np.dtype(np.complex128): "c10::complex<double>",
}

#: dtype -> (bits of the significand, largest number)
SIGNIFICAND = {
    np.dtype(np.float32): (24, float(np.finfo(np.float32).max)),
    np.dtype(np.float64): (53, float(np.finfo(np.float64).max)),
    np.dtype(np.float16): (11, 65504.0),
    BFLOAT16: (8, (2 - 2.0**-7) * 2.0**127),
}


def scalar_name(dtype: np.dtype) -> str:
    """PyTorch's name of a dtype in its dispatch errors: Float, Long, ..."""
    return dtypes.of(dtype).scalar_name


def require(kernel: str, dtype: np.dtype, allowed: frozenset[np.dtype]) -> None:
    """Raise PyTorch's dispatch error unless `kernel` supports `dtype`."""
    if dtype not in allowed:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{scalar_name(dtype)}'")


_LONG, _UNIT = np.dtype(np.uint64), np.float32(2.0**-24)
#: the mask of the 24 bits of a single's significand, by the words' dtype
_LOW_BITS = {np.dtype(kind): np.array((1 << 24) - 1, kind) for kind in (np.uint32, np.uint64)}


def unit_singles(engine: Engine, n: int) -> np.ndarray:
    """`n` uniforms in [0, 1), float32: the lower 24 bits of a word each."""
    draws = n and engine.direct_draws(n)
    if draws:
        return draws.singles(np.empty(n, np.float32))
    if n == 1:
        return np.array([(engine.random() & (1 << 24) - 1) * 2.0**-24], np.float32)
    if not n:
        return np.empty(0, np.float32)
    words = engine.draw_raw(n)
    words &= _LOW_BITS[words.dtype]
    singles = words.astype(np.float32) if words.dtype is _LONG else words.view(np.int32).astype(np.float32)
    singles *= _UNIT
    return singles


def unit_doubles(engine: Engine, n: int) -> np.ndarray:
    """`n` uniforms in [0, 1), float64: the lower 53 bits of two words each."""
    draws = n and engine.direct_draws(n)
    if draws:
        return draws.doubles(np.empty(n))
    words = engine.draw64(n)
    words &= np.uint64((1 << 53) - 1)
    doubles = words.view(np.int64).astype(np.float64)
    doubles *= 2.0**-53
    return doubles


def narrow(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Floating `x` rounded to `dtype`; to 16-bit dtypes via float32."""
    if x.dtype == dtype:
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == BFLOAT16:
            return dtypes.to_bfloat16(x.astype(np.float32, copy=False))
        if dtype == np.float16:
            x = x.astype(np.float32, copy=False)
        return x.astype(dtype)
