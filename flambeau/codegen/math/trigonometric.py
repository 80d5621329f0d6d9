"""sin, cos and tan: argument reduction modulo π (π/2 for tan), and a polynomial of the remainder.

sin x = (-1)^k sin r for x = k π + r; cos x = (-1)^(k+1) sin r for x = (k + ½) π + r: one odd polynomial
on [-π/2, π/2] serves both, without a select.
"""

from __future__ import annotations

from ..llvm.vectors import Integer, Real, where
from .argument_reduction import modulo_half_pi, modulo_pi
from .building_blocks import fma, polynomial


def signed(y: Real, k: Integer) -> Real:
    """(-1)^k y."""
    return (y.bits() ^ (k << (y.context.format.bits - 1))).as_real()


def sine(r: Real, low: Real) -> Real:
    """sin(r + low) for |r| <= π/2; low is about the rounding error of r."""
    z = r * r
    tail = r * z * polynomial(z, "SIN")
    if r.context.precision == "double":
        tail = fma(low, fma(z, -0.5, 1.0), tail)  # about cos r
    return r + tail


def sin(x: Real) -> Real:
    """The sine of any finite angle."""
    r, low, k = modulo_pi(x)
    y = signed(sine(r, low), k)
    return where(x.equals(0.0), x, y)  # -0


def cos(x: Real) -> Real:
    """The cosine of any finite angle."""
    r, low, k = modulo_pi(x, 0.5)
    return signed(sine(r, low), k + 1)


def tan(x: Real) -> Real:
    """sin r / cos r, or -cos r / sin r, for x = k π/2 + r."""
    r, low, k = modulo_half_pi(x)
    z = r * r
    s = r + fma(r * z, polynomial(z, "SIN_QUARTER"), low * fma(z, -0.5, 1.0))
    half, rest = z * 0.5, z * z * polynomial(z, "COS_QUARTER")
    c = 1.0 - half
    c = c + (((1.0 - c) - half) + (rest - r * low))
    odd = (k & 1).equals(1)
    y = where(odd, -c, s) / where(odd, s, c)
    return where(x.equals(0.0), x, y)
