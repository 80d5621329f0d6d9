"""Shape-polymorphic plans: one plan for all arrays of a shape signature.

Planning takes a hundred times as long as running, which dominates where every call has a new shape (growing text,
batches of different lengths). All numbers of a plan (shapes, strides, sizes) are products of extents. So a schedule is
built for extents that are distinct primes, where every number factorizes into extents, and once more for other primes.
The two schedules must agree in everything but these numbers, whose factorizations are the formulas of the plan. For
other extents the formulas are evaluated and each kernel's launches are created anew; nothing else is planned.

The plan serves all arrays of one signature (`shape_signature`), which includes the order of magnitude. So declarations
may branch on whether extents are equal or 1, but not on which one is larger, nor on divisibility.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...codegen.scalar.scalar_ir import Node
from ...runtime.launch import Launch, Spec
from ..schedule.memory_planner import LiveRange, assign_offsets
from ..schedule.program import Program
from ..schedule.scheduler import Schedule
from ..schedule.steps import ExecutionPlan, Step
from .launch_families import LaunchFamilies
from .symbolic_shapes import ShapeSignature

#: the most elements of arrays on which launches are compared
COMPARED = 1 << 20
#: a product of extents: a factor, and the power of each extent
Formula = tuple[int, tuple[int, ...]]


class NotPolymorphic(Exception):
    """The two schedules differ in more than products of extents, or have a feature that plans cannot express."""


class _Formulas:
    """The distinct formulas of the numbers of two schedules."""

    def __init__(self, primes: tuple[int, ...], other_primes: tuple[int, ...]) -> None:
        self._primes = primes, other_primes
        self.formulas: list[Formula] = []
        self._indices: dict[Formula, int] = {}

    def index_of(self, x: int, y: int) -> int:
        """The index of the formula that is `x` for the first primes and `y` for the second."""
        formula = _factorize(x, self._primes[0])
        if formula != _factorize(y, self._primes[1]):
            raise NotPolymorphic(f"{x} and {y} are not one product of extents")
        index = self._indices.get(formula)
        if index is None:
            index = self._indices[formula] = len(self.formulas)
            self.formulas.append(formula)
        return index


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
    """A `Spec` whose extents and strides are indices of formulas."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype


def _unify(x: Any, y: Any, formulas: _Formulas) -> Any:
    """Unify two arguments: specs become symbolic, everything else must be equal."""
    if isinstance(x, Spec):
        if x.dtype != y.dtype or len(x.shape) != len(y.shape):
            raise NotPolymorphic("different operands")
        return _SymbolicSpec(tuple(map(formulas.index_of, x.shape, y.shape)), tuple(map(formulas.index_of, x.strides,
                                                                                     y.strides)),
                     x.dtype)
    if x.__class__ is list or x.__class__ is tuple:
        if x.__class__ is not y.__class__ or len(x) != len(y):
            raise NotPolymorphic("different arguments")
        return x.__class__(_unify(a, b, formulas) for a, b in zip(x, y, strict=True))
    if x is not y and (isinstance(x, Node) or x.__class__ is not y.__class__ or x != y):
        raise NotPolymorphic("different expressions")
    return x


def _instantiate(x: Any, values: Sequence[int]) -> Any:
    """An argument with the values of the formulas in its specs."""
    kind = x.__class__
    if kind is _SymbolicSpec:
        return Spec(tuple([values[i] for i in x.shape]), tuple([values[i] for i in x.strides]), x.dtype)
    return kind([_instantiate(each, values) for each in x]) if kind is list or kind is tuple else x


class _SymbolicKernel(NamedTuple):
    """A kernel whose launches are created at instantiation.

    Attributes:
        function, arguments: create the launches.
        pointers: for each operand the table entry, the index of its live range in the arena or -1, and the formula of
            its offset.
    """

    function: Callable[..., Any]
    arguments: Any
    pointers: list[tuple[int, int, int]]


