"""`ProvenanceTracer`: a tracer that records the source line of each IR value and the user's names of inputs.

It walks the stack at every operator, so it is used only for `compile.explain` and `FLAMBEAU_DEBUG`.
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
from ..state.with_state import WithState
from .aliasing import address
from .provenance import Place, Provenance
from .trace import Trace
from .tracer import Tracer

_PACKAGE = __name__.partition(".")[0]
_EVALUATE_NODE = GraphTask.evaluate.__code__
#: how many levels of called functions are searched for named tensors
_DEPTH = 3


class ProvenanceTracer(Tracer):
    """A tracer that records the line of each value, and names.

    Args:
        function: the function that is traced.
        args, kwargs: its arguments.
    """

    def __init__(self, function: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.places: dict[int, Place] = {}
        self._num_located = 0  # values that have a line
        self._arguments: dict[int, Any] = {}  # by number of their inputs
        self._node_places: dict[Any, Place] = {}  # by node of the autograd graph
        self._labels: dict[int, str] = {}
        self._group_names: dict[int, str] = {}
        self._named: list[Any] = []  # keeps named objects alive: their identities are keys
        for name, thing in _named_objects(function, args, kwargs):
            self._name(name, thing)

    # ----- lines -----

    def _current_place(self) -> Place:
        """Return the innermost user line; in backward, the line of the operator that is differentiated."""
        frame: Any = sys._getframe(1)
        node: Any = None
        while frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE and frame.f_back is not None:
            if node is None and frame.f_code is _EVALUATE_NODE:
                node = frame.f_locals["node"]
            frame = frame.f_back
        place = self._node_places.get(node)
        return Place(frame.f_code.co_filename, frame.f_lineno) if place is None else place._replace(backward=True)

    def _locate_new_values(self) -> Place:
        """Record the current line for the values that have none yet."""
        place, count = self._current_place(), len(self.graph.values)
        for number in range(self._num_located, count):
            self.places[number] = place
        self._num_located = count
        return place

    def on_operator(self, op: Any, inputs: Sequence[Any], params: dict[str, Any], outs: Sequence[Any],
                    in_place: bool) -> None:
        super().on_operator(op, inputs, params, outs, in_place)
        place = self._locate_new_values()
        for out in outs:
            if isinstance(out, Tensor) and out._node is not None:
                self._node_places.setdefault(out._node, place)

    def on_create(self, a: Any, unset: bool) -> None:
        super().on_create(a, unset)
        self._locate_new_values()

    def on_running_average(self, average: Any, value: Any, momentum: float, factor: float) -> None:
        super().on_running_average(average, value, momentum, factor)
        self._locate_new_values()

    def advance_step(self, step: Any) -> Any:
        result = super().advance_step(step)
        self._locate_new_values()
        return result

    def trace_update(self, rule: Callable[..., None], param: Any, grad: Any, state: tuple, scalars: tuple,
                     differentiable: bool) -> tuple:
        result = super().trace_update(rule, param, grad, state, scalars, differentiable)
        self._locate_new_values()
        return result

    def on_random_draw(self, function: Callable[..., Any], engine: Any, arguments: tuple, result: Any) -> None:
        super().on_random_draw(function, engine, arguments, result)
        self._locate_new_values()

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
                self._group_names.setdefault(id(group), f"{name}.param_groups[{i}]." if several else "")
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
        """Return the provenance of a trace that this tracer recorded."""
        input_names: dict[int, tuple[str, np.ndarray, np.ndarray]] = {}  # by input: name, memory, the tensor's array
        for number, tensor in self._arguments.items():
            if id(tensor) in self._labels:
                input_names[number] = self._labels[id(tensor)], tensor._array, tensor._array
        for lifted in self.lifted:
            source = trace.sources.get(lifted.number, ("",))
            label = self._labels.get(trace.identity(source[1]) if source[0] == "gradient of" else id(lifted.tensor))
            if label is not None:
                name = f"{label}.grad" if source[0] == "gradient of" else label
                input_names[lifted.number] = name, lifted.array, lifted.tensor_array
        names: dict[Value, str] = {}
        for value in self.graph.values:
            leaf = value.base
            if leaf.op == "input" and leaf.attrs in input_names:
                name, memory, own = input_names[leaf.attrs]
                if value is leaf:
                    names[leaf] = name if leaf.size == own.size else f"memory of {name}"
                elif (value.shape, value.offset) == (own.shape, (address(own) - address(memory)) // own.itemsize) and (
                        value.strides == tuple(s // own.itemsize for s in own.strides)):
                    names[value] = name
            elif leaf is value and leaf.op == "input" and trace.sources.get(leaf.attrs, ("",))[0] == "number":
                _, group, key, index = trace.sources[leaf.attrs]
                names[leaf] = self._group_names.get(id(group), "") + key + ("" if index is None else f"[{index}]")
        return Provenance(self.places, names, self._labels)

    def add_input(self, tensor: Any) -> Value:
        leaf = super().add_input(tensor)
        self._arguments[leaf.base.attrs] = tensor
        return leaf


def _attribute(path: str) -> str:
    """Return the Python expression for a dotted path of names and indices.

    >>> _attribute("0.weight"), _attribute("block.1.bias")
    ('[0].weight', '.block[1].bias')
    """
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))


def _named_objects(function: Any, args: tuple, kwargs: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the arguments of a call, and the globals and closure variables that its code names.

    Optimizers come last: their state is named after parameters.
    """
    named = [*arguments_of(function, args, kwargs), *_outer_variables(function, _DEPTH, set())]
    yield from sorted(named, key=lambda item: isinstance(item[1], Optimizer))


def arguments_of(function: Any, args: tuple, kwargs: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return a call's arguments by parameter name."""
    if isinstance(function, WithState):
        count = function.num_leaves
        return [*zip(function.leaf_names(), args[:count], strict=True),
                *arguments_of(function.function, args[count:], kwargs)]
    try:
        called = function.forward if isinstance(function, Module) else function
        bound = inspect.signature(called).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):  # no signature, or another one
        return [*((f"args[{i}]", x) for i, x in enumerate(args)), *kwargs.items()]
    return list(bound.items())


def _outer_variables(function: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if isinstance(function, WithState):
        function = function.function
    if isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, Module):
        yield "self", function
        return
    if isinstance(function, types.MethodType):
        yield from _attributes(function.__self__)
        function = function.__func__
    if not isinstance(function, types.FunctionType):  # e.g. a compiled function
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
            yield from _outer_variables(thing, depth - 1, seen)
        else:
            yield name, thing


def _attributes(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the tensors, modules and optimizers among the attributes of a method's object."""
    if isinstance(thing, Module):
        yield "self", thing
    for name, value in getattr(thing, "__dict__", {}).items():
        if isinstance(value, (Tensor, Module, Optimizer)):
            yield f"self.{name}", value


__all__ = ["ProvenanceTracer", "arguments_of"]
