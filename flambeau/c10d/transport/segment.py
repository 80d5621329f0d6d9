"""A process's memory that the other processes of its group read: an arena for messages, and rings that announce them.

The memory has no name in a file system (`memfd_create`): the others open it through this process's entry in `/proc`,
and the system frees it with the last process that maps it, however that process ends.

The words of a segment, of 64 bits, where n is the number of processes:

    0             1 once its owner has left
    8, 16         two futexes of 32 bits: the owner has messages; the owner's receivers have consumed some
    24 ...        for each receiver, how many messages the owner has sent to it
    24 + n ...    for each sender, how many messages the owner has consumed
    24 + 2n ...   for each receiver, a ring of entries of five words: tag, offset in the arena, bytes here, bytes of
                  this message before these, bytes of the whole message
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import select
import struct
import weakref

import numpy as np

from . import futex

ARENA = 8 << 20  # bytes; pages that no message has used take no memory
RING = 64  # entries
_LEFT, MESSAGES, SPACE, _SENT = 0, 8, 16, 24
ENTRY = struct.Struct("<QQQQQ")


class _Process:
    """Another process of this machine, which can be asked whether it has ended."""

    def __init__(self, number: int) -> None:
        self._descriptor = os.pidfd_open(number)
        weakref.finalize(self, os.close, self._descriptor).atexit = False

    def ended(self) -> bool:
        poll = select.poll()  # one that threads share refuses to be asked by two
        poll.register(self._descriptor, select.POLLIN)
        return bool(poll.poll(0))


_processes: weakref.WeakValueDictionary[tuple[int, int], _Process] = weakref.WeakValueDictionary()


def _process(number: int) -> _Process | None:
    """Another process; None for this one."""
    if number == os.getpid():
        return None
    key = os.getpid(), number  # a forked process opens its own
    found = _processes.get(key)
    if found is None:
        found = _processes[key] = _Process(number)
    return found


def supported() -> bool:
    """Whether this system can share memory in this way: Linux on x86-64."""
    return futex.available() and hasattr(os, "memfd_create") and hasattr(os, "pidfd_open")


class Segment:
    """The shared memory of one process.

    Args:
        descriptor: of the memory.
        size: the number of processes.
        owner: the process that it belongs to.

    Attributes:
        words: its control words, of 64 bits.
        arena: its bytes for messages.
    """

    def __init__(self, descriptor: int, size: int, owner: int) -> None:
        self.size = size
        self._map = mmap.mmap(descriptor, self.bytes_for(size))
        memory = memoryview(self._map)
        control = self._control(size)
        self.entries = memory[:control]
        self.words = memory[:control].cast("Q")
        self._halves = memory[:control].cast("I")
        self.arena = np.frombuffer(memory, np.uint8, ARENA, control)
        self.arena_view = memory[control:]
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        self._owner = _process(owner)

    @staticmethod
    def _control(size: int) -> int:
        words = _SENT + 2 * size + size * RING * 5
        return -(-8 * words // mmap.PAGESIZE) * mmap.PAGESIZE

    @classmethod
    def bytes_for(cls, size: int) -> int:
        """The bytes of a segment in a group of `size` processes."""
        return cls._control(size) + ARENA

    @classmethod
    def create(cls, size: int) -> tuple[Segment, int]:
        """Make this process's segment; with the descriptor, which must stay open until the others have attached."""
        descriptor = os.memfd_create("flambeau", os.MFD_CLOEXEC)
        os.ftruncate(descriptor, cls.bytes_for(size))
        return cls(descriptor, size, os.getpid()), descriptor

    @staticmethod
    def name(descriptor: int) -> str:
        """What another process of this machine needs to attach a segment."""
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{os.getpid()}|{descriptor}|{boot}-{os.readlink('/proc/self/ns/pid')}-{platform.machine()}"

    @classmethod
    def attach(cls, name: str, size: int) -> Segment:
        """Map the segment of another process.

        Raises:
            OSError: it may not be opened, or has another size.
        """
        owner, descriptor, _ = name.split("|")
        own = os.open(f"/proc/{owner}/fd/{descriptor}", os.O_RDWR | os.O_CLOEXEC)
        try:
            if os.fstat(own).st_size != cls.bytes_for(size):
                raise OSError("the segment of another process has another size")
            return cls(own, size, int(owner))
        finally:
            os.close(own)

    def sent(self, receiver: int) -> int:
        """The place of the word that counts messages to a receiver."""
        return _SENT + receiver

    def consumed(self, sender: int) -> int:
        """The place of the word that counts messages of a sender that the owner has consumed."""
        return _SENT + self.size + sender

    def entry(self, receiver: int, number: int) -> int:
        """The place, in bytes, of the entry of a message to a receiver."""
        return 8 * (_SENT + 2 * self.size + 5 * (receiver * RING + number % RING))

    def bell(self, which: int) -> int:
        """The value of a futex."""
        return self._halves[2 * which]

    def ring(self, which: int, value: int) -> None:
        """Set a futex to a value and wake those that wait for a change."""
        self._halves[2 * which] = value
        futex.wake(self._address + 8 * which)

    def await_ring(self, which: int, seen: int, seconds: float) -> None:
        """Wait until a futex is rung, or is not `seen` any more, or some seconds have passed."""
        futex.wait(self._address + 8 * which, seen, seconds)

    def leave(self) -> None:
        """Say that the owner sends nothing more."""
        self.words[_LEFT] = 1

    def departed(self) -> bool:
        """Whether its owner has left."""
        return bool(self.words[_LEFT])

    def ended(self) -> bool:
        """Whether its owner's process has ended."""
        return self._owner is not None and self._owner.ended()


__all__ = ["ARENA", "ENTRY", "MESSAGES", "RING", "SPACE", "Segment", "supported"]
