"""The functions of `FullyShardedDataParallel` for optimizers' state dicts from before `optim_state_dict`."""

from __future__ import annotations

from enum import Enum, auto
from types import SimpleNamespace
from typing import Any

from ..object_collectives import broadcast_object_list
from ._wrapper_state_dict import clean, optimizer_state, optimizer_state_to_load
from .api import (
    FullOptimStateDictConfig,
    FullStateDictConfig,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    StateDictSettings,
    StateDictType,
)


class OptimStateKeyType(Enum):
    """Whether the keys of an optimizer's state dict are names or numbers of parameters."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


def full_optim_state_dict(model: Any, optim: Any, optim_input: Any = None, rank0_only: bool = True,
                          group: Any = None) -> dict[str, Any]:
    """The state dict of an optimizer by names, of whole tensors.

    Args:
        model: the module.
        optim: the optimizer.
        optim_input: without effect.
        rank0_only: whether other processes get an empty dict.
        group: without effect.
    """
    config = FullOptimStateDictConfig(rank0_only=rank0_only)
    settings = StateDictSettings(StateDictType.FULL_STATE_DICT, FullStateDictConfig(), config)
    return optimizer_state(model, optim, None, settings)


def sharded_optim_state_dict(model: Any, optim: Any, group: Any = None) -> dict[str, Any]:
    """The state dict of an optimizer by names, of distributed tensors.

    Args:
        model: the module.
        optim: the optimizer.
        group: without effect.
    """
    settings = StateDictSettings(StateDictType.SHARDED_STATE_DICT, ShardedStateDictConfig(),
                                 ShardedOptimStateDictConfig())
    return optimizer_state(model, optim, None, settings)


def _optimizer_like(model: Any, optim_input: Any, optim: Any) -> Any:
    """What has the parameter groups: the optimizer, what it was made of, or all parameters."""
    if optim is not None:
        return optim
    given = list(model.parameters() if optim_input is None else optim_input)
    groups = given if given and isinstance(given[0], dict) else [{"params": given}]
    return SimpleNamespace(param_groups=[{**each, "params": list(each["params"])} for each in groups])


def shard_full_optim_state_dict(full_optim_state_dict: dict[str, Any], model: Any, optim_input: Any = None,
                                optim: Any = None) -> dict[str, Any]:
    """The argument of `optim.load_state_dict` of what `full_optim_state_dict` returned, in all processes.

    Args:
        full_optim_state_dict: whole tensors by names.
        model: the module.
        optim_input: what the optimizer was made of; default: the module's parameters.
        optim: the optimizer, instead of `optim_input`.
    """
    return optimizer_state_to_load(model, _optimizer_like(model, optim_input, optim), full_optim_state_dict)


def scatter_full_optim_state_dict(full_optim_state_dict: dict[str, Any] | None, model: Any, optim_input: Any = None,
                                  optim: Any = None, group: Any = None) -> dict[str, Any]:
    """`shard_full_optim_state_dict` of a state dict that only the first process has.

    Args:
        full_optim_state_dict: whole tensors by names; without effect in other processes.
        model: the module.
        optim_input: what the optimizer was made of; default: the module's parameters.
        optim: the optimizer, instead of `optim_input`.
        group: the processes; all if None.
    """
    box: list[Any] = [full_optim_state_dict]
    broadcast_object_list(box, group=group, group_src=0)
    return shard_full_optim_state_dict(box[0], model, optim_input, optim)


def flatten_sharded_optim_state_dict(sharded_optim_state_dict: dict[str, Any], model: Any,
                                     optim: Any) -> dict[str, Any]:
    """The argument of `optim.load_state_dict` of what `sharded_optim_state_dict` returned.

    Args:
        sharded_optim_state_dict: distributed tensors by names.
        model: the module.
        optim: the optimizer.
    """
    return optimizer_state_to_load(model, optim, sharded_optim_state_dict)


def rekey_optim_state_dict(optim_state_dict: dict[str, Any], optim_state_key_type: OptimStateKeyType, model: Any,
                           optim_input: Any = None, optim: Any = None) -> dict[str, Any]:
    """A state dict with numbers of parameters in the place of their names, or the other way round.

    Args:
        optim_state_dict: the state dict.
        optim_state_key_type: what it gets.
        model: the module, wrapped or not.
        optim_input: what the optimizer was made of; default: the module's parameters.
        optim: the optimizer, instead of `optim_input`.
    """
    names = {id(p): clean(name) for name, p in model.named_parameters()}
    order = [names[id(p)] for group in _optimizer_like(model, optim_input, optim).param_groups for p in group["params"]]
    to_names = optim_state_key_type is OptimStateKeyType.PARAM_NAME
    keys: dict[Any, Any] = dict(enumerate(order)) if to_names else {name: i for i, name in enumerate(order)}
    return {"state": {keys[key]: value for key, value in optim_state_dict["state"].items()},
            "param_groups": [{**group, "params": [keys[key] for key in group["params"]]}
                             for group in optim_state_dict["param_groups"]]}


__all__ = ["OptimStateKeyType", "flatten_sharded_optim_state_dict", "full_optim_state_dict", "rekey_optim_state_dict",
           "scatter_full_optim_state_dict", "shard_full_optim_state_dict", "sharded_optim_state_dict"]
