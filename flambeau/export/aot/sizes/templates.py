"""Templates: one graph for many combinations of sizes, from captures for a few of them.

The captures must agree in all but numbers and constants, each number must be a formula of the sizes (`formulas`),
and each constant one of the forms in `constants`. The first captures have sizes that are distinct primes where the
range has some, so that different formulas differ; the ends of the range are among the others. Arrays of extent 1
broadcast, so sizes of 1 have templates of their own, and so have sizes for which an array inside becomes that small.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ....compiler.symbolic.formulas import NotSymbolic
from ....ir.graph.extern_kernels import ExternKernel
from ..capture import Capture
from ..errors import ExportError
from ..jobs import encode_graph
from .constants import SIZED_CONSTANT, sized_constant
from .formulas import Combination, FormulaSearch, MissingCombination, SizeFormula, evaluate

#: fewest combinations for which a template is tried: for fewer there is a capture of each
FEWEST = 6
#: the most combinations that are captured one by one
MOST = 512
#: the most combinations that are captured to tell formulas apart
MOST_PROBES = 60
#: combinations that are captured only to check formulas
CHECKS = 3


class Template(NamedTuple):
    """A graph for several combinations of sizes.

    Attributes:
        combinations: the sizes.
        example: the capture whose graph it is, up to numbers.
        values, regions: as in `jobs.SizedJob`, with formulas where numbers depend on sizes: the graph's values, and the
            regions of the targets.
        derived: the formulas of the symbols behind the sizes.
    """

    combinations: list[Combination]
    example: Capture
    values: list[Any]
    regions: list[Any]
    derived: list[SizeFormula]


class _Differs(NotSymbolic):
    """Another graph for a combination than for the first one."""


class _Captures:
    """The captures of a program, each made once.

    Args:
        capture: captures the program for a combination.
    """

    def __init__(self, capture: Callable[[Combination], Capture]) -> None:
        self._capture = capture
        self.made: dict[Combination, Capture] = {}
        self._memory: dict[int, Any] = {}  # one copy of the weights for all captures
        self._structures: dict[Combination, Any] = {}
        self._constants: dict[Combination, dict[int, np.ndarray]] = {}

    def __getitem__(self, sizes: Combination) -> Capture:
        if sizes not in self.made:
            self.made[sizes] = self._captured(sizes)
        return self.made[sizes]

    def _captured(self, sizes: Combination) -> Capture:
        found = self._capture(sizes)
        memory = {n: self._memory.setdefault(id(m.array), m) for n, m in found.memory.items()}
        return found._replace(memory=memory)

    def structure(self, sizes: Combination) -> Any:
        """What a capture is but for numbers."""
        if sizes not in self._structures:
            found = self.made.get(sizes) or self._captured(sizes)
            self._structures[sizes] = _structure(found)
            self._constants[sizes] = {
                v.number: found.graph.array(v) for v in found.graph.values if v.op == "constant"
            }
        return self._structures[sizes]

    def constant(self, sizes: Combination, number: int) -> np.ndarray:
        """The elements of a constant."""
        self.structure(sizes)
        return self._constants[sizes][number]


def templates(
    combinations: Sequence[Combination], capture: Callable[[Combination], Capture]
) -> tuple[list[Template], list[tuple[Combination, Capture]]]:
    """The templates of all combinations, and the captures that were made for them.

    Args:
        combinations: the sizes for which there is code.
        capture: captures a program for a combination.
    """
    captures = _Captures(capture)
    found: list[Template] = []
    groups: dict[tuple[bool, ...], list[Combination]] = {}
    for sizes in combinations:
        groups.setdefault(tuple(n == 1 for n in sizes), []).append(sizes)
    for group in groups.values():
        found += _templates_of(group, captures)
    return found, list(captures.made.items())


def _templates_of(group: Sequence[Combination], captures: _Captures) -> Iterator[Template]:
    """The templates of combinations: one, or, where small sizes differ, one for each part of the range."""
    try:
        if len(group) < FEWEST:
            raise NotSymbolic("few sizes")
        yield _template(group, captures)
    except _Differs as reason:
        parts = _parts(group, captures)
        if len(parts) < 2:
            yield from _one_by_one(group, captures, reason)
        for part in parts if len(parts) > 1 else ():
            yield from _templates_of(part, captures)
    except NotSymbolic as reason:
        yield from _one_by_one(group, captures, reason)


def _one_by_one(group: Sequence[Combination], captures: _Captures, reason: Exception) -> Iterator[Template]:
    if len(group) > MOST:
        raise ExportError(
            f"{len(group)} combinations of sizes cannot share plans ({reason}), and at most {MOST} have plans "
            "of their own. Give fewer with sizes={name: [...]}"
        ) from None
    for sizes in group:
        one = captures[sizes]
        yield Template([sizes], one, encode_graph(one.graph), [t.region for t in one.targets], [])


def _parts(group: Sequence[Combination], captures: _Captures) -> list[list[Combination]]:
    """The combinations around the first probe whose graph is its, and those with a size that is too small or too large.

    A size with another graph for each value, such as the number of steps of a loop, is one value in each part.
    """
    known = set(group)
    references = [each for each in _primes(group) if each in known]
    ranges = []
    for i, column in enumerate(_columns(group)):
        here = column.index(references[0][i])

        def last_alike(values: Sequence[int], i: int = i) -> int:
            """The last of these values, which lead away from the reference, with the reference's graph."""
            alike, differs = 0, len(values)
            while differs - alike > 1:
                middle = (alike + differs) // 2
                if _moved(i, values[middle], references, known, captures) is None:
                    differs = middle
                else:
                    alike = middle
            return values[alike]

        low, high = last_alike(column[here::-1]), last_alike(column[here:])
        if low == high and len(column) > 1:
            return [[sizes for sizes in group if sizes[i] == n] for n in column]
        ranges.append((low, high))
    parts: dict[tuple[int, bool], list[Combination]] = {}
    for sizes in group:  # by the first size that is outside
        outside = ((i, n > high) for i, (n, (low, high)) in enumerate(zip(sizes, ranges, strict=True))
                   if not low <= n <= high)
        parts.setdefault(next(outside, (-1, False)), []).append(sizes)
    return list(parts.values())


