"""A tracer that records provenance: for each value the user's source line, for each array the user's name.

It walks the stack at every operator, so it is used only on request (`compile.explain`, `FLAMBEAU_DEBUG`).
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..._tensor import Tensor
from ...engine.execution.graph_task import GraphTask
from ...ir.graph.value import Value
from ...nn import Module
from ...optim.optimizer import Optimizer
from ...trees import is_container, tree_flatten
from .aliasing import address
from .provenance import Place, Provenance
from .trace import Trace
from .tracer import _PACKAGE, Tracer

_RUNS_A_NODE = GraphTask.evaluate.__code__
#: functions that call functions are looked into so deep for what they name
_DEPTH = 3


class ProvenanceTracer(Tracer):
    """A capture that knows the line of each value, and names.

    Args:
        function: what is captured.
        args, kwargs: what it is called with.
    """

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.places: dict[int, Place] = {}
        self._marked = 0
        self._given: dict[int, Any] = {}  # arguments, by their leaves' numbers
        self._made: dict[Any, Place] = {}  # by node of the graph
        self._labels: dict[int, str] = {}
        self._groups: dict[int, str] = {}
        self._named: list[Any] = []  # so that no other object takes a named one's identity
        for name, thing in _named_by(function, args, kwargs):
            self._name(name, thing)

    # ----- lines -----

    def _here(self) -> Place:
        """The innermost line that is not of this package; in backward, that of the operator that is differentiated."""
        frame: Any = sys._getframe(1)
        node: Any = None
        while frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE and frame.f_back is not None:
            if node is None and frame.f_code is _RUNS_A_NODE:
                node = frame.f_locals["node"]
            frame = frame.f_back
        found = self._made.get(node)
        return Place(frame.f_code.co_filename, frame.f_lineno) if found is None else found._replace(backward=True)

    def _mark(self) -> Place:
        """Note the line of the values that are new."""
        place, count = self._here(), len(self.graph.values)
        for number in range(self._marked, count):
            self.places[number] = place
        self._marked = count
        return place

    def tell(self, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any], in_place: bool) -> None:
        super().tell(op, inputs, params, outs, in_place)
        place = self._mark()
        for out in outs:
            if isinstance(out, Tensor) and out._node is not None:
                self._made.setdefault(out._node, place)

    def on_create(self, a: Any, unset: bool) -> None:
        super().on_create(a, unset)
        self._mark()

    def on_running_average(self, average: Any, value: Any, momentum: float, factor: float) -> None:
        super().on_running_average(average, value, momentum, factor)
        self._mark()

    def advance_step(self, step: Any) -> Any:
        found = super().advance_step(step)
        self._mark()
        return found

    def trace_update(self, rule: Callable[..., None], param: Any, grad: Any, state: tuple, scalars: tuple,
                differentiable: bool) -> tuple:
        found = super().trace_update(rule, param, grad, state, scalars, differentiable)
        self._mark()
        return found

    def on_random_draw(self, function: Callable[..., Any], engine: Any, arguments: tuple, result: Any) -> None:
        super().on_random_draw(function, engine, arguments, result)
        self._mark()

    # ----- names -----

    def _name(self, name: str, thing: Any) -> None:
        if isinstance(thing, Tensor):
            self._labels.setdefault(id(thing), name)
        elif isinstance(thing, Module):
            for path, tensor in (*thing.named_parameters(), *thing.named_buffers()):
                self._labels.setdefault(id(tensor), name + _attribute(path))
        elif isinstance(thing, Optimizer):
            several = len(thing.param_groups) > 1
            for i, group in enumerate(thing.param_groups):
                self._groups.setdefault(id(group), f"{name}.param_groups[{i}]." if several else "")
            for param, state in thing.state.items():
                of = self._labels.get(id(param), "parameter")
                for key, tensor in state.items():
                    if isinstance(tensor, Tensor):
                        self._labels.setdefault(id(tensor), f"{of}.{key}")
        elif is_container(thing):
            for i, each in enumerate(tree_flatten(thing)[0]):
                self._name(f"{name}[{i}]", each)
            return
        else:
            return
        self._named.append(thing)

    def provenance(self, trace: Trace) -> Provenance:
        """What is known of a trace of this capture."""
        called: dict[int, tuple[str, np.ndarray, np.ndarray]] = {}  # by leaf: the name, the memory, how it is seen
        for number, tensor in self._given.items():
            if id(tensor) in self._labels:
                called[number] = self._labels[id(tensor)], tensor._array, tensor._array
        for found in self.lifted:
            source = trace.sources.get(found.number, ("",))
            of = self._labels.get(trace.identity(source[1]) if source[0] == "gradient of" else id(found.tensor))
            if of is not None:
                called[found.number] = f"{of}.grad" if source[0] == "gradient of" else of, found.array, found.own
        names: dict[Value, str] = {}
        for value in self.graph.values:
            leaf = value.base
            if leaf.op == "input" and leaf.attrs in called:
                name, memory, own = called[leaf.attrs]
                if value is leaf:
                    names[leaf] = name if leaf.size == own.size else f"memory of {name}"
                elif (value.shape, value.offset) == (own.shape, (address(own) - address(memory)) // own.itemsize) and (
                        value.strides == tuple(s // own.itemsize for s in own.strides)):
                    names[value] = name
            elif leaf is value and leaf.op == "input" and trace.sources.get(leaf.attrs, ("",))[0] == "number":
                _, group, key, index = trace.sources[leaf.attrs]
                names[leaf] = self._groups.get(id(group), "") + key + ("" if index is None else f"[{index}]")
        return Provenance(self.places, names, self._labels)

    def given(self, tensor: Any) -> Value:
        leaf = super().given(tensor)
        self._given[leaf.base.attrs] = tensor
        return leaf


def _attribute(path: str) -> str:
    """A path of names and numbers as Python reaches it.

    >>> _attribute("0.weight"), _attribute("block.1.bias")
    ('[0].weight', '.block[1].bias')
    """
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))


def _named_by(function: Any, args: tuple, kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a call's function can name: its arguments, and what its code names outside.

    Optimizers come last: what they keep is named after parameters.
    """
    found = [*arguments_of(function, args, kwargs), *_outside(function, _DEPTH, set())]
    yield from sorted(found, key=lambda each: isinstance(each[1], Optimizer))


