"""`WithCall`: a function of its state and of the structure of its arguments, whose results have a structure, too.

Arguments that are objects made anew in each call, containers among the arguments that the function changes or returns,
and new objects among the results are no leaves. Here the leaves in them are arguments and results of what is traced.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from ...modes import active_tracer
from .places import Excluded
from .structure import Flattened, NoStructure, rebuilt
from .with_state import WithState


class Call:
    """A call in progress.

    Attributes:
        args, kwargs: its arguments.
        leaves: those of the state and of the arguments.
        has_run: whether the function ran in Python; then `result` is what it returned.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> None:
        self.args, self.kwargs, self.leaves = args, kwargs, leaves
        self.has_run, self.result = False, None

    def is_of(self, leaves: tuple[Any, ...]) -> bool:
        """Whether the function now runs for this call, not once more for other sizes or to explain it."""
        tracer = active_tracer.get()
        return not self.has_run and (tracer is None or tracer.frame_hook.known_codes is None) and (
            len(leaves) == len(self.leaves) and all(a is b for a, b in zip(leaves, self.leaves, strict=True)))


#: the call that this thread makes
active_call: ContextVar[Call | None] = ContextVar("active_call", default=None)


class WithCall(WithState):
    """A function of the leaves of its state and of its arguments; see `WithState`.

    Its result is (None, the leaves of the state, the arguments and the result afterwards, the name of their structure).
    """

    _returned: tuple[Any, ...] = ()  # containers of the last traced result

    def __call__(self, *leaves: Any) -> Any:
        places, call = self.places, active_call.get()
        if call is not None and call.is_of(leaves):
            args, kwargs = call.args, call.kwargs
        else:
            call = None
            *state, args, kwargs = rebuilt(self._structure, leaves, None)
            self._write(state)
        before = self._flattened((args, kwargs))
        result = self.function(*args, **kwargs)
        if call is not None:
            call.has_run, call.result = True, result
        tracer = active_tracer.get()
        try:
            after = self._flattened((args, kwargs, result), before)
        except NoStructure as error:
            if tracer is not None:
                tracer.graph_break(f"{error}, among what the function changes or returns")
            return None, (), ""
        if tracer is not None:
            tracer.excluded = Excluded(places, before, after)
            if call is not None:
                known = {id(x) for x in before.containers}
                new = tuple([x for x in after.containers if id(x) not in known])
                if not {*map(id, self._returned)}.isdisjoint(map(id, new)):
                    tracer.graph_break("a container that outlives the call is returned")
                self._returned = new
        return None, (*after.leaves,), self._name_of(after.structure)

    def _flattened(self, values: tuple[Any, ...], before: Flattened | None = None) -> Flattened:
        return Flattened([*[each.read() for each in self.places], *values], before, are_shared=True)

    def leaf_names(self) -> list[str]:
        names = super().leaf_names()
        return [*names, *[f"args[{i}]" for i in range(self.num_leaves - len(names))]]


__all__ = ["Call", "WithCall", "active_call"]
