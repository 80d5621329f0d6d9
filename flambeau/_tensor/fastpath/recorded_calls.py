"""The graphs of calls that come again and again: nodes that differ from an observed call's only in tensors and edges.

A call's values are tensors' arrays by slot: those of the arguments, then one for each operator that it applies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errstate import run_in_quiet
from ..dispatch.gradient_edge import gradient_edge
from ..dispatch.graph_recording import as_view
from ..tensor import Tensor
from .node_templates import NodeTemplate

ndarray = np.ndarray
new = object.__new__


class Filled:
    """The result of an operator that stores what its rule needs in a list."""

    __slots__ = ("array", "stored")

    def __init__(self, array: ndarray, stored: list[Any]) -> None:
        self.array, self.stored = array, stored


class RecordedCall:
    """A call of known layout: its operators' launches, tensors and nodes.

    Args:
        launches: (launch, slots of its arrays) of each operator.
        views: of each operator, the slot of the tensor whose view its result is, and whether it is one of several.
        templates: of each operator, the template of its node; None where nothing is recorded.
        last: the slot of the result.
        several: the class of several results; None for one.
        count: the number of arguments that are tensors.

    Attributes:
        launch: the launch, where it is the only one, of all arguments in their order, and nothing is recorded.
    """

    __slots__ = ("arguments", "count", "forward", "last", "launch", "several", "steps", "templates", "views")

    def __init__(self, launches: Sequence[tuple[Any, tuple[int, ...]]], views: Sequence[tuple[int, bool] | None],
                 templates: Sequence[NodeTemplate | None], last: int, several: Any, count: int) -> None:
        self.last, self.several, self.count = last, several, count
        self.views, self.templates = views, templates
        only = len(launches) == 1 and several is None and not any(views) and not any(templates) and (
            launches[0][1] == tuple(range(count)))
        self.launch = launches[0][0] if only else None
        self.forward = values_of(launches, any(each is not None and each.list_at >= 0 for each in templates))
        kept, seen = {last}, last  # what users see: the result, and what it is a view of
        while seen >= count and (seen_in := views[seen - count]) is not None:
            seen = seen_in[0]
            kept.add(seen)
        visible = set(kept)
        for step, template in enumerate(templates):
            if template is not None:
                kept.update(each for each, _ in template.saved_inputs if each >= 0)
                if template.plan.saved_outputs:
                    kept.add(count + step)
        steps: list[tuple[int, bool, Any, NodeTemplate | None]] = []
        for step in range(len(launches)):
            slot = count + step
            view: Any = views[step]
            if view is not None and slot not in visible:  # a saved view: nobody but its node sees whose view it is
                root = slot
                while root >= count and (source := views[root - count]) is not None:
                    root = source[0]
                view = (root, None) if root < count or root in kept else None
            steps.append((slot, slot in kept, view, templates[step]))
        self.steps = tuple(steps)
        used = {slot for template in templates if template is not None for slot in template.edges}
        self.arguments = tuple([slot for slot in range(count) if slot in used])

    def __call__(self, tensors: list[Any], arrays: list[Any]) -> Any:
        """The result, recorded; None where the function itself has to run."""
        nodes: list[Any] = [None] * (len(self.steps) + self.count + 1)
        numbers: list[int] | None = None
        for slot in self.arguments:
            x = tensors[slot]
            edge = x._node
            if edge is None or x._base is not None:
                edge = gradient_edge(x)
                if edge is None:
                    return None
            nodes[slot] = edge
            if x._output_nr:
                if numbers is None:
                    numbers = [0] * len(nodes)
                numbers[slot] = x._output_nr
        values = run_in_quiet(self.forward, (arrays,))
        if values is None:
            return None
        if self.several is not None:
            outs = [_tensor(array) for array in values[self.last]]
            of = self.views[0]
            if of is not None:
                for each in outs:
                    as_view(each, tensors[of[0]], multi=of[1])
            if self.templates[0] is not None:
                self.templates[0].make(nodes, numbers, tensors, outs)
            return self.several(outs)
        made: list[Any] = tensors + [None] * len(self.steps)
        for slot, is_kept, view, template in self.steps:
            out: Any = None
            stored = None
            if values[slot].__class__ is Filled:
                values[slot], stored = values[slot].array, values[slot].stored
            if is_kept:
                out = made[slot] = _tensor(values[slot])
                if view is not None:
                    source, multi = view
                    if multi is None:
                        counter = made[source]._counter
                        if counter is None:
                            counter = made[source]._counter = [0]
                        out._counter = counter
                    else:
                        as_view(out, made[source], multi=multi)
            if template is not None:
                if out is None:
                    out = _Result(values[slot])
                nodes[slot] = template.make(nodes, numbers, made, (out,), stored)
        return made[self.last]

    def describes(self, result: Any, tensors: Sequence[Any], arrays: Sequence[Any] | None) -> bool:
        """Whether the graph of a result has these nodes, and what they store is what launches store.

        Args:
            arrays: None: what is stored is not compared.
        """
        last = result[0] if self.several is not None else result
        found: dict[int, Any] = {self.last: last._node}
        for step in range(len(self.templates) - 1, -1, -1):
            template, slot = self.templates[step], self.count + step
            node = found.get(slot)
            if template is None:
                if node is not None:
                    return False
                continue
            if node is None:  # of a result that nothing used
                return False
            for edge, source in zip(node.edges, template.edges, strict=False):
                if source >= 0 and found.setdefault(source, edge) is not edge:
                    return False
            if not template.describes(node, found.get):
                return False
        return all(found.get(slot) is _edge(tensors[slot]) for slot in self.arguments) and (
            arrays is None or self._stores(found, arrays))

    def _stores(self, nodes: dict[int, Any], arrays: Sequence[Any]) -> bool:
        """Whether launches store, to the bit, what operators have stored in lists for their rules."""
        filling = [(self.count + step, template.list_at) for step, template in enumerate(self.templates)
                   if template is not None and template.list_at >= 0]
        values = run_in_quiet(self.forward, (list(arrays),)) if filling else None
        for slot, at in filling:
            stored, expected = None if values is None else values[slot].stored, nodes[slot].consts[at]
            if stored is None or len(stored) != len(expected) or not all(
                    x.__class__ is y.__class__ is ndarray and x.dtype is y.dtype and x.shape == y.shape
                    and x.tobytes() == y.tobytes() for x, y in zip(stored, expected, strict=True)):
                return False
        return True


class _Result:
    """In place of a tensor that nobody can see: a node's result that is not saved."""

    __slots__ = ("_array", "_node", "_output_nr", "_requires_grad")

    def __init__(self, array: ndarray) -> None:
        self._array = array


