"""`torch.distributed.checkpoint.state_dict` in one process: state dicts of models, their options.

https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._tensor import Tensor
from ..nn import Module

__all__ = ["StateDictOptions", "get_model_state_dict", "set_model_state_dict"]

_NO_GROUP = "Default process group has not been initialized, please make sure to call init_process_group."


@dataclass
class StateDictOptions:
    """Options of `get_model_state_dict` and `set_model_state_dict`.

    Args:
        full_state_dict: gather what other processes have; in one process the state dict is whole. What a full state
            dict lacks keeps its value. A model with meta tensors among others takes its tensors over.
        cpu_offload: move to the CPU.
        ignore_frozen_params: leave out parameters that do not require grad.
        keep_submodule_prefixes: whether names in the state dict of submodules begin with the submodule's name.
        strict: whether missing and unexpected names are errors.
        broadcast_from_rank0: send from the first process to the others, which needs process groups.
        flatten_optimizer_state_dict: without effect on models.
        dsd_fqn_modifiers: without effect.

    Raises:
        ValueError: `broadcast_from_rank0` without `full_state_dict` (PyTorch's text), when the options are used.

    >>> from flambeau.distributed.state_dict import StateDictOptions
    >>> StateDictOptions(strict=False).strict
    False
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def get_model_state_dict(model: Module, *, submodules: Iterable[Module] | None = None,
                         options: StateDictOptions | None = None) -> dict[str, Any]:
    """The state dict of a model.

    Args:
        model: the model.
        submodules: modules in it; only their entries are returned.
        options: which entries, under which names.

    Raises:
        ValueError: contradictory options (PyTorch's text).

    >>> import flambeau as torch
    >>> from flambeau.distributed.state_dict import get_model_state_dict
    >>> list(get_model_state_dict(torch.nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    options = _checked(options)
    state = model.state_dict()
    if options.ignore_frozen_params:
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:
                state.pop(name, None)
    if submodules:
        chosen = set(submodules)
        prefixes = [f"{name}." for name, module in model.named_modules() if module in chosen]
        kept = {}
        for key, value in state.items():
            prefix = next((each for each in prefixes if key.startswith(each)), None)
            if prefix is not None:
                kept[key if options.keep_submodule_prefixes else key[len(prefix):]] = value
        return kept
    return dict(state) if options.full_state_dict or options.cpu_offload else state


def set_model_state_dict(model: Module, model_state_dict: Mapping[Any, Any], *,
                         options: StateDictOptions | None = None) -> Any:
    """Load a state dict into a model; the missing and unexpected names.

    Args:
        model: the model.
        model_state_dict: its state dict.
        options: whether it may lack entries.

    Raises:
        ValueError: contradictory options, or the state must come from other processes: with `broadcast_from_rank0`, or
            a full state dict for a model of meta tensors only (PyTorch's texts).
        RuntimeError: missing or unexpected names, if `options.strict`.

    >>> import flambeau as torch
    >>> from flambeau.distributed.state_dict import set_model_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> set_model_state_dict(model, model.state_dict())
    <All keys matched successfully>
    """
    options = _checked(options)
    own = model.state_dict()
    devices = {each.device.type for each in own.values() if isinstance(each, Tensor)} if options.full_state_dict else ()
    if options.broadcast_from_rank0 or not model_state_dict or devices == {"meta"}:
        raise ValueError(_NO_GROUP)
    state = dict(model_state_dict)
    if options.full_state_dict:
        state = {**{key: value for key, value in own.items() if key not in state}, **state}
    return model.load_state_dict(state, strict=options.strict, assign="meta" in devices)
