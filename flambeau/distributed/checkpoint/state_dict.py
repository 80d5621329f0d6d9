"""`torch.distributed.checkpoint.state_dict`: state dicts of models and optimizers, whole or in parts, by plain names.

https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..._tensor import Tensor
from ...c10d.world import default_group
from ...engine.grad_mode import no_grad
from ...nn import Module
from ...nn.modules.base.state_dict import _IncompatibleKeys
from ...optim.optimizer import Optimizer
from .._state_dict_utils import (
    _broadcast_state_dict,
    _distribute_state_dict,
    _flatten_state_dict,
    _gather_state_dict,
    _offload_state_dict_to_cpu,
    _ranks_of_full,
    _unflatten_state_dict,
)
from ..groups.queries import get_rank
from .states.optimizer_state import flattened, initialize_state, named_state, part_of, unflattened
from .states.wrapped_names import plain_name, states

FQNS_T = set[str]
PrimitiveType = Tensor | int | float | str
ValueType = Any
DictValueType = dict[str, ValueType]
ListDictValueType = list[DictValueType]
OptimizerStateType = dict[str, Any]
_Optimizers = Optimizer | Iterable[Optimizer]
_init_optim_state = initialize_state  # which pytorch/examples imports

__all__ = ["FQNS_T", "DictValueType", "ListDictValueType", "OptimizerStateType", "PrimitiveType", "StateDictOptions",
           "ValueType", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "set_model_state_dict",
           "set_optimizer_state_dict", "set_state_dict"]


@dataclass
class StateDictOptions:
    """Options of the functions of this module.

    Args:
        full_state_dict: whole tensors in place of distributed ones. What a full state dict lacks keeps its value. A
            model with meta tensors takes the tensors over.
        cpu_offload: move to the CPU; a full state dict is at rank 0 only then, {} at others.
        ignore_frozen_params: leave out parameters that do not require grad.
        keep_submodule_prefixes: whether names in the state dict of submodules begin with the submodule's name.
        strict: whether missing and unexpected names are errors.
        broadcast_from_rank0: the full state dict is at rank 0, which sends it to the others.
        flatten_optimizer_state_dict: state dicts of optimizers are one dict, `state.NAME.KEY`, in which parameters may
            change groups, and processes have different ones.
        dsd_fqn_modifiers: the method of modules that maps names of children to attributes that take their place.

    Raises:
        ValueError: `broadcast_from_rank0` without `full_state_dict` (PyTorch's text), when the options are used.

    >>> from flambeau.distributed.checkpoint.state_dict import StateDictOptions
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


#: methods that `_patch_model_state_dict` and `_patch_optimizer_state_dict` have put into objects
_patched: set[Callable[..., Any]] = set()


def _method(obj: Any, name: str) -> Callable[..., Any]:
    """The class's own method where the object's is one that calls this module."""
    found = getattr(obj, name)
    return functools.partial(getattr(type(obj), name), obj) if found in _patched else found


def _checked(options: StateDictOptions | None, submodules: Iterable[Module] | None = None) -> StateDictOptions:
    if submodules:
        warnings.warn("Getting submodules only model/optim state_dict is deprecated and will be removed in 2.5. This "
                      "feature can be achieved by manually filtering out the state_dict returned from get_state_dict.",
                      FutureWarning, stacklevel=3)
    options = options or StateDictOptions()
    if options.broadcast_from_rank0 and not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True.")
    return options


def _tuple_of(optimizers: _Optimizers) -> tuple[Optimizer, ...]:
    found = (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)
    if not found:
        raise RuntimeError("Optimizers are not passed in but optim_only is set to True.")
    return found


def _whole_or_moved(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    if options.full_state_dict:
        return _gather_state_dict(state, cpu_offload=options.cpu_offload,
                                  ranks_only=_ranks_of_full(options.cpu_offload))
    return _offload_state_dict_to_cpu(state) if options.cpu_offload else state


def _check_model_state(state: Mapping[Any, Any], options: StateDictOptions, chosen: bool = False) -> None:
    """Check that a state dict of a model is not empty.

    Raises:
        RuntimeError: it is (PyTorch's text).
    """
    may_be_empty = (chosen or options.ignore_frozen_params or not options.strict or options.broadcast_from_rank0
                    or (options.cpu_offload and options.full_state_dict))
    if not state and not may_be_empty:
        raise RuntimeError("The option indicates that model state_dict is required to save or load, but model "
                           f"state_dict is empty.rank = dist.get_rank()={get_rank()}.")


def _check_optimizer_state(state: Mapping[str, Any], options: StateDictOptions) -> None:
    """Check that a state dict of optimizers is not empty.

    Raises:
        RuntimeError: it is (PyTorch's text).
    """
    if not state and not (options.cpu_offload and options.full_state_dict) and not options.broadcast_from_rank0:
        raise RuntimeError("The option indicates that model state_dict is required to save, or load but optim "
                           f"state_dict is empty. {state}")


@no_grad()
def get_model_state_dict(model: Module, *, submodules: Iterable[Module] | None = None,
                         options: StateDictOptions | None = None) -> dict[str, Any]:
    """The state dict of a model, by names without those of wrappers.

    Args:
        model: the model.
        submodules: modules in it; only their entries are returned.
        options: which entries, under which names, whole or in parts.

    Raises:
        ValueError: contradictory options (PyTorch's text).

    >>> import flambeau as torch
    >>> from flambeau.distributed.checkpoint.state_dict import get_model_state_dict
    >>> list(get_model_state_dict(torch.nn.Linear(2, 1)))
    ['weight', 'bias']
    """
    options = _checked(options, submodules)
    state = _method(model, "state_dict")()
    for key in list(state):
        name = plain_name(model, key)
        if name != key:
            state[name] = state.pop(key)
    if submodules:
        chosen = set(submodules)
        prefixes = [f"{plain_name(model, name)}." for name, module in model.named_modules() if module in chosen]
        kept = {}
        for key, value in state.items():
            prefix = next((each for each in prefixes if key.startswith(each)), None)
            if prefix is not None:
                kept[key if options.keep_submodule_prefixes else key[len(prefix):]] = value
        state = kept
    if options.ignore_frozen_params:
        for key, parameter in model.named_parameters():
            if not parameter.requires_grad:
                state.pop(plain_name(model, key), None)
    state = _whole_or_moved(state, options)
    _check_model_state(state, options, bool(submodules))
    return state


def get_optimizer_state_dict(model: Module, optimizers: _Optimizers, *, submodules: Iterable[Module] | None = None,
                             options: StateDictOptions | None = None) -> OptimizerStateType:
    """The state dict of optimizers together, with names of parameters in place of numbers.

    An optimizer without state makes it first.

    Args:
        model: the model whose parameters they update.
        optimizers: one, or several.
        submodules: without effect.
        options: whole or in parts, nested or flat.

    Raises:
        RuntimeError: there are no optimizers (PyTorch's text).

    >>> import flambeau as torch
    >>> from flambeau.distributed.checkpoint.state_dict import get_optimizer_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> state = get_optimizer_state_dict(model, torch.optim.Adam(model.parameters()))
    >>> list(state["state"]), state["param_groups"][0]["params"]
    (['weight', 'bias'], ['weight', 'bias'])
    """
    options = _checked(options, submodules)
    state = _optimizer_state(model, _tuple_of(optimizers), options)
    _check_optimizer_state(state, options)
    return state


@no_grad()
def _optimizer_state(model: Module, optimizers: tuple[Optimizer, ...],
                     options: StateDictOptions) -> OptimizerStateType:
    state: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in optimizers:
        own = named_state(model, optimizer)
        state["state"].update(own["state"])
        state["param_groups"] += own["param_groups"]
    if options.flatten_optimizer_state_dict:
        state = flattened(state)
    return _whole_or_moved(state, options)


def get_state_dict(model: Module, optimizers: _Optimizers, *, submodules: Iterable[Module] | None = None,
                   options: StateDictOptions | None = None) -> tuple[dict[str, Any], OptimizerStateType]:
    """The state dicts of a model and of optimizers.

    Args:
        model: the model.
        optimizers: one, or several; an empty list gives {}.
        submodules: modules in the model; only their entries of its state dict are returned.
        options: which entries, whole or in parts.
    """
    options = options or StateDictOptions()
    found = (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)
    state = get_model_state_dict(model, submodules=submodules, options=options)
    return state, get_optimizer_state_dict(model, found, options=options) if found else {}


def _by_names(model: Module, state: Mapping[Any, Any]) -> dict[str, Any]:
    """A state dict of which the keys may be modules, with dicts of their own names."""
    if not state or not isinstance(next(iter(state)), Module):
        return dict(state)
    warnings.warn("Passing model_state_dict as a ``Dict[nn.Module, Dict[str, Any]]``is deprecated and will be "
                  "removed in 2.5. If you need this feature, please preprocess the model_state_dict to achieve the "
                  "same functionality.", FutureWarning, stacklevel=3)
    return {f"{plain_name(model, name)}.{key}": value for name, module in model.named_modules() if module in state
            for key, value in state[module].items()}


@no_grad()
def set_model_state_dict(model: Module, model_state_dict: Mapping[Any, Any], *,
                         options: StateDictOptions | None = None) -> Any:
    """Load a state dict into a model; the missing and unexpected names.

    Args:
        model: the model.
        model_state_dict: its state dict, by names without those of wrappers.
        options: whether it may lack entries, whether it is whole, and at rank 0 only.

    Raises:
        ValueError: contradictory options; or there are no process groups: with `broadcast_from_rank0`, or a full state
            dict for a model of meta tensors only (PyTorch's texts).
        RuntimeError: missing or unexpected names, if `options.strict`.

    >>> import flambeau as torch
    >>> from flambeau.distributed.checkpoint.state_dict import set_model_state_dict
    >>> model = torch.nn.Linear(2, 1)
    >>> set_model_state_dict(model, model.state_dict())
    <All keys matched successfully>
    """
    options = _checked(options)
    state = _by_names(model, model_state_dict)
    _check_model_state(state, options)
    if not state and not options.broadcast_from_rank0:
        return _IncompatibleKeys([], [])
    here = not options.broadcast_from_rank0 or get_rank() == 0
    own: dict[str, Any] = {}
    for key, value in states(model):
        name = plain_name(model, key, options.dsd_fqn_modifiers)
        if value is not None:
            own[key] = value
        if name == key or not here:
            continue
        if name in state:
            state[key] = state.pop(name)
        elif options.strict:
            raise RuntimeError(f"Missing key: {name}.")
    assign = False
    if options.full_state_dict:
        devices = {value.device.type for value in own.values() if value.ndim}
        assign = "meta" in devices
        if devices <= {"meta"}:
            default_group()  # its device would tell where to put the tensors
        if options.broadcast_from_rank0:
            _broadcast_state_dict(state, own, strict=options.strict, cpu_offload=options.cpu_offload)
        else:
            _distribute_state_dict(state, own)
        state.update(own)
    return _method(model, "load_state_dict")(state_dict=state, strict=options.strict, assign=assign)


def set_optimizer_state_dict(model: Module, optimizers: _Optimizers, optim_state_dict: OptimizerStateType, *,
                             options: StateDictOptions | None = None) -> None:
    """Load a state dict into optimizers.

    Args:
        model: the model whose parameters they update.
        optimizers: one, or several.
        optim_state_dict: the state dict of them together, nested or flat.
        options: whether it may lack entries, whether it is whole, and at rank 0 only.

    Raises:
        RuntimeError: there are no optimizers; or a parameter has no state, if `options.strict` (PyTorch's texts).
    """
    options = _checked(options)
    found = _tuple_of(optimizers)
    _check_optimizer_state(optim_state_dict, options)
    _load_optimizers(model, found, optim_state_dict, options)


@no_grad()
def _load_optimizers(model: Module, optimizers: tuple[Optimizer, ...], state_dict: OptimizerStateType,
                     options: StateDictOptions) -> None:
    for optimizer in optimizers:
        initialize_state(optimizer)
        state: dict[str, Any] = {}
        if state_dict:
            state = (part_of(model, optimizer, state_dict, options.strict) if "state" in state_dict
                     else unflattened(model, optimizer, state_dict))
        if options.full_state_dict:
            own, paths = _flatten_state_dict(named_state(model, optimizer))
            given, given_paths = _flatten_state_dict(state)
            if options.broadcast_from_rank0:
                _broadcast_state_dict(given, own)
            else:
                _distribute_state_dict(given, own)
                for key in given:
                    if key not in own:
                        own[key], paths[key] = given[key], given_paths[key]
            state = _unflatten_state_dict(own, paths)
            for group in state["param_groups"]:
                group.setdefault("params", [])
        _method(optimizer, "load_state_dict")(state_dict=state)


def set_state_dict(model: Module, optimizers: _Optimizers, *, model_state_dict: Mapping[Any, Any],
                   optim_state_dict: OptimizerStateType, options: StateDictOptions | None = None) -> Any:
    """Load state dicts into a model and optimizers; the missing and unexpected names of the model.

    Args:
        model: the model.
        optimizers: one, or several, or an empty list.
        model_state_dict: the model's, by names without those of wrappers; {} leaves it as it is.
        optim_state_dict: that of the optimizers together, nested or flat.
        options: whether they may lack entries, whether they are whole, and at rank 0 only.
    """
    options = _checked(options)
    found = (optimizers,) if isinstance(optimizers, Optimizer) else tuple(optimizers)
    if found:
        set_optimizer_state_dict(model, found, optim_state_dict, options=options)
    elif not model_state_dict:
        _tuple_of(found)
    if not model_state_dict and not options.broadcast_from_rank0:
        return _IncompatibleKeys([], [])
    return set_model_state_dict(model, model_state_dict, options=options)


def _patch_model_state_dict(model: Module, *, options: StateDictOptions | None = None) -> None:
    """Make a model's `state_dict` and `load_state_dict` those of this module."""
    def state_dict() -> dict[str, Any]:
        return get_model_state_dict(model, options=options)

    def load_state_dict(state_dict: dict[str, Any]) -> Any:
        return set_model_state_dict(model, state_dict, options=options)

    _patched.update((state_dict, load_state_dict))
    model.state_dict, model.load_state_dict = state_dict, load_state_dict


def _patch_optimizer_state_dict(model: Module, *, optimizers: _Optimizers,
                                options: StateDictOptions | None = None) -> None:
    """Make the `state_dict` and `load_state_dict` of optimizers those of this module."""
    found = _tuple_of(optimizers)

    def state_dict() -> OptimizerStateType:
        return get_optimizer_state_dict(model, found, options=options)

    def load_state_dict(state_dict: OptimizerStateType) -> None:
        set_optimizer_state_dict(model, found, state_dict, options=options)

    _patched.update((state_dict, load_state_dict))
    for optimizer in found:
        optimizer.state_dict, optimizer.load_state_dict = state_dict, load_state_dict  # type: ignore[method-assign]
