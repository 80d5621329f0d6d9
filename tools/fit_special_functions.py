"""Fit the rational approximations of flambeau/kernels/special and print their coefficient tables.

Each function is first divided by its zeros, poles and exponential growth so that what remains is smooth
and has no zero. That is interpolated by ``P(u)/Q(u)`` (Q(0) = 1) at Chebyshev nodes in 80-digit
arithmetic, which is within a small factor of the minimax error; the printed comment is the largest
relative error of the rounded coefficients. Needs mpmath; run only to change a table.

    python tools/fit_special_functions.py
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath
from mpmath import mpf

Real = Callable[[mpf], mpf]


def interpolate(f: Real, a: mpf, b: mpf, p: int, q: int) -> tuple[list[mpf], list[mpf]]:
    """Coefficients of P (degree p) and Q (degree q), lowest first, with P/Q = f at p + q + 1 nodes."""
    count = p + q + 1
    system, values = mpmath.matrix(count, count), mpmath.matrix(count, 1)
    for i in range(count):
        x = (a + b) / 2 + (b - a) / 2 * mpmath.cos(mpmath.pi * (2 * i + 1) / (2 * count))
        y = f(x)
        values[i] = y
        for j in range(p + 1):
            system[i, j] = x**j
        for j in range(q):
            system[i, p + 1 + j] = -y * x ** (j + 1)
    solved = list(mpmath.lu_solve(system, values))
    return solved[: p + 1], [mpf(1), *solved[p + 1 :]]


def evaluate(coefficients: list[mpf], x: mpf) -> mpf:
    """The polynomial at x, coefficients lowest first."""
    total = mpf(0)
    for c in reversed(coefficients):
        total = total * x + c
    return total


def table(name: str, f: Real, a: object, b: object, p: int, q: int = 0) -> None:
    """Print ``name = (P, Q)``, or ``name = P`` for a polynomial."""
    low, high = mpf(a), mpf(b)
    rows = [[mpf(float(c)) for c in row] for row in interpolate(f, low, high, p, q)]
    worst = mpf(0)
    for i in range(301):
        x = low + (high - low) * (1 - mpmath.cos(mpmath.pi * i / 300)) / 2
        worst = max(worst, abs(evaluate(rows[0], x) / evaluate(rows[1], x) / f(x) - 1))
    print(f"# on [{mpmath.nstr(low, 5)}, {mpmath.nstr(high, 5)}], relative error {mpmath.nstr(worst, 2)}")
    print(f"{name} = (")
    for row in rows[: 2 if q else 1]:
        line = "    (" if q else "   "
        for value in row:
            item = f"{'' if line.endswith('(') else ' '}{float(value)!r},"
            if len(line) + len(item) > 108:
                print(line)
                line = "    " if q else "   "
                item = f" {float(value)!r},"
            line += item
        print(line[:-1] + ")," if q else line)
    print(")")


def erf_over_x(z: mpf) -> mpf:
    """erf(x)/x as a function of x²."""
    x = mpmath.sqrt(z)
    return mpmath.erf(x) / x if x else 2 / mpmath.sqrt(mpmath.pi)


def scaled_erfcx(t: mpf) -> mpf:
    """(1 + 2x) erfcx(x) where t = (x - 3)/(x + 3)."""
    x = 3 * (1 + t) / max(1 - t, mpf(10) ** -30)
    if x > 1000:
        total, term = mpf(0), mpf(1)
        for i in range(8):
            total, term = total + term, -term * (2 * i + 1) / (2 * x * x)
        return total * (1 / x + 2) / mpmath.sqrt(mpmath.pi)
    return mpmath.exp(x * x) * mpmath.erfc(x) * (1 + 2 * x)


def erfinv_over_x(u: mpf) -> mpf:
    """erfinv(x)/x as a function of 9/16 - x²."""
    x = mpmath.sqrt(max(mpf("0.5625") - u, mpf(0)))
    return mpmath.erfinv(x) / x if x > mpf(10) ** -20 else mpmath.sqrt(mpmath.pi) / 2


def normal_tail(r: mpf) -> mpf:
    """The y with erfc(y)/2 = exp(-r²), by Newton on the logarithm."""
    y = mpmath.sqrt(max(r * r - mpmath.log(2 * r * mpmath.sqrt(mpmath.pi)), mpf("0.01")))
    for _ in range(60):
        tail = mpmath.erfc(y)
        step = (mpmath.log(tail / 2) + r * r) * tail * mpmath.exp(y * y) * mpmath.sqrt(mpmath.pi) / 2
        y += step
        if abs(step) < mpf(10) ** -35:
            break
    return y


def lgamma_over_zeros(x: mpf) -> mpf:
    """log(gamma(x)) over (x - 1)(x - 2)."""
    if abs(x - 1) < mpf(10) ** -18:
        return mpmath.euler
    if abs(x - 2) < mpf(10) ** -18:
        return 1 - mpmath.euler
    return mpmath.loggamma(x) / ((x - 1) * (x - 2))


def digamma_over_zero(x: mpf) -> mpf:
    """digamma(x) over x less its positive zero."""
    return mpmath.psi(0, x) / (x - DIGAMMA_ZERO)


def bessel_i_series(order: int) -> Real:
    """I_n(x) / (x/2)^n as a function of x²."""

    def f(z: mpf) -> mpf:
        x = mpmath.sqrt(z)
        return mpmath.besseli(order, x) / (x / 2) ** order if x else mpf(1)
    return f


def bessel_i_scaled(order: int, centre: int, scale: int) -> Real:
    """sqrt(x) exp(-x) I_n(x) as a function of u with 1/x = (u + centre) / scale."""

    def f(u: mpf) -> mpf:
        if u == -centre:
            return 1 / mpmath.sqrt(2 * mpmath.pi)
        x = scale / (u + centre)
        return mpmath.besseli(order, x) * mpmath.exp(-x) * mpmath.sqrt(x)
    return f


def bessel_j_over_zeros(order: int) -> Real:
    """J_n(x) over (x/2)^n and its first three zeros, as a function of u = x²/32 - 1."""
    zeros = [mpmath.besseljzero(order, k) for k in (1, 2, 3)]

    def f(u: mpf) -> mpf:
        z = 32 * (u + 1)
        x = mpmath.sqrt(max(z, mpf(0)))
        top = mpmath.besselj(order, x) / (x / 2) ** order if x > mpf(10) ** -20 else mpf(1)
        return top / mpmath.fprod(z - zero**2 for zero in zeros)

    return f


def bessel_y_regular(order: int) -> Real:
    """What is left of Y_n at its logarithm and pole, over x^n, as a function of u = x²/32 - 1.

    It has zeros, near which the error that is printed, a relative one, is large.
    """

    def f(u: mpf) -> mpf:
        x = mpmath.sqrt(max(32 * (u + 1), mpf(10) ** -30))
        rest = mpmath.bessely(order, x) - 2 / mpmath.pi * mpmath.log(x) * mpmath.besselj(order, x)
        return (rest + 2 / (mpmath.pi * x) * order) / x**order

    return f


def bessel_amplitude(order: int, quadrature: bool) -> Real:
    """P (or Q·x/8) in J + iY = sqrt(2/(pi x)) (P + iQ) exp(i(x - order·pi/2 - pi/4)).

    As a function of u = 128/x² - 1.
    """

    def f(u: mpf) -> mpf:
        if u == -1:
            return mpf(4 * order**2 - 1) / 64 if quadrature else mpf(1)
        x = mpmath.sqrt(128 / (u + 1))
        chi = x - order * mpmath.pi / 2 - mpmath.pi / 4
        wave = mpmath.hankel1(order, x) * mpmath.exp(-1j * chi) * mpmath.sqrt(mpmath.pi * x / 2)
        return wave.imag * x / 8 if quadrature else wave.real

    return f


def bessel_k_regular(order: int) -> Real:
    """K_0(x) + log(x/2) I_0(x), or (K_1(x) - 1/x - log(x/2) I_1(x)) / x, as a function of x²."""

    def f(z: mpf) -> mpf:
        x = mpmath.sqrt(max(z, mpf(10) ** -30))
        logarithm = mpmath.log(x / 2) * mpmath.besseli(order, x)
        if order == 0:
            return mpmath.besselk(0, x) + logarithm
        return (mpmath.besselk(1, x) - 1 / x - logarithm) / x

    return f


def bessel_k_scaled(order: int) -> Real:
    """sqrt(x) exp(x) K_n(x) as a function of u = 4/x - 1."""

    def f(u: mpf) -> mpf:
        if u == -1:
            return mpmath.sqrt(mpmath.pi / 2)
        x = 4 / (u + 1)
        return mpmath.besselk(order, x) * mpmath.exp(x) * mpmath.sqrt(x)

    return f


def airy_scaled(u: mpf) -> mpf:
    """2 sqrt(pi) x^(1/4) exp(t) Ai(x), t = 2/3 x^(3/2), as a function of u = 4/t - 1."""
    if u == -1:
        return mpf(1)
    t = 4 / (u + 1)
    x = (mpf(3) / 2 * t) ** (mpf(2) / 3)
    return mpmath.airyai(x) * mpmath.exp(t) * 2 * mpmath.sqrt(mpmath.pi) * mpmath.root(x, 4)


def airy_amplitude(quadrature: bool) -> Real:
    """P (or Q·t) in sqrt(pi) x^(1/4) Ai(-x) = P cos(t - pi/4) + Q sin(t - pi/4), t = 2/3 x^(3/2).

    As a function of u = 128/t² - 1.
    """

    def f(u: mpf) -> mpf:
        if u == -1:
            return mpf(5) / 72 if quadrature else mpf(1)
        t = mpmath.sqrt(128 / (u + 1))
        x = (mpf(3) / 2 * t) ** (mpf(2) / 3)
        # Ai - i·Bi turns as exp(i (t - pi/4))
        wave = (mpmath.airyai(-x) - 1j * mpmath.airybi(-x)) * mpmath.exp(-1j * (t - mpmath.pi / 4))
        wave *= mpmath.sqrt(mpmath.pi) * mpmath.root(x, 4)
        return wave.imag * -t if quadrature else wave.real

    return f


if __name__ == "__main__":
    mpmath.mp.dps = 80
    DIGAMMA_ZERO = mpmath.findroot(lambda x: mpmath.psi(0, x), mpf("1.4616"))
    high = float(DIGAMMA_ZERO)
    print("DIGAMMA_ZERO =", (high, float(DIGAMMA_ZERO - mpf(high))))
    table("ERF", erf_over_x, 0, 1, 4, 5)
    table("ERF_SINGLE", erf_over_x, 0, 16, 10, 10)
    table("ERFCX", scaled_erfcx, -1, 1, 24)
    table("ERFCX_SINGLE", scaled_erfcx, -1, 1, 18)
    table("ERFINV", erfinv_over_x, 0, mpf("0.5625"), 7, 7)
    for name, a, b in (("TAIL_NEAR", mpf("1.44"), 4), ("TAIL_MIDDLE", 4, 11), ("TAIL_FAR", 11, 28)):
        table(name, lambda u, a=a: normal_tail(u + a), 0, b - a, 8, 8)
    for name, a, b in (("LGAMMA_HALF", mpf("0.5"), 1), ("LGAMMA_ONE", 1, mpf("2.5")),
                       ("LGAMMA_TWO", mpf("2.5"), 6), ("LGAMMA_SIX", 6, 12)):
        table(name, lambda u, a=a: lgamma_over_zeros(u + a), 0, b - a, 7, 8)
    for name, a, b in (("DIGAMMA_ONE", 1, 2), ("DIGAMMA_TWO", 2, 4), ("DIGAMMA_FOUR", 4, 10)):
        table(name, lambda u, a=a: digamma_over_zero(u + a), 0, b - a, 7, 7)
    for order in (0, 1):
        table(f"I{order}_SERIES", bessel_i_series(order), 0, 64, 16)
        table(f"I{order}_MIDDLE", bessel_i_scaled(order, 3, 32), -1, 1, 18)
        table(f"I{order}_FAR", bessel_i_scaled(order, 1, 32), -1, 1, 20)
        zeros = [mpmath.besseljzero(order, k) for k in (1, 2, 3)]
        print(f"J{order}_ZEROS =", tuple((float(z), float(z - mpf(float(z)))) for z in zeros))
        table(f"J{order}_NEAR", bessel_j_over_zeros(order), -1, 1, 17)
        table(f"Y{order}_NEAR", bessel_y_regular(order), -1, 1, 19)
        table(f"P{order}", bessel_amplitude(order, False), -1, 1, 17)
        table(f"Q{order}", bessel_amplitude(order, True), -1, 1, 17)
    for order in (0, 1):
        table(f"K{order}_NEAR", bessel_k_regular(order), 0, 4, 11)
        table(f"K{order}_FAR", bessel_k_scaled(order), -1, 1, 24)
    table("AIRY_NEAR", mpmath.airyai, -2, mpf("2.1"), 24)
    table("AIRY_FAR", airy_scaled, -1, 1, 24)
    table("AIRY_MIDDLE", lambda u: mpmath.airyai((u - 1) * mpf("1.6") - 2), -1, 1, 20)
    table("AIRY_P", airy_amplitude(False), -1, 1, 17)
    table("AIRY_Q", airy_amplitude(True), -1, 1, 17)
