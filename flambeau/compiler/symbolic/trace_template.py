"""`TraceTemplate`: what traces of one function for several sizes have in common, with formulas for their numbers."""

from __future__ import annotations

import operator
import re
import weakref
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...ir.graph.extern_kernels import ExternKernel, FallbackKernel
from ...ir.graph.value import ELEMENTWISE, Graph, Value
from ...shapes import Size, as_size
from ..tracing.aliasing import address, owner
from ..tracing.extern_calls import OperatorCall, RandomDraw
from ..tracing.trace import Trace
from ..tracing.trace_comparison import same_source
from .expressions import SYMBOLIC, array_of, evaluate, expression, symbols_of, unified
from .formulas import DependsOnSize, Formula, NotSymbolic, OutOfTemplate, Sizes
from .number_reads import NumberGuard, NumberReads, plain

#: attributes of traces that are the same for all sizes
_EQUAL = ("tree", "storage_offsets", "version_bumps", "written_leaves", "ran_backward", "recomputation")
#: attributes that contain numbers and values
_UNIFIED = ("data_guards", "targets", "grad_updates", "grad_absent", "grad_presence", "grad_strides",
            "effects")
#: functions of sizes that may be constants of a program
_FUNCTIONS: tuple[tuple[Callable[[Any], Any], Callable[[Any], Any]], ...] = (
    (lambda x: x, lambda x: x), (lambda x: 1 / x, lambda x: 1 / x),
    (lambda x: x ** 0.5, lambda x: x * x), (lambda x: x ** -0.5, lambda x: 1 / (x * x)),
    (lambda x: x / (x - 1), lambda x: x / (x - 1)))
_PROGRESSION, _EYE, _EXPRESSION = -1, -2, -3


class _ValueNumber(NamedTuple):
    """A value of the graph, by number."""

    number: int


class _Constant(NamedTuple):
    """A constant that depends on symbols: `function(start)`, or `start + step * i` for several elements.

    Attributes:
        dtype: the dtype.
        shape: the shape.
        start: the formula of the first element, or of the argument of `function`.
        step: the formula of the step between elements.
        function: an index of `_FUNCTIONS`; for several elements `_PROGRESSION`, or `_EYE` for an identity matrix;
            `_EXPRESSION` if the elements are the expression `start`.
    """

    dtype: np.dtype
    shape: Any
    start: Any
    step: Any
    function: int

    def number(self, sizes: Sequence[Any]) -> np.ndarray:
        """Return the only element, as a 0-d array."""
        start = evaluate(self.start, sizes)
        if self.function >= 0:
            return np.asarray(_FUNCTIONS[self.function][0](start), self.dtype)
        try:
            with np.errstate(over="ignore"):
                return array_of(start, self.dtype)
        except (OverflowError, TypeError) as error:
            raise OutOfTemplate(str(error)) from None

    @property
    def is_number(self) -> bool:
        """Whether all elements are one number."""
        return self.function >= 0 or self.function == _EXPRESSION

    def array(self, sizes: Sequence[Any]) -> np.ndarray:
        if self.function >= 0:
            return self.number(sizes).reshape(self.shape)
        shape = tuple([_number(n, sizes) for n in self.shape])
        if self.function == _EXPRESSION:
            return np.full(shape, self.number(sizes))
        start = _number(self.start, sizes)
        if self.function == _EYE:
            return np.eye(*shape, dtype=self.dtype)
        count, step = prod(shape), _number(self.step, sizes)
        return (start + step * np.arange(count)).astype(self.dtype).reshape(shape)


class _Extern(NamedTuple):
    """A kernel with parameters that depend on sizes.

    Attributes:
        kernel: the kernel of the first trace.
        name: its name: pieces of text, and numbers between them.
        parameters: its parameters, or the attributes of its callable.
    """

    kernel: Any
    name: list[Any]
    parameters: dict[str, Any]


def _number(x: Any, sizes: Sequence[int]) -> int:
    return x.value(sizes) if x.__class__ is Formula else x


