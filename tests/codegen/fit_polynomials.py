"""Fits the polynomials of flambeau.codegen: Remez exchange in 90 decimal digits, coefficients rounded one by one.

    python -m tests.codegen.fit_polynomials            writes flambeau/codegen/math/coefficients.py
    python -m tests.codegen.fit_polynomials exp sin    shows these fits only (erf_pieces: those of erf by table)

A fit is the polynomial Σ c_k t^k nearest to a target T(t) on an interval, in the largest weighted error
|W(t) (Σ c_k t^k - T(t))|; W is chosen so that this is the relative error of the function that the
polynomial serves. The degree is the least that meets the bound. The lowest coefficient is then rounded to
the format and the others are fitted again around what is left, and so on upwards: rounding costs almost nothing.
Only Python's decimal numbers and NumPy are used.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, getcontext
from functools import cache
from pathlib import Path

import numpy as np

DIGITS = 90
getcontext().prec = DIGITS
D = Decimal
Real = Callable[[D], D]


def atan(x: D) -> D:
    """Arc tangent: the argument is halved (as an angle) six times, then the Taylor series."""
    for _ in range(6):
        x = x / (1 + (1 + x * x).sqrt())
    total, power, k = D(0), x, 1
    while abs(power) > D(10) ** -(DIGITS + 5):
        total += power / k
        power *= -x * x
        k += 2
    return 64 * total


PI = 4 * atan(D(1))
LN2 = D(2).ln()


def asin(x: D) -> D:
    return atan(x / (1 - x * x).sqrt())


def taylor(x: D, first: int, step: int, sign: int) -> D:
    """Σ sign^k x^k / (first + k step)!"""
    total, power, order = D(0), D(1), first
    fact = D(math.factorial(first))
    while abs(power) / fact > D(10) ** -(DIGITS + 5):
        total += power / fact
        power *= sign * x
        fact = fact * math.prod(range(order + 1, order + step + 1))
        order += step
    return total


def erf(x: D) -> D:
    """2/√π exp(-x²) Σ 2^k x^(2k+1) / (2k+1)!!, every term positive."""
    term = x
    total, k = D(0), 0
    while abs(term) > abs(total) * D(10) ** -(getcontext().prec + 3):
        total += term
        k += 1
        term *= 2 * x * x / (2 * k + 1)
    return 2 * total * (-x * x).exp() / PI.sqrt()


def erfc(x: D) -> D:
    """1 - erf(x) with as many more digits as the subtraction eats; beyond 30 a continued fraction."""
    if x > 30:
        f = D(0)
        for k in range(400, 0, -1):
            f = D(k) / 2 / (x + f)
        return (-x * x).exp() / PI.sqrt() / (x + f)
    more = int(x * x / 2) + 5
    getcontext().prec += more
    high = +(1 - erf_with_pi(x, pi_digits(getcontext().prec)))
    getcontext().prec -= more
    return +high


@cache
def pi_digits(digits: int) -> D:
    """π by Machin's formula."""
    keep = getcontext().prec
    getcontext().prec = digits + 10

    def inverse(n: int) -> D:  # atan(1/n)
        total, power, k = D(0), D(1) / n, 1
        while power > D(10) ** -(digits + 8):
            total += power / k if k % 4 == 1 else -power / k
            power /= n * n
            k += 2
        return total

    value = 4 * (4 * inverse(5) - inverse(239))
    getcontext().prec = keep
    return value


def erf_with_pi(x: D, pi: D) -> D:
    term, total, k = x, D(0), 0
    while term > total * D(10) ** -(getcontext().prec + 3):
        total += term
        k += 1
        term *= 2 * x * x / (2 * k + 1)
    return 2 * total * (-x * x).exp() / pi.sqrt()


def erfinv_of_complement(q: D) -> D:
    """y with erfc(y) = q, by Newton's method on ln erfc, for 0 < q < 1."""
    y = (-(q * (2 - q)).ln()).sqrt() * (D("0.886") if q > D("0.3") else D(1))
    for _ in range(100):
        e = erfc(y)
        slope = -2 / PI.sqrt() * (-y * y).exp() / e
        step = (e.ln() - q.ln()) / slope
        y -= step
        if abs(step) < y * D(10) ** -60:
            break
    return y


