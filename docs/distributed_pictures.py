"""The manual's pictures of several processes: bubbles of pipelines, reductions beside a backward pass, a rank's graph.

    python docs/distributed_pictures.py            # all pictures; starts processes
"""

from __future__ import annotations

import os
import pickle
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt

PICTURES = Path(__file__).parent / "pictures"
DPI = 90


def in_processes(size: int, program: Callable[[Any, int], Any]) -> list[Any]:
    """What a function of (torch, rank) returns in each of `size` processes that are one group."""
    import flambeau as torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(size):
            child = os.fork()
            if not child:
                torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                                     world_size=size)
                Path(folder, str(rank)).write_bytes(pickle.dumps(program(torch, rank)))
                torch.distributed.barrier()
                os._exit(0)
            children.append(child)
        if any(os.waitpid(child, 0)[1] for child in children):
            sys.exit("a process failed")
        return [pickle.loads(Path(folder, str(rank)).read_bytes()) for rank in range(size)]


def layers(torch: Any, count: int, width: int) -> list[Any]:
    """Layers of equal work."""
    torch.manual_seed(0)
    return [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.Tanh()) for _ in range(count)]


def measured_pipeline(torch: Any, rank: int) -> Any:
    """The timelines of two schedules on two processes, four microbatches each."""
    from flambeau.distributed import pipelining as pp

    width, found = 768, {}
    for name in ("ScheduleGPipe", "ScheduleInterleaved1F1B"):
        stages = [pp.PipelineStage(torch.nn.Sequential(*layers(torch, 4, width)[i * 4 // count:(i + 1) * 4 // count]),
                                   i, count, torch.device("cpu"))
                  for count in [2 if name == "ScheduleGPipe" else 4] for i in range(rank, count, 2)]
        schedule: Any = getattr(pp, name)(stages[0] if name == "ScheduleGPipe" else stages, 4,
                                          loss_fn=torch.nn.functional.mse_loss)
        batch = torch.ones(4 * 384, width)
        for _ in range(3):
            torch.distributed.barrier()
            schedule.step(*([batch] if rank == 0 else []), target=batch)
        found[name] = schedule.timeline
    return found


def measured_reductions(torch: Any, rank: int) -> Any:
    """The trace of a training step under DistributedDataParallel."""
    width = 1024
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*layers(torch, 6, width)), bucket_cap_mb=4)
    batch = torch.ones(512, width) * (rank + 1)
    for _ in range(2):
        model(batch).square().sum().backward()
    torch.distributed.barrier()
    with tempfile.TemporaryDirectory() as folder:
        with torch.profiler.profile() as prof:
            model(batch).square().sum().backward()
        prof.export_chrome_trace(f"{folder}/trace.json")
        return Path(folder, "trace.json").read_bytes()


def simulated(out: Path) -> None:
    """The orders of four schedules on four processes, with passes of one unit; no process is started."""
    from flambeau.distributed.pipelining import orders
    from flambeau.distributed.pipelining.simulation import simulate
    from flambeau.viz import plot_pipeline

    figure, axes = plt.subplots(4, 1, figsize=(8.5, 9), layout="constrained")
    for ax, (title, order) in zip(axes, (("GPipe", orders.gpipe(4, 8)), ("1F1B", orders.one_forward_one_backward(4, 8)),
                                         ("Interleaved 1F1B, two stages a process", orders.interleaved(4, 2, 8)),
                                         ("ZB-V, two stages a process", orders.zero_bubble_v(4, 8))), strict=True):
        plot_pipeline(simulate(order), unit="passes of a stage", title=title, ax=ax)
    figure.savefig(out / "pipeline-schedules.png", dpi=DPI)
    plt.close(figure)


def main() -> None:
    """Draw all pictures."""
    from flambeau.viz import join_traces, plot_pipeline, plot_ranks

    simulated(PICTURES)
    timelines = in_processes(2, measured_pipeline)
    figure, axes = plt.subplots(2, 1, figsize=(8.5, 4.4), layout="constrained")
    for ax, (name, title) in zip(axes, (("ScheduleGPipe", "GPipe, 2 processes, measured"),
                                        ("ScheduleInterleaved1F1B", "Interleaved 1F1B, measured")), strict=True):
        plot_pipeline({rank: each[name] for rank, each in enumerate(timelines)}, title=title, ax=ax)
    figure.savefig(PICTURES / "pipeline-measured.png", dpi=DPI)
    plt.close(figure)
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for rank, trace in enumerate(in_processes(2, measured_reductions)):
            files.append(Path(folder, f"{rank}.json"))
            files[-1].write_bytes(trace)
        ax = plot_ranks(join_traces(files), title="DistributedDataParallel: reductions beside the backward pass")
    ax.figure.savefig(PICTURES / "reductions-measured.png", dpi=DPI)


if __name__ == "__main__":
    main()
