"""Styles of tensor parallelism of layers: how their parameters, inputs and outputs are placed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from ...._tensor.parameter import Parameter
from ....nn.modules.linear import Linear
from ....nn.modules.module import Module
from ....nn.modules.sparse import Embedding
from ...device_mesh import DeviceMesh
from ...placement_types import Placement, Replicate, Shard
from .._distribute import distribute_module, distribute_tensor
from .._dtensor import DTensor

Placements = tuple[Placement, ...]


class ParallelStyle(ABC):
    """What `parallelize_module` applies to a module.

    Attributes:
        src_data_rank: the process whose parameters count, as of `distribute_tensor`.
    """

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        """Distribute a module; the module."""

    def _distribute(self, module: Module, name: str, placement: Placement, mesh: DeviceMesh) -> None:
        """Replace a parameter by a distributed one."""
        param = module._parameters[name]
        if param is not None:
            module.register_parameter(name, Parameter(
                distribute_tensor(param, mesh, [placement], src_data_rank=self.src_data_rank),
                requires_grad=param.requires_grad))


def as_placed(x: Any, mesh: DeviceMesh, given: Placements, wanted: Placements) -> Any:
    """A tensor as a distributed one: a plain one is placed as `given`; the result as `wanted`."""
    if not isinstance(x, DTensor):
        x = DTensor.from_local(x, mesh, given, run_check=False)
    return x.redistribute(placements=wanted) if given != wanted else x


def _placed_output(output: Any, layouts: Placements, local: bool) -> Any:
    if output.placements != layouts:
        output = output.redistribute(placements=layouts)
    return output.to_local() if local else output


class _LinearStyle(ParallelStyle):
    """A style of `Linear` and `Embedding`."""

    input_layouts: Placements
    output_layouts: Placements
    use_local_output: bool

    def _partitions(self, module: Module) -> tuple[dict[str, Placement], Placements]:
        """The placements of the parameters by name, and that of the input."""
        raise NotImplementedError

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        if not isinstance(module, (Linear, Embedding)):
            raise NotImplementedError(f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!")
        placements, wanted = self._partitions(module)

        def partition(_: str, submodule: Module, mesh: DeviceMesh) -> None:
            for name in list(submodule._parameters):
                self._distribute(submodule, name, placements[name], mesh)

        return distribute_module(
            module, device_mesh, partition,
            lambda _, inputs, mesh: as_placed(inputs[0], mesh, self.input_layouts, wanted),
            lambda _, outputs, mesh: _placed_output(outputs, self.output_layouts, self.use_local_output))

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
                f"use_local_output={self.use_local_output})")


class ColwiseParallel(_LinearStyle):
    """Each process has some columns of the result: rows of a `Linear`'s weight, columns of an `Embedding`'s.

    Args:
        input_layouts: how the input is placed; default: replicated.
        output_layouts: how the output is to be placed; default: cut along the last dimension.
        use_local_output: return the part, not a `DTensor`.

    >>> from flambeau.distributed.tensor.parallel import ColwiseParallel
    >>> ColwiseParallel()
    ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), use_local_output=True)
    """

    def __init__(self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
                 use_local_output: bool = True) -> None:
        self.input_layouts = (input_layouts or Replicate(),)
        self.output_layouts = (output_layouts or Shard(-1),)
        self.desired_input_layouts: Placements = (Replicate(),)
        self.use_local_output = use_local_output

    def _partitions(self, module: Module) -> tuple[dict[str, Placement], Placements]:
        dim = 1 if isinstance(module, Embedding) else 0
        return {name: Shard(dim) for name in module._parameters}, self.desired_input_layouts


class RowwiseParallel(_LinearStyle):
    """Each process has some columns of a `Linear`'s weight, or some rows of an `Embedding`'s: results are summands.

    Args:
        input_layouts: how the input is placed; default: cut along the last dimension.
        output_layouts: how the output is to be placed; default: replicated.
        use_local_output: return the part, not a `DTensor`.

    >>> from flambeau.distributed.tensor.parallel import RowwiseParallel
    >>> RowwiseParallel()
    RowwiseParallel(input_layouts=(Shard(dim=-1),), output_layouts=(Replicate(),), use_local_output=True)
    """

    def __init__(self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
                 use_local_output: bool = True) -> None:
        self.input_layouts = (input_layouts or Shard(-1),)
        self.output_layouts = (output_layouts or Replicate(),)
        self.use_local_output = use_local_output

    def _partitions(self, module: Module) -> tuple[dict[str, Placement], Placements]:
        if isinstance(module, Embedding):
            self.desired_input_layouts: Placements = (Replicate(),)
            return {name: Shard(0) for name in module._parameters}, self.desired_input_layouts
        self.desired_input_layouts = (Shard(-1),)
        return {"weight": Shard(1), "bias": Replicate()}, self.desired_input_layouts


class SequenceParallel(ParallelStyle):
    """Each process has some places of the sequence, and all parameters of a `LayerNorm`, `Dropout` or `RMSNorm`.

    Args:
        sequence_dim: the dimension of the sequence.
        use_local_output: return the part, not a `DTensor`.

    Raises:
        ValueError: the input is no tensor.

    >>> from flambeau.distributed.tensor.parallel import SequenceParallel
    >>> SequenceParallel()
    SequenceParallel(sequence_dim=1, use_local_output=False)
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def replicate(_: str, submodule: Module, mesh: DeviceMesh) -> None:
            for name, param in list(submodule._parameters.items()):
                if param is not None:
                    submodule.register_parameter(name, Parameter(
                        DTensor.from_local(param.detach(), mesh, [Replicate()], run_check=False),
                        requires_grad=param.requires_grad))

        def enter(own: Module, inputs: Any, mesh: DeviceMesh) -> Any:
            x = inputs[0]
            if isinstance(x, DTensor):
                return x if x.placements == self.sequence_sharding else x.redistribute(
                    placements=self.sequence_sharding)
            if hasattr(x, "_array"):
                return DTensor.from_local(x, mesh, self.sequence_sharding, run_check=False)
            raise ValueError(f"expecting input of {own} to be a torch.Tensor or DTensor, but got {x}")

        return distribute_module(module, device_mesh, replicate, enter,
                                 lambda _, outputs, mesh: outputs.to_local() if self.use_local_output else outputs)

    def __repr__(self) -> str:
        return (f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, "
                f"use_local_output={self.use_local_output})")


__all__ = ["ColwiseParallel", "ParallelStyle", "RowwiseParallel", "SequenceParallel", "as_placed"]
