"""`ShapeFamily`: the signatures of a compiled function that differ in sizes only, and the templates that serve them.

A call with a second shape makes a template (`compiler/symbolic`) from the program of the first one. The template gives
programs for all sizes of a range without tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..cache.trace_cache import TraceRecord
from ..symbolic.formulas import NotSymbolic, OutOfTemplate, Sizes, divisor, probing_sizes
from ..symbolic.rehearsal import Rehearsal, dense_layout, rehearse
from ..symbolic.trace_template import TraceTemplate
from ..tracing.aliasing import memory_order
from ..tracing.trace_comparison import difference
from .cache_entry import CacheEntry, pin_holds

#: attempts to make a template, of one family, that may fail
MAX_FAILURES = 4
#: a template is made for sizes up to this multiple of the largest known one
HEADROOM = 2
Shapes = tuple[tuple[int, ...], ...]


def family_key(signature: tuple) -> tuple:
    """Return a signature without the sizes of tensors."""
    return tuple([("tensor", len(x[1]), *x[3:]) if x.__class__ is tuple and x and x[0] == "tensor" else x
                  for x in signature])


class Symbol(NamedTuple):
    """A size that varies.

    Attributes:
        places: (position of a tensor, dimension): where it occurs.
        known: values that it had.
    """

    places: tuple[tuple[int, int], ...]
    known: tuple[int, ...]


class _Template(NamedTuple):
    """The programs of a family for a range of sizes.

    Attributes:
        entry: the entry of the first shape, whose guards all programs have.
        symbols: the sizes that vary.
        shapes: the shapes of the tensors of the first call.
        orders: their memory orders.
        traces: the template of the traces.
        low, high: by symbol, the range in which the function does the same.
    """

    entry: CacheEntry
    symbols: tuple[Symbol, ...]
    shapes: Shapes
    orders: tuple[list[int], ...]
    traces: TraceTemplate
    low: tuple[int, ...]
    high: tuple[int, ...]

    def sizes_of(self, tensors: Sequence[Any]) -> tuple[int, ...] | None:
        """Return the sizes of a call; None if the template does not serve it."""
        sizes = []
        expected = [list(shape) for shape in self.shapes]
        for symbol in self.symbols:
            at, dim = symbol.places[0]
            size = tensors[at]._array.shape[dim]
            sizes.append(size)
            for at, dim in symbol.places:
                expected[at][dim] = size
        if not all(low <= size <= high for low, size, high in zip(self.low, sizes, self.high, strict=True)):
            return None
        for x, shape, order in zip(tensors, expected, self.orders, strict=True):
            a = x._array
            if list(a.shape) != shape or a.strides != dense_layout(shape, order, a.itemsize):
                return None
        return tuple(sizes) if self.traces.holds(sizes) else None


class ShapeFamily:
    """Signatures that differ in sizes only.

    Attributes:
        entries: entries of calls that were traced, the latest last, with the shapes of their tensors.
        failures: how often no template could be made.
        reason: why, the last time.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[CacheEntry, Shapes]] = []
        self._templates: list[_Template] = []
        self.failures, self.reason = 0, ""

    def add(self, entry: CacheEntry, shapes: Shapes) -> None:
        """Add the entry of a traced call, whose tensors have these shapes."""
        self.entries = [*self.entries[-7:], (entry, shapes)]

    def instance(self, tensors: Sequence[Any], name: Callable[[], str]) -> CacheEntry | None:
        """Return an entry for a call with new sizes; None if no template serves it.

        Args:
            tensors: the tensors among its arguments.
            name: gives the name of the program.
        """
        for template in reversed(self._templates):
            sizes = template.sizes_of(tensors)
            base = template.entry
            if sizes is None or not _guards_hold(base, tensors, template.symbols):
                continue
            try:
                trace = template.traces.instantiate(sizes, tensors)
            except OutOfTemplate as error:
                self.reason = str(error)
                continue
            varying = {at for symbol in template.symbols for at, _ in symbol.places}
            free = tuple([pin is None or i in varying for i, pin in enumerate(base.pins)])
            return CacheEntry(trace, name(), base.all_guards, base.trace, "",
                              TraceRecord(frozenset(), frozenset(), free))
        return None

    def make_template(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], tensors: Sequence[Any],
                      static: Sequence[frozenset[int]], dynamic: Sequence[frozenset[int]],
                      possible: Sequence[frozenset[int]], needs_independent_results: bool) -> bool:
        """Make a template that serves a call, if an entry of other sizes has the same guards; return whether there is.

        Args:
            function: the function.
            args, kwargs: its arguments.
            tensors: the tensors among them.
            static, dynamic, possible: by tensor, dimensions that do not vary, that vary in any case, and that vary
                unless the function depends on their size.
            needs_independent_results: as in `Tracer`.
        """
        base = next(((entry, shapes) for entry, shapes in reversed(self.entries)
                     if _guards_hold(entry, tensors, None)), None)
        if base is None:
            return False
        earlier = [t for t in self._templates if t.entry is base[0]]
        places = [place for template in earlier for symbol in template.symbols for place in symbol.places]
        varied = [frozenset([dim for place, dim in places if place == at]) for at in range(len(tensors))]
        choices = [[a | b | c for a, b, c in zip(*all_of, strict=True)] for all_of in (
            (varied, dynamic, possible), (varied, dynamic, dynamic))]
        made = None
        for varying in choices if any(possible) else choices[1:]:
            if self.failures >= MAX_FAILURES:
                break
            try:
                made = _made_template(*base, function, args, kwargs, tensors, static, varying,
                                      needs_independent_results)
                break
            except (NotSymbolic, OutOfTemplate) as error:
                self.failures, self.reason = self.failures + 1, str(error)
        if made is None:
            return False
        self._templates = [*[t for t in self._templates if t.entry is not base[0]
                             or {p for s in t.symbols for p in s.places} - {p for s in made.symbols for p in s.places}],
                           made]
        return True


