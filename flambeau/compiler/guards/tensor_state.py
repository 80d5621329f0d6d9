"""Guards on optimizers (groups, options, state) and on flags and hooks of tensors from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...engine.nodes.leaf_hooks import LeafHooks


class TensorFlags:
    """A guard that tensors have the same hooks and `requires_grad` as when it was made.

    Attributes:
        hooked: whether any of the tensors has hooks.
    """

    def __init__(self, tensors: Sequence[Any]) -> None:
        self._expected = [(t, t._requires_grad, _hooks_of(t)) for t in tensors]
        self.hooked = any(len(hooks) > 1 for _, _, hooks in self._expected)

    def __call__(self, check_requires_grad: bool = False) -> bool:
        if check_requires_grad and not all(t._requires_grad is flag for t, flag, _ in self._expected):
            return False
        return not (self.hooked or LeafHooks.registered) or all(_hooks_of(t) == hooks for t, _, hooks in self._expected)


def _hooks_of(tensor: Any) -> tuple[Any, ...]:
    """Return the hooks of a leaf and of its AccumulateGrad node, with None between its own two kinds."""
    hooks = *(tensor._hooks or {}).values(), None, *(tensor._post_accumulate_hooks or {}).values()
    node = None if tensor._accumulator is None else tensor._accumulator()
    if node is None or node.extra is None:
        return hooks
    extra = node.extra
    return *hooks, *(hook for group in (extra.pre_hooks, extra.post_hooks, *(extra.tensor_hooks or {}).values())
                     for hook in (group or {}).values())


def is_hooked(tensor: Any) -> bool:
    """Whether a leaf that requires grad has hooks."""
    return tensor._requires_grad and len(_hooks_of(tensor)) > 1


def are_hooked(*tensors: Any) -> bool:
    """Whether any of the leaves has hooks."""
    return any(map(is_hooked, tensors))


def optimizer_guard(groups: list[tuple[Any, dict[str, Any]]], params_without_grad: Sequence[Any]
                    ) -> Callable[[], bool]:
    """Return a guard that optimizers have the groups, options, parameters and state objects that they have now.

    Args:
        groups: optimizers and their param groups.
        params_without_grad: parameters whose `.grad` must be None.
    """
    expected, without_grad = [], {id(p) for p in params_without_grad}
    for optimizer, group in groups:
        flags = {key: value for key, value in group.items() if value is None or isinstance(value, (bool, str)) or (
            isinstance(value, tuple) and not all(type(x) in (float, int) for x in value))}
        params = group["params"]
        states = [(p, optimizer.state.get(p), p._requires_grad, id(p) in without_grad) for p in params]
        all_groups = optimizer.param_groups
        at = next((i for i, each in enumerate(all_groups) if each is group), len(all_groups))
        expected.append((optimizer, len(all_groups), at, group, [*flags.items()], states))

    def holds() -> bool:
        for optimizer, count, at, group, flags, states in expected:
            params, all_groups = group["params"], optimizer.param_groups
            if len(all_groups) != count or at == count or all_groups[at] is not group or len(params) != len(states):
                return False
            for key, value in flags:
                if group[key] is not value:
                    return False
            state = optimizer.state
            for param, (p, param_state, requires_grad, has_no_grad) in zip(params, states, strict=True):
                if param is not p or state.get(p) is not param_state or p._requires_grad is not requires_grad or (
                        has_no_grad and p._grad is not None):
                    return False
        return True

    return holds


def state_entries(groups: list[tuple[Any, dict[str, Any]]]) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Yield the entries of optimizers' state: (state dict of a parameter, key, value)."""
    for optimizer, group in groups:
        for p in group["params"]:
            state = optimizer.state.get(p) or {}
            for key, value in state.items():
                yield state, key, value


def state_objects(optimizer: Any, group: dict[str, Any]) -> dict[Any, list[Any]]:
    """Return, by parameter of a group, the objects of its state: the dict, its keys, its values."""
    objects: dict[Any, list[Any]] = {}
    for p in group["params"]:
        state = optimizer.state.get(p)
        if state:
            objects[p] = [state, *state, *state.values()]
    return objects


__all__ = ["TensorFlags", "are_hooked", "is_hooked", "optimizer_guard", "state_entries", "state_objects"]
