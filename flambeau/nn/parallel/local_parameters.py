"""Distributed parameters as the parts that this process has, but while the module computes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..modules.module import Module
from ..parameter import Parameter


def localize_parameters(module: Module) -> None:
    """Replace distributed parameters by their local parts, and put them together again in each forward.

    Gradients arrive at the parts, which data parallelism averages as it does those of any parameter.

    Args:
        module: a module that tensor parallelism has divided.
    """
    _replace(module, _local_part)
    module.register_forward_pre_hook(lambda own, args: _replace(own, _distributed))
    module.register_forward_hook(lambda own, args, output: _replace(own, _part_of), always_call=True)


def _replace(module: Module, change: Callable[[Any], Any]) -> None:
    """Replace parameters, in their order; one that modules share is changed once."""
    changed: dict[int, tuple[Any, Any]] = {}
    for owner in module.modules():
        for name, parameter in owner._parameters.items():
            if id(parameter) not in changed:
                changed[id(parameter)] = parameter, change(parameter)  # the first one lives as long as its id is used
            owner._parameters[name] = changed[id(parameter)][1]


def _local_part(parameter: Any) -> Any:
    if not hasattr(parameter, "placements"):
        return parameter
    local = Parameter(parameter.to_local().detach(), requires_grad=parameter.requires_grad)
    local._distribute = partial(type(parameter).from_local, device_mesh=parameter.device_mesh,
                                placements=parameter.placements, run_check=False, shape=parameter.shape,
                                stride=parameter.stride())
    return local


def _distributed(parameter: Any) -> Any:
    if not hasattr(parameter, "_distribute"):
        return parameter
    whole = parameter._distribute(parameter)
    whole._part = parameter
    return whole


def _part_of(parameter: Any) -> Any:
    return getattr(parameter, "_part", parameter)
