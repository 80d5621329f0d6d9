"""Programs for arrays of new shapes, after the pattern of those that were planned for other shapes.

Planning takes a hundred times as long as running: an operator whose arrays are of another shape in every call (text
that grows, batches of unlike lengths) would do little else. But a schedule's formulas are products of extents: shapes,
strides, sizes. So a schedule is made for extents that are prime formulas, in which all formulas can be read as such
products,
and once more for other primes: what both plans agree on is the pattern. For arrays of other extents its formulas are
multiplied out, and each kernel is asked for anew; nothing else of planning is left.

A pattern serves all arrays that are alike (`shape_signature`) and of about one size. What is planned must be right for
all
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
from ..schedule.memory_planner import LiveRange, assign_offsets
from ..schedule.scheduler import Schedule
from ..schedule.steps import ExecutionPlan, Step
from .symbolic_shapes import ShapeSignature

#: a product of extents: a number, and by which power of each extent it is multiplied
Formula = tuple[int, tuple[int, ...]]


class NotPolymorphic(Exception):
    """The plans differ in more than products of extents, or do what patterns do not say."""


class _Formulas:
    """Numbers of two plans as formulas, each once."""

    def __init__(self, primes: tuple[int, ...], others: tuple[int, ...]) -> None:
        self._primes = primes, others
        self.formulas: list[Formula] = []
        self._places: dict[Formula, int] = {}

    def place(self, x: int, y: int) -> int:
        """The place of the formula of a number that is `x` in one schedule and `y` in the other."""
        found = _factorize(x, self._primes[0])
        if found != _factorize(y, self._primes[1]):
            raise NotPolymorphic(f"{x} and {y} are not one product of extents")
        place = self._places.get(found)
        if place is None:
            place = self._places[found] = len(self.formulas)
            self.formulas.append(found)
        return place


def _factorize(number: int, primes: Sequence[int]) -> Formula:
    if number < 0:
        raise NotPolymorphic("a negative number")
    powers = []
    for prime in primes:
        power = 0
        while number and number % prime == 0:
            number //= prime
            power += 1
        powers.append(power)
    return number, tuple(powers)


class _SymbolicSpec(NamedTuple):
    """A spec whose formulas are places of formulas."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype


def _unify(x: Any, y: Any, formulas: _Formulas) -> Any:
    """What two arguments have in common: specs become such of formulas, all else must be the same."""
    if isinstance(x, Spec):
        if x.dtype != y.dtype or len(x.shape) != len(y.shape):
            raise NotPolymorphic("operands that differ")
        return _SymbolicSpec(tuple(map(formulas.place, x.shape, y.shape)), tuple(map(formulas.place, x.strides,
                                                                                     y.strides)),
                     x.dtype)
    if x.__class__ is list or x.__class__ is tuple:
        if x.__class__ is not y.__class__ or len(x) != len(y):
            raise NotPolymorphic("arguments that differ")
        return x.__class__(_unify(a, b, formulas) for a, b in zip(x, y, strict=True))
    if x is not y and (isinstance(x, Node) or x.__class__ is not y.__class__ or x != y):
        raise NotPolymorphic("expressions that differ")
    return x


def _instantiate(x: Any, values: Sequence[int]) -> Any:
    """An argument, with formulas for formulas."""
    kind = x.__class__
    if kind is _SymbolicSpec:
        return Spec(tuple([values[i] for i in x.shape]), tuple([values[i] for i in x.strides]), x.dtype)
    return kind([_instantiate(each, values) for each in x]) if kind is list or kind is tuple else x


class _SymbolicKernel(NamedTuple):
    """A kernel to be asked for.

    Attributes:
        function, arguments: what gives its launches.
        pointers: of each operand, the entry, the number of its stay in the arena or -1, and the place of its offset.
    """

    function: Callable[..., Any]
    arguments: Any
    pointers: list[tuple[int, int, int]]


