"""Attributes of modules attached to the nodes that call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch

from .._compatibility import compatibility
from ..code.torch_names import module_of
from ..graph_module import GraphModule

__all__ = ["default_matching", "extract_attrs_for_lowering", "lift_lowering_attrs_to_nodes"]


@compatibility(is_backward_compatible=False)
def default_matching(name: str, target_version: int) -> str:
    """The name of an attribute in a version of a class: the same."""
    return name


#: class -> version, attributes, function that maps their names to those of another version
module_fetch_book: dict[Any, tuple[int, list[str], Callable[[str, int], str]]] = {
    torch.nn.Linear: (1, ["weight", "bias"], default_matching),
    torch.nn.Conv2d: (1, ["weight", "bias", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode"],
                      default_matching),
    torch.nn.BatchNorm2d: (2, ["weight", "bias", "running_mean", "running_var", "eps"], default_matching),
    torch.nn.AdaptiveAvgPool2d: (1, [], default_matching),
    torch.nn.MaxPool2d: (1, ["kernel_size", "stride", "padding", "dilation", "return_indices", "ceil_mode"],
                         default_matching),
    torch.nn.ReLU: (1, ["inplace"], default_matching),
}


@compatibility(is_backward_compatible=False)
def extract_attrs_for_lowering(mod: Any) -> dict[str, Any]:
    """The attributes of a module that `module_fetch_book` lists for its class, and its `name`.

    Raises:
        RuntimeError: the class is not listed, or in an older version.
    """
    name = f"{module_of(type(mod))}.{type(mod).__name__}"
    if type(mod) not in module_fetch_book:
        raise RuntimeError(f"{name} is not in the module_fetch_book yet, please add it to the module_fetch_book, open "
                           "an issue and @842974287 or report a bug to AIACC team directly.")
    version, attributes, match = module_fetch_book[type(mod)]
    if version < mod._version:
        raise RuntimeError(f"Fetcher version {version} try to fetch {name} version {mod._version}, please upgrade the "
                           "module_fetch_book, open an issue and @842974287 or report a bug to AIACC team directly.")
    return {"name": name, **{each: getattr(mod, match(each, mod._version)) for each in attributes}}


@compatibility(is_backward_compatible=False)
def lift_lowering_attrs_to_nodes(fx_module: GraphModule) -> None:
    """Set the attribute `attrs_for_lowering` of all nodes that call modules."""
    modules: dict[str, Any] = dict(fx_module.named_modules())
    for node in fx_module.graph.nodes:
        if node.op == "call_module":
            if isinstance(modules[node.target], GraphModule):
                lift_lowering_attrs_to_nodes(modules[node.target])
            else:
                node.attrs_for_lowering = extract_attrs_for_lowering(modules[node.target])
