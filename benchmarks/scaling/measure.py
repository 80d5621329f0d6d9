"""Measurements on this machine: messages, reductions and training steps of 1 to 8 processes."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROCESSES = (1, 2, 3, 4, 6, 8)
SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 22)  # bytes
GPT = {"vocabulary": 256, "context": 64, "width": 128, "layers": 2, "heads": 4, "batch": 4}
WIDE = {"vocabulary": 512, "context": 128, "width": 512, "layers": 2, "heads": 8, "batch": 4}


def in_processes(size: int, program: Callable[[Any, int], Any], timeout: float = 300) -> list[Any]:
    """What a function of (flambeau, rank) returns in each of `size` processes of one thread that are one group.

    Raises:
        RuntimeError: a process failed, or took too long.
    """
    import flambeau as torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        children: dict[int, int] = {}
        for rank in range(size):
            child = os.fork()
            if not child:
                signal.alarm(int(timeout))
                try:
                    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank,
                                                         world_size=size)
                    result = program(torch, rank)
                    torch.distributed.barrier()
                    Path(folder, str(rank)).write_bytes(pickle.dumps(result))
                    os._exit(0)
                except BaseException as error:  # it must not return into the parent's code
                    print(f"rank {rank}: {error}", file=sys.stderr, flush=True)
                    os._exit(1)
            children[child] = rank
        failed = [rank for child, rank in children.items() if os.waitpid(child, 0)[1]]
        if failed:
            raise RuntimeError(f"ranks {failed} failed, or took more than {timeout:.0f} s")
        return [pickle.loads(Path(folder, str(rank)).read_bytes()) for rank in range(size)]


def _times(torch: Any, call: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of calls that all processes begin together, after one that does not count."""
    found = []
    for _ in range(repeats + 1):
        torch.distributed.barrier()
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return found[1:]


def messages(torch: Any, rank: int) -> dict[int, float]:
    """Seconds of a message through sockets, by its bytes: half of a round trip."""
    found = {}
    for size in SIZES:
        x = torch.zeros(size // 4)

        def there_and_back(x: Any = x) -> None:
            if rank == 0:
                torch.distributed.send(x, 1)
                torch.distributed.recv(x, 1)
            else:
                torch.distributed.recv(x, 0)
                torch.distributed.send(x, 0)

        found[size] = min(_times(torch, there_and_back, 12)) / 2
    return found


def reductions(torch: Any, rank: int) -> dict[int, float]:
    """Seconds of `all_reduce`, by bytes."""
    found = {}
    for size in SIZES:
        x = torch.zeros(size // 4)

        def reduce(x: Any = x) -> None:
            torch.distributed.all_reduce(x)

        found[size] = min(_times(torch, reduce, 12))
    return found


def _gpt(torch: Any, sizes: dict[str, int]) -> tuple[Any, Callable[[Any], Any]]:
    """A GPT, and a function that computes its loss on random tokens."""
    from ..workloads.gpt import model

    torch.manual_seed(0)
    net = model(torch, sizes)
    tokens = torch.randint(0, sizes["vocabulary"], (sizes["batch"], sizes["context"]))

    def loss(module: Any) -> Any:
        out = module(tokens)
        return torch.nn.functional.cross_entropy(out.flatten(0, 1), tokens.flatten())

    return net, loss


def steps(torch: Any, rank: int) -> dict[str, float]:
    """Seconds of forward and backward pass, with and without averages of gradients, and the bytes of gradients."""
    net, loss = _gpt(torch, GPT)
    ddp = torch.nn.parallel.DistributedDataParallel(net)

    def alone() -> None:
        with ddp.no_sync():
            loss(ddp).backward()

    found = {"gradients": 4.0 * sum(p.numel() for p in net.parameters()),
             "compute": float("inf"), "step": float("inf")}
    for _ in range(8):  # by turns: others use the machine
        found["compute"] = min([found["compute"], *_times(torch, alone, 2)])
        found["step"] = min([found["step"], *_times(torch, lambda: loss(ddp).backward(), 2)])
    return found


def rate(torch: Any, rank: int) -> float:
    """Operations a second of one core, in forward and backward passes of a wide GPT."""
    net, loss = _gpt(torch, WIDE)
    tokens = WIDE["batch"] * WIDE["context"]
    parameters = sum(p.numel() for name, p in net.named_parameters() if not name.startswith(("tokens", "positions")))
    operations = tokens * (6 * parameters + 12 * WIDE["layers"] * WIDE["width"] * WIDE["context"])
    return operations / min(_times(torch, lambda: loss(net).backward(), 6))


def measure(log: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
    """All measurements, with what says how busy the machine was."""
    found: dict[str, Any] = {"cores": os.cpu_count(), "load": [os.getloadavg()[0]], "when": time.strftime("%Y-%m-%d")}
    found["rate"] = in_processes(1, rate)[0]
    log(f"{found['rate'] / 1e9:.1f} G operations a second of one core")
    found["messages"] = in_processes(2, messages)[0]
    log(f"messages: {found['messages']}")
    found["reductions"], found["steps"] = {}, {}
    for n in PROCESSES:
        if n > 1:  # the slowest process counts
            each = in_processes(n, reductions)
            found["reductions"][n] = {size: max(one[size] for one in each) for size in SIZES}
        each = in_processes(n, steps)
        found["steps"][n] = {key: max(one[key] for one in each) for key in each[0]}
        log(f"{n} processes: {found['steps'][n]}")
    found["load"].append(os.getloadavg()[0])
    return found


__all__ = ["GPT", "PROCESSES", "SIZES", "WIDE", "in_processes", "measure"]
