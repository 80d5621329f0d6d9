"""Formulas: numbers of a trace as functions of the sizes of its arguments.

A formula is `factor * product of powers of sizes + offset`. It is found from the values of one number in several traces
of the same function at other sizes. The sizes of the first two traces are multiples of distinct large primes, so that a
product shows its factors; every further trace must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement
from math import gcd, prod
from typing import NamedTuple


class NotSymbolic(Exception):
    """A number, or what a function does, is no function of the sizes that a template can express."""


class OutOfTemplate(Exception):
    """A template does not hold for these sizes."""


class Formula(NamedTuple):
    """A number as a function of sizes: factor * prod(size ** power) + offset."""

    factor: Fraction
    powers: tuple[int, ...]
    offset: Fraction

    def value(self, sizes: Sequence[int]) -> int:
        """Return the number for these sizes.

        Raises:
            OutOfTemplate: it is no integer, so the function rounds for these sizes, and did not for others.
        """
        result = self.factor * prod([size ** power for size, power in zip(sizes, self.powers, strict=True) if power])
        result += self.offset
        if result.denominator != 1:
            raise OutOfTemplate("a size that is rounded")
        return result.numerator


class Sizes(NamedTuple):
    """The sizes of several traces, of which the first two identify products.

    Attributes:
        sizes: by trace, the value of each symbol.
        primes: of the first trace, the prime factor that identifies each symbol.
    """

    sizes: tuple[tuple[int, ...], ...]
    primes: tuple[int, ...]

    def formula(self, numbers: Sequence[int]) -> int | Formula:
        """Return a number of the traces as a formula; the number itself if it is the same in all.

        Raises:
            NotSymbolic: no formula has these values.
        """
        first = numbers[0]
        if all(number == first for number in numbers):
            return first
        found = self._product(numbers) or self._linear(numbers)
        if found is None:
            raise NotSymbolic(f"a number that is {', '.join(map(str, numbers))} for sizes {self.sizes}")
        return found

    def _product(self, numbers: Sequence[int]) -> Formula | None:
        rest, powers = numbers[0], []
        for prime in self.primes:
            power = 0
            while rest and rest % prime == 0:
                rest //= prime
                power += 1
            powers.append(power)
        of = self._products(tuple(powers))
        return self._checked(numbers, tuple(powers), Fraction(numbers[0], of[0]), Fraction(0), of)

    def _linear(self, numbers: Sequence[int]) -> Formula | None:
        count = len(self.primes)
        for degree in (1, 2):
            for factors in combinations_with_replacement(range(count), degree):
                powers = tuple([factors.count(i) for i in range(count)])
                of = self._products(powers)
                factor = Fraction(numbers[0] - numbers[1], of[0] - of[1])
                found = self._checked(numbers, powers, factor, numbers[0] - factor * of[0], of)
                if found is not None:
                    return found
        return None

    def _products(self, powers: tuple[int, ...]) -> list[int]:
        return [prod([size ** power for size, power in zip(sizes, powers, strict=True)]) for sizes in self.sizes]

    @staticmethod
    def _checked(numbers: Sequence[int], powers: tuple[int, ...], factor: Fraction, offset: Fraction,
                 products: Sequence[int]) -> Formula | None:
        if all(factor * of + offset == number for number, of in zip(numbers, products, strict=True)):
            return Formula(factor, powers, offset)
        return None


def probing_sizes(sizes: Sequence[Sequence[int]], above: Sequence[int]) -> Sizes:
    """Choose the sizes of two traces that identify formulas.

    They are multiples of what the known sizes are multiples of, so that quotients without remainder stay without.

    Args:
        sizes: by symbol, the values that it is known to have.
        above: by symbol, what both sizes exceed.

    >>> probing_sizes([[32, 48], [7, 9]], [48, 13])
    Sizes(sizes=((80, 17), (112, 19)), primes=(5, 17))
    """
    steps = [divisor(known) for known in sizes]
    primes: list[list[int]] = [[], []]
    taken: set[int] = set()
    for chosen in primes:
        for step, limit in zip(steps, above, strict=True):
            prime = max(limit // step + 1, 5)
            while prime in taken or any(prime % d == 0 for d in range(2, int(prime ** 0.5) + 1)):
                prime += 1
            taken.add(prime)
            chosen.append(prime)
    both = tuple([tuple([step * prime for step, prime in zip(steps, chosen, strict=True)]) for chosen in primes])
    return Sizes(both, tuple(primes[0]))


def divisor(sizes: Sequence[int]) -> int:
    """Return the largest common divisor of sizes up to 16, of larger ones the largest power of 2 up to 8."""
    common = gcd(*sizes)
    return common if common <= 16 else gcd(common, 8)


__all__ = ["Formula", "NotSymbolic", "OutOfTemplate", "Sizes", "divisor", "probing_sizes"]
