"""Bytes that each process holds under data parallelism and under ZeRO-1, 2 and 3, beside the theory.

    python -m benchmarks.sharded_memory --sizes 1 2 4

Parameters are counted after the forward pass, gradients after the backward pass, Adam's moments after the step: memory
of `DTensor`s is that of the process's part. Theory: what a strategy divides between n processes is 1 / n.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.distributed.fsdp import fully_shard
from flambeau.distributed.optim import ZeroRedundancyOptimizer
from flambeau.distributed.tensor import DTensor
from flambeau.nn.parallel import DistributedDataParallel

from .markdown import table

dist = torch.distributed
WIDTH, LAYERS = 256, 8
Made = tuple[Any, Any]


def _model() -> Any:
    return nn.Sequential(*(nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)))


def _replicated() -> Made:
    model = DistributedDataParallel(_model())
    return model, torch.optim.Adam(model.parameters())


def _states_divided() -> Made:
    model = DistributedDataParallel(_model())
    return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam)


def _sharded(reshard: bool) -> Made:
    model = _model()
    for layer in model:
        fully_shard(layer, reshard_after_forward=reshard)
    fully_shard(model, reshard_after_forward=reshard)
    return model, torch.optim.Adam(model.parameters())


#: strategy -> how it is made; which of parameters, gradients and states it divides
STRATEGIES: dict[str, tuple[Callable[[], Made], tuple[bool, bool, bool]]] = {
    "DDP": (_replicated, (False, False, False)),
    "ZeRO-1 (ZeroRedundancyOptimizer)": (_states_divided, (False, False, True)),
    "ZeRO-2 (fully_shard, reshard_after_forward=False)": (lambda: _sharded(False), (False, True, True)),
    "ZeRO-3 (fully_shard)": (lambda: _sharded(True), (True, True, True)),
}


def _bytes(tensors: Iterable[Any]) -> int:
    local = [each.to_local() if isinstance(each, DTensor) else each for each in tensors]
    return sum(each.numel() * each.element_size() for each in local)


def measure(strategy: str) -> list[int]:
    """Bytes of parameters, gradients and moments of this process in one step."""
    torch.manual_seed(0)
    model, optimizer = STRATEGIES[strategy][0]()
    loss = model(torch.ones(2, WIDTH)).square().mean()
    parameters = _bytes(model.parameters())
    loss.backward()
    gradients = _bytes(each.grad for each in model.parameters())
    optimizer.step()
    inner: Any = getattr(optimizer, "optim", optimizer)  # the optimizer of this process's part
    states = _bytes(value for each in inner.state.values() for key, value in each.items() if key != "step")
    return [parameters, gradients, states]


def theory(strategy: str, size: int) -> list[float]:
    """What `measure` should give."""
    whole = 4 * LAYERS * (WIDTH * WIDTH + WIDTH)
    return [count * whole / (size if divided else 1)
            for count, divided in zip((1, 1, 2), STRATEGIES[strategy][1], strict=True)]


def run(size: int) -> dict[str, list[list[int]]]:
    """`measure` of all strategies in processes of their own: of each strategy the bytes of each rank."""
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for rank in range(size):
            child = os.fork()
            if not child:
                status = 1
                try:
                    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
                    found = {strategy: measure(strategy) for strategy in STRATEGIES}
                    with open(f"{folder}/{rank}", "w", encoding="utf-8") as file:
                        json.dump(found, file)
                    dist.barrier()
                    dist.destroy_process_group()
                    status = 0
                finally:
                    os._exit(status)
            children.append(child)
        statuses = [os.waitpid(child, 0)[1] for child in children]  # all are waited for
        if any(statuses):
            raise RuntimeError("a process has failed")
        ranks = []
        for rank in range(size):
            with open(f"{folder}/{rank}", encoding="utf-8") as file:
                ranks.append(json.load(file))
    return {strategy: [each[strategy] for each in ranks] for strategy in STRATEGIES}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sharded_memory", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[1, 2, 4], help="numbers of processes")
    rows = []
    for size in parser.parse_args().sizes:
        for strategy, ranks in run(size).items():
            expected = theory(strategy, size)
            cells = [" ".join(f"{each[part] / 1e6:.2f}" for each in ranks) for part in range(3)]
            total = max(map(sum, ranks))
            rows.append([str(size), strategy, *cells, f"{total / 1e6:.2f}", f"{sum(expected) / 1e6:.2f}"])
    print(table(["processes", "strategy", "parameters, MB by rank", "gradients", "Adam's moments", "largest sum",
                 "theory"], rows))


if __name__ == "__main__":
    main()
