"""Programs for arrays of new shapes, after the pattern of those that were planned for other shapes.

Planning takes a hundred times as long as running: an operator whose arrays are of another shape in every call (text
that grows, batches of unlike lengths) would do little else. But a plan's numbers are products of extents: shapes,
strides, sizes. So a plan is made for extents that are prime numbers, in which all numbers can be read as such products,
and once more for other primes: what both plans agree on is the pattern. For arrays of other extents its numbers are
multiplied out, and each kernel is asked for anew; nothing else of planning is left.

A pattern serves all arrays that are alike (`likeness`) and of about one size. What is planned must be right for all
of them: lines of `namespace` may ask whether extents are equal or 1, but not which is larger, nor whether one divides
another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...codegen.scalar.scalar_ir import Node
from ...runtime.launch import Spec
from ..schedule.memory_planner import Stay, placed
from ..schedule.scheduler import Plan
from ..schedule.steps import Course, Step
from .symbolic_shapes import Likeness

#: a product of extents: a number, and by which power of each extent it is multiplied
Formula = tuple[int, tuple[int, ...]]


class NoPattern(Exception):
    """The plans differ in more than products of extents, or do what patterns do not say."""


class _Numbers:
    """Numbers of two plans as formulas, each once."""

    def __init__(self, primes: tuple[int, ...], others: tuple[int, ...]) -> None:
        self._primes = primes, others
        self.formulas: list[Formula] = []
        self._places: dict[Formula, int] = {}

    def place(self, x: int, y: int) -> int:
        """The place of the formula of a number that is `x` in one plan and `y` in the other."""
        found = _factored(x, self._primes[0])
        if found != _factored(y, self._primes[1]):
            raise NoPattern(f"{x} and {y} are not one product of extents")
        place = self._places.get(found)
        if place is None:
            place = self._places[found] = len(self.formulas)
            self.formulas.append(found)
        return place


def _factored(number: int, primes: Sequence[int]) -> Formula:
    if number < 0:
        raise NoPattern("a negative number")
    powers = []
    for prime in primes:
        power = 0
        while number and number % prime == 0:
            number //= prime
            power += 1
        powers.append(power)
    return number, tuple(powers)


class _Spec(NamedTuple):
    """A spec whose numbers are places of formulas."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype


def _common(x: Any, y: Any, numbers: _Numbers) -> Any:
    """What two arguments have in common: specs become such of formulas, all else must be the same."""
    if isinstance(x, Spec):
        if x.dtype != y.dtype or len(x.shape) != len(y.shape):
            raise NoPattern("operands that differ")
        return _Spec(tuple(map(numbers.place, x.shape, y.shape)), tuple(map(numbers.place, x.strides, y.strides)),
                     x.dtype)
    if x.__class__ is list or x.__class__ is tuple:
        if x.__class__ is not y.__class__ or len(x) != len(y):
            raise NoPattern("arguments that differ")
        return x.__class__(_common(a, b, numbers) for a, b in zip(x, y, strict=True))
    if x is not y and (isinstance(x, Node) or x.__class__ is not y.__class__ or x != y):
        raise NoPattern("expressions that differ")
    return x


def _said(x: Any, values: Sequence[int]) -> Any:
    """An argument, with numbers for formulas."""
    kind = x.__class__
    if kind is _Spec:
        return Spec(tuple([values[i] for i in x.shape]), tuple([values[i] for i in x.strides]), x.dtype)
    return kind([_said(each, values) for each in x]) if kind is list or kind is tuple else x


class _Kernel(NamedTuple):
    """A kernel to be asked for.

    Attributes:
        function, arguments: what gives its launches.
        pointers: of each operand, the entry, the number of its stay in the arena or -1, and the place of its offset.
    """

    function: Callable[..., Any]
    arguments: Any
    pointers: list[tuple[int, int, int]]