def _unify(xs: Sequence[Any], sizes: Sizes) -> Any:
    """Return what is common to objects of several traces, with formulas for ints that differ.

    Raises:
        NotSymbolic: they differ in anything else.
    """
    xs = [*map(plain, xs)]
    x = xs[0]
    kind = x.__class__
    if kind is int:
        if any(each.__class__ is not int for each in xs):
            raise NotSymbolic("a number that is not always an int")
        return sizes.formula(xs)
    if any(each.__class__ is not kind for each in xs):
        raise NotSymbolic(f"an object that is not always a {kind.__name__}")
    if all(each is x for each in xs):
        return _ValueNumber(x.number) if kind is Value else x
    if kind is Value:
        if any(each.number != x.number for each in xs):
            raise NotSymbolic("another value")
        return _ValueNumber(x.number)
    if isinstance(x, (tuple, list)):
        if any(len(each) != len(x) for each in xs):
            raise NotSymbolic("another number of objects")
        parts = [_unify(each, sizes) for each in zip(*xs, strict=True)]
        if kind is Size:
            return as_size(parts)
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    if kind is dict:
        if any(list(each) != list(x) for each in xs):
            raise NotSymbolic("other keys")
        return {key: _unify([each[key] for each in xs], sizes) for key in x}
    if kind is float and all(repr(each) == repr(x) for each in xs):
        return x
    if isinstance(x, (str, bytes, bool, frozenset, complex, np.dtype, slice)) and all(each == x for each in xs):
        return x
    raise NotSymbolic(f"another {kind.__name__}")


def _evaluate(x: Any, sizes: Sequence[int], values: Sequence[Value]) -> Any:
    """Return what `_unify` returned, with numbers for formulas and values for their numbers."""
    kind = x.__class__
    if kind is Formula:
        return x.value(sizes)
    if kind is _ValueNumber:
        return values[x.number]
    if kind is dict:
        return {key: _evaluate(each, sizes, values) for key, each in x.items()}
    if isinstance(x, (tuple, list)):
        parts = [_evaluate(each, sizes, values) for each in x]
        if kind is Size:
            return as_size(parts)
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    return x


def _unify_constants(arrays: Sequence[np.ndarray], computed: Sequence[Sequence[Any]], sizes: Sizes) -> _Constant:
    """Return what constants of several traces have in common; `computed` numbers are those of `expression`."""
    first = arrays[0]
    if first.dtype.kind not in "iuf" or any(a.dtype != first.dtype or a.ndim != first.ndim for a in arrays):
        raise NotSymbolic("another constant")
    if any(computed) and all(a.size and (a.size == 1 or (a == a.flat[0]).all()) for a in arrays):
        try:
            start = expression(arrays, computed, sizes)
            return _Constant(first.dtype, _unify([a.shape for a in arrays], sizes), start, 0, _EXPRESSION)
        except NotSymbolic:
            pass
    if all(a.size == 1 for a in arrays):
        numbers = [a.item() for a in arrays]
        for index, (function, inverse) in enumerate(_FUNCTIONS[:1 if first.dtype.kind in "iu" else None]):
            try:
                starts = [round(inverse(number)) for number in numbers]
                formula = sizes.formula(starts)
                made = [np.asarray(function(x), first.dtype).item() for x in starts]
            except (NotSymbolic, ArithmeticError, ValueError):
                continue
            if made == numbers:
                return _Constant(first.dtype, first.shape, formula, 0, index)
        raise NotSymbolic("another constant")
    if first.ndim == 2 and all(np.array_equal(a, np.eye(*a.shape)) for a in arrays):
        return _Constant(first.dtype, _unify([a.shape for a in arrays], sizes), 0, 0, _EYE)
    if any(a.size < 2 for a in arrays):
        raise NotSymbolic("another constant")
    flat = [a.reshape(-1) for a in arrays]
    starts, steps = ([x.item() for x in column] for column in zip(*[(a[0], a[1] - a[0]) for a in flat], strict=True))
    if not all(float(x).is_integer() for x in (*starts, *steps)):
        raise NotSymbolic("another constant")
    found = _Constant(first.dtype, _unify([a.shape for a in arrays], sizes), sizes.formula([int(x) for x in starts]),
                      sizes.formula([int(x) for x in steps]), _PROGRESSION)
    for a, at in zip(arrays, sizes.sizes, strict=True):
        if not np.array_equal(a, found.array(at)):
            raise NotSymbolic("another constant")
    return found


