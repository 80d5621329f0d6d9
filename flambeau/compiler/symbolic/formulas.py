"""Formulas: numbers of a trace as functions of the sizes of its arguments.

A formula is `factor * product of powers of sizes + offset`. It is found from the values of one number in several traces
of a function at other sizes. Those of the first two are chosen such that different products differ; every further trace
must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations_with_replacement
from math import gcd, prod
from typing import Any, NamedTuple

#: factors of a product of sizes
MAX_DEGREE = 4
#: how much larger than the known values of a float a template tries to serve
FLOAT_HEADROOM = 64


class NotSymbolic(Exception):
    """A number, or what a function does, is no function of the sizes that a template can express."""


class DependsOnSize(NotSymbolic):
    """A function does something else for other sizes, or fails."""


class OutOfTemplate(Exception):
    """A template does not hold for these sizes."""


class Formula(NamedTuple):
    """A number as a function of sizes: factor * prod(size ** power) + offset."""

    factor: Fraction
    powers: tuple[int, ...]
    offset: Fraction

    def value(self, sizes: Sequence[Any]) -> int:
        """Return the number for these sizes.

        Raises:
            OutOfTemplate: it is no integer, so the function rounds for these sizes, and did not for others.
        """
        factor, powers, offset = self
        result = factor.numerator  # integers, since fractions take ten times as long
        for size, power in zip(sizes, powers, strict=True):
            if power:
                result *= size ** power
        whole = factor.denominator
        if offset:
            result = result * offset.denominator + offset.numerator * whole
            whole *= offset.denominator
        if whole == 1:
            return result
        result, remainder = divmod(result, whole)
        if remainder:
            raise OutOfTemplate("a size that is rounded")
        return result


class Sizes(NamedTuple):
    """The sizes and numbers of several traces, of which the first two were chosen by `probing_sizes`."""

    sizes: tuple[tuple[Any, ...], ...]

    def formula(self, numbers: Sequence[int]) -> int | Formula:
        """Return a number of some of the traces, the first ones, as a formula; the number if it is the same in all.

        Raises:
            NotSymbolic: no formula has these values.

        >>> sizes = Sizes(((22, 13), (34, 19), (8, 3)))
        >>> sizes.formula((22 * 13 * 100, 34 * 19 * 100, 2400)).value((2, 5))
        1000
        >>> sizes.formula((11, 17, 4)).value((6, 5)), sizes.formula((12, 18, 2)).value((6, 5)), sizes.formula((7, 7, 7))
        (3, 4, 7)
        """
        first = numbers[0]
        if all(number == first for number in numbers):
            return first
        known = self.sizes[:len(numbers)]
        integers = tuple([i for i, size in enumerate(known[0]) if size.__class__ is int])
        count = len(known[0])
        for degree in range(1, MAX_DEGREE + 1):
            for powers in _powers(count, integers, degree):
                of = _products(known, powers)
                if all(number * of[0] == first * each for number, each in zip(numbers, of, strict=True)):
                    return Formula(Fraction(first, of[0]), powers, Fraction(0))
        for degree in (1, 2):
            for powers in _powers(count, integers, degree):
                of = _products(known, powers)
                factor = Fraction(first - numbers[1], of[0] - of[1]) if of[0] != of[1] else Fraction(0)
                offset = first - factor * of[0]
                if factor and all(factor * each + offset == number for number, each in zip(numbers, of, strict=True)):
                    return Formula(factor, powers, offset)
        raise NotSymbolic(f"a number that is {', '.join(map(str, numbers))} for sizes {known}")


@cache
def _powers(count: int, integers: tuple[int, ...], degree: int) -> list[tuple[int, ...]]:
    """Return the powers of all products of so many factors out of `count` symbols, those of `integers` only."""
    return [tuple([factors.count(i) for i in range(count)])
            for factors in combinations_with_replacement(integers, degree)]


def _products(sizes: Sequence[Sequence[int]], powers: tuple[int, ...]) -> list[int]:
    return [prod([size ** power for size, power in zip(each, powers, strict=True) if power]) for each in sizes]


def probing_sizes(sizes: Sequence[tuple[Sequence[int], float]]) -> Sizes:
    """Choose the sizes of two traces that identify formulas: multiples of distinct primes.

    They are also multiples of what the known sizes are multiples of, so that quotients without remainder stay without.

    Args:
        sizes: by symbol, the values that it is known to have, and the multiple of the largest one above which to
            choose; 0: below the largest one, unless that is small.

    Raises:
        NotSymbolic: there are not enough below it.

    >>> probing_sizes([([32, 48], 1), ([7, 9], 1)])
    Sizes(sizes=((56, 11), (104, 17)))
    >>> probing_sizes([([480, 64], 0)])
    Sizes(sizes=((472,), (424,)))
    """
    steps = [divisor(known) for known, _ in sizes]
    below = [stays_below(known) and not above for known, above in sizes]
    primes: list[list[int]] = [[], []]
    taken: set[int] = set()
    for chosen in primes:
        for step, (known, above), is_below in zip(steps, sizes, below, strict=True):
            prime = max(known) // step if is_below else max(int(max(known) * (above or 1)) // step + 1, 5)
            while prime in taken or any(prime % d == 0 for d in range(2, int(prime ** 0.5) + 1)):
                prime += -1 if is_below else 1
            if prime < 3:
                raise NotSymbolic("sizes that are too small")
            taken.add(prime)
            chosen.append(prime)
    both = tuple([tuple([step * prime for step, prime in zip(steps, chosen, strict=True)]) for chosen in primes])
    return Sizes(both)


def probing_floats(known: Sequence[float], above: float) -> tuple[float, float]:
    """Choose the values of a float, which has one sign, in two traces: numbers that no other computation gives.

    Args:
        known: values that it is known to have.
        above: 2: choose values that are `FLOAT_HEADROOM` times as large as the largest one, 1: somewhat larger ones, 0:
            values between the known ones.

    >>> [round(x, 4) for x in probing_floats([0.5, 0.25], 0)]
    [0.3455, 0.4309]
    >>> all(x > 0.5 for x in probing_floats([0.5, 0.25], 1))
    True
    """
    low, high = min(known), max(known)
    if not above:
        return low + 0.3819660113 * (high - low), low + 0.7236067977 * (high - low)
    factor = FLOAT_HEADROOM if above > 1 else 1
    return (1.2360679775 * high * factor, 1.7320508076 * high * factor) if high > 0 else (
        0.8090169944 * high / factor, 0.5773502692 * high / factor)


def mixed_ends(low: Sequence[Any], high: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return values of several symbols, each the least or the largest one: for any two, one of each, both ways round.

    A comparison of two symbols, or a quotient, that is the same for all of these is the same in the whole range.

    >>> mixed_ends((3, 4), (9, 8))
    [(9, 4), (3, 8)]
    >>> len(mixed_ends(range(7), range(7, 14)))
    6
    """
    found: dict[tuple[Any, ...], None] = {}
    for bit in range(len(low).bit_length() if len(low) > 1 else 0):
        chosen = [(i + 1) >> bit & 1 for i in range(len(low))]
        for first in (1, 0):
            found[tuple([h if is_high == first else n for n, h, is_high in zip(low, high, chosen, strict=True)])] = None
    return list(found)


def stays_below(sizes: Sequence[int]) -> bool:
    """Whether there are enough primes for `probing_sizes` below the largest one."""
    return max(sizes) // divisor(sizes) > 12


def divisor(sizes: Sequence[int]) -> int:
    """Return the largest power of 2 up to 8 that divides all sizes.

    >>> divisor([48, 36])
    4
    """
    return gcd(*sizes, 8)


__all__ = [
    "FLOAT_HEADROOM",
    "DependsOnSize",
    "Formula",
    "NotSymbolic",
    "OutOfTemplate",
    "Sizes",
    "divisor",
    "mixed_ends",
    "probing_floats",
    "probing_sizes",
    "stays_below",
]