class Pattern:
    """What two plans for arrays that are alike have in common.

    Args:
        plan, other: the plans.
        primes, others: their extents.

    Raises:
        NoPattern: they differ in more than extents.
    """

    def __init__(self, plan: Plan, other: Plan, primes: tuple[int, ...], others: tuple[int, ...]) -> None:
        for each in (plan, other):
            if each.conditions or each.late or each.inside:
                raise NoPattern("conditions, or memory that is shared")
        numbers = _Numbers(primes, others)
        if [v.attrs for v in plan.leaves] != [v.attrs for v in other.leaves] or plan.entries != other.entries or (
                plan.arena_entry != other.arena_entry or len(plan.kernels) != len(other.kernels)):
            raise NoPattern("other kernels")
        self.leaves, self.entries, self.arena_entry = [v.attrs for v in plan.leaves], plan.entries, plan.arena_entry
        self.fresh = [(tuple(map(numbers.place, shape, its)), dtype)
                      for (shape, dtype), (its, _) in zip(plan.fresh, other.fresh, strict=True)]
        self.constants = [_constant(a, b, numbers) for a, b in zip(plan.constants, other.constants, strict=True)]
        stays = [each for each in plan.stays if not isinstance(each, int)]
        others_stays = [each for each in other.stays if not isinstance(each, int)]
        if len(stays) != len(others_stays):
            raise NoPattern("other values in memory")
        self.stays: list[tuple[int, int, int]] = []
        for v, w in zip(stays, others_stays, strict=True):
            x, y = plan.stays[v], other.stays[w]
            if x[:2] != y[:2]:
                raise NoPattern("other times")
            self.stays.append((x.first, x.last, numbers.place(x.size, y.size)))
        mine, its = ({value: i for i, value in enumerate(each)} for each in (stays, others_stays))
        self.kernels: list[_Kernel] = []
        for one, its_like in zip(plan.kernels, other.kernels, strict=True):
            if one.asked is None or its_like.asked is None or one.asked[0] is not its_like.asked[0]:
                raise NoPattern(f"a kernel of {one.name}")
            arguments = _common(one.asked[1], its_like.asked[1], numbers)
            pointers = []
            for (v, at), (w, its_at) in zip(_operands(one), _operands(its_like), strict=True):
                if plan.places[v][0] != other.places[w][0] or mine.get(v) != its.get(w):
                    raise NoPattern("other places")
                if v not in mine and (plan.places[v][1] or other.places[w][1]):
                    raise NoPattern("a place inside of an array")
                pointers.append((plan.places[v][0], mine.get(v, -1), numbers.place(at, its_at)))
            self.kernels.append(_Kernel(one.asked[0], arguments, pointers))
        self.formulas = numbers.formulas

    def course(self, extents: Sequence[int]) -> Course:
        """The course for these extents."""
        values = [factor * prod([extent ** power for extent, power in zip(extents, powers, strict=True) if power])
                  for factor, powers in self.formulas]
        launches = [each.function(*_said(each.arguments, values)) for each in self.kernels]
        stays = [Stay(first, last, values[size]) for first, last, size in self.stays]
        scratch: dict[int, int] = {}
        for number, found in enumerate(launches):
            wanted = max((each.scratch for each in found), default=0)
            if wanted:
                scratch[number] = len(stays)
                stays.append(Stay(number, number, wanted))
        starts, arena = placed(stays)
        steps: list[Any] = []
        for number, (kernel, found) in enumerate(zip(self.kernels, launches, strict=True)):
            pointers = [(entry, values[offset] + (starts[stay] if stay >= 0 else 0))
                        for entry, stay, offset in kernel.pointers]
            if number in scratch:
                pointers.append((self.arena_entry, starts[scratch[number]]))
            steps += [Step(each, pointers, number) for each in found]
        fresh = [(tuple([values[i] for i in shape]), dtype) for shape, dtype in self.fresh]
        constants = [each.array(values) for each in self.constants]
        return Course(list(self.leaves), fresh, constants, arena, self.arena_entry, self.entries, steps)


def _operands(kernel: Any) -> list[tuple[Any, int]]:
    """A kernel's operands, and at which offset in bytes they begin."""
    shifts = kernel.shifts or (0,) * len(kernel.outputs)
    return [*zip(kernel.outputs, shifts, strict=True), *kernel.inputs]


class _Constant(NamedTuple):
    """A constant array.

    Attributes:
        kept: the array, if it is the same for all extents.
        shape: by formulas, if it is 0, 1, 2, ... in a shape.
        number: the place of a formula, if it is a number of elements, or so many `less`.
    """

    kept: np.ndarray
    shape: tuple[int, ...] | None = None
    number: int | None = None
    less: int = 0

    def array(self, values: Sequence[int]) -> np.ndarray:
        """The array, for the values of the formulas."""
        if self.number is not None:
            return np.array([values[self.number] - self.less], self.kept.dtype)
        if self.shape is None:
            return self.kept
        shape = [values[i] for i in self.shape]
        return np.arange(prod(shape), dtype=self.kept.dtype).reshape(shape)


def _constant(a: np.ndarray, b: np.ndarray, numbers: _Numbers) -> _Constant:
    if a.dtype != b.dtype or a.ndim != b.ndim:
        raise NoPattern("constants that differ")
    if a.shape == b.shape and a.tobytes() == b.tobytes():
        return _Constant(a)
    if a.size == b.size == 1 and a.dtype.kind == "f" and all(x.item().is_integer() and x.item() > 0 for x in (a, b)):
        for less in (0, 1):  # of as many elements, or of one less: a variance's
            try:
                return _Constant(a, number=numbers.place(int(a.item()) + less, int(b.item()) + less), less=less)
            except NoPattern:
                continue
    if a.dtype.kind not in "iu" or any(not np.array_equal(x.reshape(-1), np.arange(x.size)) for x in (a, b)):
        raise NoPattern("constants that differ")
    return _Constant(a, tuple(map(numbers.place, a.shape, b.shape)))


def primes_for(extents: Sequence[int], fixed: Sequence[int], taken: Sequence[int] = ()) -> tuple[int, ...]:
    """A prime number for each extent, all different, near it, and a divisor of none of the fixed numbers.

    >>> primes_for([64, 100, 3], [12])
    (67, 101, 5)
    """
    found: list[int] = []
    for extent in extents:
        candidate = max(extent, 3)
        while (candidate in found or candidate in taken or any(n % candidate == 0 for n in fixed if n)
               or any(candidate % d == 0 for d in range(2, int(candidate ** 0.5) + 1))):
            candidate += 1
        found.append(candidate)
    return tuple(found)


def pattern_of(like: Likeness, planned: Callable[[list[np.ndarray]], Plan]) -> Pattern:
    """The pattern of what is planned for arrays that are alike.

    Raises:
        NoPattern: there is none; also what `planned` raises.
    """
    fixed = [number for _, dims, nested in like.arrays for pair in (*dims, *nested) for number in pair if number > 1]
    primes = primes_for(like.extents, fixed)
    others = primes_for(like.extents, fixed, primes)
    return Pattern(planned(like.of_extents(primes)), planned(like.of_extents(others)), primes, others)


__all__ = ["NoPattern", "Pattern", "pattern_of", "primes_for"]
