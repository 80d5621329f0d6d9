"""Threads that run forward and backward on leaves they share: no gradient is lost, nothing is corrupted.

    python -m tests.random_programs.threads --seconds 60
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from typing import Any

import numpy as np

import flambeau as torch

_SHAPES = ((), (3,), (4, 4), (64, 64))


class Work:
    """Leaves that are shared, and how often each was differentiated.

    Every backward adds to each leaf's gradient a multiple of what a single one gives, all small
    whole numbers: sums of them are exact, whatever their order.
    """

    def __init__(self) -> None:
        self.leaves = [torch.ones(shape, dtype=torch.float64, requires_grad=True) for shape in _SHAPES]
        self.rounds = 0
        self.failures: list[str] = []
        self.lock = threading.Lock()
        self.hooked = 0

    def once(self, k: int) -> None:
        """One forward and backward, in one of several ways, whose gradient is 6 in every element."""
        leaves = self.leaves
        if k % 4 == 0:  # one graph to all leaves
            loss = sum(((x * 2).sum() + (x * 4).sum() for x in leaves), torch.zeros((), dtype=torch.float64))
            loss.backward()
        elif k % 4 == 1:  # a graph run in two passes
            for x in leaves:
                y = x * 3
                y.backward(torch.ones_like(y), retain_graph=True)
                y.backward(torch.ones_like(y))
        elif k % 4 == 2:  # views and writes through them
            for x in leaves:
                y = (x * 1).reshape(-1)
                y[: y.shape[0]].mul_(2)
                (y * 3).sum().backward()
        else:  # hooks, and gradients that are not accumulated
            for x in leaves:
                y = x * 2
                handle = y.register_hook(self._seen)
                g, = torch.autograd.grad(y.sum(), x, retain_graph=True)
                if not bool((g == 2).all()):
                    raise AssertionError(f"a gradient of 2 came out as {g}")
                (y * 3).sum().backward()
                handle.remove()

    def _seen(self, g: Any) -> None:
        with self.lock:
            self.hooked += 1

    def run(self, until: float) -> None:
        """Work until a moment, counting the rounds."""
        rounds = 0
        try:
            while time.monotonic() < until or rounds % 4:
                self.once(rounds)
                rounds += 1
        except BaseException as error:
            self.failures.append(f"{type(error).__name__}: {error}")
        with self.lock:
            self.rounds += rounds


def strained(seconds: float, threads: int = 8) -> Work:
    """Let threads work on the same leaves for a while.

    Raises:
        AssertionError: a gradient was lost, or something failed.
    """
    work = Work()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # switch often, in the middle of things
    until = time.monotonic() + seconds
    crew = [threading.Thread(target=work.run, args=(until,)) for _ in range(threads)]
    try:
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if work.failures:
        raise AssertionError("; ".join(work.failures))
    for x in work.leaves:
        expected = np.full(x.shape, 6.0 * work.rounds)
        if not np.array_equal(x.grad.numpy(), expected):
            raise AssertionError(f"after {work.rounds} rounds the gradient is {x.grad.numpy().reshape(-1)[:3]}, not "
                                 f"{6.0 * work.rounds}")
        if not bool((x == 1).all()) or x._version:
            raise AssertionError("a leaf was written to")
    return work


def main() -> int:
    """Work for as long as the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_programs.threads")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--threads", type=int, default=8)
    given = parser.parse_args()
    work = strained(given.seconds, given.threads)
    print(f"{given.threads} threads, {work.rounds} rounds, {work.hooked} hooks called: no gradient lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