def _unify_externs(kernels: Sequence[Any], sizes: Sizes) -> Any:
    first = kernels[0]
    if all(each == first for each in kernels):
        return first
    names = [re.split(r"(\d+)", each.name) for each in kernels]
    name = _unify([[int(word) if word.isdigit() else word for word in words] for words in names], sizes)
    if isinstance(first, ExternKernel):
        if any(each.__class__ is not ExternKernel or each.family is not first.family for each in kernels):
            raise NotSymbolic("another kernel")
        return _Extern(first, name, _unify([each.params for each in kernels], sizes))
    if any(each.__class__ is not FallbackKernel or each.run.__class__ is not first.run.__class__ for each in kernels):
        raise NotSymbolic("another kernel")
    run = first.run
    if isinstance(run, RandomDraw):
        if any(not _is_same_draw(each.run.function, run.function) or each.run.engine is not run.engine
               or each.run.records_state is not run.records_state
               for each in kernels):
            raise NotSymbolic("another draw of random numbers")
        attributes: tuple[str, ...] = ("arguments", "places")
    elif isinstance(run, OperatorCall):
        if any(each.run.op is not run.op for each in kernels):
            raise NotSymbolic("another operator")
        attributes = ("fixed", "places", "params", "array_params", "output_params")
    else:
        raise NotSymbolic(f"a {type(run).__name__}")
    return _Extern(first, name, {attribute: _unify([getattr(each.run, attribute) for each in kernels], sizes)
                                 for attribute in attributes})


def _symbols_in(x: Any) -> frozenset[int]:
    """Return the symbols on which formulas and expressions in nested objects depend."""
    if x.__class__ in SYMBOLIC:
        return symbols_of(x)
    if isinstance(x, dict):
        x = [*x.values()]
    return frozenset().union(*map(_symbols_in, x)) if isinstance(x, (tuple, list)) else frozenset()


def _is_same_draw(x: Any, y: Any) -> bool:
    """Whether two functions that draw random numbers are the same, perhaps with the same options."""
    return x is y or (isinstance(x, partial) and isinstance(y, partial) and x.func is y.func and x.args == y.args
                      and x.keywords == y.keywords)


