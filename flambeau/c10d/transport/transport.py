"""`Transport`, what algorithms need of a network: tagged messages between two processes, in order."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod

import numpy as np

Buffer = memoryview  # of bytes, contiguous


def as_bytes(array: np.ndarray) -> Buffer:
    """The memory of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data


class Deadline:
    """A moment after which waiting is an error.

    Args:
        seconds: from now.
    """

    __slots__ = ("_end", "seconds")

    def __init__(self, seconds: float) -> None:
        self.seconds, self._end = seconds, time.monotonic() + seconds

    def left(self) -> float:
        """Return the seconds that are left, at least 0."""
        return max(0.0, self._end - time.monotonic())


def departure(rank: int) -> str:
    """The text of the error that a process has left."""
    return f"Connection closed by peer: rank {rank} has left the process group, or its process has ended"


def too_late(deadline: Deadline, peer: int | None) -> str:
    """The text of the error that nothing came from a process, or from any, in time."""
    source = "any rank" if peer is None else f"rank {peer}"
    return (f"[gloo] Timed out waiting {int(deadline.seconds * 1000)}ms for recv operation to complete: nothing came "
            f"from {source}")


def undelivered(deadline: Deadline, peer: int) -> str:
    """The text of the error that a process, or the network, has not taken a message in time."""
    return (f"[gloo] Timed out waiting {int(deadline.seconds * 1000)}ms for send operation to complete: a message did "
            f"not reach rank {peer}")


def unequal(size: int, rank: int, expected: int) -> str:
    """The text of the error that a message has another size than its receiver expects."""
    return (f"a message of {size} bytes came from rank {rank}, where {expected} were expected: the tensors of the "
            "ranks differ in shape or dtype")


class Receipt(ABC):
    """A message that is expected.

    Attributes:
        buffer: where it is, once it has arrived.
    """

    buffer: Buffer

    @abstractmethod
    def wait(self, deadline: Deadline) -> int:
        """Wait until the message is in its buffer; the sender's rank.

        Raises:
            RuntimeError: it does not come in time, the sender has left, or the message has another size.
        """

    @abstractmethod
    def arrived(self) -> bool:
        """Whether `wait` would return, or raise, at once."""

    def release(self) -> None:  # noqa: B027  (only some transports lend)
        """Say that the bytes of a borrowed message are not read any more."""


class Transport(ABC):
    """Tagged messages between `size` processes; those of one sender with one tag arrive in the order they were sent.

    Attributes:
        rank, size: this process's number, and how many there are.
        bytes_sent: the payload bytes that this process sent to others.
        direct: whether a message to several processes costs one copy, so that each sends to all others directly.
    """

    direct = False

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.bytes_sent = 0
        self._count_lock = threading.Lock()

    def _count(self, size: int) -> None:
        with self._count_lock:
            self.bytes_sent += size

    @abstractmethod
    def send(self, peer: int, tag: int, buffer: Buffer, deadline: Deadline) -> None:
        """Send a message; return when the buffer may be changed."""

    @abstractmethod
    def expect(self, peer: int | None, tag: int, buffer: Buffer) -> Receipt:
        """Expect a message into a buffer, from one process, or from any if `peer` is None."""

    def borrow(self, peer: int, tag: int, size: int) -> Receipt:
        """Expect a message of `size` bytes wherever it is then: in its receipt's `buffer`, until `release`."""
        return self.expect(peer, tag, memoryview(bytearray(size)))

    def multicast(self, peers: list[int], tag: int, buffer: Buffer, deadline: Deadline) -> None:
        """Send a message to several processes; return when the buffer may be changed."""
        for peer in peers:
            self.send(peer, tag, buffer, deadline)

    def abandon(self, *tags: int) -> None:  # noqa: B027  (only direct transports are asked)
        """Receive no more messages with some tags, after an error."""

    @abstractmethod
    def close(self) -> None:
        """Leave; what other processes still expect of this one is an error there."""

    def exchange(self, to: int, outgoing: Buffer, source: int, incoming: Buffer, tag: int, deadline: Deadline) -> None:
        """Send one message and receive another."""
        receipt = self.expect(source, tag, incoming)
        self.send(to, tag, outgoing, deadline)
        receipt.wait(deadline)


__all__ = ["Buffer", "Deadline", "Receipt", "Transport", "as_bytes", "departure", "too_late", "undelivered", "unequal"]