@dataclass(frozen=True)
class Fit:
    """What to fit: target and weight over an interval, in a format, within a bound."""

    name: str
    target: Real
    low: D
    high: D
    weight: Real
    bound: dict[str, float]  # format -> log2 of the largest weighted error allowed
    note: str
    first: float | None = None  # the value of the lowest coefficient where it is known
    slack: float = 0.7  # what rounding may cost, in bits: more where the lowest coefficient is as large as the result


def spec() -> list[Fit]:
    half_ln2 = LN2 / 2 * D("1.0005")
    usual = {"single": -27.5, "double": -56.5}
    low_f, high_f = D("0.5").sqrt() - 1, D(2).sqrt() - 1
    s_max = (high_f / (2 + high_f)) ** 2 * D("1.0001")
    sixteenth_pi2 = (PI / 4 * D("1.01")) ** 2
    quarter_pi2 = (PI / 2 * D("1.01")) ** 2
    tiny = D("1e-6")

    def log_tail(f: D) -> D:  # (log(1+f) - f + f²/2) / f³
        if abs(f) < D("1e-12"):
            return D(1) / 3
        return ((1 + f).ln() - f + f * f / 2) / f**3

    def atanh_tail(z: D) -> D:  # log(1+f) = 2s + s R(s²), s = f/(2+f): R(z)/z
        s = z.sqrt()
        return (((1 + s) / (1 - s)).ln() - 2 * s) / s / z

    def atanh_tail2(z: D) -> D:  # after the term 2/3 z
        s = z.sqrt()
        return (((1 + s) / (1 - s)).ln() - 2 * s - 2 * s * z / 3) / s / z / z

    def k_of(t: D, k: D) -> D:  # t = (x-k)/(x+k)
        return k * (1 + t) / (1 - t)

    def scaled_erfc(x: D) -> D:  # (1+2x) exp(x²) erfc(x)
        return (1 + 2 * x) * (x * x).exp() * erfc(x)

    def apart(r: D) -> D:  # of r = 1 / (1 + 0.45 x)
        return (1 / r - 1) / D("0.45")

    def central(w: D) -> D:  # erfinv(x)/x as a function of w = -log(1-x²)
        x = (1 - (-w).exp()).sqrt()
        return erfinv_of_complement(1 - x) / x

    def outer(s: D) -> D:  # the same of s = sqrt(w)
        x = (1 - (-s * s).exp()).sqrt()
        q = 1 - x if s < 3 else (-s * s).exp() / (1 + x)
        return erfinv_of_complement(q) / x

    return [
        Fit("exp", lambda r: taylor(r, 2, 1, 1), -half_ln2, half_ln2, lambda r: r * r / r.exp(), usual,
            "exp(r) = 1 + r + r² q(r), |r| <= ln 2 / 2; relative to exp(r)", 0.5),
        Fit("expm1", lambda r: taylor(r, 2, 1, 1), -half_ln2, half_ln2, lambda r: abs(r), usual,
            "exp(r) - 1 = r + r² q(r), |r| <= ln 2 / 2; relative to r", 0.5),
        Fit("exp2", lambda r: ((r * LN2).exp() - 1) / r, D("-0.5"), D("0.5"), lambda r: abs(r), usual,
            "2^r = 1 + r q(r), |r| <= 1/2; relative to 1"),
        Fit("exp2_wide", lambda r: ((r * LN2).exp() - 1) / r, D("-0.5"), D("0.5"), lambda r: abs(r),
            {"widened": -31.0}, "2^r = 1 + r q(r), |r| <= 1/2; relative to 1"),
        Fit("log", log_tail, low_f, high_f, lambda f: f * f, {"single": -27.5},
            "log(1+f) = f - f²/2 + f³ p(f), √½ <= 1+f <= √2; relative to f"),
        Fit("log2_wide", lambda f: (1 + f).ln() / LN2 / f, low_f, high_f, lambda f: f / (1 + f).ln() * LN2,
            {"widened": -35.0}, "log2(1+f) = f p(f), the same range; relative"),
        Fit("log_ratio", atanh_tail, tiny, s_max, lambda z: z / 2, {"double": -58.0},
            "log((1+s)/(1-s)) = 2s + s z p(z), z = s², the same range; relative to 2s"),
        Fit("log_ratio_tail", atanh_tail2, tiny, s_max, lambda z: z * z / 2, {"double": -69.0},
            "log((1+s)/(1-s)) = 2s + 2/3 s z + s z² p(z); relative to 2s"),
        Fit("sin", lambda z: -taylor(z, 3, 2, -1), tiny, quarter_pi2, lambda z: z, usual,
            "sin(r) = r + r z p(z), z = r², |r| <= π/2; relative to r"),
        Fit("sin_quarter", lambda z: -taylor(z, 3, 2, -1), tiny, sixteenth_pi2, lambda z: z, usual,
            "the same for |r| <= π/4"),
        Fit("cos_quarter", lambda z: taylor(z, 4, 2, -1), tiny, sixteenth_pi2, lambda z: z * z, usual,
            "cos(r) = 1 - z/2 + z² p(z), z = r², |r| <= π/4; relative to 1"),
        Fit("atan", lambda z: (atan(z.sqrt()) - z.sqrt()) / (z.sqrt() * z), tiny, D(1),
            lambda z: z * z.sqrt() / atan(z.sqrt()), {"single": -27.0, "double": -56.0},
            "atan(x) = x + x z p(z), z = x², |x| <= 1; relative"),
        Fit("asin", lambda z: (asin(z.sqrt()) - z.sqrt()) / (z.sqrt() * z), tiny, D("0.25"), lambda z: z, usual,
            "asin(x) = x + x z p(z), z = x², |x| <= 1/2; relative to x"),
        Fit("sinh", lambda z: taylor(z, 3, 2, 1), tiny, D(1), lambda z: z, usual,
            "sinh(x) = x + x z p(z), z = x², |x| <= 1; relative to x"),
        Fit("erf_centre", lambda z: erf(z.sqrt()) / z.sqrt() - 1, tiny, D(1), lambda z: 1 / (1 + z / 3), usual,
            "erf(x) = x + x p(z), z = x², |x| <= 1; relative"),
        Fit("erf_tail", erfc, D("0.95"), D("3.95"), lambda x: D(1), {"single": -26.5},
            "1 - erf(x), 0.95 <= x <= 3.95; absolute", slack=1),
        Fit("erfc", lambda t: scaled_erfc(k_of(t, D(4))), D("-1"), D("0.77"), lambda t: D(1),
            {"double": -57.0}, "(1+2x) exp(x²) erfc(x), x = 4 (1+t)/(1-t), 0 <= x <= 30; absolute, of 1 to 1.4",
            slack=5),
        Fit("erfc_short", lambda t: scaled_erfc(k_of(t, D(2))), D("-1"), D("0.7"), lambda t: D(1),
            {"widened": -30.0}, "the same with x = 2 (1+t)/(1-t), 0 <= x <= 11"),
        Fit("erf_from_exp", lambda r: erfc(apart(r)) * (apart(r) ** 2).exp() / r, D("0.346"), D(1),
            lambda r: r * (-apart(r) ** 2).exp(), {"single": -28.0},
            "exp(x²) erfc(x) = r p(r), r = 1 / (1 + 0.45 x), 0 <= x <= 4.2; absolute, of erf(x)", slack=3),
        Fit("erfinv_centre", central, D("1e-9"), D(5), lambda w: 1 / (w + 1), {"single": -26.5},
            "erfinv(x) = x p(w), w = -log(1-x²) <= 5; relative", slack=5),
        Fit("erfinv_outer", outer, D("2.2"), D("4.2"), lambda s: 1 / s, {"single": -26.5},
            "erfinv(x) = x p(s), s = √w, 2.2 <= s <= 4.2; relative", slack=5),
        Fit("erfinv_inner_double", central, D("1e-9"), D("6.25"), lambda w: 1 / (w + 1), {"double": -56.0},
            "erfinv(x) = x p(w - 3.125), w <= 6.25; relative", slack=5),
        Fit("erfinv_middle_double", outer, D("2.5"), D(4), lambda s: 1 / s, {"double": -56.0},
            "erfinv(x) = x p(s - 3.25), s = √w, 2.5 <= s <= 4; relative", slack=5),
        Fit("erfinv_outer_double", outer, D(4), D("6.1"), lambda s: 1 / s, {"double": -56.0},
            "erfinv(x) = x p(s - 5), s = √w, 4 <= s <= 6.1; relative", slack=5),
    ]


