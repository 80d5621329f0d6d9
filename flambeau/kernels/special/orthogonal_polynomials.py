"""Orthogonal polynomials of degree n at x: three-term recurrences, and trigonometric forms of high degrees.

A degree is truncated to an integer; of a negative one the value is 0. Every element has its own degree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .approximation import Array

#: a recurrence: (2x or what stands for it, x, the last value, the one before, the degree of the last) -> the next
Step = Callable[[Array, Array, Array, Array, int], Array]


def _climb(x: Array, n: Array, first: Array, double: Array, step: Step, done: Array, out: Array) -> None:
    """Fill `out` where not `done` with the polynomial of degree n, given those of degrees 0 (1) and 1 (`first`)."""
    out[~done & (n == 0)] = 1
    open_ = ~done & (n > 0)
    if not open_.any():
        return
    x, n, double = x[open_], n[open_], double[open_]
    before, last = np.ones_like(x), first[open_]
    value = last.copy()
    for degree in range(1, int(n.max())):
        before, last = last, step(double, x, last, before, degree)
        reached = n > degree
        value = np.where(reached, last, value)
        if not (reached & ~np.isnan(last)).any():
            break
    out[open_] = value


def _chebyshev_step(double: Array, x: Array, last: Array, before: Array, degree: int) -> Array:
    return double * last - before


def _prepare(x: Array, n: Array) -> tuple[Array, Array, Array]:
    x, n = np.broadcast_arrays(x, n)
    return x, np.trunc(n), np.zeros(x.shape, x.dtype)


def _sign_of(n: Array, one: Array) -> Array:
    """`one` for even n, `-one` for odd n."""
    return np.where(np.fmod(n, 2) == 0, one, -one)


def _chebyshev(x: Array, n: Array, kind: str, shifted: bool) -> Array:
    """The Chebyshev polynomials of four kinds, T, U, V and W, at x, or at 2x - 1 if `shifted`."""
    x, n, out = _prepare(x, n)
    argument = x + x - 1 if shifted else x
    twice = argument + argument
    # values at the right and at the left end, and the degree from which the trigonometric form is used
    ones, more, most = np.ones_like(x), n + 1, n + n + 1
    right, left, trigonometric_from = {
        "t": (ones, _sign_of(n, ones), 7), "u": (more, _sign_of(n, more), 7 if shifted else 9),
        "v": (ones, _sign_of(n, most), 7 if shifted else 9), "w": (most, _sign_of(n, ones), 5 if shifted else 9)}[kind]
    done = n < 0
    for end, value in ((argument == 1, right), (argument == -1, left)):
        at_end = end & ~done
        out[at_end] = value[at_end]
        done = done | at_end
    inside = ~done & (n >= trigonometric_from) & (np.abs(argument) < 1)
    if inside.any():
        angle, order = np.arccos(argument[inside]), n[inside].astype(x.dtype)
        half, between = angle / 2, (order + x.dtype.type(0.5)) * angle
        out[inside] = (np.cos(order * angle) if kind == "t" else
                       np.sin((order + 1) * angle) / np.sin(angle) if kind == "u" else
                       np.cos(between) / np.cos(half) if kind == "v" else np.sin(between) / np.sin(half))
        done = done | inside
    first = argument if kind == "t" else twice + {"u": 0, "v": -1, "w": 1}[kind]
    _climb(x, n, first, twice, _chebyshev_step, done, out)
    return out


def _chebyshev_kernel(kind: str, shifted: bool) -> Callable[[Array, Array], Array]:
    def kernel(x: Array, n: Array) -> Array:
        return _chebyshev(x, n, kind, shifted)

    kernel.__name__ = f"{'shifted_' * shifted}chebyshev_polynomial_{kind}"
    kernel.__doc__ = f"The {'shifted ' * shifted}Chebyshev polynomial {kind.upper()} of degree n."
    return kernel


chebyshev_polynomial_t, chebyshev_polynomial_u, chebyshev_polynomial_v, chebyshev_polynomial_w = (
    _chebyshev_kernel(kind, False) for kind in "tuvw")
(shifted_chebyshev_polynomial_t, shifted_chebyshev_polynomial_u, shifted_chebyshev_polynomial_v,
 shifted_chebyshev_polynomial_w) = (_chebyshev_kernel(kind, True) for kind in "tuvw")


def hermite_polynomial_h(x: Array, n: Array) -> Array:
    """The physicists' Hermite polynomial of degree n; NaN for degrees whose values overflow."""
    return _hermite(x, n, x + x, lambda double, x, last, before, k: double * last - 2 * k * before)


def hermite_polynomial_he(x: Array, n: Array) -> Array:
    """The probabilists' Hermite polynomial of degree n; NaN for degrees whose values overflow."""
    return _hermite(x, n, x, lambda double, x, last, before, k: x * last - k * before)


def _hermite(x: Array, n: Array, first: Array, step: Step) -> Array:
    x, n, out = _prepare(x, n)
    done = (n < 0) | (n > (512 if x.dtype == np.float64 else 128))
    out[n > 0] = np.where(done, np.nan, 0)[n > 0]
    _climb(x, n, np.broadcast_to(first, x.shape), x + x, step, done, out)
    return out


def laguerre_polynomial_l(x: Array, n: Array) -> Array:
    """The Laguerre polynomial of degree n."""
    x, n, out = _prepare(x, n)
    done = n < 0
    at_zero = ~done & (x == 0)
    out[at_zero] = 1
    _climb(x, n, 1 - x, x, lambda double, x, last, before, k: ((2 * k + (1 - x)) * last - k * before) / (k + 1),
           done | at_zero, out)
    return out


def legendre_polynomial_p(x: Array, n: Array) -> Array:
    """The Legendre polynomial of degree n."""
    x, n, out = _prepare(x, n)
    done = n < 0
    ends = ~done & (np.abs(x) == 1)
    out[ends] = np.where(x > 0, np.ones_like(x), _sign_of(n, np.ones_like(x)))[ends]
    _climb(x, n, x, x, lambda double, x, last, before, k: ((2 * k + 1) * x * last - k * before) / (k + 1),
           done | ends, out)
    return out
