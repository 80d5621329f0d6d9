"""What a captured run amounts to: leaves and where they come from, results, writes, gradients.

Two traces of the same call that agree are a program. What they do not agree on is what changes from call to call
without the function's arguments saying so; then the run cannot be replayed.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..ir.planning import Target
from ..ir.value import Graph, Unsupported, Value
from ..tensor import Tensor
from ..trees import tree_flatten
from . import storages
from .capture import Capture
from .environment import states_of
from .joint import Joint, inputs_of
from .surroundings import Surroundings

if TYPE_CHECKING:
    from .origins import Origins


#: calls of one kind that are captured before they are given up
TRIES = 8
#: what a run costs that did something to the world
EFFECT = 4


class Shown(NamedTuple):
    """A tensor over an array: which, and how it lies there, strides and offset in bytes."""

    array: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: np.dtype


class Trace:
    """One run.

    Attributes:
        sources: by leaf number: ("argument", position), ("tensor", tensor, the memory, the tensor's array),
            ("gradient of", tensor) or ("number", group, key, index).
        gradient_strides: by leaf number, of gradients.
        joint: the gradients of the results, where they may be asked for.
        targets: what the program is to leave behind: writes to leaves, then new arrays.
        results: for each leaf of the result's tree: ("argument", position), ("same", tensor), ("new", Shown, requires
            grad, number among the differentiable, of inference mode), ("leaf", the same) or ("constant", object).
        gradients: (tensor, Shown or None): what becomes of `.grad`.
        without: tensors that must have no gradient when the function is called.
        origins: the lines and names of its values, if they were noted.
        surroundings: what the run saw without being handed it; None once a program looks after it.
        cost: how much a failure counts, of `TRIES`; one of the first call may be the only one.
    """

    origins: Origins | None = None

    def __init__(self, capture: Capture, arguments: Sequence[Any], result: Any) -> None:
        self.graph: Graph = capture.graph
        self.failed = capture.failed
        self.guards = capture.guards
        self.decisions = list(capture.decisions.values())
        self.groups = capture.groups
        self.foreign = capture.foreign
        self.modules = list(capture.modules.values())
        self.surroundings: Surroundings | None = None
        self.cost = TRIES
        self.sources: dict[int, tuple] = {}
        self.targets: list[Target] = []
        self.results: list[tuple] = []
        self.gradients: list[tuple[Any, Shown | None]] = []
        self.without: list[Any] = []
        self.written: list[int] = []
        self.graph_is_freed = capture.ran_backward
        self.gradient_strides: dict[int, tuple[int, ...]] = {}
        self.joint: Joint | None = None
        self._capture = capture
        self._fresh: dict[int, int] = {}
        self._new_values: list[Value] = []
        if self.failed is None:
            try:
                leaves, self.tree = tree_flatten(result)
                self._differentiate(arguments, leaves)
                capture.watch.stop()
                self._sources(arguments)
                self._writes()
                self._gradients(leaves)
                self._results(arguments, leaves)
            except Unsupported as error:
                self.failed = str(error)
        self.targets += [Target(value) for value in self._new_values]
        self._look_around()
        del self._capture

    def _look_around(self) -> None:
        """Take note of what the run saw besides tensors, and of what it did to the world."""
        watch = self._capture.watch
        watch.stop()
        if self.failed is None and watch.effect is not None:
            self.failed, self.cost = watch.effect, EFFECT
        for optimizer, group, before in self._capture.states:
            now = states_of(optimizer, group)
            if len(now) != len(before) or not all(map(is_, now, before)):
                self.failed, self.cost = f"{type(optimizer).__name__} sets up what it remembers", 1
        if self.failed is None:
            self.surroundings = Surroundings(watch, self.modules, self.outside())
            self.failed = self.surroundings.failed

    def outside(self) -> list[Any]:
        """The tensors that the run found, and those whose gradients it saw."""
        found = [s[1] for s in self.sources.values() if s[0] in ("tensor", "gradient of")]
        return list({id(t): t for t in (*found, *(t for t, _ in self.gradients), *self.without)
                     if isinstance(t, Tensor)}.values())

    def _differentiate(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        """Write down the gradients too where results may be differentiated later."""
        capture = self._capture
        if capture.ran_backward:
            return
        outputs = list({id(x): x for x in leaves if isinstance(x, Tensor) and x._node is not None}.values())
        inputs = inputs_of(capture, arguments)
        outputs = [x for x in outputs if all(x is not y for y in inputs)]
        if outputs and inputs:
            self.joint = Joint(capture, outputs, inputs, arguments)

    def _sources(self, arguments: Sequence[Any]) -> None:
        capture = self._capture
        for i in range(len(arguments)):
            self.sources[i] = ("argument", i)
        gradients = {id(g): t for t, g in capture.entry_grads.values() if g is not None}
        for found in capture.outside:
            owner = gradients.get(id(found.tensor))
            if owner is not None:
                self.sources[found.number] = ("gradient of", owner)
                if found.array is found.own:
                    self.gradient_strides[found.number] = found.own.strides
            else:
                self.sources[found.number] = ("tensor", found.tensor, found.array, found.own)
        for number, group, key, index in capture.numbers:
            self.sources[number] = ("number", group, key, index)

    def _writes(self) -> None:
        for storage in self._capture.storages.values():
            if storage.changed and storage.leaf is not None and storage.value is not None:
                if storage.value.shape != storage.leaf.shape:
                    raise Unsupported("memory that was written in another shape")
                self.targets.append(Target(storage.value, storage.leaf))
                self.written.append(storage.leaf.attrs)

    def _shown(self, tensor: Any) -> Shown:
        a = tensor._array
        root = storages.owner(a)
        storage = self._capture.storages.get(id(root))
        if storage is None:
            raise Unsupported("a result of unknown origin")
        place = (a.shape, a.strides, storages.address(a) - storage.start, a.dtype)
        if storage.value is None:
            number = self._fresh.get(id(a))
            if number is None:
                number = self._fresh[id(a)] = len(self._new_values)
                self._new_values.append(self.graph.copy(storage.read(a)))
            dense = np.empty(a.shape, a.dtype)
            return Shown(number, a.shape, dense.strides, 0, a.dtype)
        if storage.leaf is not None:
            return Shown(-1 - storage.leaf.attrs, *place)
        number = self._fresh.get(id(root))
        if number is None:
            value = storage.value
            if value.op == "view":  # an array of its own, in the order of memory
                value = self.graph.copy(value)
            number = self._fresh[id(root)] = len(self._new_values)
            self._new_values.append(value)
        return Shown(number, *place)

    def _gradients(self, results: Sequence[Any]) -> None:
        capture = self._capture
        returned = set(map(id, results))
        for tensor, entry in capture.entry_grads.values():
            now = tensor._grad
            if now is entry:
                continue
            storage = capture.storages.get(id(storages.owner(tensor._array)))
            if storage is not None and storage.leaf is None and id(tensor) not in returned:
                continue  # made in this call, and gone when it is over
            if now is None:
                self.gradients.append((tensor, None))
                continue
            self.gradients.append((tensor, self._shown(now)))
            if id(tensor) not in capture.cleared:
                if entry is not None:
                    raise Unsupported("a gradient that was replaced")
                self.without.append(tensor)

    def _results(self, arguments: Sequence[Any], leaves: Sequence[Any]) -> None:
        positions = {id(x): i for i, x in enumerate(arguments)}
        found = {id(o.tensor): o.tensor for o in self._capture.outside}
        found |= {id(t): t for t, _ in self._capture.entry_grads.values()}
        for each in leaves:
            if not isinstance(each, Tensor):
                self.results.append(("constant", each))
            elif id(each) in positions:
                self.results.append(("argument", positions[id(each)]))
            elif id(each) in found:
                self.results.append(("same", each))
            else:
                shown = self._shown(each)
                self.results.append(("new" if shown.array >= 0 else "leaf", shown, each._requires_grad,
                                     None if self.joint is None else _position(self.joint.outputs, each),
                                     each._inference))

    def leaf(self, number: int) -> Value:
        """The leaf of this number."""
        return next(v for v in self.graph.values if v.op == "leaf" and v.attrs == number)

    def _line(self, value: Value) -> str:
        """The line of a value, for a message, where lines were noted."""
        place = None if self.origins is None else self.origins.places.get(value.number)
        return "" if place is None else f" ({place})"

    # ----- comparison -----

    def difference(self, other: Trace) -> str | None:
        """What two traces do not agree on; None where they do."""
        for mine, theirs in ((self, other), (other, self)):
            if mine.failed is not None:
                return mine.failed
            del theirs
        a, b = self.graph.values, other.graph.values
        for x, y in zip(a, b, strict=False):
            if not _same_value(x, y):
                return f"{x.text} in one call, {y.text} in the next{self._line(x)}"
        if len(a) != len(b):
            return "more was computed in one call than in the next"
        if len(self.sources) != len(other.sources):
            return "other arrays were used"
        for number, source in self.sources.items():
            if not _same_source(source, other.sources[number]):
                return f"an array that was another one in the next call{self._line(self.leaf(number))}"
        if [(_n(t.value), _n(t.leaf)) for t in self.targets] != [(_n(t.value), _n(t.leaf)) for t in other.targets]:
            return "other results were computed"
        if [(g.value.number, g.outcome) for g in self.guards] != [(g.value.number, g.outcome) for g in other.guards]:
            return "another way was taken"
        if not _same_results(self.results, other.results) or self.tree != other.tree:
            return "another kind of result was returned"
        if (self.joint is None) != (other.joint is None) or (
                self.joint is not None and other.joint is not None
                and [_n(v) for v in self.joint.gradients] != [_n(v) for v in other.joint.gradients]):
            return "other gradients can be asked for"
        if [(id(t), shown) for t, shown in self.gradients] != [(id(t), shown) for t, shown in other.gradients]:
            return "other gradients were left behind"
        if self.surroundings is None or other.surroundings is None:
            return None
        return self.surroundings.difference(other.surroundings)


def _position(things: Sequence[Any], thing: Any) -> int | None:
    return next((i for i, x in enumerate(things) if x is thing), None)


def _n(value: Value | None) -> int:
    return -1 if value is None else value.number


def _same_value(x: Value, y: Value) -> bool:
    if (x.op, x.shape, x.dtype) != (y.op, y.shape, y.dtype) or [a.number for a in x.args] != [
            a.number for a in y.args]:
        return False
    if x.op == "whole":
        return repr(x.attrs) == repr(y.attrs)
    return bool(x.attrs == y.attrs)


def _same_source(x: tuple, y: tuple) -> bool:
    if x[0] != y[0]:
        return False
    if x[0] == "tensor":
        return (x[1] is not None and x[1] is y[1] and x[3] is y[3]) or x[2] is y[2]
    if x[0] == "gradient of":
        return x[1] is y[1]
    if x[0] == "number":
        return x[1] is y[1] and x[2:] == y[2:]
    return bool(x == y)


def _same_results(x: Sequence[tuple], y: Sequence[tuple]) -> bool:
    if len(x) != len(y):
        return False
    for a, b in zip(x, y, strict=True):
        if a[0] != b[0]:
            return False
        if a[0] == "same":
            if a[1] is not b[1]:
                return False
        elif a[0] == "constant":
            if a[1] is not b[1] and not (type(a[1]) is type(b[1]) and bool(a[1] == b[1])):
                return False
        elif a[1:] != b[1:]:
            return False
    return True
