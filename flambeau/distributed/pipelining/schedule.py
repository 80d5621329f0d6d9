"""Schedules of pipelines: a training step as the actions of this process's stages, one after another."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor
from ...autograd.profiler import record_function
from ...engine.grad_mode import is_grad_enabled
from .actions import BACKWARD_WEIGHT, FORWARD, FULL_BACKWARD, _Action
from .base import _PipelineStageBase
from .links import Link
from .microbatch import TensorChunkSpec, merge_chunks, split_args_kwargs_into_chunks, split_tensor
from .orders import Order, generate_stage_to_rank_mapping
from .simulation import simulate

__all__ = ["PipelineScheduleMulti", "PipelineScheduleSingle"]


class _PipelineSchedule:
    """A schedule of a pipeline's training step.

    Attributes:
        pipeline_order: process -> its actions.
        timeline: of the last step: the text of each action of this process, when its inputs had come and when it ended
            (`time.perf_counter`); between two actions, the process waits.
    """

    def __init__(self, stages: Sequence[_PipelineStageBase], n_microbatches: int, loss_fn: Callable[..., Any] | None,
                 args_chunk_spec: Any, kwargs_chunk_spec: Any, output_merge_spec: Any, scale_grads: bool) -> None:
        self._stages = list(stages)
        self._n_microbatches, self._loss_fn, self.scale_grads = n_microbatches, loss_fn, scale_grads
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec = output_merge_spec
        self._has_backward = loss_fn is not None
        self._num_stages = self._stages[0].num_stages
        self._requires_autograd = True
        self.pipeline_order: Order = {}
        self.timeline: list[tuple[str, float, float]] = []

    def _range_name(self, action: _Action) -> str:
        return f"PP:{action}"

    # ----- a step ----------------------------------------------------------------------------

    def step(self, *args: Any, target: Any = None, losses: list[Any] | None = None, return_outputs: bool = True,
             loss_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> Any:
        """Compute a batch: split it into microbatches, and pass them forward and backward.

        Args:
            args: the first stage's arguments.
            target: the loss function's second argument, in the process of the last stage.
            losses: a list to write the microbatches' losses to, in the process of the last stage.
            return_outputs: whether the results are returned.
            loss_kwargs: keyword arguments of the loss function.
            kwargs: keyword arguments of the stages' modules.

        Returns:
            The results of the whole batch in the process of the last stage, None elsewhere.

        Raises:
            RuntimeError: gradients are disabled: call `eval`.
        """
        if self._has_backward and self._requires_autograd and not is_grad_enabled():
            raise RuntimeError("step() requires gradients to be enabled for backward computation; it should not be "
                               "used under torch.no_grad() context. Please call eval() instead.")
        for stage in self._stages:
            stage.has_backward = self._has_backward
            stage.clear_runtime_states()
        arg_mbs, kwarg_mbs = self._split_inputs(args, kwargs)
        targets = None if target is None else list(split_tensor(target, TensorChunkSpec(0), self._n_microbatches))
        self._step_microbatches(arg_mbs, kwarg_mbs, targets, losses, return_outputs, loss_kwargs)
        for stage in self._stages:
            if stage.is_last and return_outputs:
                return merge_chunks(stage.output_chunks, self._output_merge_spec)
        return None

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None, **kwargs: Any) -> Any:
        """Compute a batch without backward passes.

        Args:
            args, target, losses, kwargs: those of `step`.
        """
        before, self._has_backward = self._has_backward, False
        try:
            return self.step(*args, target=target, losses=losses, **kwargs)
        finally:
            self._has_backward = before

    def _split_inputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        if not args and not kwargs:
            return [()] * self._n_microbatches, [{}] * self._n_microbatches
        return split_args_kwargs_into_chunks(args, kwargs, self._n_microbatches, self._args_chunk_spec,
                                             self._kwargs_chunk_spec)

    def _check(self, given: list[Any] | None, name: str, default: Any) -> list[Any]:
        if given is None:
            return [default] * self._n_microbatches
        if not isinstance(given, list):
            raise TypeError(f"{name} must be a list but got a {type(given)}")
        if len(given) != self._n_microbatches:
            raise ValueError(f"Expecting {self._n_microbatches} {name} but got {len(given)}")
        return given

    def _step_microbatches(self, arg_mbs: list[Any] | None = None, kwarg_mbs: list[Any] | None = None,
                           target_mbs: list[Any] | None = None, losses: list[Any] | None = None,
                           return_outputs: bool = True, loss_kwargs: dict[str, Any] | None = None) -> None:
        """Run the actions of this process on microbatches."""
        if losses is not None and not isinstance(losses, list):
            raise TypeError(f"losses must be a list but got a {type(losses)}")
        run = _Step(self, self._check(arg_mbs, "arg_mbs", ()), self._check(kwarg_mbs, "kwarg_mbs", {}),
                    None if target_mbs is None else self._check(target_mbs, "target_mbs", None), return_outputs,
                    loss_kwargs or {})
        self.timeline = run.timeline
        run.run([action for action in self.pipeline_order[self._stages[0].group_rank]
                 if action.is_compute_op and (self._has_backward or any(p.computation_type is FORWARD
                                                                        for p in action.parts))])
        if losses is not None and any(stage.is_last for stage in self._stages):
            if len(run.losses) != self._n_microbatches:
                raise RuntimeError(f"Expecting {self._n_microbatches} losses but got {len(run.losses)}")
            losses[:] = [run.losses[i] for i in range(self._n_microbatches)]


class _Step:
    """One step of a schedule."""

    def __init__(self, schedule: _PipelineSchedule, args: list[Any], kwargs: list[Any], targets: list[Any] | None,
                 returns: bool, loss_kwargs: dict[str, Any]) -> None:
        self.schedule, self.args, self.kwargs, self.targets = schedule, args, kwargs, targets
        self.returns, self.loss_kwargs = returns, loss_kwargs
        self.backward = schedule._has_backward
        self.stages = {stage.stage_index: stage for stage in schedule._stages}
        self.losses: dict[int, Tensor] = {}
        self.left = Counter(dict.fromkeys(self.stages, schedule._n_microbatches))  # backward passes of each stage
        self.timeline: list[tuple[str, float, float]] = []
        links: dict[tuple[str, int, int], Link] = {}
        for stage in self.stages.values():
            stage.connect(links, len(args))
        for link in links.values():
            link.begin(len(args))

    def run(self, actions: Sequence[_Action]) -> None:
        parts = [part for action in actions for part in action.parts]
        ahead = 2 * self.schedule._num_stages
        names = {part: self.schedule._range_name(action) for action in actions for part in action.parts}
        for position, part in enumerate(parts):
            for later in parts[position:position + ahead]:
                self._expect(later)
            with record_function(names[part]):
                self._perform(part)
                self.timeline.append((str(part), self.stages[part.stage_index].ready, time.perf_counter()))
        for stage in self.stages.values():
            stage.finish()
            if self.backward and self.schedule.scale_grads:
                stage.scale_grads(self.schedule._n_microbatches)

    def _expect(self, action: _Action) -> None:
        """Expect what an action needs: messages come while others compute."""
        stage, kind, number, _ = action
        if kind is not BACKWARD_WEIGHT and stage in self.stages and number is not None:
            self.stages[stage].expect(number, kind is not FORWARD)

    def _perform(self, action: _Action) -> None:
        if action.stage_index not in self.stages:
            raise RuntimeError(f"The schedule has {action}, but process {self.schedule._stages[0].group_rank} has the "
                               f"stages {sorted(self.stages)}")
        stage, kind, number = self.stages[action.stage_index], action.computation_type, action.microbatch_index
        assert number is not None
        if kind is FORWARD:
            output = stage.forward_one_chunk(number, self.args[number], self.kwargs[number], self.returns)
            if stage.is_last and self.schedule._loss_fn is not None:
                self._compute_loss(output, number)
        elif self.backward:
            if kind in (FULL_BACKWARD, BACKWARD_WEIGHT):
                self.left[action.stage_index] -= 1
            last = not self.left[action.stage_index]
            if kind is BACKWARD_WEIGHT:
                stage.backward_weight_one_chunk(number, last)
            else:
                stage.backward_one_chunk(number, self.losses.get(number), kind is FULL_BACKWARD, last)

    def _compute_loss(self, output: Any, number: int) -> None:
        if self.targets is None:
            if not self.backward:
                return
            raise TypeError("the schedule has a loss function: in the process of the last stage, `step` needs "
                            "`target=`")
        assert self.schedule._loss_fn is not None
        self.losses[number] = self.schedule._loss_fn(output, self.targets[number], **self.loss_kwargs)


class PipelineScheduleSingle(_PipelineSchedule):
    """A schedule with one stage a process.

    Args:
        stage: this process's stage.
        n_microbatches: how many microbatches a batch is split into.
        loss_fn: takes a microbatch's result and target; without it there are no backward passes.
        args_chunk_spec, kwargs_chunk_spec: how arguments are split. Default: tensors along the first dimension.
        output_merge_spec: how results are put together. Default: along the first dimension.
        scale_grads: whether gradients are divided by the number of microbatches, as means of losses need.
    """

    def __init__(self, stage: _PipelineStageBase, n_microbatches: int, loss_fn: Callable[..., Any] | None = None,
                 args_chunk_spec: Any = None, kwargs_chunk_spec: Any = None, output_merge_spec: Any = None,
                 scale_grads: bool = True) -> None:
        super().__init__([stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec,
                         scale_grads)
        self._stage = stage
        self.pipeline_order = self._get_pipeline_order()

    def _get_pipeline_order(self) -> Order:
        return {}

    def _range_name(self, action: _Action) -> str:
        kind = "Forward" if action.computation_type is FORWARD else "Backward"
        return f"{kind} {action.microbatch_index}"


class PipelineScheduleMulti(_PipelineSchedule):
    """A schedule with several stages a process.

    Args:
        stages: this process's stages, as many as every other's.
        n_microbatches: how many microbatches a batch is split into.
        loss_fn: takes a microbatch's result and target; without it there are no backward passes.
        args_chunk_spec, kwargs_chunk_spec: how arguments are split. Default: tensors along the first dimension.
        output_merge_spec: how results are put together. Default: along the first dimension.
        use_full_backward: without effect, as in PyTorch.
        scale_grads: whether gradients are divided by the number of microbatches, as means of losses need.
        backward_requires_autograd: whether `step` is an error where gradients are disabled.
        defer_pp_recv: without effect: messages are received while others compute.
    """

    _style = "loop"

    def __init__(self, stages: Sequence[_PipelineStageBase], n_microbatches: int,
                 loss_fn: Callable[..., Any] | None = None, args_chunk_spec: Any = None, kwargs_chunk_spec: Any = None,
                 output_merge_spec: Any = None, use_full_backward: bool | None = None, scale_grads: bool = True,
                 backward_requires_autograd: bool = True, defer_pp_recv: bool = False) -> None:
        super().__init__(stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec,
                         scale_grads)
        self._requires_autograd = backward_requires_autograd
        self.pp_group_size, self.rank = self._stages[0].group_size, self._stages[0].group_rank
        self.n_local_stages = len(self._stages)
        self._place(generate_stage_to_rank_mapping(self.pp_group_size, self._num_stages, self._style))
        self.pipeline_order = self._get_pipeline_order()

    def _place(self, mapping: dict[int, int]) -> None:
        self.stage_index_to_group_rank = mapping
        for stage in self._stages:
            stage.stage_index_to_group_rank = mapping

    def _get_pipeline_order(self) -> Order:
        return {}

    def _dump_csv(self, filename: str, format: str = "compute_only") -> None:
        """Write the order to a file: a line for each process.

        Args:
            filename: the file.
            format: `"compute_only"`.
        """
        _check_format(format)
        with open(filename, "w", newline="") as file:
            csv.writer(file).writerows(self.pipeline_order[rank] for rank in sorted(self.pipeline_order))

    def _load_csv(self, filename: str, format: str = "compute_only") -> None:
        """Read the order from a file: a line for each process.

        Args:
            filename: the file.
            format: `"compute_only"`; or `"compute_comms"`, whose messages are left out, as they happen by themselves.

        Raises:
            ValueError: a stage is in two processes.
            RuntimeError: processes wait for each other, or an action's input is never made.
        """
        _check_format(format)
        with open(filename, newline="") as file:
            order = {rank: [action for action in map(_Action.from_str, row) if action and action.is_compute_op]
                     for rank, row in enumerate(csv.reader(file))}
        mapping: dict[int, int] = {}
        for rank, actions in order.items():
            for part in (part for action in actions for part in action.parts):
                if mapping.setdefault(part.stage_index, rank) != rank:
                    raise ValueError(f"Stage {part.stage_index} is assigned to both rank {rank} and rank "
                                     f"{mapping[part.stage_index]}")
        simulate(order)
        self.pipeline_order = order
        self._place(mapping)


def _check_format(format: str) -> None:
    if format not in ("compute_only", "compute_comms"):
        raise AssertionError(f'format must be "compute_only", got {format}')