class PolymorphicPlan:
    """What two plans for arrays that are alike have in common.

    Args:
        schedule, other: the plans.
        primes, others: their extents.

    Raises:
        NotPolymorphic: they differ in more than extents.
    """

    def __init__(self, schedule: Schedule, other: Schedule, primes: tuple[int, ...], others: tuple[int, ...]) -> None:
        for each in (schedule, other):
            if each.conditions or each.deferred_copies or each.subarrays:
                raise NotPolymorphic("conditions, or memory that is shared")
        formulas = _Formulas(primes, others)
        self.inputs, self.entries = [v.attrs for v in schedule.inputs], schedule.entries
        self.arena_entry = schedule.arena_entry
        if (self.inputs != [v.attrs for v in other.inputs] or self.entries != other.entries
                or self.arena_entry != other.arena_entry or len(schedule.kernels) != len(other.kernels)):
            raise NotPolymorphic("other kernels")
        self.output_specs = [(tuple(map(formulas.place, shape, its)), dtype)
                      for (shape, dtype), (its, _) in zip(schedule.output_specs, other.output_specs, strict=True)]
        self.constants = [_unify_constants(a, b, formulas) for a, b in zip(schedule.constants, other.constants,
                                                                           strict=True)]
        live_ranges = [each for each in schedule.live_ranges if not isinstance(each, int)]
        others_stays = [each for each in other.live_ranges if not isinstance(each, int)]
        if len(live_ranges) != len(others_stays):
            raise NotPolymorphic("other values in memory")
        self.live_ranges: list[tuple[int, int, int]] = []
        for v, w in zip(live_ranges, others_stays, strict=True):
            x, y = schedule.live_ranges[v], other.live_ranges[w]
            if x[:2] != y[:2]:
                raise NotPolymorphic("other times")
            self.live_ranges.append((x.first, x.last, formulas.place(x.size, y.size)))
        mine, its = ({value: i for i, value in enumerate(each)} for each in (live_ranges, others_stays))
        self.kernels: list[_SymbolicKernel] = []
        for one, its_like in zip(schedule.kernels, other.kernels, strict=True):
            if one.factory is None or its_like.factory is None or one.factory[0] is not its_like.factory[0]:
                raise NotPolymorphic(f"a kernel of {one.name}")
            arguments = _unify(one.factory[1], its_like.factory[1], formulas)
            pointers = []
            for (v, at), (w, its_at) in zip(_operands(one), _operands(its_like), strict=True):
                if schedule.locations[v][0] != other.locations[w][0] or mine.get(v) != its.get(w):
                    raise NotPolymorphic("other places")
                if v not in mine and (schedule.locations[v][1] or other.locations[w][1]):
                    raise NotPolymorphic("a place inside of an array")
                pointers.append((schedule.locations[v][0], mine.get(v, -1), formulas.place(at, its_at)))
            self.kernels.append(_SymbolicKernel(one.factory[0], arguments, pointers))
        self.formulas = formulas.formulas

    def instantiate(self, extents: Sequence[int]) -> ExecutionPlan:
        """The course for these extents."""
        values = [factor * prod([extent ** power for extent, power in zip(extents, powers, strict=True) if power])
                  for factor, powers in self.formulas]
        launches = [each.function(*_instantiate(each.arguments, values)) for each in self.kernels]
        live_ranges = [LiveRange(first, last, values[size]) for first, last, size in self.live_ranges]
        scratch: dict[int, int] = {}
        for number, found in enumerate(launches):
            wanted = max((each.scratch for each in found), default=0)
            if wanted:
                scratch[number] = len(live_ranges)
                live_ranges.append(LiveRange(number, number, wanted))
        starts, arena = assign_offsets(live_ranges)
        steps: list[Any] = []
        for number, (kernel, found) in enumerate(zip(self.kernels, launches, strict=True)):
            pointers = [(entry, values[offset] + (starts[stay] if stay >= 0 else 0))
                        for entry, stay, offset in kernel.pointers]
            if number in scratch:
                pointers.append((self.arena_entry, starts[scratch[number]]))
            steps += [Step(each, pointers, number) for each in found]
        output_specs = [(tuple([values[i] for i in shape]), dtype) for shape, dtype in self.output_specs]
        constants = [each.array(values) for each in self.constants]
        return ExecutionPlan(list(self.inputs), output_specs, constants, arena, self.arena_entry, self.entries, steps)


def _operands(kernel: Any) -> list[tuple[Any, int]]:
    """A kernel's operands, and at which offset in bytes they begin."""
    shifts = kernel.output_offsets or (0,) * len(kernel.outputs)
    return [*zip(kernel.outputs, shifts, strict=True), *kernel.inputs]


class _SymbolicConstant(NamedTuple):
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


def _unify_constants(a: np.ndarray, b: np.ndarray, formulas: _Formulas) -> _SymbolicConstant:
    if a.dtype != b.dtype or a.ndim != b.ndim:
        raise NotPolymorphic("constants that differ")
    if a.shape == b.shape and a.tobytes() == b.tobytes():
        return _SymbolicConstant(a)
    if a.size == b.size == 1 and a.dtype.kind == "f" and all(x.item().is_integer() and x.item() > 0 for x in (a, b)):
        for less in (0, 1):  # of as many elements, or of one less: a variance's
            try:
                return _SymbolicConstant(a, number=formulas.place(int(a.item()) + less, int(b.item()) + less),
                                         less=less)
            except NotPolymorphic:
                continue
    if a.dtype.kind not in "iu" or any(not np.array_equal(x.reshape(-1), np.arange(x.size)) for x in (a, b)):
        raise NotPolymorphic("constants that differ")
    return _SymbolicConstant(a, tuple(map(formulas.place, a.shape, b.shape)))


def primes_for(extents: Sequence[int], fixed: Sequence[int], taken: Sequence[int] = ()) -> tuple[int, ...]:
    """A prime number for each extent, all different, near it, and a divisor of none of the fixed formulas.

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


def build_polymorphic_plan(like: ShapeSignature, planned: Callable[[list[np.ndarray]], Schedule]) -> PolymorphicPlan:
    """The pattern of what is planned for arrays that are alike.

    Raises:
        NotPolymorphic: there is none; also what `planned` raises.
    """
    fixed = [number for _, dims, nested in like.arrays for pair in (*dims, *nested) for number in pair if number > 1]
    primes = primes_for(like.extents, fixed)
    others = primes_for(like.extents, fixed, primes)
    return PolymorphicPlan(planned(like.arrays_of_extents(primes)), planned(like.arrays_of_extents(others)), primes,
                           others)


__all__ = ["NotPolymorphic", "PolymorphicPlan", "build_polymorphic_plan", "primes_for"]
