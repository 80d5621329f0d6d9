"""The time and memory of a training step of a GPT on many machines, by strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log2

from .model import Link, ring_all_gather, ring_all_reduce, ring_reduce_scatter

FLOAT = 4  # bytes of a number
MIB = 1 << 20


@dataclass(frozen=True)
class Model:
    """A GPT.

    Attributes:
        layers, width, vocabulary, context: its sizes.
    """

    layers: int = 24
    width: int = 2048
    vocabulary: int = 50257
    context: int = 2048

    @property
    def parameters(self) -> int:
        """How many numbers are trained: 12 width^2 a layer, and the embeddings."""
        return self.layers * 12 * self.width ** 2 + (self.vocabulary + self.context) * self.width

    def flops(self, tokens: float) -> float:
        """Operations of a step: 6 a parameter and token, and 12 layers width context a token for attention."""
        return tokens * (6 * self.parameters + 12 * self.layers * self.width * self.context)


@dataclass(frozen=True)
class Cluster:
    """Machines of one process each.

    Attributes:
        flops: operations a second of a machine.
        link: what messages between them cost.
    """

    flops: float
    link: Link


@dataclass(frozen=True)
class Step:
    """A step's parts, in seconds, and a machine's memory.

    Attributes:
        compute: what one machine computes.
        exposed: communication that nothing hides.
        idle: waiting for other stages.
        memory: bytes of parameters, gradients and the states of Adam.
        note: the choice that was best.
    """

    compute: float
    exposed: float
    idle: float
    memory: float
    note: str = ""

    @property
    def total(self) -> float:
        """Seconds of the step."""
        return self.compute + self.exposed + self.idle


Strategy = Callable[[Model, Cluster, int, float], Step]
GROUP = 8  # machines of a pipeline or of a tensor-parallel group


def _hidden(communication: float, window: float, last: float) -> float:
    """What remains of communication beside a computation of `window` seconds; the last part has nothing beside it."""
    return max(0.0, communication - last - window) + last


def _buckets(n: int, size: float, cluster: Cluster, window: float, bucket: float) -> float:
    count = max(1, ceil(size / bucket))
    one = ring_all_reduce(n, size / count, cluster.link)
    return _hidden(count * one, window, one)


def _reduction(n: int, size: float, cluster: Cluster, window: float) -> tuple[float, str]:
    """Exposed seconds of gradients averaged beside a backward pass, with the best of some bucket sizes."""
    if n == 1:
        return 0.0, ""
    best, mib = min((_buckets(n, size, cluster, window, mib * MIB), mib) for mib in (25, 100, 400, 1600, 6400))
    return best, f"buckets of {mib} MiB"


def ddp(model: Model, cluster: Cluster, n: int, tokens: float) -> Step:
    """`DistributedDataParallel` with the bucket size that is best."""
    compute = model.flops(tokens / n) / cluster.flops
    exposed, note = _reduction(n, model.parameters * FLOAT, cluster, compute * 2 / 3)
    return Step(compute, exposed, 0.0, 4 * FLOAT * model.parameters, note)


def ddp_with_default_buckets(model: Model, cluster: Cluster, n: int, tokens: float) -> Step:
    """`DistributedDataParallel` with buckets of 25 MiB."""
    compute = model.flops(tokens / n) / cluster.flops
    exposed = _buckets(n, model.parameters * FLOAT, cluster, compute * 2 / 3, 25 * MIB) if n > 1 else 0.0
    return Step(compute, exposed, 0.0, 4 * FLOAT * model.parameters, "buckets of 25 MiB")


def zero(model: Model, cluster: Cluster, n: int, tokens: float) -> Step:
    """`ZeroRedundancyOptimizer`: as DDP, then each process broadcasts its part of the parameters, one after another."""
    before = ddp(model, cluster, n, tokens)
    hops = ceil(log2(n)) if n > 1 else 0
    sent = hops * (n * cluster.link.alpha + cluster.link.beta * model.parameters * FLOAT)
    return Step(before.compute, before.exposed + sent, 0.0, FLOAT * model.parameters * (2 + 2 / n), before.note)


def fsdp(model: Model, cluster: Cluster, n: int, tokens: float) -> Step:
    """`fully_shard`: parameters of a layer are gathered before its passes, gradients are reduced and divided after."""
    compute = model.flops(tokens / n) / cluster.flops
    layer = model.parameters * FLOAT / model.layers
    gather, reduce = ring_all_gather(n, layer, cluster.link), ring_reduce_scatter(n, layer, cluster.link)
    forward = max(0.0, gather - compute / 3 / model.layers) * (model.layers - 1) + gather
    backward = max(0.0, gather + reduce - compute * 2 / 3 / model.layers) * (model.layers - 1) + reduce
    return Step(compute, forward + backward if n > 1 else 0.0, 0.0, 4 * FLOAT * model.parameters / n + 2 * layer)


def tensor_parallel(model: Model, cluster: Cluster, n: int, tokens: float) -> Step:
    """Each layer divided over 8 machines, 4 reductions of activations a layer; copies of the 8 by DDP."""
    group = min(GROUP, n)
    compute = model.flops(tokens / n) / cluster.flops
    activations = tokens / (n / group) * model.width * FLOAT
    inside = 4 * model.layers * ring_all_reduce(group, activations, cluster.link) if group > 1 else 0.0
    outside, note = _reduction(n // group, model.parameters * FLOAT / group, cluster, compute * 2 / 3)
    return Step(compute, inside + outside, 0.0, 4 * FLOAT * model.parameters / group, note)


def pipeline(model: Model, cluster: Cluster, n: int, tokens: float, microbatches: int = 32) -> Step:
    """1F1B over 8 machines with 32 microbatches; copies of the 8 by DDP, after the last microbatch."""
    stages = min(GROUP, n)
    compute = model.flops(tokens / n) / cluster.flops
    one = compute / microbatches
    message = cluster.link.message(tokens / (n / stages) / microbatches * model.width * FLOAT) if stages > 1 else 0.0
    idle = (stages - 1) * one
    slow = max(0.0, 2 * message - one) * microbatches  # messages that take longer than what is computed meanwhile
    fill = 2 * (stages - 1) * message
    outside, note = _reduction(n // stages, model.parameters * FLOAT / stages, cluster, one * 2 / 3)
    return Step(compute, slow + fill + outside, idle, 4 * FLOAT * model.parameters / stages, note)


STRATEGIES: dict[str, Strategy] = {
    "DDP": ddp, "DDP, 25 MiB buckets": ddp_with_default_buckets, "ZeRO-1": zero, "FSDP": fsdp,
    "TP 8 x DDP": tensor_parallel, "PP 8 x DDP": pipeline}

__all__ = ["FLOAT", "GROUP", "STRATEGIES", "Cluster", "Model", "Step", "ddp", "ddp_with_default_buckets", "fsdp",
           "pipeline", "tensor_parallel", "zero"]
