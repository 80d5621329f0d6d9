"""A training step under `DistributedDataParallel` on two processes, beside PyTorch's on gloo.

    python -m benchmarks.data_parallel --rows mlp gpt --turns 9

Both libraries' processes live at the same time and take turns, so that a busy machine slows both; the table has the
median of the ratios of turns that follow each other. Processor time is that of the first process with all its threads,
the least of all steps: other programs change it little.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from .child_process import ROOT
from .markdown import duration, table

SIZE = 2
STEPS = 5  # of a turn
Step = Callable[[], Any]


def _classifier(torch: Any, net: Any, x: Any, classes: int) -> tuple[Any, Callable[[Any], Any]]:
    target = torch.randint(0, classes, (x.shape[0],))
    return net, lambda module: torch.nn.functional.cross_entropy(module(x), target)


def mlp(torch: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Four layers of 512, a batch of 64."""
    nn = torch.nn
    net = nn.Sequential(*(each for _ in range(3) for each in (nn.Linear(512, 512), nn.ReLU())), nn.Linear(512, 10))
    return _classifier(torch, net, torch.randn(64, 512), 10)


def cnn(torch: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Three convolutions with batch norm, 16 pictures of 3 x 32 x 32."""
    nn, layers, channels = torch.nn, [], 3
    for width in (32, 64, 128):
        layers += [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2)]
        channels = width
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 10))
    return _classifier(torch, net, torch.randn(16, 3, 32, 32), 10)


def gpt(torch: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Two layers of width 128, 4 texts of 64 tokens."""
    from .scaling.measure import GPT
    from .workloads.gpt import model

    tokens = torch.randint(0, GPT["vocabulary"], (GPT["batch"], GPT["context"]))

    def loss(module: Any) -> Any:
        return torch.nn.functional.cross_entropy(module(tokens).flatten(0, 1), tokens.flatten())

    return model(torch, GPT), loss


def many_small(torch: Any) -> tuple[Any, Callable[[Any], Any]]:
    """400 parameters of 32 elements."""
    scales = torch.nn.ParameterList([torch.nn.Parameter(torch.ones(32)) for _ in range(400)])

    class Scales(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.scales = scales

        def forward(self, x: Any) -> Any:
            for each in self.scales:
                x = x * each
            return x

    x = torch.ones(8, 32)
    return Scales(), lambda module: module(x).sum()


def one_large(torch: Any) -> tuple[Any, Callable[[Any], Any]]:
    """One matrix of 2048 x 2048, a batch of 8."""
    x = torch.randn(8, 2048)
    return torch.nn.Linear(2048, 2048, bias=False), lambda module: module(x).square().mean()


ROWS = {each.__name__: each for each in (mlp, cnn, gpt, many_small, one_large)}


def _step(torch: Any, row: str, compiled: bool) -> Step:
    torch.manual_seed(0)
    net, loss = ROWS[row](torch)
    model = torch.nn.parallel.DistributedDataParallel(net)
    if compiled:
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step() -> None:
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()

    return step


def serve(library: str, row: str, compiled: bool = False) -> None:
    """Be both processes: rank 0 takes a turn for each line of its input, and prints seconds and processor seconds."""
    torch = import_module(library)
    dist = import_module(f"{library}.distributed")
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        rank = 0 if os.fork() else 1
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=SIZE)
        step = _step(torch, row, compiled)
        for _ in range(4):
            step()
        while True:
            go = torch.ones(1)
            if rank == 0:
                print("ready", flush=True)
                go *= float(bool(sys.stdin.readline().strip()))
            dist.broadcast(go, 0)
            if not go.item():
                break
            seconds, processor = [], []
            for _ in range(STEPS):
                dist.barrier()
                start, used = time.perf_counter(), time.process_time()
                step()
                seconds.append(time.perf_counter() - start)
                processor.append(time.process_time() - used)
            if rank == 0:
                print(min(seconds), min(processor), flush=True)
        dist.barrier()
        dist.destroy_process_group()
        if rank:
            os._exit(0)
        os.wait()


class _Peer:
    """The processes of one library."""

    def __init__(self, library: str, row: str, compiled: bool) -> None:
        command = [sys.executable, "-W", "ignore", "-m", "benchmarks.data_parallel", "--serve", library, "--rows", row]
        command += ["--compiled"] * compiled
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=os.environ | {"OMP_NUM_THREADS": "1", "TORCH_CPP_LOG_LEVEL": "FATAL"})
        self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f"the processes ended with status {self.process.wait()}")
        return line

    def turn(self) -> tuple[float, float]:
        """Seconds, and processor seconds, of the fastest step of a turn."""
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        seconds, processor = map(float, self._line().split())
        self._line()
        return seconds, processor

    def end(self) -> None:
        """End the processes."""
        self.process.communicate("\n")


def compare(row: str, turns: int, compiled: bool = False) -> tuple[float, ...]:
    """Median seconds of a step in flambeau and in PyTorch, the median of PyTorch's time over flambeau's, and the least
    processor seconds of both."""
    peers = [_Peer(library, row, compiled) for library in ("flambeau", "torch")]
    try:
        found = [(peers[0].turn(), peers[1].turn()) for _ in range(turns)]
    finally:
        for peer in peers:
            peer.end()
    ours, theirs = ([each[0] for each in turn] for turn in zip(*found, strict=True))
    least = [min(each[1] for each in turn) for turn in zip(*found, strict=True)]
    ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
    return statistics.median(ours), statistics.median(theirs), ratio, *least


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.data_parallel", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--compiled", action="store_true", help="compile the modules, in both libraries")
    parser.add_argument("--serve", metavar="LIBRARY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.rows[0], options.compiled)
        return
    cells = []
    for row in options.rows:
        ours, theirs, ratio, own, other = compare(row, options.turns, options.compiled)
        cells.append([row, duration(ours), duration(theirs), f"{ratio:.2f}", duration(own), duration(other),
                      f"{other / own:.2f}"])
        print(f"{row}: {ratio:.2f}", file=sys.stderr, flush=True)
    print(table(["step of two processes", "flambeau", "PyTorch", "PyTorch / flambeau", "flambeau, processor",
                 "PyTorch, processor", "PyTorch / flambeau"], cells))


if __name__ == "__main__":
    main()
