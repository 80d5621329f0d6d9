"""The traces of a scalar program: what is computed forward, pushed forward, and pulled back.

A program such as f(x₁, x₂) = ln x₁ + x₁x₂ - sin x₂ is run once on leaf tensors. Its
graph, read from the output's `grad_fn`, gives the steps v₁, v₂, ...; each step's
partial derivatives come from calling its node with 1. From these follow

    evaluation trace   vₖ  = φₖ(vᵢ, ...)
    tangent trace      v̇ₖ = Σᵢ ∂vₖ/∂vᵢ · v̇ᵢ      forward mode, one pass for each input
    adjoint trace      v̄ᵢ = Σₖ v̄ₖ · ∂vₖ/∂vᵢ      reverse mode, one pass for each output

The inputs are numbered up to 0 (v₋₁ and v₀ for two of them), the steps from 1 by
their distance from the inputs, then by the order in which they ran.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..dtypes import float64
from ..tensor.constants import ones_like
from ..tensor.creation import tensor
from .formulas import number
formula = partials = None
from .picture import Arrow, Box, Picture
from .tables import Table

_SUBSCRIPTS = str.maketrans("-0123456789", "₋₀₁₂₃₄₅₆₇₈₉")
_DOT, _BAR = "\u0307", "\u0304"


@dataclass
class Step:
    """One elementary operation of a program.

    Attributes:
        node: the graph's node for it.
        value: the number that it gave.
        operands: for each input of the node, the index of a step or of an input of the
            program; None for a constant.
        slopes: the partial derivative by each operand; None for a constant.
    """

    node: Any
    value: float
    operands: tuple[int | None, ...]
    slopes: tuple[float | None, ...]


@dataclass
class Trace(Table):
    """A printed trace, and its numbers by index: `values[-1]`, `values[0]`, `values[1]`, ..."""

    values: dict[int, float] | None = None


@dataclass
class Program:
    """A scalar program as it ran: its inputs, its steps and its adjoints."""

    inputs: dict[int, float]
    steps: dict[int, Step]
    adjoints: dict[int, float]

    def evaluation_trace(self) -> Trace:
        """What each step computed."""
        values = dict(self.inputs)
        rows = [(_v(index), f"x{_sub(place)}", "", number(value))
                for place, (index, value) in enumerate(self.inputs.items(), 1)]
        for index, step in self.steps.items():
            values[index] = step.value
            symbols = [None if operand is None else _v(operand) for operand in step.operands]
            numbers = [None if operand is None else values[operand] for operand in step.operands]
            rows.append((_v(index), formula(step, symbols, numbers),
                         formula(step, [None if n is None else number(n, True) for n in numbers], numbers),
                         number(step.value)))
        rows.append(("y", _v(self.last), "", number(values[self.last])))
        return Trace("forward evaluation trace", ("", "is", "with numbers", "value"), rows, values)

    def tangent_trace(self, wrt: int) -> Trace:
        """What each step's derivative by one input is, pushed forward from that input.

        Args:
            wrt: which input: 0 for the first, 1 for the second.
        """
        if not 0 <= wrt < len(self.inputs):
            raise IndexError(f"wrt is {wrt}, but the program has {len(self.inputs)} inputs (0 is the first)")
        tangents = {index: float(place == wrt) for place, index in enumerate(self.inputs)}
        rows = [(_v(index, _DOT), f"x{_DOT}{_sub(place)}", "", number(tangents[index]))
                for place, index in enumerate(self.inputs, 1)]
        for index, _step in self.steps.items():
            terms = list(self.terms(index))
            tangents[index] = sum(slope * tangents[operand] for operand, slope, _ in terms)
            rows.append((_v(index, _DOT),
                         _sum(_times(_v(operand, _DOT), symbol) for operand, _, symbol in terms),
                         _sum(_times(number(tangents[operand], True), number(slope, True))
                              for operand, slope, _ in terms),
                         number(tangents[index])))
        rows.append((f"y{_DOT}", _v(self.last, _DOT), "", number(tangents[self.last])))
        return Trace(f"forward derivative trace, by x{_sub(wrt + 1)}",
                     ("", "is", "with numbers", "value"), rows, tangents)

    def adjoint_trace(self) -> Trace:
        """What the output's derivative by each step is, pulled back from the output.

        The values are the engine's: the gradients that `backward()` left on every tensor.
        """
        users: dict[int, list[tuple[int, float, str]]] = {index: [] for index in (*self.inputs, *self.steps)}
        for index in self.steps:
            for operand, slope, symbol in self.terms(index):
                users[operand].append((index, slope, symbol))
        rows = []
        for index in reversed((*self.inputs, *self.steps)):
            if index == self.last:
                rows.append((_v(index, _BAR), f"∂y/∂{_v(index)}", "", number(self.adjoints[index])))
                continue
            rows.append((_v(index, _BAR),
                         _sum(_times(_v(user, _BAR), symbol) for user, _, symbol in users[index]),
                         _sum(_times(number(self.adjoints[user], True), number(slope, True))
                              for user, slope, _ in users[index]),
                         number(self.adjoints[index])))
        rows += [(f"∂y/∂x{_sub(place)}", _v(index, _BAR), "", number(self.adjoints[index]))
                 for place, index in enumerate(self.inputs, 1)]
        return Trace("reverse adjoint trace", ("", "is", "with numbers", "value"), rows, dict(self.adjoints))

    def forward_picture(self) -> Picture:
        """The steps as circles, from the inputs on the left to the output on the right."""
        return self._picture("LR", [(operand, index) for operand, index in self._links()])

    def reverse_picture(self) -> Picture:
        """The same circles with every arrow turned: the way that adjoints go."""
        return self._picture("RL", [(index, operand) for operand, index in self._links()])

    @property
    def last(self) -> int:
        """The index of the output."""
        return max((*self.inputs, *self.steps))

    def terms(self, index: int) -> Iterator[tuple[int, float, str]]:
        """For each variable operand of a step: its index, the partial derivative and its formula."""
        step = self.steps[index]
        symbols = [None if operand is None else _v(operand) for operand in step.operands]
        for operand, slope, symbol in zip(step.operands, step.slopes, partials(step, symbols, _v(index)),
                                          strict=True):
            if operand is not None and slope is not None:
                yield operand, slope, symbol or f"∂{_v(index)}/∂{_v(operand)}"

    def _links(self) -> Iterator[tuple[int, int]]:
        for index, step in self.steps.items():
            for operand in dict.fromkeys(step.operands):
                if operand is not None:
                    yield operand, index

    def _picture(self, direction: str, links: list[tuple[int, int]]) -> Picture:
        boxes = [Box(f"v_{index}", f"<v<sub>{index}</sub>>") for index in (*self.inputs, *self.steps)]
        arrows = [Arrow(f"v_{tail}", f"v_{head}") for tail, head in links]
        return Picture(direction, round=True, title="ComputationGraph", pieces=[*boxes, *arrows])


def record(function: Callable[..., Any], *point: Any) -> Program:
    """Run a scalar program and keep every step that its graph has.

    Args:
        function: takes scalar tensors and returns one.
        point: where to run it, numbers or scalar tensors.

    Raises:
        ValueError: something on the way has more than one element, or the output does
            not depend on the inputs.

    >>> import flambeau as torch
    >>> from flambeau.viz import record
    >>> program = record(lambda x, y: torch.log(x) + x * y - torch.sin(y), 2., 5.)
    >>> program.adjoint_trace().values[-1], round(program.adjoint_trace().values[0], 3)
    (5.5, 1.716)
    """
    leaves = [_leaf(value) for value in point]
    with _made_tensors() as made:
        output = function(*leaves)
    if getattr(output, "grad_fn", None) is None:
        raise ValueError("the program's output does not depend on its inputs")
    _notice(made, output)
    for end in (*leaves, output):
        _check_scalar(end)

    first = 1 - len(leaves)
    place = {id(leaf): first + offset for offset, leaf in enumerate(leaves)}
    indices: dict[int, int] = {}  # id of a node -> index
    adjoints = dict.fromkeys(place.values(), 0.0)
    steps: dict[int, Step] = {}
    for node in _in_order(output.grad_fn):
        if hasattr(node, "variable"):
            if id(node.variable) in place:
                indices[id(node)] = place[id(node.variable)]
            continue
        if id(node) not in made:
            raise ValueError(f"the value of {type(node).__name__} was never returned by a Python function")
        _, value = made[id(node)]
        _check_scalar(value)
        indices[id(node)] = index = len(steps) + 1
        slopes = node(ones_like(value))
        slopes = slopes if isinstance(slopes, tuple) else (slopes,)
        operands = tuple(None if successor is None else indices.get(id(successor))
                         for successor, _ in node.next_functions)
        steps[index] = Step(node, value.item(), operands,
                            tuple(None if operand is None or slope is None else slope.item()
                                  for operand, slope in zip(operands, slopes, strict=False)))
        node.register_prehook(_keeper(adjoints, index))
    output.backward(retain_graph=True)  # the formulas still ask the nodes for constants
    adjoints.update((place[id(leaf)], leaf.grad.item()) for leaf in leaves if leaf.grad is not None)
    return Program({place[id(leaf)]: leaf.item() for leaf in leaves}, steps, adjoints)


def evaluation_trace(function: Callable[..., Any], *point: Any) -> Trace:
    """The table of what a scalar program computes at a point.

    >>> import flambeau as torch
    >>> from flambeau.viz import evaluation_trace
    >>> print(evaluation_trace(lambda x: torch.sin(x) * x, 5.))
    forward evaluation trace
        is       with numbers   value
    ─────────────────────────────────
    v₀  x₁                          5
    v₁  sin v₀   sin 5         -0.959
    v₂  v₁ × v₀  (-0.959) × 5  -4.795
    y   v₂                     -4.795
    """
    return record(function, *point).evaluation_trace()


def tangent_trace(function: Callable[..., Any], *point: Any, wrt: int = 0) -> Trace:
    """The table of forward mode: the derivative of every step by input number `wrt`.

    >>> import flambeau as torch
    >>> from flambeau.viz import tangent_trace
    >>> tangent_trace(lambda x, y: x * y, 2., 5., wrt=1).values
    {-1: 0.0, 0: 1.0, 1: 2.0}
    """
    return record(function, *point).tangent_trace(wrt)


def adjoint_trace(function: Callable[..., Any], *point: Any) -> Trace:
    """The table of reverse mode: the derivative of the output by every step.

    >>> import flambeau as torch
    >>> from flambeau.viz import adjoint_trace
    >>> adjoint_trace(lambda x, y: x * y, 2., 5.).values
    {-1: 5.0, 0: 2.0, 1: 1.0}
    """
    return record(function, *point).adjoint_trace()


def _check_scalar(value: Any) -> None:
    if math.prod(value.shape) != 1:
        raise ValueError(f"traces are of scalar programs, but a tensor of shape {tuple(value.shape)} was met")


def _leaf(value: Any) -> Any:
    if not hasattr(value, "requires_grad"):
        value = tensor(value, dtype=float64)
    return value.detach().clone().requires_grad_()


def _keeper(adjoints: dict[int, float], index: int) -> Callable[[Any], None]:
    """A hook that notes the adjoint that a node is given."""
    def keep(cotangents: Any) -> None:
        adjoints[index] = cotangents[0].item()

    return keep


@contextmanager
def _made_tensors() -> Iterator[dict[int, tuple[Any, Any]]]:
    """Collect every tensor that a Python function returns while the block runs, by its node's id.

    The graph keeps what backward needs, not what forward gave: the sum of two numbers is
    nowhere in it. Every operator is a Python function, though, and so is watched
    returning its result.
    """
    made: dict[int, tuple[Any, Any]] = {}

    def watch(frame: Any, event: Any, result: Any) -> None:
        if event == "return":
            _notice(made, result)
        if earlier is not None:
            earlier(frame, event, result)

    earlier = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield made
    finally:
        sys.setprofile(earlier)


def _notice(made: dict[int, tuple[Any, Any]], result: Any) -> None:
    """Keep a tensor's node and a copy of its value as it is now, before anything is written into it."""
    node = getattr(result, "grad_fn", None) if hasattr(type(result), "grad_fn") else None
    if node is not None and id(node) not in made:
        made[id(node)] = node, result.detach().clone()


