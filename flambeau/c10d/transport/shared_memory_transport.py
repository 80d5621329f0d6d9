"""Messages through memory that all processes of a group map, where they run on one machine.

A sender copies a message once, into its own arena, and announces it to each receiver in a ring. Who waits, receives:
no thread serves the memory, so one is woken, not two, for each message. A receiver copies messages to where they are
expected, or lends out the arena's bytes. A message that nobody expects yet is copied aside, so that arenas empty while
their receivers wait for something else; this, and that a sender without room receives, is why no circle of processes
waits for room.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
import time
from datetime import timedelta

import numpy as np

from ..stores.store import Store
from . import meeting
from .arena import Arena
from .matching import MatchingQueues
from .segment import ENTRY, MESSAGES, SPACE, Segment, supported
from .transport import Buffer, Deadline, Receipt, Transport, departure, too_late, unequal

_PIECE = 1 << 20  # bytes of a message that are announced at once, so that copies overlap
_GLANCES = 40  # looks at a futex before the thread sleeps
_SLICE = 0.02  # seconds of sleep between looks at whether a process has ended


def _copy(target: Buffer, source: Buffer) -> None:
    if len(target) < 1 << 16:
        target[:] = source
    else:  # NumPy lets other threads run
        np.copyto(np.frombuffer(target, np.uint8), np.frombuffer(source, np.uint8))


class _Expected(Receipt):
    """A message that is expected, in a buffer or, without one, in the arena of its sender."""

    def __init__(self, net: SharedMemoryTransport, peer: int | None, tag: int, size: int,
                 buffer: Buffer | None) -> None:
        self.net, self.peer, self.tag, self.size = net, peer, tag, size
        self.borrows = buffer is None
        self.buffer = memoryview(b"") if buffer is None else buffer
        self.sender = -1
        self.done = False
        self.error: str | None = None
        self.lent: int | None = None  # the number of the message whose bytes in the arena are lent

    def arrived(self) -> bool:
        if not self.done:
            self.net.receive()
        return self.done or self.error is not None

    def wait(self, deadline: Deadline) -> int:
        self.net.wait_for(self, deadline)
        return self.sender

    def release(self) -> None:
        if self.lent is not None:
            self.net.give_back(self)


class _Incoming:
    """A message of which some pieces have come."""

    __slots__ = ("buffer", "receipt")

    def __init__(self, buffer: Buffer, receipt: _Expected | None) -> None:
        self.buffer, self.receipt = buffer, receipt


class _Inbox:
    """What this process has received of one sender."""

    def __init__(self) -> None:
        self.seen = 0  # messages that were looked at
        self.consumed = 0  # messages whose bytes the sender may overwrite
        self.early: set[int] = set()  # those among them that come after one that is lent
        self.incoming: dict[int, _Incoming] = {}  # tag -> the message in pieces


class SharedMemoryTransport(Transport):
    """Messages through shared memory.

    Args:
        rank: this process's number.
        segments: the shared memory of all processes, by rank.
    """

    direct = True

    def __init__(self, rank: int, segments: list[Segment]) -> None:
        super().__init__(rank, len(segments))
        self._segments, self._own = segments, segments[rank]
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._inboxes = [_Inbox() for _ in segments]
        self._queues: MatchingQueues[_Expected] = MatchingQueues()
        self._lent: set[_Expected] = set()
        self._abandoned: set[int] = set()
        self._closed = False
        self._arena = Arena(rank, segments)
        self._send_lock = threading.Lock()
        self._rings = itertools.count(1)

    # ----- receiving -------------------------------------------------------------------------

    def expect(self, peer: int | None, tag: int, buffer: Buffer) -> _Expected:
        return self._expect(_Expected(self, peer, tag, len(buffer), buffer))

    def borrow(self, peer: int, tag: int, size: int) -> _Expected:
        return self._expect(_Expected(self, peer, tag, size, None))

    def _expect(self, receipt: _Expected) -> _Expected:
        tag = receipt.tag
        with self._lock:
            kept = self._queues.take_message(receipt.peer, tag)
            if kept is not None:
                self._deliver(receipt, kept[0], memoryview(kept[1]))
                return receipt
            incoming = None if receipt.peer is None else self._inboxes[receipt.peer].incoming.get(tag)
            if incoming is not None and incoming.receipt is None and len(incoming.buffer) == receipt.size:
                incoming.receipt = receipt  # its first pieces came before
            else:
                self._queues.expect(receipt.peer, tag, receipt)
        return receipt

    def _deliver(self, receipt: _Expected, rank: int, message: Buffer, number: int | None = None) -> None:
        """Give a message to who expects it; one with a number may be lent."""
        if len(message) != receipt.size:
            receipt.error = unequal(len(message), rank, receipt.size)
        elif receipt.borrows:
            receipt.buffer, receipt.lent = message, number
            if number is not None:
                self._lent.add(receipt)
        else:
            _copy(receipt.buffer, message)
        receipt.sender, receipt.done = rank, receipt.error is None

    def receive(self) -> None:
        """Look at all messages that have come."""
        with self._lock:
            for rank, inbox in enumerate(self._inboxes):
                if rank != self.rank and self._segments[rank].words[self._segments[rank].sent(self.rank)] != inbox.seen:
                    self._receive_from(rank, inbox)

    def _receive_from(self, rank: int, inbox: _Inbox) -> None:
        segment = self._segments[rank]
        count = segment.words[segment.sent(self.rank)]
        while inbox.seen < count:
            number = inbox.seen
            inbox.seen += 1
            entry = ENTRY.unpack_from(segment.entries, segment.entry(self.rank, number))
            if not self._piece(rank, inbox, number, *entry):
                self._consume(rank, inbox, number)

    def _piece(self, rank: int, inbox: _Inbox, number: int, tag: int, place: int, size: int, before: int,
               total: int) -> bool:
        """Put one piece where it belongs; whether its bytes are lent."""
        if tag in self._abandoned:
            return False
        source = self._segments[rank].arena_view[place:place + size]
        if size == total:
            receipt = self._queues.take(rank, tag)
            if receipt is None:
                self._queues.keep(rank, tag, bytearray(source))
                return False
            self._deliver(receipt, rank, source, number)
            return receipt.borrows and receipt.error is None
        if not before:
            receipt = self._queues.take(rank, tag)
            at_once = receipt is not None and receipt.size == total and not receipt.borrows
            buffer = receipt.buffer if receipt is not None and at_once else memoryview(bytearray(total))
            inbox.incoming[tag] = _Incoming(buffer, receipt)
        incoming = inbox.incoming[tag]
        _copy(incoming.buffer[before:before + size], source)
        if before + size == total:
            del inbox.incoming[tag]
            receipt = incoming.receipt
            if receipt is None:  # who expects it from any rank came after its first piece
                receipt = self._queues.take(rank, tag)
            if receipt is None:
                message = incoming.buffer.obj
                assert isinstance(message, bytearray)
                self._queues.keep(rank, tag, message)
            elif receipt.buffer is incoming.buffer:
                receipt.sender, receipt.done = rank, True
            else:
                self._deliver(receipt, rank, incoming.buffer)
        return False

    def _consume(self, rank: int, inbox: _Inbox, number: int) -> None:
        """Let a sender overwrite a message, once all before it are consumed."""
        inbox.early.add(number)
        if number != inbox.consumed:
            return
        while inbox.consumed in inbox.early:
            inbox.early.discard(inbox.consumed)
            inbox.consumed += 1
        self._own.words[self._own.consumed(rank)] = inbox.consumed
        self._announce(rank, SPACE)

    def give_back(self, receipt: _Expected) -> None:
        """Let the sender overwrite what it lent."""
        with self._lock:
            number, receipt.lent, receipt.buffer = receipt.lent, None, memoryview(b"")
            self._lent.discard(receipt)
            assert number is not None
            self._consume(receipt.sender, self._inboxes[receipt.sender], number)

    def _announce(self, rank: int, which: int) -> None:
        # a value that no other process writes: two that ring at once cannot leave it as it was
        self._segments[rank].ring(which, (next(self._rings) * self.size + self.rank) & 0xFFFFFFFF)

    def _gone(self, rank: int, looked: bool) -> str | None:
        """Why nothing more comes from a process; `looked` asks the system whether it has ended."""
        segment = self._segments[rank]
        return departure(rank) if segment.departed() or (looked and segment.ended()) else None

    def _why_gone(self, receipt: _Expected, looked: bool) -> str | None:
        if self._closed:
            return "The process group was destroyed while a message was expected"
        if receipt.peer is not None:
            return self._gone(receipt.peer, looked)
        others = [self._gone(rank, looked) for rank in range(self.size) if rank != self.rank]
        return others[0] if others and all(others) else None

    def wait_for(self, receipt: _Expected, deadline: Deadline) -> None:
        """Wait until a message has come.

        Raises:
            RuntimeError: it does not come in time, the sender has left, or the message has another size.
        """
        looked, glances = False, 0
        while not receipt.done:
            seen = self._own.bell(MESSAGES)
            gone = self._why_gone(receipt, looked)  # asked first: what it sent before it went counts
            self.receive()
            if receipt.done:
                break
            error = receipt.error or gone
            if error is not None:
                raise RuntimeError(error)
            if glances < _GLANCES:
                while glances < _GLANCES and self._own.bell(MESSAGES) == seen:
                    glances += 1
                continue
            if deadline.left() <= 0:
                self._forget(receipt)
                raise RuntimeError(too_late(deadline, receipt.peer))
            looked = self._sleep(MESSAGES, seen, deadline)

    def _forget(self, receipt: _Expected) -> None:
        with self._lock:
            self._queues.forget(receipt.peer, receipt.tag, receipt)

    def abandon(self, *tags: int) -> None:
        """Drop all messages with some tags, those that come later, too."""
        with self._lock:
            self._abandoned.update(tags)
            self._queues.discard(tags)
            for receipt in [receipt for receipt in self._lent if receipt.tag in tags]:
                self.give_back(receipt)
            for inbox in self._inboxes:
                for tag in tags:
                    inbox.incoming.pop(tag, None)

    # ----- sending ---------------------------------------------------------------------------

    def send(self, peer: int, tag: int, buffer: Buffer, deadline: Deadline) -> None:
        if peer == self.rank:
            raise ValueError("a process sends no message to itself")
        self.multicast([peer], tag, buffer, deadline)

    def multicast(self, peers: list[int], tag: int, buffer: Buffer, deadline: Deadline) -> None:
        for peer in peers:
            gone = self._gone(peer, looked=False)
            if gone is not None:
                raise RuntimeError(gone)
        total = len(buffer)
        with self._send_lock:
            for before in range(0, max(1, total), _PIECE):
                self._send_piece(peers, tag, buffer[before:before + _PIECE], before, total, deadline)
        self._count(total * len(peers))

    def _send_piece(self, peers: list[int], tag: int, piece: Buffer, before: int, total: int,
                    deadline: Deadline) -> None:
        size = len(piece)
        place = self._room(peers, size, deadline)
        own, sent = self._own, self._arena.sent
        _copy(own.arena_view[place:place + size], piece)
        for peer in peers:
            ENTRY.pack_into(own.entries, own.entry(peer, sent[peer]), tag, place, size, before, total)
            sent[peer] += 1
            own.words[own.sent(peer)] = sent[peer]
            self._announce(peer, MESSAGES)

    def _room(self, peers: list[int], size: int, deadline: Deadline) -> int:
        place, looked = self._arena.room(peers, size), False
        while place < 0:
            seen = self._own.bell(SPACE)
            self.receive()
            place = self._arena.room(peers, size)
            if place >= 0:
                break
            late = self._arena.late(peers)
            for peer in late:
                gone = self._gone(peer, looked)
                if gone is not None:
                    raise RuntimeError(gone)
            if self._closed:
                raise RuntimeError("The process group was destroyed while a message was sent")
            if deadline.left() <= 0:
                raise RuntimeError(f"[gloo] Timed out waiting {int(deadline.seconds * 1000)}ms for send operation to "
                                   f"complete: rank {late[0] if late else peers[0]} does not receive")
            looked = self._sleep(SPACE, seen, deadline)
        return place

    def _sleep(self, which: int, seen: int, deadline: Deadline) -> bool:
        """Wait for a futex; whether it is time to look at whether others have ended."""
        start, seconds = time.monotonic(), min(deadline.left(), _SLICE)
        self._own.await_ring(which, seen, seconds)
        return time.monotonic() - start >= 0.9 * seconds

    # ----- leaving ---------------------------------------------------------------------------

    def close(self) -> None:
        if self._closed or os.getpid() != self._process:
            return
        self._closed = True
        self._own.leave()
        for rank in range(self.size):
            for which in (MESSAGES, SPACE):
                self._announce(rank, which)

    def __del__(self) -> None:
        if hasattr(self, "_rings"):
            self.close()


def share_memory(store: Store, rank: int, size: int, timeout: timedelta) -> SharedMemoryTransport | None:
    """Share memory with all other processes of a group; None if any of them cannot.

    Args:
        store: the store of these processes alone.
        rank, size: this process's number, and how many there are.
        timeout: how long to wait for the others.

    Raises:
        DistStoreError: processes have not come in time; the text names their ranks.
    """
    name, descriptor = "", -1
    own: Segment | None = None
    if supported():
        with contextlib.suppress(OSError):
            own, descriptor = Segment.create(size)
            name = Segment.name(descriptor)
    try:
        names = meeting.exchange(store, "segment", name, rank, size, timeout)
        segments: list[Segment] = []
        if own is not None and all(names) and len({each.rpartition("|")[2] for each in names}) == 1:
            with contextlib.suppress(OSError):
                for each, other in enumerate(names):
                    segments.append(own if each == rank else Segment.attach(other, size))
        attached = meeting.exchange(store, "attached", str(len(segments)), rank, size, timeout)
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return SharedMemoryTransport(rank, segments) if all(each == str(size) for each in attached) else None


__all__ = ["SharedMemoryTransport", "share_memory"]
