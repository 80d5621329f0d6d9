"""Stages of a pipeline that `pipeline` divided: any stage may use results of any stage before it."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from ..._tensor import Tensor
from ...c10d.process_group import ProcessGroup
from ...nn.modules.module import Module
from ...trees import tree_leaves
from .base import _PipelineStageBase
from .links import PipeliningMetadataError


@dataclass
class PipeInfo:
    """What a stage must know of its pipeline.

    Attributes:
        graph: the graph whose nodes call the stages.
        num_stages: their number.
        has_loss_and_backward: whether the graph contains the loss; always False.
    """

    graph: Any
    num_stages: int
    has_loss_and_backward: bool = False


@dataclass(frozen=True)
class _Input:
    """An argument of a stage: a result of another stage, or the program's."""

    stage: int | None  # None: the program's
    index: int  # of the result, or of the program's flat arguments
    name: str


def _inputs_of_stages(graph: Any) -> tuple[list[list[_Input]], int]:
    """The arguments of all stages, and the number of the program's flat arguments."""
    stages: dict[Any, int] = {}
    roots: dict[Any, int] = {}
    found = []

    def read(node: Any) -> _Input:
        if node.op == "placeholder":
            return _Input(None, roots[node], str(node.target))
        if node.target is operator.getitem:
            return _Input(stages[node.args[0]], node.args[1], node.name)
        return _Input(stages[node], 0, node.name)

    for node in graph.nodes:
        if node.op == "placeholder":
            roots[node] = len(roots)
        elif node.op == "call_module":
            found.append([read(arg) for arg in node.args])
            stages[node] = len(stages)
    return found, len(roots)


class _PipelineStage(_PipelineStageBase):
    """A stage of a divided module.

    Args:
        stage_module: its module.
        stage_index: its number.
        pipe_info: what `pipe.info()` says.
        device: where it computes.
        group: the processes of the pipeline; all if None.
    """

    def __init__(self, stage_module: Module, stage_index: int, pipe_info: PipeInfo, device: Any,
                 group: ProcessGroup | None = None) -> None:
        super().__init__(stage_module, stage_index, pipe_info.num_stages, device, group)
        self.pipe_info = pipe_info
        inputs, self._root_count = _inputs_of_stages(pipe_info.graph)
        if len(inputs) != self.num_stages:
            raise PipeliningMetadataError(f"Number of submodules in pipe graph {len(inputs)} does not match number of "
                                          f"stages {self.num_stages}")
        self._inputs = inputs[stage_index]
        self.name = next(node.name for i, node in enumerate(
            node for node in pipe_info.graph.nodes if node.op == "call_module") if i == stage_index)
        for position, each in enumerate(each for each in self._inputs if each.stage is not None):
            assert each.stage is not None
            positions = self._sources.setdefault(each.stage, [])
            assert positions is not None
            positions.append(position)
        for later, theirs in enumerate(inputs):
            used = [each.index for each in theirs if each.stage == stage_index]
            if used:
                self._targets[later] = used
        self.submod.to(device)

    def _arguments(self, received: tuple[Tensor, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
                   ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        flat = tree_leaves((args, kwargs)) if self.is_first else []
        if self.is_first and len(flat) != self._root_count and set(kwargs) < {each.name for each in self._inputs}:
            raise ValueError(f"{self.log_prefix} the module was traced with {self._root_count} arguments, "
                             f"got {len(flat)}")
        others, merged = iter(received), []
        for each in self._inputs:
            if each.stage is not None:
                merged.append(next(others))
            elif each.name in kwargs:
                merged.append(kwargs[each.name])
            elif self.is_first and each.index < len(flat):
                merged.append(flat[each.index])
            else:
                raise ValueError(f"{self.log_prefix} uses the module's argument `{each.name}`: pass it to `step` as a "
                                 "keyword argument, in the process of this stage, too")
        return tuple(merged), {}


__all__ = ["PipeInfo", "_PipelineStage"]