def arguments_of(function: Any, args: tuple, kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """A call's arguments, with the names that the function has for them."""
    try:
        called = function.forward if isinstance(function, Module) else function
        bound = inspect.signature(called).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # no signature that fits
        return [*((f"args[{i}]", x) for i, x in enumerate(args)), *kwargs.items()]
    return list(bound.items())


def _outside(function: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, Module):
        yield "self", function
        return
    if isinstance(function, types.MethodType):
        yield from _of_object(function.__self__)
        function = function.__func__
    if not isinstance(function, types.FunctionType):  # compiled already
        function = getattr(function, "__wrapped__", function)
    if not isinstance(function, types.FunctionType) or not depth or id(function) in seen or (
            (function.__module__ or "").partition(".")[0] == _PACKAGE):
        return
    seen.add(id(function))
    code, space = function.__code__, function.__globals__
    things = [(name, space[name]) for name in code.co_names if name in space]
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        try:
            things.append((name, cell.cell_contents))
        except ValueError:  # not set yet
            continue
    for name, thing in things:
        if isinstance(thing, (types.FunctionType, types.MethodType)):
            yield from _outside(thing, depth - 1, seen)
        else:
            yield name, thing


def _of_object(thing: Any) -> Iterator[tuple[str, Any]]:
    """What a method's object holds, one level deep."""
    if isinstance(thing, Module):
        yield "self", thing
    for name, value in getattr(thing, "__dict__", {}).items():
        if isinstance(value, (Tensor, Module, Optimizer)):
            yield f"self.{name}", value


__all__ = ["ProvenanceTracer", "arguments_of"]
