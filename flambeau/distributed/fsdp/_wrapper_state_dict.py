"""State dicts of a `FullyShardedDataParallel` and of its optimizer: whole tensors, or distributed ones."""

from __future__ import annotations

from typing import Any

from ..._tensor import Tensor
from ..groups.queries import get_rank
from ..tensor import DTensor, distribute_tensor
from .api import StateDictSettings, StateDictType

PREFIX = "_fsdp_wrapped_module."


def clean(name: str) -> str:
    """A name without those of wrappers."""
    return name.replace(PREFIX, "")


def placed_as(value: Any, like: DTensor) -> Any:
    """A whole tensor as a distributed one; any other value as it is."""
    if isinstance(value, Tensor) and not isinstance(value, DTensor) and tuple(value.shape) == tuple(like.shape):
        return distribute_tensor(value.detach(), like.device_mesh, like.placements, src_data_rank=None)
    return value


def _whole(value: Any, settings: StateDictSettings) -> Any:
    if not isinstance(value, DTensor):
        return value
    return value.full_tensor() if settings.state_dict_type is StateDictType.FULL_STATE_DICT else value


def after_state_dict(module: Any, state_dict: dict[str, Any], prefix: str, metadata: Any) -> None:
    """The hook of a wrapper: names are those of the module that it wraps, tensors are of the kind that is set."""
    settings = module._state_dict_settings
    for key in list(state_dict):
        if not key.startswith(prefix):
            continue
        value = state_dict.pop(key)
        if isinstance(value, Tensor):
            value = _whole(value.detach(), settings)
        if key.startswith(prefix + PREFIX):
            key = prefix + key[len(prefix) + len(PREFIX):]
        if _is_kept(settings.state_dict_config):
            state_dict[key] = value


def _is_kept(config: Any) -> bool:
    return not getattr(config, "rank0_only", False) or get_rank() == 0


def before_load(module: Any, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
    """The hook of a wrapper: names are those of parameters that are wrapped, and whole tensors become parts."""
    for key in [key for key in state_dict if key.startswith(prefix) and not key.startswith(prefix + PREFIX)]:
        state_dict[prefix + PREFIX + key[len(prefix):]] = state_dict.pop(key)
    for name, param in module._fsdp_wrapped_module.named_parameters(remove_duplicate=False):
        key = prefix + PREFIX + name
        if key in state_dict and isinstance(param, DTensor):
            state_dict[key] = placed_as(state_dict[key], param)


def optimizer_state(model: Any, optimizer: Any, given: dict[str, Any] | None,
                    settings: StateDictSettings) -> dict[str, Any]:
    """An optimizer's state dict by names of parameters."""
    source = optimizer.state_dict() if given is None else given
    names = {id(p): clean(name) for name, p in model.named_parameters()}
    order = [p for group in optimizer.param_groups for p in group["params"]]
    by_number = {i: names[id(p)] for i, p in enumerate(order)}
    state = {by_number[number]: {key: _whole(value, settings) for key, value in values.items()}
             for number, values in source["state"].items()}
    groups = [{**group, "params": [by_number[number] for number in group["params"]]}
              for group in source["param_groups"]]
    if not _is_kept(settings.optim_state_dict_config):
        return {}
    return {"state": state, "param_groups": groups}


def optimizer_state_to_load(model: Any, optimizer: Any, given: dict[str, Any]) -> dict[str, Any]:
    """An optimizer's state dict by numbers of parameters, of one by names."""
    params = {clean(name): p for name, p in model.named_parameters()}
    order = [p for group in optimizer.param_groups for p in group["params"]]
    number = {id(p): i for i, p in enumerate(order)}
    numbers = {name: number[id(p)] for name, p in params.items() if id(p) in number}
    state = {numbers[name]: {key: placed_as(value, params[name]) if isinstance(params[name], DTensor) else value
                             for key, value in values.items()} for name, values in given["state"].items()}
    groups = [{**group, "params": [numbers[name] for name in group["params"]]} for group in given["param_groups"]]
    return {"state": state, "param_groups": groups}


__all__ = ["PREFIX", "after_state_dict", "before_load", "clean", "optimizer_state", "optimizer_state_to_load"]
