"""`ShapeFamily`: the signatures of a compiled function that differ in sizes and numbers only, and their templates.

A call with a second shape, or another number, makes a template (`compiler/symbolic`) from the trace of the first one.
The template gives programs for all sizes of a range without tracing. A number on which only constants depend is an
input of one program for all its values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

from ..._tensor import Tensor
from ..cache.trace_cache import TraceRecord
from ..guards.guard import Guard
from ..symbolic.formulas import (
    FLOAT_HEADROOM,
    DependsOnSize,
    NotSymbolic,
    OutOfTemplate,
    Sizes,
    divisor,
    mixed_ends,
    probing_floats,
    probing_sizes,
    stays_below,
)
from ..symbolic.retracing import Retrace, dense_layout, retrace
from ..symbolic.trace_template import TraceTemplate
from ..tracing.aliasing import memory_order
from ..tracing.trace import Trace
from ..tracing.trace_comparison import difference
from .cache_entry import CacheEntry
from .template import (
    NUMBER,
    Layouts,
    Numbers,
    Places,
    Symbol,
    Template,
    is_same_number,
    layouts_of,
    numbers_of,
    symbol_values,
)

#: attempts to make a template for the same varying sizes that may fail: from a program, and from a trace
MAX_FAILURES, MAX_TRACE_FAILURES = 2, 8
#: a template is made for sizes up to one of these multiples of the largest known one; 0: up to that one
HEADROOM = (2, 1, 0)
#: the same for integers on which only constants depended
FREE_HEADROOM = 64
#: bytes of arguments, and seconds of a traced call, above which retraces use sizes little above the known ones, and
#: bytes above which there are none
LARGE, LONG, TOO_LARGE = 1 << 26, 1.0, 1 << 30


def family_key(signature: tuple) -> tuple:
    """Return a signature without the sizes of tensors, and without numbers."""
    return tuple([x if x.__class__ is not tuple or not x else ("tensor", len(x[1]), *x[3:]) if x[0] == "tensor"
                  else x[:1] if x[0] in (int, float) else x for x in signature])


class _Call(NamedTuple):
    """A call: the function, its arguments, the same flattened, and `needs_independent_results` as in `Tracer`."""

    function: Callable[..., Any]
    args: tuple
    kwargs: dict[str, Any]
    arguments: Sequence[Any]
    needs_independent_results: bool


#: of a template: memory orders, the template of the traces, and the range of the symbols
_Made = tuple[tuple[list[int] | None, ...], TraceTemplate, tuple[Any, ...], tuple[Any, ...]]


class ShapeFamily:
    """Signatures that differ in sizes only.

    Attributes:
        entries: entries of calls that were traced, the latest last, the layouts of their tensors and their numbers.
        seconds: how long the last traced call took.
        failures: by varying sizes, and whether it was to be made from a program, how often no template could be made.
        reason: why, the last time.
        pending: the last traced call without an entry: its trace, the layouts of its tensors, and its numbers.
        expected: what `agreeing_trace` returned last, and all fields of its template but the entry.
        num_templates, num_served: how many templates were made for calls, and how many calls they served.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[CacheEntry, Layouts, Numbers]] = []
        self._templates: list[Template] = []
        self.seconds = 0.0
        self.pending: tuple[Trace, Layouts, Numbers] | None = None
        self.expected: tuple[Trace, tuple[Any, ...]] | None = None
        self.failures: dict[tuple[Places, bool], int] = {}
        self.reason = ""
        self.num_templates = self.num_served = 0

    def add(self, entry: CacheEntry, layouts: Layouts, numbers: Numbers, seconds: float) -> None:
        """Add the entry of a traced call, with the layouts of its tensors and its numbers, which took so long."""
        self.seconds, self.pending, self.failures = seconds, None, {}
        self.entries = [*self.entries[-7:], (entry, layouts, numbers)]

    def instance(self, arguments: Sequence[Any], name: Callable[[], str], constant: bool = False) -> CacheEntry | None:
        """Return an entry for a call with new sizes; None if no template serves it.

        Args:
            arguments: its arguments.
            name: gives the name of the program.
            constant: whether the program is for the numbers among the arguments only.
        """
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        for template, sizes in self._serving(arguments):
            base, varying = template.entry, template.varying
            inputs = frozenset() if constant else template.free_arguments
            try:
                trace = template.traces.instantiate(sizes, tensors, template.traces.free if inputs else frozenset())
            except OutOfTemplate as error:
                self.reason = str(error)
                continue
            free = tuple([pin is None or i in varying for i, pin in enumerate(base.pins)])
            entry = CacheEntry(trace, name(), base.all_guards, base.trace, "",
                               TraceRecord(frozenset(), frozenset(), free))
            entry.template, entry.free_arguments = template, inputs
            return entry
        return None

    def free_arguments(self) -> list[frozenset[int]]:
        """Return the sets of numbers among the arguments that are inputs of programs, the latest first."""
        return [*dict.fromkeys(free for template in reversed(self._templates) if (free := template.free_arguments))]

    def serves(self, arguments: Sequence[Any]) -> bool:
        """Whether a template serves a call, as far as its ranges and guards tell."""
        return next(self._serving(arguments), None) is not None

    def _serving(self, arguments: Sequence[Any]) -> Iterator[tuple[Template, tuple[Any, ...]]]:
        """Yield the templates that serve a call, with the values of its symbols."""
        for template, sizes in self._fitting(arguments):
            if template.pins_hold(arguments):
                yield template, sizes

    def _fitting(self, arguments: Sequence[Any]) -> Iterator[tuple[Template, tuple[Any, ...]]]:
        """Yield the templates that serve a call unless they require other tensors."""
        for template in reversed(self._templates):
            sizes = template.sizes_of(arguments)
            if sizes is not None and template.entry.python_guards_hold():
                yield template, sizes

    def needs_other_tensors(self, arguments: Sequence[Any]) -> bool:
        """Whether the only reason why a template does not serve a call is that it has other tensors than before."""
        return any(not template.pins_hold(arguments) for template, _ in self._fitting(arguments))

    def relax_pins(self, arguments: Sequence[Any], trace: Trace) -> CacheEntry | None:
        """Let the templates that agree with the trace of a call serve such calls with any tensors.

        Returns:
            The entry of a template that did not serve the call before; None if there is none.
        """
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        for template, sizes in self._fitting(arguments):
            if not template.pins_hold(arguments):
                try:
                    agrees = difference(template.traces.instantiate(sizes, tensors), trace) is None
                except OutOfTemplate:
                    continue
                if agrees:
                    template.entry.compare_pins(trace)
                    return template.entry
        return None

    def make_template(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], arguments: Sequence[Any],
                      static: Sequence[frozenset[int]], dynamic: Sequence[frozenset[int]],
                      possible: Sequence[frozenset[int]], needs_independent_results: bool) -> bool:
        """Make a template that serves a call, if an entry of other sizes has the same guards; return whether there is.

        Args:
            function: the function.
            args, kwargs: its arguments.
            arguments: the same, flattened.
            static, dynamic, possible: by tensor, dimensions that do not vary, that vary in any case, and that vary
                unless the function depends on their size.
            needs_independent_results: as in `Tracer`.
        """
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        base = next((each for each in reversed(self.entries)
                     if len(each[0].pins) == len(tensors) and each[0].python_guards_hold()), None)
        if base is None:
            return False
        entry, layouts, numbers = base
        places = [place for each in self._templates if each.entry is entry for place in each.places]
        known: dict[tuple[int, int], set[Any]] = {}
        for each in self._templates:
            for symbol, low in zip(each.symbols, each.low, strict=True):
                for place in symbol.places:
                    known.setdefault(place, set()).update((*symbol.known, low))
        varied = [frozenset([dim for place, dim in places if place == at]) for at in range(len(tensors))]
        call = _Call(function, args, kwargs, arguments, needs_independent_results)
        for more in (possible, dynamic) if any(possible) else (dynamic,):
            varying = [a | b | c for a, b, c in zip(varied, dynamic, more, strict=True)]
            symbols = _symbols((layouts, numbers), (layouts_of(tensors), numbers_of(arguments)), static, varying, known)
            made = self._template(entry.trace, entry.all_guards, layouts, numbers, symbols, call, True)
            if made is not None:
                template = Template(entry, symbols, layouts, numbers, *made)
                self._templates = [*[t for t in self._templates if t.entry is not entry
                                     or not t.places <= template.places], template]
                return True
        return False

    def depends_on(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any], arguments: Sequence[Any],
                   static: Sequence[frozenset[int]], dynamic: Sequence[frozenset[int]], trace: Trace,
                   needs_independent_results: bool) -> bool:
        """Whether a function that was traced once does something else, or fails, for all other sizes of dimensions.

        Args:
            dynamic: by tensor, the dimensions.
            trace: the trace. The others are those of `make_template`.
        """
        if trace.guard_set is None:
            return False
        now = layouts_of([x for x in arguments if isinstance(x, Tensor)]), numbers_of(arguments)
        symbols = _symbols(now, now, static, dynamic, {})
        call = _Call(function, args, kwargs, arguments, needs_independent_results)
        for headroom in HEADROOM if symbols else ():
            try:
                _Making(trace, [*trace.guard_set.guards.values()], *now, symbols, call).template(headroom, frozenset())
                return False
            except DependsOnSize:
                continue
            except (NotSymbolic, OutOfTemplate):
                return False
        return bool(symbols)

    def agreeing_trace(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any],
                       arguments: Sequence[Any], static: Sequence[frozenset[int]], needs_independent_results: bool
                       ) -> Trace | None:
        """Return what the trace of a call must be if it does the same as the pending call, which had other sizes.

        None if there is no such trace. The arguments are those of `make_template`.
        """
        if self.pending is None:
            return None
        trace, layouts, numbers = self.pending
        guard_set = trace.guard_set
        if guard_set is None:
            return None
        tensors = [x for x in arguments if isinstance(x, Tensor)]
        if len(layouts) != len(tensors):
            return None
        none = [frozenset[int]()] * len(tensors)
        symbols = _symbols((layouts, numbers), (layouts_of(tensors), numbers_of(arguments)), static, none, {})
        call = _Call(function, args, kwargs, arguments, needs_independent_results)
        made = self._template(trace, [*guard_set.guards.values()], layouts, numbers, symbols, call, False)
        if made is None:
            return None
        try:
            found = made[1].instantiate(symbol_values(symbols, arguments), tensors)
        except OutOfTemplate as error:
            self.reason = str(error)
            return None
        found.guard_set, found.argument_memory = guard_set, trace.argument_memory
        self.expected = found, (symbols, layouts, numbers, *made)
        return found

    def adopt(self, entry: CacheEntry, trace: Trace) -> None:
        """Use the template of `agreeing_trace` if an entry was made because it agreed with that trace."""
        if self.expected is not None and self.expected[0] is trace:
            self._templates = [*self._templates, Template(entry, *self.expected[1])]
        self.expected = None

    def _template(self, trace: Trace, guards: Sequence[Guard], layouts: Layouts, numbers: Numbers,
                  symbols: tuple[Symbol, ...], call: _Call, has_program: bool) -> _Made | None:
        """Return a template of a trace, which may have a program, for symbols that vary; None if there is none."""
        at = frozenset([place for symbol in symbols for place in symbol.places]), has_program
        reasons = []
        free, none = self._free_places(), frozenset[tuple[int, int]]()
        boosted = [(HEADROOM[0], free)] if not free.isdisjoint(at[0]) and self.seconds <= LONG else []
        for headroom, far in [*boosted, *((each, none) for each in HEADROOM[self.seconds > LONG:])] if symbols else ():
            if self.failures.get(at, 0) >= (MAX_FAILURES if has_program else MAX_TRACE_FAILURES):
                break
            try:
                return _Making(trace, guards, layouts, numbers, symbols, call).template(headroom, far)
            except (NotSymbolic, OutOfTemplate) as error:
                reasons.append(str(error))
        if reasons:
            self.failures[at], self.reason = self.failures.get(at, 0) + 1, reasons[0]
        return None

    def _free_places(self) -> Places:
        return frozenset([(NUMBER, at) for free in self.free_arguments() for at in free])


