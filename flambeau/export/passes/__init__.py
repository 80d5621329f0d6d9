"""`torch.export.passes`: changes of exported programs."""

from __future__ import annotations

from typing import Any

import flambeau as torch

from ..._tensor import Parameter
from ...fx.graph_module import GraphModule
from ...utils._pytree import tree_map_only
from ..exported_program import ExportedProgram

__all__ = ["move_to_device_pass"]


def move_to_device_pass(ep: ExportedProgram, location: Any) -> ExportedProgram:
    """Move an exported program to a device: weights, constants, example inputs and devices that its nodes name.

    Args:
        ep: the program; it is changed.
        location: the device, or a dict from the names of devices to those that take their place.

    Returns:
        The program.

    Source: https://docs.pytorch.org/docs/stable/export.html

    >>> import flambeau as torch
    >>> from flambeau.export.passes import move_to_device_pass
    >>> program = torch.export.export(torch.nn.Linear(2, 1), (torch.ones(3, 2),))
    >>> move_to_device_pass(program, "meta").state_dict["weight"].device
    device(type='meta')
    """
    def target(device: Any) -> Any:
        return location.get(str(device), str(device)) if isinstance(location, dict) else str(location)

    def moved(value: Any) -> Any:
        return value.to(target(value.device))

    for name, value in ep.state_dict.items():
        result = moved(value)
        ep.state_dict[name] = Parameter(result, value.requires_grad) if isinstance(value, Parameter) else result
    for name, value in ep.constants.items():
        if isinstance(value, torch.Tensor):
            ep.constants[name] = moved(value)
    if ep.example_inputs is not None:
        ep.example_inputs = tree_map_only(torch.Tensor, moved, ep.example_inputs)
    for module in ep.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, GraphModule) else ():
            if "device" in node.kwargs:
                node.kwargs = {**node.kwargs, "device": target(node.kwargs["device"])}
            if node.op == "call_function" and node.target is torch.ops.aten.to.device:
                node.args = (node.args[0], target(node.args[1]), *node.args[2:])
            node.meta["val"] = tree_map_only(torch.Tensor, moved, node.meta.get("val"))
    ep.validate()
    return ep
