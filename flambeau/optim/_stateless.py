"""`swap_in_optimizer_params_and_state`: an optimizer with other parameters and state for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._tensor import Tensor
from .optimizer import Optimizer

_NAME = "swap_in_optimizer_params_and_state"


def _checked_state(state: Any) -> dict[Any, Any]:
    if not isinstance(state, dict):
        raise RuntimeError(f"{_NAME} requires swapin_optim_state['state'] to be a dict mapping packed parameter ids to "
                           f"per-param state dicts, got {type(state).__name__}.")
    if any(isinstance(key, Tensor) for key in state):
        raise RuntimeError(f"{_NAME} requires optimizer.state_dict()-style state keyed by packed parameter ids.")
    if any(isinstance(key, int) and not isinstance(value, dict) for key, value in state.items()):
        raise RuntimeError(f"{_NAME} requires per-parameter optimizer state entries to be dictionaries.")
    return state


def _checked_group(i: int, group: dict[str, Any], new: Any) -> list[int]:
    """The packed parameter ids of a new group that matches the optimizer's group."""
    if not isinstance(new, dict):
        raise RuntimeError(f"{_NAME} requires each optimizer param group to be a dictionary.")
    ids = new.get("params")
    if not isinstance(ids, list) or not all(isinstance(each, int) for each in ids):
        raise RuntimeError(f"{_NAME} requires optimizer.state_dict()-style param_groups[*]['params'] entries keyed by "
                           "packed parameter ids.")
    if len(group["params"]) != len(ids):
        raise RuntimeError(f"swapin_optim_state param group {i} has a different number of params than the live "
                           "optimizer param group.")
    only_new = [key for key in new if key not in group]
    only_live = [key for key in group if key not in new]
    if only_new or only_live:
        raise RuntimeError(f"{_NAME} requires optimizer.state_dict()-style param group keys to exactly match the live "
                           f"optimizer group keys for group {i}. Keys only in swap-in: {only_new}. "
                           f"Keys only in live: {only_live}.")
    return ids


def _prepared(optimizer: Optimizer, parameters: dict[str, Tensor],
              optim_state: Any) -> tuple[dict[Any, Any], list[tuple[dict[str, Any], dict[str, Any], list[Tensor]]]]:
    """The new state by packed ids, and (group, new group, new parameters) for each group."""
    if not optimizer.state:
        raise RuntimeError(f"{_NAME} requires initialized optimizer state.")
    if not isinstance(optim_state, dict):
        raise RuntimeError(f"{_NAME} requires a DCP-style optimizer state_dict.")
    state = _checked_state(optim_state.get("state"))
    groups = optim_state.get("param_groups")
    if not isinstance(groups, list):
        raise RuntimeError(f"{_NAME} requires swapin_optim_state['param_groups'] to be a list of param-group dicts, "
                           f"got {type(groups).__name__}.")
    if len(groups) != len(optimizer.param_groups):
        raise RuntimeError("swapin_optim_state has a different number of parameter groups than the live optimizer.")
    tensors, start, seen, swaps = list(parameters.values()), 0, set(), []
    for i, (group, new) in enumerate(zip(optimizer.param_groups, groups, strict=True)):
        ids = _checked_group(i, group, new)
        seen.update(ids)
        if start + len(ids) > len(tensors):
            raise RuntimeError(f"{_NAME} requires the explicit parameter state to match optimizer.param_groups "
                               "ordering.")
        swaps.append((group, new, tensors[start:start + len(ids)]))
        start += len(ids)
    extra = [key for key in state if key not in seen]
    if extra:
        raise RuntimeError(f"{_NAME} requires swapin_optim_state['state'] to be keyed only by packed parameter ids "
                           f"from param_groups[*]['params']; got extra keys {extra!r}.")
    return state, swaps


@contextmanager
def swap_in_optimizer_params_and_state(optimizer: Optimizer, swapin_parameters: dict[str, Tensor],
                                       swapin_optim_state: dict[str, Any]) -> Iterator[None]:
    """A block in which an optimizer has the given parameters and state; afterwards it has its own again.

    Args:
        optimizer: an optimizer with state.
        swapin_parameters: tensors in the order of the optimizer's parameters.
        swapin_optim_state: as `optimizer.state_dict()`; its tensors are updated in place.

    Raises:
        RuntimeError: the optimizer has no state, or the arguments do not match it.

    >>> import flambeau as torch
    >>> p = torch.nn.Parameter(torch.zeros(1))
    >>> optimizer = torch.optim.SGD([p], lr=1.0, momentum=0.9)
    >>> p.grad = torch.ones(1)
    >>> optimizer.step()
    >>> other = torch.zeros(1, requires_grad=True)
    >>> other.grad = torch.ones(1)
    >>> with torch.optim.swap_in_optimizer_params_and_state(optimizer, {"p": other}, optimizer.state_dict()):
    ...     optimizer.step()
    >>> p.item(), round(other.item(), 2)
    (-1.0, -1.9)
    """
    state, swaps = _prepared(optimizer, swapin_parameters, swapin_optim_state)
    own_state, own_groups = optimizer.state, [dict(group) for group in optimizer.param_groups]
    try:
        new_state: defaultdict[Tensor, Any] = defaultdict(dict)
        for group, new, tensors in swaps:
            group["params"] = tensors
            group.update((key, value) for key, value in new.items() if key != "params")
            for tensor, key in zip(tensors, new["params"], strict=True):
                new_state[tensor] = dict(state.get(key, {}))
        optimizer.state = new_state
        yield
    finally:
        for group, own in zip(optimizer.param_groups, own_groups, strict=True):
            group.clear()
            group.update(own)
        optimizer.state = own_state