# fits in a shifted variable: the coefficients are those of powers of (t - centre)
CENTRE = {"erfinv_inner_double": D("3.125"), "erfinv_middle_double": D("3.25"), "erfinv_outer_double": D(5),
          "erfinv_centre": D("2.5"), "erfinv_outer": D("3.2"), "erf_tail": D("2.5")}


def rounded(value: D, format_: str) -> D:
    return D(float(np.float32(str(value)))) if format_ == "single" else D(float(value))


def exchange(points: list[D], target: list[D], weight: list[D], known: list[D], free: int) -> tuple[list[D], D]:
    """The best `free` coefficients above the known ones, and the largest weighted error on the points."""
    base = len(known)
    rest = [value - sum((c * t**k for k, c in enumerate(known)), D(0)) for t, value in zip(points, target, strict=True)]
    if not free:
        return [], max(abs(w * r) for w, r in zip(weight, rest, strict=True))
    n = len(points)
    # t^base takes both signs on an interval around 0 when base is odd: the error alternates in sign(t)^base times it
    flip = [-1 if t < 0 and base % 2 else 1 for t in points]
    if free + 1 >= n:
        raise ValueError("more coefficients than points")
    # the points are Chebyshev-spaced: equal steps in the index; not symmetric, or odd powers make the system singular
    reference = [round((i * 0.93 + 0.02) * (n - 1) / free) for i in range(free + 1)]
    coefficients: list[D] = []
    best: tuple[list[D], D] | None = None
    for _ in range(40):
        rows = []
        for sign, i in enumerate(reference):
            row = [points[i] ** (base + k) for k in range(free)]
            rows.append([*row, D(-flip[i] if sign % 2 else flip[i]) / weight[i], rest[i]])
        try:
            solution = solve(rows)
        except ArithmeticError:  # singular: powers above known ones need not alternate
            break
        coefficients, level = solution[:-1], abs(solution[-1])
        errors = []
        for t, w, r in zip(points, weight, rest, strict=True):
            total = D(0)
            for c in reversed(coefficients):
                total = total * t + c
            errors.append(w * (total * t**base - r))
        worst = max(abs(e) for e in errors)
        if best is None or worst < best[1]:
            best = coefficients, worst
        if worst <= level * D("1.002"):
            break
        runs: list[int] = []  # the largest error of each run of one sign
        for i, e in enumerate(errors):
            if runs and (errors[runs[-1]] * flip[runs[-1]] > 0) == (e * flip[i] > 0):
                if abs(e) > abs(errors[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > free + 1:
            runs.pop(0 if abs(errors[runs[0]]) < abs(errors[runs[-1]]) else -1)
        if len(runs) < free + 1:
            break
        if runs == reference:
            break
        reference = runs
    if best is None:
        raise ArithmeticError("no starting reference")
    return best


def solve(rows: list[list[D]]) -> list[D]:
    """Gaussian elimination with pivoting; each row ends in its right-hand side."""
    n = len(rows)
    for k in range(n):
        pivot = max(range(k, n), key=lambda i: abs(rows[i][k]))
        rows[k], rows[pivot] = rows[pivot], rows[k]
        for i in range(k + 1, n):
            factor = rows[i][k] / rows[k][k]
            if factor:
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    out = [D(0)] * n
    for k in range(n - 1, -1, -1):
        out[k] = (rows[k][n] - sum((rows[k][j] * out[j] for j in range(k + 1, n)), D(0))) / rows[k][k]
    return out


def fitted(fit: Fit, format_: str) -> tuple[list[float], float]:
    """The rounded coefficients, lowest first, and log2 of their largest weighted error."""
    centre = CENTRE.get(fit.name, D(0))
    count = 240
    points, target, weight = [], [], []
    for i in range(count):
        t = (fit.low + fit.high) / 2 - (fit.high - fit.low) / 2 * D(math.cos(math.pi * (i + 0.5) / count))
        if i == 0:
            t = fit.low
        if i == count - 1:
            t = fit.high
        if abs(t) < D("1e-20"):
            continue
        w = fit.weight(t)
        if not w:
            continue
        points.append(t - centre)
        target.append(fit.target(t))
        weight.append(w)
    bound = fit.bound[format_]
    start = [D(fit.first)] if fit.first is not None else []
    for free in range(2, 40):
        try:
            coefficients, worst = exchange(points, target, weight, start, free)
        except ArithmeticError:
            continue
        if math.log2(float(worst)) > bound:
            continue
        known, worst = one_by_one(points, target, weight, start, coefficients, format_)
        if math.log2(float(worst)) <= bound + fit.slack:
            return [float(c) for c in known], math.log2(float(worst))
    raise ValueError(f"no fit of {fit.name} in {format_} reaches 2^{bound}")


def one_by_one(points: list[D], target: list[D], weight: list[D], start: list[D], coefficients: list[D],
               format_: str) -> tuple[list[D], D]:
    """The coefficients rounded from the lowest up, those above fitted again, and the largest weighted error."""
    known = list(start)
    while coefficients:
        known.append(rounded(coefficients[0], format_))
        coefficients = coefficients[1:]
        if coefficients:  # what is left either stays or is fitted again, whichever is nearer
            _, stays = exchange(points, target, weight, [*known, *coefficients], 0)
            try:
                again, worst = exchange(points, target, weight, known, len(coefficients))
            except ArithmeticError:
                continue
            if worst < stays:
                coefficients = again
    return known, exchange(points, target, weight, known, 0)[1]


def pieces() -> tuple[list[list[float]], float]:
    """erf(i/4 + t) = Σ c_k t^k, 0 <= t <= 1/4, for i = 1, ..., 15, and erf(t) - t for i = 0; by k, then by i.

    All are of degree 6. The largest error relative to erf, as log2.
    """
    found, largest = [], D(0)
    for i in range(16):
        points = [(1 - D(math.cos(math.pi * (k + 0.5) / 120))) / 8 for k in range(1, 119)] + [D("0.25")]
        target = [erf(D(i) / 4 + t) for t in points]
        weight = [1 / each for each in target]
        if not i:
            target = [each - t for each, t in zip(target, points, strict=True)]
        start = [] if i else [D(0)]
        coefficients, _ = exchange(points, target, weight, start, 7 - len(start))
        known, worst = one_by_one(points, target, weight, start, coefficients, "single")
        found.append([float(c) for c in known])
        largest = max(largest, worst)
    return [list(each) for each in zip(*found, strict=True)], math.log2(float(largest))


def listed(values: list[float], indent: str) -> list[str]:
    """Lines of numbers in hexadecimal."""
    lines, row = [], indent[1:]
    for v in values:
        piece = f' "{v.hex()}",'
        if len(row) + len(piece) > 110:
            lines.append(row)
            row = indent[1:]
        row += piece
    return [*lines, row]


def main(names: list[str]) -> None:
    lines = ['"""Coefficients of the polynomials, lowest power first: made by tests/codegen/fit_polynomials.py.', "",
             "A name ends in the format that it was rounded to: SINGLE and DOUBLE are the formats of the function's",
             "arguments; WIDENED means coefficients in double for a float32 result computed in double.", '"""', "",
             "from __future__ import annotations", ""]
    for fit in spec():
        if names and fit.name not in names:
            continue
        for format_ in fit.bound:
            values, error = fitted(fit, format_)
            name = f"{fit.name.removesuffix('_double').removesuffix('_wide').upper()}_{format_.upper()}"
            centre = f" in (t - {CENTRE[fit.name]})" if fit.name in CENTRE and "- " not in fit.note else ""
            lines.append(f"# {fit.note}{centre}: 2^{error:.1f}")
            lines += [f"{name} = tuple(map(float.fromhex, (", *listed(values, "    "), ")))", ""]
            print(f"{name:28} {len(values):3} coefficients, error 2^{error:.2f}", flush=True)
    if not names or "erf_pieces" in names:
        table, error = pieces()
        lines += ["# erf(i/4 + t) = p(t), 0 <= t <= 1/4, for i = 1, ..., 15, and erf(t) = t + p(t) for i = 0,",
                  f"# those of a power together; relative: 2^{error:.1f}",
                  "ERF_PIECES_SINGLE = tuple(tuple(map(float.fromhex, row)) for row in ("]
        for row in table:
            first, *rest = listed(row, "     ")
            lines += ["    (" + first.lstrip(), *rest[:-1], (rest[-1] if rest else first).removesuffix(",") + "),"]
        lines += ["))", ""]
        print(f"{'ERF_PIECES_SINGLE':28} {len(table)} x {len(table[0])} coefficients, error 2^{error:.2f}", flush=True)
    if not names:
        path = Path(__file__).resolve().parents[2] / "flambeau" / "codegen" / "math" / "coefficients.py"
        path.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
