"""Room for messages in a sender's arena: pieces one after another, in a circle, freed in the order they were sent."""

from __future__ import annotations

from collections import deque

from .segment import ARENA, RING, Segment

_ALIGNMENT = 64


class Arena:
    """The arena of one sender.

    Args:
        rank: the sender's number.
        segments: the shared memory of all processes, by rank.

    Attributes:
        sent: how many messages each process was sent.
    """

    def __init__(self, rank: int, segments: list[Segment]) -> None:
        self.sent = [0] * len(segments)
        self._rank, self._segments = rank, segments
        self._place = 0
        self._pending: deque[tuple[int, list[tuple[int, int]]]] = deque()  # begin, receivers and numbers of messages

    def _consumed(self, peer: int) -> int:
        segment = self._segments[peer]
        return segment.words[segment.consumed(self._rank)]

    def room(self, peers: list[int], size: int) -> int:
        """The place of a new piece of some bytes for some receivers; -1 while there is none."""
        pending = self._pending
        while pending and all(self._consumed(peer) > number for peer, number in pending[0][1]):
            pending.popleft()
        if any(self.sent[peer] - self._consumed(peer) >= RING for peer in peers):
            return -1
        size = max(_ALIGNMENT, -(-size // _ALIGNMENT) * _ALIGNMENT)
        place = 0  # what is in caches already
        if pending:
            place, first = self._place, pending[0][0]
            if place > first and place + size > ARENA:
                place = 0
            if place <= first and place + size > first:
                return -1
        pending.append((place, [(peer, self.sent[peer]) for peer in peers]))
        self._place = place + size
        return place

    def late(self, peers: list[int]) -> list[int]:
        """The receivers without whom there is no room for a piece for some others."""
        oldest = self._pending[0][1] if self._pending else []
        return [peer for peer, number in oldest if self._consumed(peer) <= number] + [
            peer for peer in peers if self.sent[peer] - self._consumed(peer) >= RING]


__all__ = ["Arena"]
