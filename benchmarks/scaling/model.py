"""The alpha-beta model of messages and collectives, with the algorithms of `flambeau.c10d`.

A message of m bytes takes alpha + beta m. Processes that share the cores of one machine take turns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2


@dataclass(frozen=True)
class Link:
    """What messages between two machines cost.

    Attributes:
        alpha: seconds of a message without content.
        beta: seconds of a byte.
    """

    alpha: float
    beta: float

    def message(self, size: float) -> float:
        """The seconds of a message of a size in bytes."""
        return self.alpha + self.beta * size


def ring_reduce_scatter(n: int, size: float, link: Link) -> float:
    """Seconds to reduce `size` bytes over n machines, each of which gets an n-th: n - 1 steps."""
    return (n - 1) * link.message(size / n)


ring_all_gather = ring_reduce_scatter  # the same messages in the other direction


def ring_all_reduce(n: int, size: float, link: Link) -> float:
    """Seconds to reduce `size` bytes over n machines, all of which get the result: 2 (n - 1) steps."""
    return 2 * ring_reduce_scatter(n, size, link)


def tree_broadcast(n: int, size: float, link: Link) -> float:
    """Seconds to copy `size` bytes from one of n machines to all, along a binomial tree."""
    return ceil(log2(n)) * link.message(size) if n > 1 else 0.0


@dataclass(frozen=True)
class SharedMachine:
    """One machine whose processes exchange messages through its memory.

    Attributes:
        cores: how many processes compute at the same time; not a whole number on a machine that others use.
        work: seconds of one process's step alone, without collectives.
        alpha: seconds of a message without content.
        beta: seconds to reduce a byte that comes from another process.
    """

    cores: float
    work: float
    alpha: float
    beta: float

    def turns(self, n: float) -> float:
        """How many processes share a core."""
        return max(1.0, n / self.cores)

    def all_reduce(self, n: float, size: float) -> float:
        """Seconds to reduce `size` bytes over n processes.

        Each waits for n - 1 others, reduces an n-th of what they have and reads what they reduced.
        """
        return self.turns(n) * (n - 1) * (self.alpha + self.beta * size / n)

    def compute(self, n: float) -> float:
        """Seconds in which n processes each compute a step."""
        return self.turns(n) * self.work

    def step(self, n: float, gradients: float) -> float:
        """Seconds of a data-parallel step of n processes.

        Nothing is hidden where cores are shared: a process that reduces takes the core from one that computes.
        """
        return self.compute(n) + self.all_reduce(n, gradients)


__all__ = ["Link", "SharedMachine", "ring_all_gather", "ring_all_reduce", "ring_reduce_scatter", "tree_broadcast"]
