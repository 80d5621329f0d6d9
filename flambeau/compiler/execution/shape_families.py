"""`ShapeFamily`: the signatures of a compiled function that differ in sizes only, and the templates that serve them.

A call with a second shape makes a template (`compiler/symbolic`) from the program of the first one. The template gives
programs for all sizes of a range without tracing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..cache.trace_cache import TraceRecord
from ..symbolic.formulas import NotSymbolic, OutOfTemplate, Sizes, divisor, probing_sizes, stays_below
from ..symbolic.retracing import Retrace, dense_layout, retrace
from ..symbolic.trace_template import TraceTemplate
from ..tracing.aliasing import memory_order
from ..tracing.trace import Trace
from ..tracing.trace_comparison import difference
from .cache_entry import CacheEntry, pin_holds

#: attempts to make a template for the same varying sizes that may fail
MAX_FAILURES = 2
#: a template is made for sizes up to one of these multiples of the largest known one; 0: up to that one
HEADROOM = (2, 1, 0)
#: bytes of arguments, and seconds of a traced call, above which retraces use sizes little above the known ones, and
#: bytes above which there are none
LARGE, LONG, TOO_LARGE = 1 << 26, 1.0, 1 << 30
#: shape and strides of each tensor of a call
Layouts = tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]
_Places = frozenset[tuple[int, int]]


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
        layouts: shapes and strides of the tensors of the first call.
        orders: by tensor, its memory order if its size varies; None for others.
        traces: the template of the traces.
        low, high: by symbol, the range in which the function does the same.
    """

    entry: CacheEntry
    symbols: tuple[Symbol, ...]
    layouts: Layouts
    orders: tuple[list[int] | None, ...]
    traces: TraceTemplate
    low: tuple[int, ...]
    high: tuple[int, ...]

    @property
    def places(self) -> _Places:
        """Where sizes vary."""
        return frozenset([place for symbol in self.symbols for place in symbol.places])

    def sizes_of(self, tensors: Sequence[Any]) -> tuple[int, ...] | None:
        """Return the sizes of a call; None if the template does not serve it."""
        sizes = []
        shapes = [list(shape) for shape, _ in self.layouts]
        for symbol in self.symbols:
            at, dim = symbol.places[0]
            size = tensors[at]._array.shape[dim]
            sizes.append(size)
            for at, dim in symbol.places:
                shapes[at][dim] = size
        if not all(low <= size <= high for low, size, high in zip(self.low, sizes, self.high, strict=True)):
            return None
        for x, shape, order, (_, strides) in zip(tensors, shapes, self.orders, self.layouts, strict=True):
            a = x._array
            if list(a.shape) != shape or a.strides != (
                    strides if order is None else dense_layout(shape, order, a.itemsize)):
                return None
        return tuple(sizes) if self.traces.holds(sizes) else None