class PolymorphicPlan:
    """The plan that two schedules of one signature have in common.

    Args:
        schedule, other: the schedules.
        primes, other_primes: their extents.
        signature: that of the arrays.

    Raises:
        NotPolymorphic: the schedules differ in more than extents.
    """

    def __init__(self, schedule: Schedule, other: Schedule, primes: tuple[int, ...], other_primes: tuple[int, ...],
                 signature: ShapeSignature) -> None:
        for each in (schedule, other):
            if each.conditions or each.deferred_copies or each.subarrays:
                raise NotPolymorphic("data guards, deferred copies or subarrays")
        formulas = _Formulas(primes, other_primes)
        self.inputs, self.entries = [v.attrs for v in schedule.inputs], schedule.entries
        self.arena_entry = schedule.arena_entry
        if (self.inputs != [v.attrs for v in other.inputs] or self.entries != other.entries
                or self.arena_entry != other.arena_entry or len(schedule.kernels) != len(other.kernels)):
            raise NotPolymorphic("different kernels")
        self.output_specs = [(tuple(map(formulas.index_of, shape, other_shape)), dtype)
                             for (shape, dtype), (other_shape, _) in zip(schedule.output_specs, other.output_specs,
                                                                         strict=True)]
        self.constants = [_unify_constants(a, b, formulas) for a, b in zip(schedule.constants, other.constants,
                                                                           strict=True)]
        live_ranges = [each for each in schedule.live_ranges if not isinstance(each, int)]
        other_ranges = [each for each in other.live_ranges if not isinstance(each, int)]
        if len(live_ranges) != len(other_ranges):
            raise NotPolymorphic("different values in the arena")
        self.live_ranges: list[tuple[int, int, int]] = []
        for v, w in zip(live_ranges, other_ranges, strict=True):
            x, y = schedule.live_ranges[v], other.live_ranges[w]
            if x[:2] != y[:2]:
                raise NotPolymorphic("different live ranges")
            self.live_ranges.append((x.first, x.last, formulas.index_of(x.size, y.size)))
        range_index, other_index = ({value: i for i, value in enumerate(each)} for each in (live_ranges, other_ranges))
        self.kernels: list[_SymbolicKernel] = []
        for kernel, other_kernel in zip(schedule.kernels, other.kernels, strict=True):
            if (kernel.factory is None or other_kernel.factory is None
                    or kernel.factory[0] is not other_kernel.factory[0]):
                raise NotPolymorphic(f"a kernel of {kernel.name}")
            arguments = _unify(kernel.factory[1], other_kernel.factory[1], formulas)
            pointers = []
            for (v, at), (w, other_at) in zip(_operands(kernel), _operands(other_kernel), strict=True):
                if schedule.locations[v][0] != other.locations[w][0] or range_index.get(v) != other_index.get(w):
                    raise NotPolymorphic("different locations")
                if v not in range_index and (schedule.locations[v][1] or other.locations[w][1]):
                    raise NotPolymorphic("an operand inside an array")
                pointers.append((schedule.locations[v][0], range_index.get(v, -1), formulas.index_of(at, other_at)))
            self.kernels.append(_SymbolicKernel(kernel.factory[0], arguments, pointers))
        self.formulas = formulas.formulas
        self._signature = signature
        self._families = LaunchFamilies(max(len(self.kernels), 1), self._launches, self._gives_same_bits)

    def _values(self, extents: Sequence[Any]) -> list[Any]:
        """The values of the formulas for these extents."""
        return [factor * prod([extent ** power for extent, power in zip(extents, powers, strict=True) if power])
                for factor, powers in self.formulas]

    def _launches(self, extents: Sequence[Any]) -> list[Sequence[Launch]]:
        """The launches of each kernel for these extents, one of which may be symbolic."""
        values = self._values(extents)
        return [each.function(*_instantiate(each.arguments, values)) for each in self.kernels]

    def instantiate(self, extents: Sequence[int]) -> ExecutionPlan:
        """The execution plan for these extents."""
        values = self._values(extents)
        return self._execution_plan(values, self._families.launches(extents))

    def _gives_same_bits(self, extents: Sequence[int], launches: Sequence[Sequence[Launch]],
                         expected: Sequence[Sequence[Launch]]) -> bool:
        """Whether launches for the same extents give the same bits for random numbers."""
        arrays = [_random_array(each) for each in self._signature.arrays_of_extents(extents)]
        given = [each for each in arrays if each is not None]
        if len(given) < len(arrays) or sum(each.size for each in given) > COMPARED:
            return False
        results = []
        for each in (launches, expected):
            found = Program.from_execution_plan(self._execution_plan(self._values(extents), each)).run(
                [given[i] for i in self.inputs])
            results.append(None if found is None else [x.tobytes() for x in found])
        return results[0] == results[1] is not None

    def _execution_plan(self, values: Sequence[int], launches: Sequence[Sequence[Launch]]) -> ExecutionPlan:
        """The execution plan for the values of the formulas."""
        live_ranges = [LiveRange(first, last, values[size]) for first, last, size in self.live_ranges]
        scratch: dict[int, int] = {}
        for number, created in enumerate(launches):
            scratch_bytes = max((each.scratch for each in created), default=0)
            if scratch_bytes:
                scratch[number] = len(live_ranges)
                live_ranges.append(LiveRange(number, number, scratch_bytes))
        starts, arena = assign_offsets(live_ranges)
        steps: list[Any] = []
        for number, (kernel, created) in enumerate(zip(self.kernels, launches, strict=True)):
            pointers = [(entry, values[offset] + (starts[live_range] if live_range >= 0 else 0))
                        for entry, live_range, offset in kernel.pointers]
            if number in scratch:
                pointers.append((self.arena_entry, starts[scratch[number]]))
            steps += [Step(each, pointers, number) for each in created]
        output_specs = [(tuple([values[i] for i in shape]), dtype) for shape, dtype in self.output_specs]
        constants = [each.array(values) for each in self.constants]
        return ExecutionPlan(list(self.inputs), output_specs, constants, arena, self.arena_entry, self.entries, steps)


