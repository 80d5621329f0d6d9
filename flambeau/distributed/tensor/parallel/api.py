"""`parallelize_module`: styles applied to the submodules that a plan names."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch
from typing import Any

from ....nn.modules.module import Module
from ...device_mesh import DeviceMesh, _mesh_resources
from .linear_styles import ParallelStyle


def parallelize_module(module: Module, device_mesh: DeviceMesh | None = None,
                       parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None, *,
                       src_data_rank: int | None = 0) -> Module:
    """Distribute a module, or submodules, over a mesh of one dimension.

    Args:
        module: the module, which is changed.
        device_mesh: the processes; default: the mesh of the `with` block.
        parallelize_plan: a style, or styles by name of the submodule; names may have `*`.
        src_data_rank: the process whose parameters count; None: each process's own.

    Returns:
        The module.

    Raises:
        TypeError: the plan is something else (PyTorch's text).

    >>> import flambeau as torch
    >>> from flambeau.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    >>> plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    >>> model = parallelize_module(model, dist.init_device_mesh("cpu", (1,)), plan)
    >>> model[0].weight.placements, model[2].weight.placements
    ((Shard(dim=0),), (Shard(dim=1),))
    >>> dist.destroy_process_group()
    """
    mesh = device_mesh or _mesh_resources.get_current_mesh()
    if parallelize_plan is None:
        warnings.warn("No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
                      "parallelize_module call will do nothing.", stacklevel=2)
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError("Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
                        f"{type(parallelize_plan)} found!")
    for path, style in parallelize_plan.items():
        _apply(module, mesh, path, style, src_data_rank)
    return module


def _apply(module: Module, mesh: DeviceMesh, path: str, style: Any, source: int | None) -> None:
    """Apply a style to the submodules that a path names."""
    if not path:
        parallelize_module(module, mesh, style, src_data_rank=source)
        return
    token, _, rest = path.partition(".")
    matching = [child for name, child in module.named_children() if fnmatch(name, token)]
    if not matching:
        warnings.warn(f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{token}' in "
                      f"module {module}, skipping this plan entry.", stacklevel=3)
    for child in matching:
        _apply(child, mesh, rest, style, source)


__all__ = ["parallelize_module"]