def _symbols(before: tuple[Layouts, Numbers], now: tuple[Layouts, Numbers], static: Sequence[frozenset[int]],
             varying: Sequence[frozenset[int]], known: Mapping[tuple[int, int], set[Any]]) -> tuple[Symbol, ...]:
    """Return the sizes and numbers that vary: those that differ, and those that are to vary; equal ones are one symbol.

    None of them is 0 or 1, which functions treat otherwise; () if one that differs may not vary.
    """
    places: dict[tuple[Any, Any], list[tuple[int, int]]] = {}
    for at, ((shape, _), (other, _)) in enumerate(zip(before[0], now[0], strict=True)):
        for dim, pair in enumerate(zip(shape, other, strict=True)):
            differs = pair[0] != pair[1]
            if differs and (dim in static[at] or min(pair) < 2):
                return ()
            if differs or (dim in varying[at] and dim not in static[at] and pair[0] > 1):
                places.setdefault(pair, []).append((at, dim))
    for (at, x), (_, y) in zip(before[1], now[1], strict=True):
        if not is_same_number(x, y):
            if not _may_vary(x, y):
                return ()
            places.setdefault((x, y), []).append((NUMBER, at))
        elif (NUMBER, at) in known and _may_vary(x, y):
            places.setdefault((x, (NUMBER, at)), []).append((NUMBER, at))  # no size that happens to be equal
    symbols = []
    for pair, found in places.items():
        values = [n for n in pair if not isinstance(n, tuple)]
        at_these = set(values).union(*[known.get(place, ()) for place in found])
        symbols.append(Symbol(tuple(found), tuple(sorted(at_these)), min(values)))
    return tuple(symbols)