class TraceTemplate:
    """A trace with formulas for its numbers.

    Args:
        trace: the trace of a call, whose guards on Python objects the template shares.
        traces: retraced traces.
        reads: by retraced trace, what Python code did with sizes and arguments.
        sizes: the symbols' values in the retraced traces, then in the call.

    Attributes:
        free: the symbols on which nothing but constants of one element depends.

    Raises:
        NotSymbolic: the traces differ in more than numbers that are formulas.
    """

    def __init__(self, trace: Trace, traces: Sequence[Trace], reads: Sequence[NumberReads], sizes: Sizes) -> None:
        self.trace = trace
        computed = [each.computed for each in reads]
        traces = [*traces, trace]
        first = traces[0]
        if any(each.num_values != first.num_values for each in traces):
            raise NotSymbolic("more is computed for some sizes than for others")
        for name in _EQUAL:
            if any(getattr(each, name) != getattr(trace, name) for each in traces):
                raise NotSymbolic(f"{name} depends on the sizes")
        self._values = [self._unify_values(vs, computed, sizes) for vs in zip(
            *[each.graph.values[:first.num_values] for each in traces], strict=True)]
        self._parts = {name: _unify([getattr(each, name) for each in traces], sizes) for name in _UNIFIED}
        self._returned = self._unify_returned([each.returned for each in reads], trace.outputs, sizes)
        self._parts["outputs"] = _unify([[("constant", None) if i in self._returned else output for i, output in
                                          enumerate(each.outputs)] for each in traces], sizes)
        if any([*each.sources] != [*trace.sources] for each in traces):
            raise NotSymbolic("other arrays were used")
        self._sources = {}
        for number, source in trace.sources.items():
            others = [each.sources[number] for each in traces]
            if source[0] == "memory of":
                self._sources[number] = _unify(others, sizes)
            elif not all(same_source(source, other) for other in others):
                raise NotSymbolic("an array that depends on the sizes")
            else:
                self._sources[number] = source
        joints = [each.joint for each in traces]
        self._joint: dict[str, Any] | None = None
        if any((joint is None) != (trace.joint is None) for joint in joints):
            raise NotSymbolic("results are differentiable for some sizes only")
        if trace.joint is not None:
            self._joint = {name: _unify([getattr(joint, name) for joint in joints], sizes)
                           for name in ("count", "positions", "cotangents", "gradients", "uses", "layouts", "shared")}
        used = [(attrs.shape if attrs.__class__ is _Constant and attrs.is_number else attrs, shape)
                for _, _, attrs, shape, _, _ in self._values]
        self.free = frozenset(range(len(sizes.sizes[0]))) - _symbols_in(
            [used, self._parts, [*self._sources.values()], self._joint])
        self.guards = self._unify_guards([each.guards for each in reads], sizes)
        rounded = self._unify_rounded([each.rounded for each in reads], sizes)
        self._symbolic_guards = list({each[:3]: each for each in (*self.guards, *rounded) if any(
            side.__class__ in SYMBOLIC for side in each[1:3])}.values())

    @staticmethod
    def _unify_values(vs: Sequence[Value], computed: Sequence[Sequence[Any]], sizes: Sizes) -> tuple[Any, ...]:
        v = vs[0]
        if any((each.op, each.dtype) != (v.op, v.dtype) or [a.number for a in each.args] != [a.number for a in v.args]
               for each in vs):
            raise NotSymbolic(f"{v.text} for some sizes only")
        shape = _unify([each.shape for each in vs], sizes)
        if v.op == "constant" and any(each.attrs != v.attrs for each in vs):
            attrs: Any = _unify_constants([each.graph.array(each) for each in vs], computed, sizes)
        elif v.op == "extern":
            attrs = _unify_externs([each.attrs for each in vs], sizes)
        elif v.op in ("constant", "input"):
            attrs = v.attrs
            if any(each.attrs != attrs for each in vs):
                raise NotSymbolic("another input")
        else:
            attrs = _unify([each.attrs for each in vs], sizes)
        array = v.graph.array(v) if v.op == "constant" else None
        return v.op, [a.number for a in v.args], attrs, shape, v.dtype, array

    @staticmethod
    def _unify_guards(guards: Sequence[Sequence[NumberGuard]], sizes: Sizes) -> list[NumberGuard]:
        if any(len(each) != len(guards[0]) for each in guards):
            raise NotSymbolic("Python code decides otherwise for some sizes")
        found = []
        for same in zip(*guards, strict=True):
            first = same[0]
            if any((each.compare, each.outcome) != (first.compare, first.outcome) for each in same):
                raise NotSymbolic("Python code decides otherwise for some sizes")
            left, right = (unified([getattr(each, side) for each in same], sizes) for side in ("left", "right"))
            if first.compare is None and left.__class__ in SYMBOLIC:
                raise DependsOnSize(f"Python code depends on the exact value of a number, {plain(first.left)}")
            found.append(first._replace(left=left, right=right))
        return found

    @staticmethod
    def _unify_returned(numbers: Sequence[dict[int, Any]], outputs: Sequence[tuple], sizes: Sizes) -> dict[int, Any]:
        """Return the results that are numbers as expressions, by position."""
        if any(each.keys() != numbers[0].keys() for each in numbers):
            raise NotSymbolic("numbers are returned for some values only")
        found = {}
        for i in numbers[0]:
            found[i] = unified([each[i] for each in numbers], sizes)
            number = evaluate(found[i], sizes.sizes[-1])
            if outputs[i][0] != "constant" or type(outputs[i][1]) is not type(number) or outputs[i][1] != number:
                raise NotSymbolic("another number is returned")
        return found

    @staticmethod
    def _unify_rounded(numbers: Sequence[Sequence[Any]], sizes: Sizes) -> list[NumberGuard]:
        """Return guards on rounded numbers that were the same in all traces: nothing shows where they entered these."""
        if any(len(each) != len(numbers[0]) for each in numbers):
            raise NotSymbolic("Python code rounds otherwise for some sizes")
        return [NumberGuard(operator.eq, unified(same, sizes), same[0].value, True)
                for same in zip(*numbers, strict=True) if all(each.value == same[0].value for each in same)]

    @property
    def has_guards(self) -> bool:
        """Whether Python code decides by symbols."""
        return bool(self._symbolic_guards)

    def holds(self, sizes: Sequence[Any]) -> bool:
        """Whether Python code decides as in the traces for these values of the symbols."""
        try:
            return all(guard.compare is None or guard.compare(evaluate(guard.left, sizes), evaluate(
                guard.right, sizes)) == guard.outcome for guard in self._symbolic_guards)
        except OutOfTemplate:
            return False

    def decides(self, sizes: Sequence[Any], guards: Sequence[NumberGuard]) -> bool:
        """Whether Python code decides by these numbers for these values of the symbols."""
        try:
            return len(guards) == len(self.guards) and all(
                (expected.compare, evaluate(expected.left, sizes), evaluate(expected.right, sizes), expected.outcome)
                == (guard.compare, plain(guard.left), plain(guard.right), guard.outcome)
                for expected, guard in zip(self.guards, guards, strict=True))
        except OutOfTemplate:
            return False

    def instantiate(self, sizes: Sequence[Any], arguments: Sequence[Any], free: frozenset[int] = frozenset()) -> Trace:
        """Return the trace for these sizes.

        Args:
            sizes: the values of the symbols.
            arguments: the tensors among the arguments of a call with these sizes.
            free: symbols whose values the program reads at each call; constants that depend on them become inputs, with
                the source ("computed", constant).

        Raises:
            OutOfTemplate: the template does not hold for them.
        """
        graph = Graph()
        values: list[Value] = []
        inputs: dict[_Constant, int] = {}  # inputs in place of constants, by number
        first_input = 1 + max([attrs for op, _, attrs, *_ in self._values if op == "input"], default=-1)
        for op, args, attrs, shape, dtype, array in self._values:
            if attrs.__class__ is _Constant and attrs.is_number and not free.isdisjoint(symbols_of(attrs.start)):
                number = inputs.setdefault(attrs, first_input + len(inputs))
                value = graph.input(number, (), dtype)
                extents = tuple([_number(n, sizes) for n in shape])
                values.append(graph.expand(value, extents) if extents else value)
                continue
            values.append(self._make(graph, op, [values[i] for i in args], attrs, shape, dtype, array, sizes))
        template = self.trace
        made: Trace = object.__new__(Trace)
        vars(made).update(vars(template))
        made.graph, made.num_values, made.plan_key, made.guard_set = graph, len(graph.values), None, None
        for name, part in self._parts.items():
            setattr(made, name, _evaluate(part, sizes, values))
        made.recomputation = template.recomputation.renumbered(values)
        made.sources = {number: _evaluate(source, sizes, values) if source[0] == "memory of" else source
                        for number, source in self._sources.items()}
        for i, number in self._returned.items():
            made.outputs[i] = ("computed", number) if free else ("constant", evaluate(number, sizes))
        made.sources.update({number: ("computed", constant) for constant, number in inputs.items()})
        made._identities = [id(x) for x in arguments]
        made.argument_memory = [(weakref.ref(x), weakref.ref(owner(x._array)), address(x._array)) for x in arguments]
        if self._joint is not None:
            joint = made.joint = copy(template.joint)
            assert joint is not None
            vars(joint).update({name: _evaluate(part, sizes, values) for name, part in self._joint.items()})
            joint.labels = [id(t) if at is None else id(arguments[at])
                            for t, at in zip(joint.inputs, joint.positions, strict=True)]
        return made

    @staticmethod
    def _make(graph: Graph, op: str, args: list[Value], attrs: Any, shape: Any, dtype: np.dtype,
              array: np.ndarray | None, sizes: Sequence[int]) -> Value:
        extents = tuple([_number(n, sizes) for n in shape])
        if any(n < 2 and form.__class__ is Formula for n, form in zip(extents, shape, strict=True)):
            raise OutOfTemplate("a size of 0 or 1")  # such dimensions are treated otherwise
        if op == "constant":
            if attrs.__class__ is _Constant:
                made = graph.constant(attrs.array(sizes))
                if made.op == "constant" and made.size == 1:
                    graph.runtime_constants.add(made)  # kernels read it, so that one kernel serves all sizes
                return made
            return graph.constant(array)
        if op == "input":
            return graph.input(attrs, extents, dtype)
        if op == "extern":
            node = graph.make(op, tuple(args), _kernel(attrs, sizes), (), dtype)
            graph.extern_outputs.setdefault(node, [])
            return node
        concrete = _evaluate(attrs, sizes, ())
        if op == "view":
            strides, offset = concrete
            spans = [(n - 1) * s for n, s in zip(extents, strides, strict=True)]
            if offset + sum(s for s in spans if s < 0) < 0 or offset + sum(s for s in spans if s > 0) >= args[0].size:
                raise OutOfTemplate("a view beyond its array")
            return graph.view(args[0], extents, strides, offset)
        if op in ELEMENTWISE and any(a.shape and a.shape != extents for a in args):
            raise OutOfTemplate("operands of other shapes")
        value = graph.make(op, tuple(args), concrete, extents, dtype)
        if op == "getitem" and value not in graph.extern_outputs[args[0]]:
            graph.extern_outputs[args[0]].append(value)
        return value


def _kernel(attrs: Any, sizes: Sequence[int]) -> Any:
    if attrs.__class__ is not _Extern:
        return attrs
    kernel, parameters = attrs.kernel, _evaluate(attrs.parameters, sizes, ())
    name = "".join([str(word) for word in _evaluate(attrs.name, sizes, ())])
    if isinstance(kernel, ExternKernel):
        return ExternKernel(name, kernel.family, parameters, kernel.check, kernel.checked)
    run = copy(kernel.run)
    for attribute, value in parameters.items():
        setattr(run, attribute, value)
    return FallbackKernel(name, run, kernel.why, kernel.stream)


__all__ = ["TraceTemplate"]
