"""`WithState`: a function whose state is among its arguments and results; this is what is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...modes import active_tracer
from ..splitting.part_results import mutable_containers
from .places import Excluded, Place
from .structure import Flattened, NoStructure, count_leaves, rebuilt

#: why a call cannot be traced whose result is no structure
RETURNED = "a container that is kept as state is returned"


class WithState:
    """A function of the leaves of its state, followed by its own arguments.

    Its result is (the function's result, the leaves of the state afterwards, the name of their structure).

    Args:
        function: the function.
        places: where the state is.
        structure: of the state at the beginning of a call.
        num_leaves: how many leaves it has.

    Attributes:
        structures: of the state at the end of a call, by name.
        last: what the last call returned that ran in Python.
    """

    def __init__(self, function: Callable[..., Any], places: Sequence[Place], structure: tuple[Any, ...],
                 num_leaves: int) -> None:
        self.function, self.places = function, places
        self._structure, self.num_leaves = structure, num_leaves
        self.structures: dict[str, tuple[Any, ...]] = {}
        self._names: dict[tuple[Any, ...], str] = {}
        self.last: Any = None
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __repr__(self) -> str:
        return repr(self.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, args = args[:self.num_leaves], args[self.num_leaves:]
        places = self.places
        before = Flattened([each.read() for each in places])
        if len(before.leaves) != len(leaves) or any(a is not b for a, b in zip(before.leaves, leaves, strict=True)):
            self._write(rebuilt(self._structure, leaves, None))
            before = Flattened([each.read() for each in places])
        result = self.function(*args, **kwargs)
        tracer = active_tracer.get()
        values = [each.read() for each in places]
        try:
            after = Flattened(values, before)
        except NoStructure as error:
            if tracer is not None:
                tracer.graph_break(f"{error}, among the state that the function changes")
            self.last = result, (), ""
            return self.last
        if tracer is not None:
            tracer.excluded = Excluded(places, before, after)
            if after.containers and not {*mutable_containers(result)}.isdisjoint(map(id, after.containers)):
                tracer.graph_break(RETURNED)
        self.last = result, (*after.leaves,), self._name_of(after.structure)
        return self.last

    def _name_of(self, structure: tuple[Any, ...]) -> str:
        name = self._names.get(structure)
        if name is None:
            name = self._names[structure] = f"structure {len(self._names)}"
            self.structures[name] = structure
        return name

    def _write(self, values: Sequence[Any]) -> None:
        """Assign other values, in containers of their own where that is possible."""
        for place, value, old in zip(self.places, values, [each.read() for each in self.places], strict=True):
            if place.holder is old and place.key is None:  # the container itself
                old.clear()
                (old.update if isinstance(old, (dict, set)) else old.extend)(value)
            else:
                place.write(value)

    def leaf_names(self) -> list[str]:
        """Return names of the leaves: the place's, with a number if it holds several."""
        names = []
        for place, node in zip(self.places, self._structure, strict=False):
            count = count_leaves(node)
            names += [place.name] if node is None else [f"{place.name}[{i}]" for i in range(count)]
        return names

    def restorers(self) -> list[Callable[[], None]]:
        """Return functions that restore the state that there is now."""
        return [undo for each in self.places for undo in each.restorers()]


__all__ = ["RETURNED", "WithState"]