def _may_vary(x: Any, y: Any) -> bool:
    """Whether a number may be a symbol that was `x` and `y`: integers from 2 on, or floats of one sign."""
    if x.__class__ is int:
        return y.__class__ is int and min(x, y) > 1
    return isfinite(x) and isfinite(y) and x * y > 0 and {abs(x), abs(y)}.isdisjoint((1.0,))


class _Making:
    """The making of a template.

    Args:
        trace: the trace of another call.
        guards: its guards on Python objects.
        before, numbers: the layouts of its tensors, and its numbers.
        symbols: what varies.
        call: a call.
    """

    def __init__(self, trace: Trace, guards: Sequence[Guard], before: Layouts, numbers: Numbers,
                 symbols: tuple[Symbol, ...], call: _Call) -> None:
        self.trace, self.guards, self.before, self.numbers, self.symbols = trace, guards, before, numbers, symbols
        self.call = call
        self.tensors = tensors = [x for x in call.arguments if isinstance(x, Tensor)]
        self._varying = sorted({at for symbol in symbols for at, _ in symbol.places if at != NUMBER})
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

    def template(self, headroom: float, free: Places) -> _Made:
        """Return the template.

        Args:
            headroom: up to which multiple of the largest known sizes; 0: up to these.
            free: numbers that were inputs of an earlier template's programs.

        Raises:
            NotSymbolic, OutOfTemplate: there is none.
        """
        size = sum(x._array.nbytes for x in self.tensors)
        if size > TOO_LARGE or (headroom > 1 and size > LARGE and self._varying):
            raise NotSymbolic("large arguments")
        probes = self._probes(headroom, free)
        retraces = [self._retrace(sizes) for sizes in probes.sizes]
        numbers = dict(self.numbers)
        first = tuple([numbers[dim] if at == NUMBER else self.before[at][0][dim]
                       for at, dim in (symbol.places[0] for symbol in self.symbols)])
        traces = TraceTemplate(self.trace, [each.trace for each in retraces],
                               [each.reads for each in retraces], Sizes((*probes.sizes, first)))
        if not self._agrees(traces, first, self.trace):
            raise NotSymbolic("formulas that do not hold for the first shape")
        high = tuple([min(pair) for pair in zip(*probes.sizes, strict=True)])
        if not headroom:
            high = tuple([max(symbol.known) if symbol.is_float or stays_below(symbol.known) else n
                          for symbol, n in zip(self.symbols, high, strict=True)])
            if not self._holds(traces, high):
                raise NotSymbolic("formulas that do not hold for the largest shape")
        for low in dict.fromkeys(zip(*[self._lows(i, symbol) for i, symbol in enumerate(self.symbols)], strict=True)):
            if all(self._holds(traces, sizes) for sizes in (low, *mixed_ends(low, high))):
                return tuple(self.orders), traces, low, high
        raise NotSymbolic("formulas that do not hold for small sizes")

    def _probes(self, headroom: float, free: Places) -> Sizes:
        """Return the values of the symbols in two retraces."""
        boost = [FREE_HEADROOM if free.issuperset(symbol.places) else 1 for symbol in self.symbols]
        sizes = iter(zip(*probing_sizes([(symbol.known, headroom * more) for symbol, more in zip(
            self.symbols, boost, strict=True) if not symbol.is_float]).sizes, strict=True))
        return Sizes(tuple(zip(*[probing_floats(symbol.known, headroom) if symbol.is_float else next(sizes)
                                 for symbol in self.symbols], strict=True)))

    @staticmethod
    def _lows(i: int, symbol: Symbol) -> tuple[Any, ...]:
        """Return candidates for the least value of symbol i, the best first."""
        known = symbol.known[0]
        if symbol.is_float:
            factor = 1 / FLOAT_HEADROOM if known > 0 else FLOAT_HEADROOM
            return known * factor, known * factor ** 0.25, known, symbol.least
        step = divisor(symbol.known)
        return min(known, 3 + i + step % 2), min(known, 2 * step), known, symbol.least

    def _retrace(self, sizes: Sequence[Any]) -> Retrace:
        shapes = {at: list(self.before[at][0]) for at in self._varying}
        numbers = {}
        for i, (symbol, size) in enumerate(zip(self.symbols, sizes, strict=True)):
            for at, dim in symbol.places:
                if at == NUMBER:
                    numbers[dim] = (i, size)
                else:
                    shapes[at][dim] = size
        return retrace(*self.call[:3], {at: tuple(shape) for at, shape in shapes.items()}, numbers, self.trace,
                       self.guards, self.call.needs_independent_results)

    def _holds(self, traces: TraceTemplate, sizes: Sequence[int]) -> bool:
        """Whether a template gives what a retrace does, and decides as it does."""
        try:
            retraced = self._retrace(sizes)
        except NotSymbolic:
            return False
        return self._agrees(traces, sizes, retraced.trace) and traces.decides(sizes, retraced.reads.guards)

    def _agrees(self, traces: TraceTemplate, sizes: Sequence[int], trace: Trace) -> bool:
        try:
            return traces.holds(sizes) and difference(traces.instantiate(sizes, self.tensors), trace) is None
        except OutOfTemplate:
            return False


__all__ = ["ShapeFamily", "family_key", "layouts_of"]