class ShapeFamily:
    """Signatures that differ in sizes only.

    Attributes:
        entries: entries of calls that were traced, the latest last, with the layouts of their tensors.
        seconds: how long the last traced call took.
        failures: by varying sizes, how often no template could be made.
        reason: why, the last time.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[CacheEntry, Layouts]] = []
        self._templates: list[_Template] = []
        self.seconds = 0.0
        self.failures: dict[_Places, int] = {}
        self.reason = ""

    def add(self, entry: CacheEntry, layouts: Layouts, seconds: float) -> None:
        """Add the entry of a traced call, whose tensors have these layouts and which took so long."""
        self.seconds = seconds
        self.entries = [*self.entries[-7:], (entry, layouts)]

    def instance(self, tensors: Sequence[Any], name: Callable[[], str]) -> CacheEntry | None:
        """Return an entry for a call with new sizes; None if no template serves it.

        Args:
            tensors: the tensors among its arguments.
            name: gives the name of the program.
        """
        for template, sizes in self._serving(tensors):
            base, varying = template.entry, {at for at, _ in template.places}
            try:
                trace = template.traces.instantiate(sizes, tensors)
            except OutOfTemplate as error:
                self.reason = str(error)
                continue
            free = tuple([pin is None or i in varying for i, pin in enumerate(base.pins)])
            return CacheEntry(trace, name(), base.all_guards, base.trace, "",
                              TraceRecord(frozenset(), frozenset(), free))
        return None

    def serves(self, tensors: Sequence[Any]) -> bool:
        """Whether a template serves a call, as far as its ranges and guards tell."""
        return next(self._serving(tensors), None) is not None

    def _serving(self, tensors: Sequence[Any]) -> Iterator[tuple[_Template, tuple[int, ...]]]:
        """Yield the templates that serve a call, with its sizes."""
        for template in reversed(self._templates):
            sizes = template.sizes_of(tensors)
            base, varying = template.entry, {at for at, _ in template.places}
            if sizes is not None and base.python_guards_hold() and all(
                    pin is None or i in varying or pin_holds(x, pin)
                    for i, (x, pin) in enumerate(zip(tensors, base.pins, strict=True))):
                yield template, sizes

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
        base = next(((entry, layouts) for entry, layouts in reversed(self.entries)
                     if len(entry.pins) == len(tensors) and entry.python_guards_hold()), None)
        if base is None:
            return False
        places = [place for each in self._templates if each.entry is base[0] for place in each.places]
        known: dict[tuple[int, int], set[int]] = {}
        for each in self._templates:
            for symbol, low in zip(each.symbols, each.low, strict=True):
                for place in symbol.places:
                    known.setdefault(place, set()).update((*symbol.known, low))
        varied = [frozenset([dim for place, dim in places if place == at]) for at in range(len(tensors))]
        for more in (possible, dynamic) if any(possible) else (dynamic,):
            varying = [a | b | c for a, b, c in zip(varied, dynamic, more, strict=True)]
            symbols = _symbols(base[1], layouts_of(tensors), static, varying, known)
            if not symbols:
                continue
            at = frozenset([place for symbol in symbols for place in symbol.places])
            reasons = []
            for headroom in HEADROOM[self.seconds > LONG:]:
                if self.failures.get(at, 0) >= MAX_FAILURES:
                    break
                try:
                    made = _Making(*base, symbols, function, args, kwargs, tensors, needs_independent_results).template(
                        headroom)
                except (NotSymbolic, OutOfTemplate) as error:
                    reasons.append(str(error))
                    continue
                self._templates = [*[t for t in self._templates if t.entry is not base[0] or not t.places <= at], made]
                return True
            self.failures[at], self.reason = self.failures.get(at, 0) + 1, (reasons or [self.reason])[0]
        return False


def layouts_of(tensors: Sequence[Any]) -> Layouts:
    """Return the shapes and strides of tensors."""
    return tuple([(x._array.shape, x._array.strides) for x in tensors])


def _symbols(before: Layouts, now: Layouts, static: Sequence[frozenset[int]], varying: Sequence[frozenset[int]],
             known: Mapping[tuple[int, int], set[int]]) -> tuple[Symbol, ...]:
    """Return the sizes that vary: those that differ, and those that are to vary; equal ones are one symbol.

    None of them is 0 or 1, which functions treat otherwise; () if one that differs may not vary.
    """
    places: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for at, ((shape, _), (other, _)) in enumerate(zip(before, now, strict=True)):
        for dim, pair in enumerate(zip(shape, other, strict=True)):
            differs = pair[0] != pair[1]
            if differs and (dim in static[at] or min(pair) < 2):
                return ()
            if differs or (dim in varying[at] and dim not in static[at] and pair[0] > 1):
                places.setdefault(pair, []).append((at, dim))
    return tuple([Symbol(tuple(found), tuple(sorted({*pair}.union(*[known.get(place, ()) for place in found]))))
                  for pair, found in places.items()])


class _Making:
    """The making of a template; the arguments are those of `make_template`, and the entry of another call."""

    def __init__(self, entry: CacheEntry, before: Layouts, symbols: tuple[Symbol, ...], function: Callable[..., Any],
                 args: tuple, kwargs: dict[str, Any], tensors: Sequence[Any], needs_independent_results: bool) -> None:
        self.entry, self.before, self.symbols, self.tensors = entry, before, symbols, tensors
        self._call = function, args, kwargs
        self._needs_independent_results = needs_independent_results
        self._varying = sorted({at for symbol in symbols for at, _ in symbol.places})
        self.orders: list[list[int] | None] = [None] * len(tensors)
        for at in self._varying:
            a = tensors[at]._array
            order = self.orders[at] = memory_order(a)
            if order is None or any(strides != dense_layout(shape, order, a.itemsize)
                                    for shape, strides in (before[at], (a.shape, a.strides))):
                raise NotSymbolic("an argument whose memory is not dense")
        if any(each[1] != (x._array.strides) for i, (each, x) in enumerate(zip(before, tensors, strict=True))
               if i not in self._varying):
            raise NotSymbolic("an argument with other strides")

    def template(self, headroom: float) -> _Template:
        """Return the template.

        Args:
            headroom: up to which multiple of the largest known sizes; 0: up to these.

        Raises:
            NotSymbolic, OutOfTemplate: there is none.
        """
        known = [symbol.known for symbol in self.symbols]
        size = sum(x._array.nbytes for x in self.tensors)
        if size > TOO_LARGE or (headroom > 1 and size > LARGE):
            raise NotSymbolic("large arguments")
        probes = probing_sizes(known, headroom)
        retraces = [self._retrace(sizes) for sizes in probes.sizes]
        first = tuple([self.before[symbol.places[0][0]][0][symbol.places[0][1]] for symbol in self.symbols])
        traces = TraceTemplate(self.entry.trace, [each.trace for each in retraces],
                               [each.guards for each in retraces], Sizes((*probes.sizes, first)))
        if not self._agrees(traces, first, self.entry.trace):
            raise NotSymbolic("formulas that do not hold for the first shape")
        high = tuple([min(pair) for pair in zip(*probes.sizes, strict=True)])
        if not headroom:
            high = tuple([max(each) if stays_below(each) else n for each, n in zip(known, high, strict=True)])
            if not self._holds(traces, high):
                raise NotSymbolic("formulas that do not hold for the largest shape")
        smallest = tuple([each[0] for each in known])
        steps = [divisor(each) for each in known]
        for low in dict.fromkeys((_at_most(smallest, [3 + i + step % 2 for i, step in enumerate(steps)]),
                                  _at_most(smallest, [2 * step for step in steps]), smallest)):
            if self._holds(traces, low):
                return _Template(self.entry, self.symbols, self.before, tuple(self.orders), traces, low, high)
        raise NotSymbolic("formulas that do not hold for small sizes")

    def _retrace(self, sizes: Sequence[int]) -> Retrace:
        shapes = {at: list(self.before[at][0]) for at in self._varying}
        for symbol, size in zip(self.symbols, sizes, strict=True):
            for at, dim in symbol.places:
                shapes[at][dim] = size
        return retrace(*self._call, {at: tuple(shape) for at, shape in shapes.items()}, self.entry.trace,
                        self.entry.all_guards, self._needs_independent_results)

    def _holds(self, traces: TraceTemplate, sizes: Sequence[int]) -> bool:
        """Whether a template gives what a retrace does, and decides as it does."""
        try:
            retraced = self._retrace(sizes)
        except NotSymbolic:
            return False
        return self._agrees(traces, sizes, retraced.trace) and traces.decides(sizes, retraced.guards)

    def _agrees(self, traces: TraceTemplate, sizes: Sequence[int], trace: Trace) -> bool:
        try:
            return traces.holds(sizes) and difference(traces.instantiate(sizes, self.tensors), trace) is None
        except OutOfTemplate:
            return False


def _at_most(sizes: Sequence[int], limits: Sequence[int]) -> tuple[int, ...]:
    return tuple([min(pair) for pair in zip(sizes, limits, strict=True)])


__all__ = ["ShapeFamily", "family_key", "layouts_of"]
