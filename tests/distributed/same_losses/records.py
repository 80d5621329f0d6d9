"""The strategies of parallel training that are compared, and on how many processes."""

from __future__ import annotations

from dataclasses import dataclass

MODELS = ("mlp", "cnn", "gpt")


@dataclass(frozen=True)
class Strategy:
    """How a network is divided.

    Args:
        name: what the table shows.
        meshes: processes -> sizes of the mesh: of data parallelism, of pipelines, of tensor parallelism.
        data: how the processes of a data-parallel group divide their work: a key of `wrappers.DATA`.
        schedule: the pipeline's, of `torch.distributed.pipelining`.
        stages: stages of a pipeline on each of its processes.
    """

    name: str
    meshes: dict[int, tuple[int, int, int]]
    data: str = "nothing"
    schedule: str = "Schedule1F1B"
    stages: int = 1


DATA_PARALLEL = {2: (2, 1, 1), 4: (4, 1, 1)}
PIPELINE = {2: (1, 2, 1), 4: (1, 4, 1)}

STRATEGIES = (
    Strategy("DDP", DATA_PARALLEL, "DDP"),
    Strategy("ZeRO-1", DATA_PARALLEL, "ZeRO-1"),
    Strategy("fully_shard", DATA_PARALLEL, "fully_shard"),
    Strategy("fully_shard, whole between passes", DATA_PARALLEL, "fully_shard, whole between passes"),
    Strategy("FullyShardedDataParallel", DATA_PARALLEL, "FullyShardedDataParallel"),
    Strategy("HSDP", {4: (4, 1, 1)}, "HSDP"),
    Strategy("TP", {2: (1, 1, 2), 4: (1, 1, 4)}),
    Strategy("PP, GPipe", PIPELINE, schedule="ScheduleGPipe"),
    Strategy("PP, 1F1B", PIPELINE),
    Strategy("PP, interleaved 1F1B", {2: (1, 2, 1)}, schedule="ScheduleInterleaved1F1B", stages=2),
    Strategy("DDP + TP", {4: (2, 1, 2)}, "DDP"),
    Strategy("fully_shard + TP", {4: (2, 1, 2)}, "fully_shard"),
    Strategy("DDP + PP", {4: (2, 2, 1)}, "DDP"),
    Strategy("fully_shard + PP", {4: (2, 2, 1)}, "fully_shard, whole between passes"),
    Strategy("PP + TP", {4: (1, 2, 2)}),
    Strategy("DDP + PP + TP", {8: (2, 2, 2)}, "DDP"),
    Strategy("fully_shard + PP + TP", {8: (2, 2, 2)}, "fully_shard, whole between passes"),
)
