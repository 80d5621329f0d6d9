"""Templates: one graph for many combinations of sizes, from captures for a few of them.

The captures must agree in all but numbers, and each number must be a formula of the sizes (`compiler.symbolic`). The
first two captures have sizes that are distinct primes where the range has some, so that different formulas differ; the
ends of the range are among the others. Sizes of 1 have templates of their own, since arrays of that extent broadcast.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import lcm
from typing import Any, NamedTuple

import numpy as np

from ...compiler.symbolic.formulas import Formula, NotSymbolic, Sizes
from ...ir.graph.extern_kernels import ExternKernel
from .capture import Capture
from .errors import ExportError
from .jobs import encode_graph

Combination = tuple[int, ...]
#: fewest combinations for which a template is tried: for fewer there is a capture of each
FEWEST = 6
#: the most combinations that are captured one by one
MOST = 512


class Template(NamedTuple):
    """A graph for several combinations of sizes.

    Attributes:
        combinations: the sizes.
        example: the capture whose graph it is, up to numbers.
        values, regions: as in `jobs.SizedJob`, with formulas where numbers depend on sizes: the graph's values, and the
            regions of the targets.
    """

    combinations: list[Combination]
    example: Capture
    values: list[Any]
    regions: list[Any]


def templates(
    combinations: Sequence[Combination], capture: Callable[[Combination], Capture]
) -> tuple[list[Template], list[tuple[Combination, Capture]]]:
    """The templates of all combinations, and the captures that were made for them.

    Args:
        combinations: the sizes for which there is code.
        capture: captures a program for a combination.
    """
    made: dict[Combination, Capture] = {}

    def captured(sizes: Combination) -> Capture:
        if sizes not in made:
            made[sizes] = capture(sizes)
        return made[sizes]

    found: list[Template] = []
    groups: dict[tuple[bool, ...], list[Combination]] = {}
    for sizes in combinations:
        groups.setdefault(tuple(n == 1 for n in sizes), []).append(sizes)
    for group in groups.values():
        try:
            if len(group) < FEWEST:
                raise NotSymbolic("few sizes")
            probes = _probes(group)
            found.append(_template(group, probes, [captured(sizes) for sizes in probes]))
        except NotSymbolic as reason:
            if len(group) > MOST:
                raise ExportError(
                    f"{len(group)} combinations of sizes cannot share plans ({reason}), and at most {MOST} have plans "
                    "of their own. Give fewer with sizes={name: [...]}"
                ) from None
            for sizes in group:
                one = captured(sizes)
                found.append(Template([sizes], one, encode_graph(one.graph), [t.region for t in one.targets]))
    return found, list(made.items())


def _probes(group: Sequence[Combination]) -> list[Combination]:
    """The combinations that are captured: two of distinct primes, corners, one in the middle."""
    columns = [sorted(set(column)) for column in zip(*group, strict=True)]
    chosen: list[list[int]] = [[], []]
    taken: set[int] = set()
    for column in columns:
        primes = [n for n in reversed(column) if n > 2 and all(n % d for d in range(2, int(n**0.5) + 1))]
        free = [n for n in (*primes, *reversed(column)) if n not in taken]
        for row, n in zip(chosen, [*free, *column[::-1], column[-1]][:2], strict=True):
            row.append(n)
            taken.add(n)
    corners = list(product(*[dict.fromkeys((column[0], column[-1])) for column in columns]))
    middle = tuple(column[len(column) // 2] for column in columns)
    known = set(group)
    return [sizes for sizes in dict.fromkeys([*map(tuple, chosen), *corners, middle]) if sizes in known]


def _template(group: Sequence[Combination], probes: Sequence[Combination], captures: Sequence[Capture]) -> Template:
    first, sizes = captures[0], Sizes(tuple(probes))
    for each in captures[1:]:
        same = (
            each.arguments == first.arguments
            and each.written == first.written
            and {n: id(m.array) for n, m in each.memory.items()} == {n: id(m.array) for n, m in first.memory.items()}
            and [_target(t) for t in each.targets] == [_target(t) for t in first.targets]
            and [(g.value.number, g.outcome, g.where) for g in each.guards]
            == [(g.value.number, g.outcome, g.where) for g in first.guards]
        )
        if not same:
            raise NotSymbolic("other operations")
    values = _unified([encode_graph(each.graph) for each in captures], sizes)
    regions = _unified([[t.region for t in each.targets] for each in captures], sizes)
    return Template(list(group), first, values, regions)


def _target(target: Any) -> tuple[int, int | None]:
    return target.value.number, None if target.overwrites is None else target.overwrites.number


def _unified(xs: Sequence[Any], sizes: Sizes) -> Any:
    """What several structures are up to numbers, with formulas for those."""
    first = xs[0]
    if all(x is first for x in xs):
        return first
    if any(type(x) is not type(first) for x in xs):
        raise NotSymbolic("other values")
    if type(first) is int:
        return sizes.formula(xs)
    if isinstance(first, (tuple, list)):
        if any(len(x) != len(first) for x in xs):
            raise NotSymbolic("other lengths")
        parts = [_unified(each, sizes) for each in zip(*xs, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else type(first)(parts)
    if isinstance(first, dict):
        if any(x.keys() != first.keys() for x in xs):
            raise NotSymbolic("other names")
        return {key: _unified([x[key] for x in xs], sizes) for key in first}
    if isinstance(first, ExternKernel):
        params = _unified([x.params for x in xs], sizes)
        if any((x.name, x.family, x.optional, x.checked) != (first.name, first.family, first.optional, first.checked)
               for x in xs):
            raise NotSymbolic("other kernels")
        return ExternKernel(first.name, first.family, params, first.check, first.checked, first.optional)
    if any(x != first for x in xs):
        raise NotSymbolic("other values")
    return first


def evaluated(x: Any, symbols: Sequence[Any]) -> Any:
    """A structure with the values of its formulas for these sizes, which may be symbolic.

    >>> from fractions import Fraction
    >>> evaluated((3, Formula(Fraction(1, 2), (1,), Fraction(1))), [6])
    (3, 4)
    """
    if type(x) is Formula:
        scale = lcm(x.factor.denominator, x.offset.denominator)
        total: Any = int(x.factor * scale)
        for symbol, power in zip(symbols, x.powers, strict=True):
            for _ in range(power):
                total = total * symbol
        total = total + int(x.offset * scale)
        if scale > 1 and total % scale != 0:
            raise NotSymbolic("a size that is rounded")
        return total // scale if scale > 1 else total
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
