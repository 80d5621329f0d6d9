"""Trains a network by a strategy; the loss of each step is that of the global batch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .networks import networks
from .records import Strategy
from .wrappers import data_parallel, optimizer_of, tensor_parallel

STEPS, MICROBATCHES = 4, 4


def alone(torch: Any, model: str) -> list[float]:
    """The losses of one process that has the whole batch."""
    make, batch = networks(torch)[model]
    torch.manual_seed(0)
    network = make()
    optimizer = optimizer_of(torch, "nothing")(network.parameters())
    losses = []
    for step in range(STEPS):
        inputs, targets = batch(step)
        loss = cross_entropy(torch)(network(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses


def cross_entropy(torch: Any) -> Any:
    """The mean loss of scores, whose last dimension are classes."""
    return lambda scores, targets: torch.nn.functional.cross_entropy(scores.flatten(0, -2), targets.flatten())


def divided(torch: Any, model: str, strategy: Strategy, size: int) -> list[float]:
    """The losses of `size` processes, averaged over the parts of the batch."""
    dist = torch.distributed
    make_mesh = import_module(f"{torch.__name__}.distributed.device_mesh").init_device_mesh
    shape = strategy.meshes[size]
    mesh = make_mesh("cpu", shape, mesh_dim_names=("data", "pipeline", "tensor"))
    copies, pipeline, cuts = shape
    make, batch = networks(torch)[model]
    torch.manual_seed(0)
    network = make()
    count = pipeline * strategy.stages  # of stages
    own = mesh.get_local_rank("pipeline")
    parts = [network[i * 4 // count:(i + 1) * 4 // count] for i in range(own, count, pipeline)]
    if cuts > 1:
        for part in parts:
            tensor_parallel(torch, part, mesh["tensor"])
    parameters = [p for part in parts for p in part.parameters()]
    if strategy.data != "nothing":
        parts = [data_parallel(torch, strategy.data, part, mesh["data"]) for part in parts]
        parameters = [p for part in parts for p in part.parameters()]
    optimizer = optimizer_of(torch, strategy.data)(parameters)
    loss_of = cross_entropy(torch)
    if pipeline > 1:
        pp = import_module(f"{torch.__name__}.distributed.pipelining")
        group = mesh.get_group("pipeline")
        stages = [pp.PipelineStage(part, own + pipeline * i, count, torch.device("cpu"), group=group)
                  for i, part in enumerate(parts)]
        schedule = getattr(pp, strategy.schedule)(stages[0] if strategy.stages == 1 else stages,
                                                  MICROBATCHES, loss_fn=loss_of)
    losses = []
    for step in range(STEPS):
        inputs, targets = (x.chunk(copies)[mesh.get_local_rank("data")] for x in batch(step))
        if pipeline == 1:
            loss = loss_of(parts[0](inputs), targets)
            loss.backward()
        else:
            found: list[Any] = []
            last = own == (count - 1) % pipeline
            schedule.step(*([inputs] if own == 0 else []), target=targets if last else None, losses=found)
            loss = torch.stack([x.detach() for x in found]).mean() if last else torch.zeros(())
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(mean.item() / (copies * cuts))
    return losses
