"""Numbers of eight bits: the values of their codes, and rounding to them.

An array of such numbers has a structured NumPy dtype with one uint8 field, as bfloat16 has. Formats:
https://onnx.ai/onnx/technical/float8.html and https://www.opencompute.org/documents/ocp-microscaling-formats-mx-v1-0-spec-final-pdf
"""

from __future__ import annotations

from functools import cache

import numpy as np

#: format -> bits of the mantissa, bias of the exponent, code of the largest number
_LAYOUTS = {"float8_e4m3fn": (3, 7, 0x7E), "float8_e5m2": (2, 15, 0x7B), "float8_e4m3fnuz": (3, 8, 0x7F),
            "float8_e5m2fnuz": (2, 16, 0x7F)}
#: format -> code of NaN, and of what is too large
_SPECIAL = {"float8_e4m3fn": (0x7F, 0x7E), "float8_e5m2": (0x7F, 0x7C), "float8_e4m3fnuz": (0x80, 0x80),
            "float8_e5m2fnuz": (0x80, 0x80)}


@cache
def values(name: str) -> np.ndarray:
    """The 256 values of a format's codes, as float32.

    Args:
        name: of the format, such as `"float8_e4m3fn"`.

    >>> values("float8_e4m3fn")[[0x38, 0x7E, 0x7F]].tolist()
    [1.0, 448.0, nan]
    """
    codes = np.arange(256)
    if name == "float8_e8m0fnu":
        return np.append(np.exp2(codes[:-1] - 127.0), np.nan).astype(np.float32)
    mantissa_bits, bias, largest = _LAYOUTS[name]
    exponent, mantissa = (codes & 0x7F) >> mantissa_bits, (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    result = np.where(exponent > 0, np.ldexp(1 + mantissa, exponent - bias), np.ldexp(mantissa, 1 - bias))
    result[(codes & 0x7F) > largest] = np.nan
    if name == "float8_e5m2":
        result[[0x7C, 0xFC]] = np.inf
    result[0x80:] *= -1
    if name.endswith("fnuz"):
        result[0x80] = np.nan
    return result.astype(np.float32)


def decode(codes: np.ndarray, name: str) -> np.ndarray:
    """The values of an array of codes (uint8), as float32.

    >>> decode(np.array([0x40, 0xC0], np.uint8), "float8_e5m2").tolist()
    [2.0, -2.0]
    """
    return values(name)[codes]


@cache
def _midpoints(name: str) -> np.ndarray:
    """The midpoints between neighbours, and from the largest number to the one that would follow it."""
    finite = values(name)[:_LAYOUTS[name][2] + 1].astype(np.float64)
    following = 2 * finite[-1] - finite[-2]
    return (np.append(finite[1:], following) + finite) / 2


def encode(x: np.ndarray, name: str) -> np.ndarray:
    """The codes (uint8) of the nearest numbers to an array of float32; ties go to the even code.

    >>> encode(np.array([1., 1.0625], np.float32), "float8_e4m3fn").tolist()
    [56, 56]
    """
    if name == "float8_e8m0fnu":
        return _encode_exponent(x)
    midpoints, (nan, too_large) = _midpoints(name), _SPECIAL[name]
    with np.errstate(invalid="ignore"):  # a signaling NaN
        magnitude = np.abs(x.astype(np.float64))
    codes = np.searchsorted(midpoints, magnitude)  # the lower one at a midpoint
    is_tie = magnitude == midpoints[np.minimum(codes, len(midpoints) - 1)]
    codes += is_tie & (codes % 2 == 1)
    codes[codes >= len(midpoints)] = too_large
    codes[np.isnan(magnitude)] = nan
    codes |= np.where(np.signbit(x), 0x80, 0)
    if name.endswith("fnuz"):
        codes[codes == 0x80] = 0  # there is no negative zero
        codes[~(magnitude < midpoints[-1])] = nan
    return codes.astype(np.uint8)


def _encode_exponent(x: np.ndarray) -> np.ndarray:
    """The codes of the nearest powers of two; the sign is lost."""
    bits = x.view(np.uint32)
    exponent = (bits >> 23) & 0xFF
    half = np.where(exponent > 0, 0x400000, 0x400001)  # a tie goes up, but for that of subnormal numbers
    rounded = exponent + ((bits & 0x7FFFFF) >= half)
    rounded[exponent == 0xFF] = 0xFF
    return rounded.astype(np.uint8)