def _operands(kernel: Any) -> list[tuple[Any, int]]:
    """A kernel's operands with their offsets in bytes."""
    shifts = kernel.output_offsets or (0,) * len(kernel.outputs)
    return [*zip(kernel.outputs, shifts, strict=True), *kernel.inputs]


def _random_array(like: np.ndarray) -> np.ndarray | None:
    """Random numbers in the layout of an array; None where it has other than floating point numbers."""
    dtype = like.dtype
    if dtype.kind != "f" or dtype.itemsize < 4 or min(like.strides, default=0) < 0:
        return None
    end = sum((n - 1) * stride for n, stride in zip(like.shape, like.strides, strict=True)) // dtype.itemsize + 1
    memory = np.random.default_rng(end).standard_normal(end).astype(dtype)
    return np.ndarray(like.shape, dtype, memory, 0, like.strides)


class _SymbolicConstant(NamedTuple):
    """A constant array.

    Attributes:
        literal: the array, if it is the same for all extents; else it gives the dtype.
        shape: the formulas of the extents of an arange; None for others.
        formula: the formula of an element count; None for others.
        less: what is subtracted from the element count (1 for an unbiased variance).
    """

    literal: np.ndarray
    shape: tuple[int, ...] | None = None
    formula: int | None = None
    less: int = 0

    def array(self, values: Sequence[int]) -> np.ndarray:
        """The array for these values of the formulas."""
        if self.formula is not None:
            return np.array([values[self.formula] - self.less], self.literal.dtype)
        if self.shape is None:
            return self.literal
        shape = [values[i] for i in self.shape]
        return np.arange(prod(shape), dtype=self.literal.dtype).reshape(shape)


def _unify_constants(a: np.ndarray, b: np.ndarray, formulas: _Formulas) -> _SymbolicConstant:
    if a.dtype != b.dtype or a.ndim != b.ndim:
        raise NotPolymorphic("different constants")
    if a.shape == b.shape and a.tobytes() == b.tobytes():
        return _SymbolicConstant(a)
    if a.size == b.size == 1 and a.dtype.kind == "f" and all(x.item().is_integer() and x.item() > 0 for x in (a, b)):
        for less in (0, 1):  # n, or n - 1 of an unbiased variance
            try:
                return _SymbolicConstant(a, formula=formulas.index_of(int(a.item()) + less, int(b.item()) + less),
                                         less=less)
            except NotPolymorphic:
                continue
    if a.dtype.kind not in "iu" or any(not np.array_equal(x.reshape(-1), np.arange(x.size)) for x in (a, b)):
        raise NotPolymorphic("different constants")
    return _SymbolicConstant(a, tuple(map(formulas.index_of, a.shape, b.shape)))


def primes_for(extents: Sequence[int], fixed: Sequence[int], taken: Sequence[int] = ()) -> tuple[int, ...]:
    """A distinct prime near each extent, none of which divides a fixed number.

    >>> primes_for([64, 100, 3], [12])
    (67, 101, 5)
    """
    primes: list[int] = []
    for extent in extents:
        candidate = max(extent, 3)
        while (candidate in primes or candidate in taken or any(n % candidate == 0 for n in fixed if n)
               or any(candidate % d == 0 for d in range(2, int(candidate ** 0.5) + 1))):
            candidate += 1
        primes.append(candidate)
    return tuple(primes)


def build_polymorphic_plan(signature: ShapeSignature,
                           build_schedule: Callable[[list[np.ndarray]], Schedule]) -> PolymorphicPlan:
    """Build the plan of a signature from two schedules.

    Args:
        signature: the arrays.
        build_schedule: schedules the computation of arrays of these shapes.

    Raises:
        NotPolymorphic: there is no such plan; also whatever `build_schedule` raises.
    """
    fixed = [number for _, dims, stride_rules in signature.arrays for pair in (*dims, *stride_rules)
             for number in pair if number > 1]
    primes = primes_for(signature.extents, fixed)
    other_primes = primes_for(signature.extents, fixed, primes)
    schedule = build_schedule(signature.arrays_of_extents(primes))
    other = build_schedule(signature.arrays_of_extents(other_primes))
    return PolymorphicPlan(schedule, other, primes, other_primes, signature)


__all__ = ["NotPolymorphic", "PolymorphicPlan", "build_polymorphic_plan", "primes_for"]
