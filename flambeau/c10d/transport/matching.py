"""Matching of messages and receives: a message goes to the first receive that names its sender and tag, or any sender.

The queues are not locked; a transport calls them under its own lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import Generic, TypeVar

from .transport import Receipt

R = TypeVar("R", bound=Receipt)


class MatchingQueues(Generic[R]):
    """Receives that wait for messages, and messages that came before they were expected."""

    def __init__(self) -> None:
        self._expected: dict[tuple[int | None, int], deque[R]] = {}
        self._unexpected: dict[tuple[int, int], deque[bytearray]] = {}

    def expect(self, peer: int | None, tag: int, receipt: R) -> None:
        """Let a receive wait for a message with this tag, from `peer` or (None) from any process."""
        self._expected.setdefault((peer, tag), deque()).append(receipt)

    def forget(self, peer: int | None, tag: int, receipt: R) -> None:
        """Let a receive wait no longer."""
        waiting = self._expected.get((peer, tag))
        if waiting and receipt in waiting:
            waiting.remove(receipt)

    def take(self, rank: int, tag: int) -> R | None:
        """Remove and return the receive that waits for a message from a process; None if there is none."""
        for key in ((rank, tag), (None, tag)):
            waiting = self._expected.get(key)
            if waiting:
                receipt = waiting.popleft()
                if not waiting:
                    del self._expected[key]
                return receipt
        return None

    def keep(self, rank: int, tag: int, message: bytearray) -> None:
        """Keep a message that nobody expects yet."""
        self._unexpected.setdefault((rank, tag), deque()).append(message)

    def take_message(self, peer: int | None, tag: int) -> tuple[int, bytearray] | None:
        """Remove and return the first kept message for a receive, with its sender; None if there is none."""
        for rank in [peer] if peer is not None else [rank for rank, t in self._unexpected if t == tag]:
            messages = self._unexpected.get((rank, tag))
            if messages:
                message = messages.popleft()
                if not messages:
                    del self._unexpected[rank, tag]
                return rank, message
        return None

    def receives(self) -> Iterator[R]:
        """Yield all receives that wait."""
        for waiting in self._expected.values():
            yield from waiting

    def discard(self, tags: Collection[int] | None = None) -> None:
        """Drop the receives with some tags (None: all of them), and the messages that were kept for them."""
        for waiting in [key for key in self._expected if tags is None or key[1] in tags]:
            del self._expected[waiting]
        for kept in [key for key in self._unexpected if tags is None or key[1] in tags]:
            del self._unexpected[kept]


__all__ = ["MatchingQueues"]
