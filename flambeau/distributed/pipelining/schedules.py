"""The schedules of pipelines that PyTorch has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from . import orders
from .actions import FORWARD
from .base import _PipelineStageBase
from .orders import Order
from .schedule import PipelineScheduleMulti, PipelineScheduleSingle, _PipelineSchedule

__all__ = ["PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe",
           "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble",
           "get_schedule_class"]

_PipelineScheduleRuntime = PipelineScheduleMulti


class _ScheduleForwardOnly(PipelineScheduleSingle):
    """Forward passes of all microbatches."""

    def _get_pipeline_order(self) -> Order:
        return {rank: [each for each in actions if each.computation_type is FORWARD]
                for rank, actions in orders.gpipe(self._num_stages, self._n_microbatches).items()}

    def _step_microbatches(self, arg_mbs: list[Any] | None = None, kwarg_mbs: list[Any] | None = None,
                           target_mbs: list[Any] | None = None, losses: list[Any] | None = None,
                           return_outputs: bool = True, loss_kwargs: dict[str, Any] | None = None) -> None:
        if target_mbs is not None or losses is not None:
            raise RuntimeError("Forward-only schedule does not support loss computation")
        super()._step_microbatches(arg_mbs, kwarg_mbs, None, None, return_outputs, loss_kwargs)


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forward, then all backward; the results of all are in memory at once.

    With s stages and m microbatches, a share (s - 1) / (m + s - 1) of the time is idle.
    """

    def _get_pipeline_order(self) -> Order:
        return orders.gpipe(self._num_stages, self._n_microbatches)


class Schedule1F1B(PipelineScheduleSingle):
    """A forward and a backward pass in turn: as idle as GPipe, but at most as many results in memory as stages.

    Raises:
        ValueError: there are fewer microbatches than stages.
    """

    def _get_pipeline_order(self) -> Order:
        if self._n_microbatches < self._num_stages:
            raise ValueError(f"Number of microbatches ({self._n_microbatches}) must be greater than "
                             f"or equal to the number of stages ({self._num_stages}).")
        return orders.one_forward_one_backward(self._num_stages, self._n_microbatches)


class ScheduleLoopedBFS(PipelineScheduleMulti):
    """Several stages a process; all microbatches pass a stage before the next stage of the process."""

    def __init__(self, stages: Sequence[_PipelineStageBase], n_microbatches: int,
                 loss_fn: Callable[..., Any] | None = None, output_merge_spec: Any = None, scale_grads: bool = True,
                 backward_requires_autograd: bool = True, defer_pp_recv: bool = False) -> None:
        super().__init__(stages, n_microbatches, loss_fn, None, None, output_merge_spec, None, scale_grads,
                         backward_requires_autograd, defer_pp_recv)

    def _get_pipeline_order(self) -> Order:
        return orders.looped_breadth_first(self.pp_group_size, self.n_local_stages, self._n_microbatches)


class _WithoutOption(PipelineScheduleMulti):
    """Schedules whose arguments lack `use_full_backward`."""

    def __init__(self, stages: Sequence[_PipelineStageBase], n_microbatches: int,
                 loss_fn: Callable[..., Any] | None = None, args_chunk_spec: Any = None, kwargs_chunk_spec: Any = None,
                 output_merge_spec: Any = None, scale_grads: bool = True, backward_requires_autograd: bool = True,
                 defer_pp_recv: bool = False) -> None:
        super().__init__(stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, None,
                         scale_grads, backward_requires_autograd, defer_pp_recv)


class ScheduleInterleaved1F1B(_WithoutOption):
    """Several stages a process; rounds of microbatches pass them in turn, so that less time is idle.

    Raises:
        ValueError: the number of microbatches is no multiple of the number of rounds.
    """

    _name, _zero_bubble = "Interleaved 1F1B", False

    def _get_pipeline_order(self) -> Order:
        rounds = max(1, self._n_microbatches // self.pp_group_size)
        if self._n_microbatches % rounds:
            raise ValueError(f"{self._name} requires the number of microbatches to be a multiple of the number of "
                             f"rounds ({rounds}), but got {self._n_microbatches}.")
        return orders.interleaved(self.pp_group_size, self.n_local_stages, self._n_microbatches, self._zero_bubble)


class ScheduleInterleavedZeroBubble(ScheduleInterleaved1F1B):
    """As `ScheduleInterleaved1F1B`, with gradients of weights computed where a process would be idle.

    Raises:
        ValueError: the number of microbatches is no multiple of the number of rounds.
    """

    _name, _zero_bubble = "Zero bubble", True


class _TwoStages(_WithoutOption):
    """Two stages a process: process r has stages r and 2 R - 1 - r."""

    _style = "v"

    def _get_pipeline_order(self) -> Order:
        if self.n_local_stages != 2:
            raise ValueError(f"ZBV requires exactly 2 stages per rank, but got {self.n_local_stages}.")
        return self._order()

    def _order(self) -> Order:
        return orders.zero_bubble_v(self.pp_group_size, self._n_microbatches)


class ScheduleZBVZeroBubble(_TwoStages):
    """Two stages a process, down and up again, with gradients of weights where a process would be idle.

    Nothing is idle if forward passes, gradients of inputs and gradients of weights take the same time.

    Raises:
        ValueError: a process has not two stages.
    """


class ScheduleDualPipeV(_TwoStages):
    """Two stages a process, whose forward and backward passes are neighbours.

    Raises:
        ValueError: a process has not two stages, or there are fewer microbatches than stages.
    """

    def _order(self) -> Order:
        if self._n_microbatches < self._num_stages:
            raise ValueError(f"DualPipeV requires at least as many microbatches as stages, but got "
                             f"{self._n_microbatches} microbatches and {self._num_stages} stages.")
        return orders.dual_pipe_v(self.pp_group_size, self._n_microbatches)


_CLASSES = {"1F1B": Schedule1F1B, "Interleaved1F1B": ScheduleInterleaved1F1B, "GPipe": ScheduleGPipe,
            "LoopedBFS": ScheduleLoopedBFS, "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
            "PipelineScheduleSingle": PipelineScheduleSingle, "PipelineScheduleMulti": PipelineScheduleMulti,
            "ZBVZeroBubble": ScheduleZBVZeroBubble, "DualPipeV": ScheduleDualPipeV}


def get_schedule_class(schedule_name: str) -> type[_PipelineSchedule]:
    """The schedule of a name, in capital letters or not.

    Args:
        schedule_name: `"1F1B"`, `"GPipe"`, `"Interleaved1F1B"`, `"LoopedBFS"`, `"InterleavedZeroBubble"`,
            `"ZBVZeroBubble"` or `"DualPipeV"`.

    Raises:
        ValueError: there is none.

    >>> from flambeau.distributed.pipelining.schedules import get_schedule_class
    >>> get_schedule_class("gpipe").__name__
    'ScheduleGPipe'
    """
    for name, schedule in _CLASSES.items():
        if name.lower() == schedule_name.lower():
            return schedule
    raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(_CLASSES)}")
