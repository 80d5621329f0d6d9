"""`Transport`, what algorithms need of a network: tagged messages between two processes, in order."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod

Buffer = memoryview  # of bytes, contiguous


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


class Receipt(ABC):
    """A message that is expected."""

    @abstractmethod
    def wait(self, deadline: Deadline) -> int:
        """Wait until the message is in its buffer; the sender's rank.

        Raises:
            RuntimeError: it does not come in time, the sender has left, or the message has another size.
        """

    @abstractmethod
    def arrived(self) -> bool:
        """Whether `wait` would return, or raise, at once."""


class Transport(ABC):
    """Tagged messages between `size` processes; those of one sender with one tag arrive in the order they were sent.

    Attributes:
        rank, size: this process's number, and how many there are.
        bytes_sent: the payload bytes that this process sent to others.
    """

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

    @abstractmethod
    def close(self) -> None:
        """Leave; what other processes still expect of this one is an error there."""

    def exchange(self, to: int, outgoing: Buffer, source: int, incoming: Buffer, tag: int, deadline: Deadline) -> None:
        """Send one message and receive another."""
        receipt = self.expect(source, tag, incoming)
        self.send(to, tag, outgoing, deadline)
        receipt.wait(deadline)


__all__ = ["Buffer", "Deadline", "Receipt", "Transport"]
