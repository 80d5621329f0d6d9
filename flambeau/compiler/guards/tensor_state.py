"""What of optimizers and of tensors from outside decides what a function does, apart from their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...engine.nodes.leaf_hooks import LeafHooks


class TensorFlags:
    """Says whether tensors have the hooks that they have now, and require gradients as they do now.

    Attributes:
        hooked: whether any of them has hooks.
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        self._before = [(t, t._requires_grad, _hooks_of(t)) for t in tensors]
        self.hooked = any(len(hooks) > 1 for _, _, hooks in self._before)

    def __call__(self, all_of_it: bool = False) -> bool:
        if all_of_it and not all(t._requires_grad is flag for t, flag, _ in self._before):
            return False
        return not (self.hooked or LeafHooks.found) or all(_hooks_of(t) == hooks for t, _, hooks in self._before)


def _hooks_of(tensor: Any) -> tuple[Any, ...]:
    """The hooks of a leaf and of the node that accumulates its gradient, in two parts or more."""
    found = *(tensor._hooks or {}).values(), None, *(tensor._post_accumulate_hooks or {}).values()
    node = None if tensor._accumulator is None else tensor._accumulator()
    if node is None or node.extra is None:
        return found
    extra = node.extra
    return *found, *(hook for hooks in (extra.pre_hooks, extra.post_hooks, *(extra.tensor_hooks or {}).values())
                     for hook in (hooks or {}).values())


def is_hooked(tensor: Any) -> bool:
    """Whether a leaf has hooks."""
    return tensor._requires_grad and len(_hooks_of(tensor)) > 1


def are_hooked(*tensors: Any) -> bool:
    """Whether one of these leaves has hooks."""
    return any(map(is_hooked, tensors))


def optimizer_guard(groups: list[tuple[Any, dict[str, Any]]], without: Sequence[Any]) -> Callable[[], bool]:
    """A function that says whether optimizers have the groups, flags, parameters and states that they have now.

    Args:
        without: parameters that had no gradient in the step, and must have none.
    """
    found, params_without_grad = [], {id(p) for p in without}
    for optimizer, group in groups:
        flags = {key: value for key, value in group.items() if value is None or isinstance(value, (bool, str)) or (
            isinstance(value, tuple) and not all(type(x) in (float, int) for x in value))}
        params = group["params"]
        states = [(p, optimizer.state.get(p), p._requires_grad, id(p) in params_without_grad) for p in params]
        there = optimizer.param_groups
        at = next((i for i, each in enumerate(there) if each is group), len(there))
        found.append((optimizer, len(there), at, group, [*flags.items()], states))

    def is_same() -> bool:
        for optimizer, count, at, group, flags, states in found:
            params, there = group["params"], optimizer.param_groups
            if len(there) != count or at == count or there[at] is not group or len(params) != len(states):
                return False
            for key, value in flags:
                if group[key] is not value:
                    return False
            state = optimizer.state
            for now, (p, known, requires_grad, without) in zip(params, states, strict=True):
                if now is not p or state.get(p) is not known or p._requires_grad is not requires_grad or (
                        without and p._grad is not None):
                    return False
        return True

    return is_same


def state_entries(groups: list[tuple[Any, dict[str, Any]]]) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """What optimizers remember, entry by entry: where it is, under which name, and what it is."""
    for optimizer, group in groups:
        for p in group["params"]:
            state = optimizer.state.get(p) or {}
            for key, value in state.items():
                yield state, key, value


def state_objects(optimizer: Any, group: dict[str, Any]) -> dict[Any, list[Any]]:
    """What an optimizer remembers of each of a group's parameters: the objects, in their order."""
    found: dict[Any, list[Any]] = {}
    for p in group["params"]:
        state = optimizer.state.get(p)
        if state:
            found[p] = [state, *state, *state.values()]
    return found


__all__ = ["TensorFlags", "are_hooked", "is_hooked", "optimizer_guard", "state_entries", "state_objects"]
