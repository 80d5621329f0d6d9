"""Races and accesses out of bounds, found in the accesses of an emulated kernel.

Two accesses of one byte race if threads that nothing orders make them, at least one writes, and they are not both
atomic. A barrier orders the threads of one block. Nothing orders two blocks of one launch. That threads of a warp run
in step is not relied on: since Volta they need not.
"""

from __future__ import annotations

import numpy as np

READ, WRITE, ATOMIC = 1, 2, 4


class RaceError(RuntimeError):
    """Two threads access an element in an undefined order."""


class OutOfBoundsError(IndexError):
    """A thread accesses an element that its array does not have."""


class AccessLog:
    """The accesses of the blocks that run at present.

    Args:
        kernel: the kernel's name, for messages.
        threads: threads of a block.
    """

    def __init__(self, kernel: str, threads: int) -> None:
        self.kernel, self.threads = kernel, threads
        self._interval: dict[str, list[tuple[np.ndarray, np.ndarray, int]]] = {}
        self._launch: list[np.ndarray] = []
        self._arrays: dict[tuple[str, int], tuple[str, int]] = {}

    def describe(self, memory: str, first: int, name: str, itemsize: int) -> None:
        """Say which array begins at an address, for messages."""
        self._arrays[memory, first] = (name, itemsize)

    def record(self, memory: str, addresses: np.ndarray, threads: np.ndarray, kind: int) -> None:
        """Note accesses.

        Args:
            memory: "global" or "shared".
            addresses: one for each access; a shared array has different ones in each block.
            threads: the number of the thread in the launch.
            kind: READ, WRITE or ATOMIC.
        """
        self._interval.setdefault(memory, []).append((addresses, threads, kind))

    def barrier(self) -> None:
        """End an interval: a barrier of all blocks.

        Raises:
            RaceError: two threads of a block race.
        """
        for memory, entries in self._interval.items():
            addresses, threads, kinds = _joined(entries)
            blocks = threads // self.threads
            where = _conflict(addresses, blocks, threads, kinds)
            if where is not None:
                first, second = np.unique(threads[(addresses == where[0]) & (blocks == where[1])])[:2] % self.threads
                self._fail(memory, where[0], f"threads {first} and {second} of block {where[1]}, with no barrier "
                                             "between")
            if memory == "global":
                self._launch.append(np.unique(np.stack([addresses, blocks, kinds]), axis=1))
        self._interval.clear()

    def finish(self) -> None:
        """End the launch.

        Raises:
            RaceError: two blocks race.
        """
        self.barrier()
        if not self._launch:
            return
        addresses, blocks, kinds = np.concatenate(self._launch, axis=1)
        where = _conflict(addresses, np.zeros_like(blocks), blocks, kinds)
        if where is not None:
            first, second = np.unique(blocks[addresses == where[0]])[:2]
            self._fail("global", where[0], f"blocks {first} and {second}")

    def _fail(self, memory: str, address: int, who: str) -> None:
        first = max(at for space, at in self._arrays if space == memory and at <= address)
        name, itemsize = self._arrays[memory, first]
        element = (address - first) // itemsize
        raise RaceError(f"kernel {self.kernel}: a race at element {element} of {name}: {who}; order them by a "
                        "barrier, use an atomic operation or give each element one owner")


def _joined(entries: list[tuple[np.ndarray, np.ndarray, int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    addresses = np.concatenate([each[0] for each in entries])
    threads = np.concatenate([each[1] for each in entries])
    kinds = np.concatenate([np.full(len(each[0]), each[2]) for each in entries])
    return addresses, threads, kinds


def _conflict(addresses: np.ndarray, blocks: np.ndarray, owners: np.ndarray, kinds: np.ndarray
              ) -> tuple[int, int] | None:
    """An address and a block in which several owners access it, one writing, not all atomically; None for none."""
    if not len(addresses):
        return None
    order = np.lexsort((addresses, blocks))
    addresses, blocks, owners, kinds = addresses[order], blocks[order], owners[order], kinds[order]
    changes = (addresses[1:] != addresses[:-1]) | (blocks[1:] != blocks[:-1])
    starts = np.flatnonzero(np.concatenate([[True], changes]))
    several = np.minimum.reduceat(owners, starts) != np.maximum.reduceat(owners, starts)
    mixed = np.bitwise_or.reduceat(kinds, starts)
    found = np.flatnonzero(several & (mixed != READ) & (mixed != ATOMIC))
    if not len(found):
        return None
    at = starts[found[0]]
    return int(addresses[at]), int(blocks[at])


__all__ = ["ATOMIC", "READ", "WRITE", "AccessLog", "OutOfBoundsError", "RaceError"]