def _moved(
    i: int, n: int, references: Sequence[Combination], known: set[Combination], captures: _Captures
) -> Combination | None:
    """A combination with a value of a size whose graph is that of the first reference."""
    for each in references:
        sizes = (*each[:i], n, *each[i + 1 :])
        if sizes in known and captures.structure(sizes) == captures.structure(references[0]):
            return sizes
    return None


def _columns(group: Sequence[Combination]) -> list[list[int]]:
    return [sorted(set(column)) for column in zip(*group, strict=True)]


def _primes(group: Sequence[Combination]) -> list[Combination]:
    """Combinations of distinct primes, the largest that there are, as far as there are some."""
    chosen: list[list[int]] = [[], [], []]
    taken: set[int] = set()
    for column in _columns(group):
        primes = [n for n in reversed(column) if n > 2 and all(n % d for d in range(2, int(n**0.5) + 1))]
        free = [n for n in (*primes, *reversed(column)) if n not in taken]
        for row, n in zip(chosen, [*free, *column[::-1], column[-1], column[-1]][:3], strict=True):
            row.append(n)
            taken.add(n)
    return [tuple(each) for each in chosen]


def _probes(group: Sequence[Combination]) -> list[Combination]:
    """The combinations that are captured: some of distinct primes, corners, and some between."""
    columns = _columns(group)
    # the corners themselves, too: what differs for small or large sizes differs there
    corners = [*product(*[dict.fromkeys((column[0], column[-1])) for column in columns])]
    middle = tuple(column[len(column) // 2] for column in columns)
    apart = [*corners, middle, *(_apart(each, columns) for each in (*corners, middle))]
    between = [group[len(group) * k // 97 % len(group)] for k in (13, 29, 47, 61, 83)[: 2 + CHECKS]]
    known = set(group)
    chosen = dict.fromkeys([*_primes(group), *apart, *(_apart(each, columns) for each in between)])
    return [sizes for sizes in chosen if sizes in known]


def _apart(sizes: Combination, columns: Sequence[Sequence[int]]) -> Combination:
    """Sizes next to these that are no two equal, where there are some: equal constants would be one."""
    found: list[int] = []
    for n, column in zip(sizes, columns, strict=True):
        near = sorted(column, key=lambda each, n=n: (abs(each - n), each))  # type: ignore[misc]
        found.append(next((each for each in near if each not in found), n))
    return tuple(found)


def _template(group: Sequence[Combination], captures: _Captures) -> Template:
    probes = _probes(group)
    while True:
        try:
            return _fitted(group, probes, captures)
        except MissingCombination as missing:
            if missing.combination in probes or len(probes) >= MOST_PROBES:
                raise NotSymbolic("a number that is rounded") from None
            probes = [*probes, missing.combination]


def _fitted(group: Sequence[Combination], probes: Sequence[Combination], captures: _Captures) -> Template:
    made = [captures[sizes] for sizes in probes]
    first = made[0]
    structure = captures.structure(probes[0])
    if any(captures.structure(sizes) != structure for sizes in probes[1:]):
        raise _Differs("other operations")
    search = FormulaSearch(group, probes)
    known, references, columns = set(group), [*probes], _columns(group)
    encoded = [encode_graph(each.graph) for each in made]

    def vary(number: int) -> Callable[[int, int], np.ndarray]:
        def elements(size: int, n: int) -> np.ndarray:
            sizes = _moved(size, n, references, known, captures)
            if sizes is None:
                raise _Differs("other operations")
            return captures.constant(sizes, number)

        return elements

    values = []
    for number, each in enumerate(zip(*encoded, strict=True)):
        op, args, attrs, _, dtype = each[0]
        extents = _unified([x[3] for x in each], search)
        if op == "constant" and any(x[2] != attrs for x in each):
            arrays = [one.graph.array(one.graph.values[number]) for one in made]
            attrs = sized_constant(arrays, probes, search, vary(number), columns)
            values.append((SIZED_CONSTANT, args, attrs, extents, dtype))
        else:
            values.append((op, args, _unified([x[2] for x in each], search), extents, dtype))
    regions = _unified([[t.region for t in each.targets] for each in made], search)
    return Template(list(group), first, values, regions, search.derived)


def _structure(capture: Capture) -> Any:
    """What a capture is but for numbers: operations, ranks, extents of 1, and strides of 0."""
    return (
        [
            (v.op, [x.number for x in v.args], [n == 1 for n in v.shape], str(v.dtype), _kind(v))
            for v in capture.graph.values
        ],
        capture.arguments,
        capture.written,
        {n: id(m.array) for n, m in capture.memory.items()},
        [_target(t) for t in capture.targets],
        [(g.value.number, g.outcome, g.where) for g in capture.guards],
    )


def _kind(value: Any) -> Any:
    if value.op == "view":
        return [s == 0 for s in value.attrs[0]]
    if value.op == "extern":
        return value.attrs.name
    return None


def _target(target: Any) -> tuple[int, int | None]:
    return target.value.number, None if target.overwrites is None else target.overwrites.number


def _unified(xs: Sequence[Any], search: FormulaSearch) -> Any:
    """What several structures are up to numbers, with formulas for those."""
    first = xs[0]
    if all(x is first for x in xs):
        return first
    if any(type(x) is not type(first) for x in xs):
        raise NotSymbolic("other values")
    if type(first) is int:
        return search.formula(xs)
    if isinstance(first, (tuple, list)):
        if any(len(x) != len(first) for x in xs):
            raise NotSymbolic("other lengths")
        parts = [_unified(each, search) for each in zip(*xs, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if isinstance(first, dict):
        if any(x.keys() != first.keys() for x in xs):
            raise NotSymbolic("other names")
        return {key: _unified([x[key] for x in xs], search) for key in first}
    if isinstance(first, ExternKernel):
        params = _unified([x.params for x in xs], search)
        if any((x.name, x.family, x.optional, x.checked) != (first.name, first.family, first.optional, first.checked)
               for x in xs):
            raise NotSymbolic("other kernels")
        return ExternKernel(first.name, first.family, params, first.check, first.checked, first.optional)
    if any(x != first for x in xs):
        raise NotSymbolic("other values")
    return first


def evaluated(x: Any, symbols: Sequence[Any]) -> Any:
    """A structure with the values of its formulas for symbols, which may be symbolic integers.

    >>> from fractions import Fraction
    >>> from flambeau.export.aot.sizes.formulas import Product
    >>> evaluated((3, SizeFormula((Product(Fraction(1, 2), (0,)), Product(Fraction(1), ())))), [6])
    (3, 4)
    """
    if type(x) is SizeFormula:
        return evaluate(x, symbols)
    if isinstance(x, (tuple, list)):
        parts = [evaluated(each, symbols) for each in x]
        return type(x)(*parts) if hasattr(x, "_fields") else type(x)(parts)
    if isinstance(x, dict):
        return {key: evaluated(each, symbols) for key, each in x.items()}
    if isinstance(x, ExternKernel):
        return ExternKernel(x.name, x.family, evaluated(x.params, symbols), x.check, x.checked, x.optional)
    return x


def columns_of(combinations: Sequence[Combination]) -> list[np.ndarray]:
    """By size, its value in each combination."""
    return [np.array(column, np.int64) for column in zip(*combinations, strict=True)]


__all__ = ["Combination", "Template", "columns_of", "evaluated", "templates"]