def _in_order(root: Any) -> list[Any]:
    """The graph's nodes from the leaves on: by distance from the leaves, then as they ran."""
    depth: dict[int, int] = {}
    finished: list[Any] = []
    pending = [(root, iter([node for node, _ in root.next_functions if node is not None]))]
    entered = {id(root)}
    while pending:
        node, successors = pending[-1]
        for successor in successors:
            if id(successor) not in entered:
                entered.add(id(successor))
                pending.append((successor, iter([n for n, _ in successor.next_functions if n is not None])))
                break
        else:
            pending.pop()
            depth[id(node)] = 1 + max((depth[id(n)] for n, _ in node.next_functions if n is not None),
                                      default=-1)
            finished.append(node)
    return sorted(finished, key=lambda node: depth[id(node)])


def _sub(index: int) -> str:
    return str(index).translate(_SUBSCRIPTS)


def _v(index: int, mark: str = "") -> str:
    return f"v{mark}{_sub(index)}"


def _times(factor: str, slope: str) -> str:
    if slope == "1":
        return factor
    if slope in ("-1", "(-1)"):
        return f"-{factor}"
    return f"{factor} × {slope}"


def _sum(terms: Sequence[str] | Iterator[str]) -> str:
    text = " + ".join(terms).replace("+ -", "- ")
    return text or "0"
