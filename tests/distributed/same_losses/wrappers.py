"""How networks are divided between processes: data parallelism of each kind, tensor parallelism."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

#: modules of a unit that tensor parallelism cuts
COLUMNS, ROWS = ("up", "q", "k", "v"), ("down", "out")


def tensor_parallel(torch: Any, module: Any, mesh: Any) -> None:
    """Cut linear layers and convolutions of a module by columns (output channels) and rows (input channels)."""
    name = torch.__name__
    tensor, parallel = import_module(f"{name}.distributed.tensor"), import_module(f"{name}.distributed.tensor.parallel")
    style = import_module(f"{name}.distributed.tensor.parallel.style").ParallelStyle
    DTensor, Partial, Replicate, Shard = tensor.DTensor, tensor.Partial, tensor.Replicate, tensor.Shard

    class Convolution(style):
        """A convolution that has a part of its output channels (0) or input channels (1)."""

        def __init__(self, channels: int) -> None:
            super().__init__()
            self.channels = channels

        def _apply(self, module: Any, mesh: Any) -> Any:
            for key, parameter in list(module.named_parameters(recurse=False)):
                whole = key == "bias" and self.channels == 1
                module.register_parameter(key, torch.nn.Parameter(tensor.distribute_tensor(
                    parameter, mesh, [Replicate() if whole else Shard(self.channels)])))
            module.forward = self.column(module, mesh) if self.channels == 0 else self.row(module, mesh)
            return module

        def column(self, module: Any, mesh: Any) -> Callable[[Any], Any]:
            def forward(x: Any) -> Any:  # each process needs all of x, and has a part of its gradient
                x = DTensor.from_local(x, mesh, [Replicate()], run_check=False).to_local(grad_placements=[Partial()])
                weight, bias = (local(each) for each in (module.weight, module.bias))
                return torch.nn.functional.conv2d(x, weight, bias, padding=module.padding)
            return forward

        def row(self, module: Any, mesh: Any) -> Callable[[Any], Any]:
            def forward(x: Any) -> Any:
                y = torch.nn.functional.conv2d(x, local(module.weight), padding=module.padding)
                y = DTensor.from_local(y, mesh, [Partial()], run_check=False).redistribute(placements=[Replicate()])
                return y.to_local() + local(module.bias)[:, None, None]
            return forward

    def local(parameter: Any) -> Any:
        """This process's part; the parameter itself, where `DistributedDataParallel` has made parts of it."""
        return parameter.to_local() if isinstance(parameter, DTensor) else parameter

    plan = {}
    for path, layer in module.named_modules():
        last = path.rpartition(".")[2]
        if last in COLUMNS + ROWS:
            column = last in COLUMNS
            if isinstance(layer, torch.nn.Conv2d):
                plan[path] = Convolution(0 if column else 1)
            else:
                plan[path] = parallel.ColwiseParallel() if column else parallel.RowwiseParallel()
    parallel.parallelize_module(module, mesh, plan)


def data_parallel(torch: Any, kind: str, module: Any, mesh: Any) -> Any:
    """Wrap a module, whose units may be cut by tensor parallelism, for the processes of a mesh of one dimension."""
    name = torch.__name__
    fsdp = import_module(f"{name}.distributed.fsdp")
    if kind in ("DDP", "ZeRO-1"):
        return torch.nn.parallel.DistributedDataParallel(module, device_mesh=mesh)
    if kind == "FullyShardedDataParallel":
        units = import_module(f"{name}.distributed.fsdp.wrap").ModuleWrapPolicy({type(unit) for unit in module})
        return fsdp.FullyShardedDataParallel(module, device_mesh=mesh, use_orig_params=True, auto_wrap_policy=units,
                                             device_id=torch.device("cpu"))
    if kind == "HSDP":
        make = import_module(f"{name}.distributed.device_mesh").init_device_mesh
        mesh = make("cpu", (2, mesh.size() // 2), mesh_dim_names=("replicate", "shard"))
    options = {} if kind != "fully_shard, whole between passes" else {"reshard_after_forward": False}
    for unit in module:
        if any(True for _ in unit.parameters()):
            fsdp.fully_shard(unit, mesh=mesh, **options)
    return fsdp.fully_shard(module, mesh=mesh, **options)


def optimizer_of(torch: Any, kind: str) -> Callable[[Any], Any]:
    """Makes AdamW for parameters, its state divided under ZeRO-1."""
    if kind != "ZeRO-1":
        return lambda parameters: torch.optim.AdamW(parameters, lr=1e-2)
    zero = import_module(f"{torch.__name__}.distributed.optim").ZeroRedundancyOptimizer
    return lambda parameters: zero(parameters, torch.optim.AdamW, lr=1e-2)
