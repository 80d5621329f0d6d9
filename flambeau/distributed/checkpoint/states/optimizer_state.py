"""State dicts of optimizers by the names of parameters, nested or flat."""

from __future__ import annotations

from itertools import chain
from typing import Any

from ...._tensor import Tensor, functions
from ....nn import Module
from ....optim.optimizer import Optimizer
from .wrapped_names import names_of_parameters


def initialize_state(optimizer: Optimizer) -> None:
    """Let an optimizer make its state, by a step with zero gradients and a learning rate of zero.

    Nothing happens if it has state, or a gradient is there.
    """
    parameters = [each for group in optimizer.param_groups for each in group["params"]]
    if optimizer.state or any(each.grad is not None for each in parameters):
        return
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = functions.zeros_like(parameter)
    rates = [group["lr"] for group in optimizer.param_groups if "lr" in group]
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = functions.tensor(0.0) if isinstance(group["lr"], Tensor) else 0.0
    optimizer.step(closure=None)
    for group in optimizer.param_groups:
        if "lr" in group:
            group["lr"] = rates.pop(0)
    optimizer.zero_grad(set_to_none=True)


def named_state(model: Module, optimizer: Optimizer) -> dict[str, Any]:
    """The optimizer's state dict with names of parameters in place of their numbers."""
    initialize_state(optimizer)
    names = names_of_parameters(model)
    parameters = list(chain.from_iterable(group["params"] for group in optimizer.param_groups))
    name_of = {number: names[parameter][0] for number, parameter in enumerate(parameters) if parameter in names}
    state = optimizer.state_dict()
    return {"state": {name_of[number]: value for number, value in state["state"].items()},
            "param_groups": [{**group, "params": [name_of[number] for number in group["params"]]}
                             for group in state["param_groups"]]}


def flattened(state: dict[str, Any]) -> dict[str, Any]:
    """A named state as one dict: `state.NAME.KEY` and, for each parameter, `param_groups.NAME.KEY`.

    Raises:
        NotImplementedError: a state that is no tensor, number or dict of them (PyTorch's text).
    """
    flat: dict[str, Any] = {}

    def add(prefix: str, values: dict[Any, Any]) -> None:
        for key, value in values.items():
            if isinstance(value, dict):
                add(f"{prefix}.{key}", value)
            elif isinstance(value, (Tensor, int, float)):
                flat[f"{prefix}.{key}"] = value
            else:
                raise NotImplementedError("Flattening optimizer state_dict only supports tensor, int, float, dict "
                                          f"states now. Type is {type(value)}.")

    for name, values in state["state"].items():
        add(f"state.{name}", values)
    for group in state["param_groups"]:
        for name in group["params"]:
            for key, value in group.items():
                if key != "params":
                    flat[f"param_groups.{name}.{key}"] = value
    return flat


def _below(flat: dict[str, Any], prefix: str) -> dict[str, Any]:
    """The nested dict of the names that begin with a prefix."""
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        if key.startswith(f"{prefix}."):
            *path, last = key[len(prefix) + 1:].split(".")
            place = nested
            for part in path:
                place = place.setdefault(part, {})
            place[last] = value
    return nested


def unflattened(model: Module, optimizer: Optimizer, flat: dict[str, Any]) -> dict[str, Any]:
    """The named state of a flat one.

    Raises:
        RuntimeError: parameters of one group have different options (PyTorch's text).
        KeyError: an option of a group, or a state, is missing.
    """
    names = names_of_parameters(model)
    state: dict[str, Any] = {}
    groups = []
    for group in optimizer.param_groups:
        members: list[str] = []
        for parameter in group["params"]:
            for name in names[parameter]:
                if len(names[parameter]) > 1 and not _below(flat, f"param_groups.{name}"):
                    continue  # the other name of a shared parameter
                members.append(name)
                if parameter.requires_grad:
                    state[name] = {key: flat[f"state.{name}.{key}"] if f"state.{name}.{key}" in flat
                                   else _below(flat, f"state.{name}.{key}") for key in optimizer.state[parameter]}
        options: dict[str, Any] = {"params": members}
        for key in group:
            if key == "params":
                continue
            options[key] = flat[f"param_groups.{members[0]}.{key}"]
            for name in members[1:]:
                other = flat.get(f"param_groups.{name}.{key}", options[key])
                if other is not options[key] and other != options[key]:
                    raise RuntimeError(
                        "All the parameters in the same parameter group should have the same saved param_group value. "
                        f"But {name}.{key} is {other} while other(s) is {options[key]}.")
        groups.append(options)
    return {"state": state, "param_groups": groups}


def part_of(model: Module, optimizer: Optimizer, state: dict[str, Any], strict: bool) -> dict[str, Any]:
    """What a named state, perhaps of several optimizers, has for one of them.

    Raises:
        RuntimeError: a parameter has no state, if `strict` (PyTorch's text).
        ValueError: groups without parameters that cannot be told apart (PyTorch's texts).
    """
    if all(isinstance(key, int) for key in state["state"]):
        return state  # numbers of parameters
    names = names_of_parameters(model)
    own_state: dict[str, Any] = {}
    groups: list[dict[str, Any]] = []
    saved = state["param_groups"]
    group_of = {name: group for group in saved for name in group["params"]}
    for group in optimizer.param_groups:
        members: list[str] = []
        options: dict[str, Any] = {}
        for parameter in group["params"]:
            for name in names[parameter]:
                if len(names[parameter]) > 1 and name not in group_of:
                    continue  # the other name of a shared parameter
                members.append(name)
                options.update(group_of.get(name, {}))
                if not parameter.requires_grad:
                    continue
                if name in state["state"]:
                    own_state[name] = state["state"][name]
                elif strict:
                    raise RuntimeError(
                        f"Missing optimizer state for parameter '{name}' in checkpoint. The parameter requires "
                        "gradients but has no saved optimizer state. To load anyway, use "
                        "StateDictOptions(strict=False).")
        if not group["params"]:
            empty = [each for each in saved if not each["params"]]
            if len(empty) != 1:
                raise ValueError("There are param groups that have zero parameters. In such a case, DSD only support "
                                 "exactly one param group with zero parameters.But the loaded state_dict has zero or "
                                 "more than one param groups that have zero parameters.")
            if len(saved) != len(optimizer.param_groups):
                raise ValueError("When there is a parameter group that has zero parameters, multiple optimizers are "
                                 "not supported.")
            options.update(empty[0])
        groups.append({**options, "params": members})
    return {"state": own_state, "param_groups": groups}


__all__ = ["flattened", "initialize_state", "named_state", "part_of", "unflattened"]
