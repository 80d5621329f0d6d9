"""Stages of a pipeline, given as modules."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from ..._tensor import Tensor
from ...c10d.process_group import ProcessGroup
from ...nn.modules.module import Module
from .base import _PipelineStageBase
from .links import PipeliningMetadataError, TensorMeta
from .traced import _PipelineStage

__all__ = ["PipelineStage", "PipeliningMetadataError", "build_stage"]


class PipelineStage(_PipelineStageBase):
    """A stage of a pipeline whose stages follow each other: each gets all results of the one before.

    Args:
        submodule: the module.
        stage_index: its number.
        num_stages: how many there are, in all processes.
        device: where it computes.
        input_args, output_args: tensors like its inputs and results. Not needed; a warning says if they differ.
        output_grads, input_grads: tensors like the gradients. Not needed.
        group: the processes of the pipeline; all if None.
        dw_builder: returns functions that compute gradients of weights, for modules whose backward pass leaves them.
        get_mesh: without effect: there are no sharded tensors.

    Raises:
        ValueError: the number is too large.
        RuntimeError: there are more processes than stages.

    >>> import flambeau as torch
    >>> from flambeau.distributed.pipelining import PipelineStage, ScheduleGPipe
    >>> dist = torch.distributed
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> stage = PipelineStage(torch.nn.Identity(), 0, 1, torch.device("cpu"))
    >>> ScheduleGPipe(stage, n_microbatches=2).step(torch.arange(4.))
    tensor([0., 1., 2., 3.])
    >>> dist.destroy_process_group()
    """

    def __init__(self, submodule: Module, stage_index: int, num_stages: int, device: Any, input_args: Any = None,
                 output_args: Any = None, output_grads: Any = None, input_grads: Any = None,
                 group: ProcessGroup | None = None, dw_builder: Callable[[], Callable[..., None]] | None = None,
                 get_mesh: Any = None) -> None:
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)
        self._declared = {"inputs": _metas(input_args), "outputs": _metas(output_args)}
        if not self.is_first:
            self._sources = {stage_index - 1: None}
        if not self.is_last:
            self._targets = {stage_index + 1: None}

    def _receive_inputs(self, microbatch: int) -> tuple[Tensor, ...]:
        received = super()._receive_inputs(microbatch)
        if not self.is_first:
            self._compare("inputs", received)
        return received

    def _send_outputs(self, microbatch: int, outputs: tuple[Any, ...]) -> None:
        super()._send_outputs(microbatch, outputs)
        if not self.is_last:
            self._compare("outputs", outputs)

    def _compare(self, what: str, tensors: Iterable[Tensor]) -> None:
        declared = self._declared[what]
        self._declared[what] = None
        actual = [(tuple(each.shape), str(each.dtype).rpartition(".")[2]) for each in tensors]
        if declared is not None and [each[:2] for each in declared] != actual:
            warnings.warn(f"Stage {self.stage_index}: {what} are {actual}, the stage was made for "
                          f"{[each[:2] for each in declared]}", UserWarning, stacklevel=2)


def _metas(tensors: Any) -> list[TensorMeta] | None:
    if tensors is None:
        return None
    given = tensors if isinstance(tensors, (tuple, list)) else (tensors,)
    for each in given:
        if not isinstance(each, Tensor):
            raise PipeliningMetadataError(f"Expected a tensor or a tuple of tensors, got {type(each)}")
    return [TensorMeta.of(each) for each in given]


def build_stage(stage_module: Module, stage_index: int, pipe_info: Any, device: Any,
                group: ProcessGroup | None = None) -> _PipelineStage:
    """A stage of a pipeline that `pipeline` divided.

    Args:
        stage_module: its module, `pipe.get_stage_module(stage_index)` or that wrapped.
        stage_index: its number.
        pipe_info: `pipe.info()`.
        device: where it computes.
        group: the processes of the pipeline; all if None.
    """
    return _PipelineStage(stage_module, stage_index, pipe_info, device, group)