def _edge(x: Tensor) -> Any:
    edge = x._node
    return gradient_edge(x) if edge is None or x._base is not None else edge


def _tensor(array: ndarray) -> Any:
    out: Any = new(Tensor)
    out._array = array
    out._requires_grad = False
    out._output_nr = 0
    out._node = out._grad = out._counter = out._base = out._accumulator = None
    return out


def values_of(launches: Sequence[tuple[Any, tuple[int, ...]]],
              fills: bool = False) -> Callable[[list[Any]], list[Any] | None]:
    """The function of the arguments' arrays that gives all values by slot; None as soon as a launch gives None.

    Args:
        fills: whether some of the values may be `Filled`.
    """
    if not fills and len(launches) == 1 and launches[0][1] == tuple(range(len(launches[0][1]))):
        launch = launches[0][0]
        used = len(launches[0][1])

        def run_one(arrays: list[Any]) -> list[Any] | None:
            result = launch(*arrays) if len(arrays) == used else launch(*arrays[:used])
            return None if result is None else [*arrays, result]

        return run_one

    def run(arrays: list[Any]) -> list[Any] | None:
        values = list(arrays)
        for launch, slots in launches:
            result = launch(*[values[slot] for slot in slots])
            if result is None:
                return None
            values.append(result)
        return values

    if fills:
        def run_filling(arrays: list[Any]) -> list[Any] | None:
            values = list(arrays)
            for launch, slots in launches:
                result = launch(*[x.array if x.__class__ is Filled else x for x in [values[slot] for slot in slots]])
                if result is None:
                    return None
                values.append(result)
            return values

        return run_filling
    return run


__all__ = ["Filled", "RecordedCall", "values_of"]
