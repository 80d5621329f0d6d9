"""`CallsWithState`: calls whose state, containers and objects are inputs and results of what is compiled."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ...trees import tree_flatten
from ..errors import Unsupported
from ..stance import policy
from ..state.places import Place
from ..state.stateful_function import StatefulFunction
from ..state.with_state import WithState
from .cache_entry import GUARDS_FAILED
from .calls_in_parts import CallsInParts
from .shape_families import family_key
from .signatures import SignatureCache, argument_signature, objects_of, signature_of

#: objects among the arguments, each with state of its own
MAX_STATEFUL = 64
#: the key of the form whose inputs are in the structure of the arguments
OF_CALL = ("call",)


class CallsWithState(CallsInParts):
    """Calls whose state, containers and objects are inputs and results of what is compiled."""

    def _call_stateful(self, stateful: StatefulFunction, key: tuple, arguments: list[Any], args: tuple,
                       kwargs: dict[str, Any]) -> Any:
        """Run a call whose state is among the arguments and results of what is compiled."""
        result = stateful(args, kwargs)
        if stateful.failure is not None:
            self._note_failure(stateful, key, arguments)
        elif self._call_stub is None and policy.is_default and not kwargs:
            self._call_stub = self._stateful_stub(stateful, arguments, args)
        return result

    def _note_failure(self, stateful: StatefulFunction, key: tuple, arguments: list[Any]) -> None:
        """Divide the function, because a call with its state as an input cannot be compiled."""
        assert stateful.failure is not None
        (frames, reason), stateful.failure = stateful.failure, None
        if self.stateful.get(OF_CALL) is stateful:
            self.stateful[OF_CALL] = None
        cache = self._signatures.setdefault(key, SignatureCache(arguments, family_key(key)))
        cache.skip_reason, cache.pending_traces = reason, []
        self._call_stub = None
        if self.fullgraph:
            raise Unsupported(f"a call of {self.function!r} cannot be compiled as one graph: {reason}")
        self._divide(frames, reason)

    def _stateful_stub(self, stateful: StatefulFunction, arguments: list[Any], args: tuple
                       ) -> Callable[..., Any] | None:
        """Return the call stub of a function with state: it checks what selects the state; None if there is none."""
        if len(arguments) != len(args) or any(cache.skip_reason is not None for cache in self._signatures.values()):
            return None
        kinds = [x.__class__ for x in args]
        if not stateful.of_call and any(argument_signature(x)[0] == "object" for x in args):
            return None

        def call_stateful(*args: Any) -> Any:
            if [x.__class__ for x in args] != kinds:
                return GUARDS_FAILED
            result = stateful(args, {})
            if stateful.failure is not None:
                arguments, tree = tree_flatten((args, {}))
                self._note_failure(stateful, signature_of(arguments, tree), arguments)
            return result

        return call_stateful

    def _add_state(self, places: Sequence[Place], args: tuple, kwargs: dict[str, Any]) -> bool:
        """Make places that the function changes inputs and results from the next call on; whether that is possible."""
        arguments, tree = tree_flatten((args, kwargs))
        key = objects_of(signature_of(arguments, tree))
        known = self.stateful.get(key)
        if self.check or len(self.stateful) >= MAX_STATEFUL or (known is not None and known.matches(arguments)):
            return False
        self.stateful[key] = StatefulFunction(self.function, places, self._compile_with_state,
                                              SignatureCache(arguments).object_refs, is_whole=self._part_of is None)
        return True

    def _add_structures(self) -> StatefulFunction | None:
        """Make what containers and objects among arguments and results hold inputs and results; None if impossible."""
        if self.check or self.has_state or self._part_of is not None or OF_CALL in self.stateful:
            return self.stateful.get(OF_CALL)
        made = self.stateful[OF_CALL] = StatefulFunction(self.function, (), self._compile_with_state, of_call=True)
        return made

    @abstractmethod
    def _compile_with_state(self, function: WithState, stateful: StatefulFunction) -> Any:
        """Compile a function of its state."""


__all__ = ["OF_CALL", "CallsWithState"]