def shapes_of(tensors: Sequence[Any]) -> Shapes:
    """Return the shapes of tensors."""
    return tuple([x._array.shape for x in tensors])


def _guards_hold(entry: CacheEntry, tensors: Sequence[Any], symbols: Sequence[Symbol] | None) -> bool:
    """Whether the guards of an entry hold that do not depend on sizes."""
    if len(entry.pins) != len(tensors) or not entry.python_guards_hold():
        return False
    if symbols is None:
        return True
    varying = {at for symbol in symbols for at, _ in symbol.places}
    return all(pin is None or i in varying or pin_holds(x, pin)
               for i, (x, pin) in enumerate(zip(tensors, entry.pins, strict=True)))


def _symbols(before: Shapes, now: Shapes, static: Sequence[frozenset[int]], dynamic: Sequence[frozenset[int]]
             ) -> tuple[Symbol, ...]:
    """Return the sizes that vary: those that differ, and those that are to vary; equal ones are one symbol.

    Raises:
        NotSymbolic: a size differs that may not.
    """
    places: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for at, (shape, other) in enumerate(zip(before, now, strict=True)):
        for dim, pair in enumerate(zip(shape, other, strict=True)):
            if pair[0] != pair[1] and dim in static[at]:
                raise NotSymbolic("a dimension that is marked as static differs")
            if pair[0] != pair[1] or (dim in dynamic[at] and dim not in static[at] and pair[0] > 1):
                places.setdefault(pair, []).append((at, dim))
    return tuple([Symbol(tuple(found), tuple(sorted({*pair}))) for pair, found in places.items()])


def _made_template(entry: CacheEntry, before: Shapes, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any],
                   tensors: Sequence[Any], static: Sequence[frozenset[int]], dynamic: Sequence[frozenset[int]],
                   needs_independent_results: bool) -> _Template:
    now = shapes_of(tensors)
    symbols = _symbols(before, now, static, dynamic)
    if not symbols:
        raise NotSymbolic("no size differs")
    if any(n < 2 for symbol in symbols for n in symbol.known):
        raise NotSymbolic("a size of 0 or 1")
    orders = []
    for x, shape in zip(tensors, now, strict=True):
        order = memory_order(x._array)
        if order is None or dense_layout(shape, order, x._array.itemsize) != x._array.strides:
            order = None
        orders.append(order)
    varying = {at for symbol in symbols for at, _ in symbol.places}
    if any(orders[at] is None for at in varying):
        raise NotSymbolic("an argument whose memory is not dense")

    def shapes_for(sizes: Sequence[int]) -> dict[int, tuple[int, ...]]:
        shapes = {at: list(now[at]) for at in varying}
        for symbol, size in zip(symbols, sizes, strict=True):
            for at, dim in symbol.places:
                shapes[at][dim] = size
        return {at: tuple(shape) for at, shape in shapes.items()}

    def rehearsal(sizes: Sequence[int]) -> Rehearsal:
        return rehearse(function, args, kwargs, shapes_for(sizes), entry.trace, needs_independent_results)

    def agrees(sizes: Sequence[int], trace: Any) -> bool:
        try:
            return traces.holds(sizes) and difference(traces.instantiate(sizes, tensors), trace) is None
        except OutOfTemplate:
            return False

    probes: Sizes = probing_sizes([symbol.known for symbol in symbols],
                                  [HEADROOM * max(symbol.known) for symbol in symbols])
    rehearsals = [rehearsal(sizes) for sizes in probes.sizes]
    traces = TraceTemplate(entry.trace, [each.trace for each in rehearsals], [each.guards for each in rehearsals],
                           probes)
    first = [before[symbol.places[0][0]][symbol.places[0][1]] for symbol in symbols]
    if not agrees(first, entry.trace):
        raise NotSymbolic("formulas that do not hold for the first shape")
    low = tuple([symbol.known[0] for symbol in symbols])
    steps = [divisor(symbol.known) for symbol in symbols]
    for candidate in dict.fromkeys((_at_most(low, [3 + i + step % 2 for i, step in enumerate(steps)]),
                                    _at_most(low, [2 * step for step in steps]), low)):
        try:
            rehearsed = rehearsal(candidate)
            if agrees(candidate, rehearsed.trace) and traces.decides(candidate, rehearsed.guards):
                low = candidate
                break
        except NotSymbolic:
            continue
    else:
        raise NotSymbolic("formulas that do not hold for small sizes")
    return _Template(entry, symbols, before, tuple(order if order is not None else [] for order in orders), traces, low,
                     tuple([min(pair) for pair in zip(*probes.sizes, strict=True)]))


def _at_most(sizes: Sequence[int], limits: Sequence[int]) -> tuple[int, ...]:
    return tuple([min(pair) for pair in zip(sizes, limits, strict=True)])


__all__ = ["ShapeFamily", "family_key", "shapes_of"]
