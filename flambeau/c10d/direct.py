"""Collectives in which each process sends to all others at once, for transports that copy a message only once.

They send the same bytes as rings and reduce in the same order, so that results have the same bits; each process waits
for two messages of every other, not for 2 (n - 1) of one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from .reduce_op import Combine
from .transport.transport import Deadline, Receipt, Transport, as_bytes

_SEGMENT = 1 << 20  # bytes that are sent while those before them are reduced
_SHARE = 4 << 20  # bytes that may be under way from one process
_SECOND = 1 << 62  # the bit of the tag of a collective's second half


@contextlib.contextmanager
def _abandoning(net: Transport, *tags: int) -> Iterator[None]:
    """After an error, let nothing that comes later write to arrays."""
    try:
        yield
    except BaseException:
        net.abandon(*tags)
        raise


def _segments(array: np.ndarray, n: int) -> list[np.ndarray]:
    size = max(4096, min(_SEGMENT, _SHARE // (2 * n)))
    step = max(1, size // array.itemsize)
    return [array[start:start + step] for start in range(0, array.size, step)]


class _Reduction:
    """One chunk, to which all other processes send theirs."""

    def __init__(self, net: Transport, tag: int, parts: Sequence[np.ndarray], reduce: Combine) -> None:
        self.parts, self.reduce = parts, reduce
        sources = [(net.rank + step) % net.size for step in range(1, net.size)]
        self.receipts = [[net.borrow(rank, tag, part.nbytes) for rank in sources] for part in parts]

    def run(self, i: int, deadline: Deadline) -> None:
        """Reduce one segment: the next rank's, then those after it, this process's last."""
        part, receipts = self.parts[i], self.receipts[i]
        if len(receipts) == 1:
            self.reduce(part, self._array(receipts[0], part, deadline))
        else:
            total = self._array(receipts[0], part, deadline).copy()
            for receipt in receipts[1:]:
                self.reduce(total, self._array(receipt, part, deadline))
            self.reduce(part, total)
        for receipt in receipts:
            receipt.release()

    @staticmethod
    def _array(receipt: Receipt, model: np.ndarray, deadline: Deadline) -> np.ndarray:
        receipt.wait(deadline)
        return np.frombuffer(receipt.buffer, np.uint8).view(model.dtype)


def reduce_scatter(net: Transport, tag: int, chunks: Sequence[np.ndarray], output: np.ndarray, reduce: Combine,
                   deadline: Deadline) -> None:
    """Reduce chunk `r` of all processes at rank `r`, into its output, which holds its own chunk before."""
    n, rank = net.size, net.rank
    others = [(rank + step) % n for step in range(1, n)]
    sends = {peer: _segments(chunks[peer], n) for peer in others}
    with _abandoning(net, tag):
        own = _Reduction(net, tag, _segments(output, n), reduce)
        for i in range(max([len(own.parts), *map(len, sends.values())]) + 1):
            for peer in others:
                if i < len(sends[peer]):
                    net.send(peer, tag, as_bytes(sends[peer][i]), deadline)
            if 0 < i <= len(own.parts):
                own.run(i - 1, deadline)


def all_reduce(net: Transport, tag: int, chunks: Sequence[np.ndarray], reduce: Combine, deadline: Deadline) -> None:
    """Reduce chunks over all processes, each at the process of its number, which sends it to all."""
    n, rank = net.size, net.rank
    others = [(rank + step) % n for step in range(1, n)]
    parts = [_segments(chunk, n) for chunk in chunks]
    with _abandoning(net, tag, tag | _SECOND):
        own = _Reduction(net, tag, parts[rank], reduce)
        # results are written where segments lie that were sent before
        results = [net.expect(peer, tag | _SECOND, as_bytes(part)) for peer in others for part in parts[peer]]
        for i in range(max(map(len, parts)) + 1):
            for peer in others:
                if i < len(parts[peer]):
                    net.send(peer, tag, as_bytes(parts[peer][i]), deadline)
            if 0 < i <= len(parts[rank]):
                own.run(i - 1, deadline)
                net.multicast(others, tag | _SECOND, as_bytes(parts[rank][i - 1]), deadline)
        for receipt in results:
            receipt.wait(deadline)


def broadcast(net: Transport, tag: int, array: np.ndarray, root: int, deadline: Deadline) -> None:
    """Copy an array from one process to all."""
    if net.rank == root:
        net.multicast([rank for rank in range(net.size) if rank != root], tag, as_bytes(array), deadline)
        return
    with _abandoning(net, tag):
        net.expect(root, tag, as_bytes(array)).wait(deadline)


__all__ = ["all_reduce", "broadcast", "reduce_scatter"]
