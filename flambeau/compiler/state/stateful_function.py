"""`StatefulFunction`: a compiled function that assigns Python state, as programs whose inputs and results it is.

A program computes tensors only. Which places a function assigns is known once a traced call has changed one that
guards are on. From then on the values of these places are arguments and results of what is traced (`WithState`): they
have the guards of arguments, numbers among them are symbols of templates, and each replay assigns the results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...modes import module_changes
from .places import Place
from .structure import Flattened, NoStructure, rebuilt
from .with_call import Call, WithCall, active_call
from .with_state import RETURNED, WithState

#: structures of the state that are compiled: lists that grow have another one in each call
MAX_STRUCTURES = 8
#: how often further places may be found
MAX_EXTENSIONS = 8


class StatefulFunction:
    """A compiled function with its state.

    Args:
        function: the function.
        places: where its state is.
        compile_function: compiles a `WithState`: takes it and this object.
        object_refs: (position, weak reference) of arguments that are keyed by identity.
        of_call: whether containers and objects among the arguments and results are structures, too (`WithCall`).
        is_whole: whether they may be, because the function is no part of another.

    Attributes:
        compiled: the compiled functions, by the structure of the state at the beginning of a call.
        failure: the stack and the reason of a call that cannot be compiled as a whole, until it is read.
    """

    def __init__(self, function: Callable[..., Any], places: Sequence[Place],
                 compile_function: Callable[[WithState, StatefulFunction], Any],
                 object_refs: Sequence[tuple[int, Callable[[], Any]]] = (), of_call: bool = False,
                 is_whole: bool = True) -> None:
        self.function, self.places, self.of_call = function, [*places], of_call
        self._is_whole = is_whole
        self._compile_function, self._object_refs = compile_function, object_refs
        self._found: list[Place] = []
        self._num_extensions = 0
        self.compiled: dict[tuple[Any, ...], Any] = {}
        self.failure: tuple[Sequence[Any], str] | None = None
        self._of_modules = any(each.is_of_module for each in places)

    def matches(self, arguments: Sequence[Any]) -> bool:
        """Whether the arguments that are keyed by identity are the same objects."""
        return all(ref() is arguments[i] for i, ref in self._object_refs)

    def extend(self, places: Sequence[Place]) -> bool:
        """Add places that a function changes, after the call; return whether there are new ones."""
        known = {each.identity for each in (*self.places, *self._found)}
        new = [each for each in places if each.identity not in known]
        if not new or self._num_extensions >= MAX_EXTENSIONS:
            return False
        self._found += new
        return True

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call the function; `failure` tells afterwards whether it cannot be compiled."""
        places = self.places
        values = [each.read() for each in places]
        try:
            before = Flattened([*values, args, kwargs] if self.of_call else values, None, self.of_call)
        except NoStructure as error:
            self.failure = (), f"{error}, among the state that the function changes"
            return self.function(*args, **kwargs)
        made = self.compiled.get(before.structure)
        if made is None:
            if len(self.compiled) >= MAX_STRUCTURES:
                self.failure = (), "a list, dict or object has another length in each call"
                return self.function(*args, **kwargs)
            kind = WithCall if self.of_call else WithState
            with_state = kind(self.function, places, before.structure, len(before.leaves))
            made = self.compiled[before.structure] = self._compile_function(with_state, self)
        result = (self._call_of if self.of_call else self._call)(made, before, args, kwargs)
        if self.failure is not None and self.failure[1].startswith(RETURNED) and self._is_whole and not self.of_call:
            self.failure, self.of_call, self.compiled = None, True, {}
        if self._found:
            self._num_extensions += 1
            self.places, self._found, self.compiled = [*self.places, *self._found], [], {}
            self._of_modules = any(each.is_of_module for each in self.places)
        return result

    def _call(self, made: Any, before: Flattened, args: tuple, kwargs: dict[str, Any]) -> Any:
        with_state = made.function
        found = made(*before.leaves, *args, **kwargs)
        result, leaves, name = found
        if found is not with_state.last:
            self._assign(before, leaves, with_state.structures[name], made)
        with_state.last = None
        return result

    def _call_of(self, made: Any, before: Flattened, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call a function of the structure of its arguments."""
        call = Call(args, kwargs, before.leaves)
        token = active_call.set(call)
        try:
            _, leaves, name = made(*before.leaves)
        finally:
            active_call.reset(token)
        if call.has_run:
            return call.result
        *state, _, _, result = rebuilt(made.function.structures[name], leaves, before.containers)
        self._write(state, made)
        return result

    def _assign(self, before: Flattened, leaves: Sequence[Any], structure: tuple[Any, ...], made: Any) -> None:
        """Assign the state that a program computed."""
        if structure is before.structure or structure == before.structure:
            if all(map(_is, leaves, before.leaves)):
                return
            if not before.containers and len(leaves) == len(structure):  # no containers
                for place, old, new in zip(self.places, before.leaves, leaves, strict=True):
                    if new is not old:
                        place.write(new)
                self._note_assignment(made)
                return
        self._write(rebuilt(structure, leaves, before.containers), made)

    def _write(self, values: Sequence[Any], made: Any) -> None:
        for place, value in zip(self.places, values, strict=True):
            if value is not place.read():
                place.write(value)
        self._note_assignment(made)

    def _note_assignment(self, made: Any) -> None:
        """Let others check their guards on modules; programs of this function have none on what was assigned."""
        if self._of_modules:
            now = module_changes[0]
            module_changes[0] = now + 1
            for entry in made.all_entries():
                if entry.module_version == now:
                    entry.module_version = now + 1


def _is(a: Any, b: Any) -> bool:
    return a is b


__all__ = ["StatefulFunction"]
