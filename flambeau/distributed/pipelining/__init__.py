"""`torch.distributed.pipelining`: stages of a model that processes compute for one microbatch after another.

Layers:
    actions, orders, simulation: what each process computes when; no tensors.
    microbatch, links, backward, gradients: arguments of microbatches, messages between stages, passes of one stage.
    base, stage, traced, pipe: stages, given as modules or cut out of one.
    schedule, schedules: a training step.
"""

from __future__ import annotations

from .pipe import Pipe, SplitPoint, pipe_split, pipeline
from .schedules import (
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from .schedules import _ScheduleForwardOnly as _ScheduleForwardOnly
from .stage import PipelineStage, build_stage

__all__ = ["Pipe", "PipelineStage", "Schedule1F1B", "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B",
           "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "SplitPoint", "build_stage",
           "pipe_split", "pipeline"]
