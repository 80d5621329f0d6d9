"""Reference values in extended precision, and errors in ulp."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from flambeau.kernels import special

try:
    import mpmath
except ImportError:  # only the error functions in double ask for it
    mpmath = None

LONG = np.finfo(np.longdouble).nmant >= 63
WIDE = {np.dtype(np.float32): np.dtype(np.float64), np.dtype(np.float64): np.dtype(np.longdouble)}


def _sigmoid(x: np.ndarray) -> np.ndarray:
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, 1) / (1 + z)


def _atanh(x: np.ndarray) -> np.ndarray:
    return np.copysign(np.log1p(2 * np.abs(x) / (1 - np.abs(x))) / 2, x)


def _each(function: Callable[[float], float]) -> Callable[[np.ndarray], np.ndarray]:
    """An element at a time: of Python's floats, or in mpmath's numbers for the widest."""
    def apply(x: np.ndarray) -> np.ndarray:
        if x.dtype == np.float64:
            return np.fromiter((function(v) for v in x.tolist()), np.float64, x.size)
        mpmath.mp.prec = 120
        out = np.empty(x.shape, np.longdouble)
        for i, v in enumerate(x.astype(np.float64).tolist()):
            exact = _MP[function](v)
            high = float(exact)
            out[i] = np.longdouble(high) + (np.longdouble(float(exact - high)) if math.isfinite(high) else 0)
        return out
    return apply


def _erfinv(x: float) -> float:
    """By Newton's method on the smaller of erf and erfc."""
    a = abs(x)
    if not a < 1:
        return math.copysign(math.inf, x) if a == 1 else math.nan
    y = math.sqrt(-math.log1p(-a * a)) * 0.886 if a else 0.0
    for _ in range(60):
        error = (math.erf(y) - a) if a < 0.5 else ((1 - a) - math.erfc(y))
        step = error / (2 / math.sqrt(math.pi) * math.exp(-y * y))
        y -= step
        if abs(step) <= 1e-16 * y:
            break
    return math.copysign(y, x)


_MP = {}
if mpmath is not None:
    def _mp_erfinv(v: float) -> mpmath.mpf:
        return mpmath.erfinv(v) if abs(v) < 1 else mpmath.mpf(v) * mpmath.inf if abs(v) == 1 else mpmath.nan
    _MP = {math.erf: mpmath.erf, math.erfc: mpmath.erfc, _erfinv: _mp_erfinv}

REFERENCES: dict[str, Callable[..., np.ndarray]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sinh": np.sinh,
    "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": _atanh, "sigmoid": _sigmoid,
    "log_sigmoid": lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))),
    "erf": _each(math.erf), "erfc": _each(math.erfc), "erfinv": _each(_erfinv), "pow": np.power,
    "lgamma": special.lgamma, "digamma": special.digamma,
    "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "fmod": np.fmod, "remainder": None,
}
BY_ELEMENT = frozenset({"erf", "erfc", "erfinv"})  # in double these go through mpmath: slowly


def ulps(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """How far each result is from the exact value, in units of the last place of its format at that value."""
    kind = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        nearest = exact.astype(got.dtype)
        _, exponent = np.frexp(exact)
        last = np.maximum(exponent - 1, kind.minexp) - kind.nmant
        distance = np.ldexp(np.abs(got.astype(exact.dtype) - exact), -last)
    same = (got == nearest) & ~np.isfinite(nearest) | np.isnan(got) & np.isnan(nearest)
    # the largest number and infinity are neighbours
    distance = np.where(same, 0, np.where(np.isfinite(exact) | same, distance, np.inf))
    distance = np.where(np.isinf(got) & ~np.isinf(nearest), np.inf, distance)
    return np.where(np.isnan(distance), np.inf, distance).astype(np.float64)


def reference(name: str, *args: np.ndarray) -> np.ndarray:
    """The function of float32 in double, of double in the longest format that the machine has."""
    wide = WIDE[args[0].dtype]
    with np.errstate(all="ignore"):
        return REFERENCES[name](*(a.astype(wide) for a in args))
