"""The caching allocator of a device: blocks of memory, kept when they are freed, and split and merged as needed.

It is PyTorch's algorithm: sizes are rounded to 512 bytes; blocks below 1 MiB come from segments of 2 MiB, others from
segments of 20 MiB or, from 10 MiB on, from segments of their own in multiples of 2 MiB. Each stream has its own free
blocks. Statistics have PyTorch's names.

Source: https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management
"""

from __future__ import annotations

import atexit
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from typing import Any

import numpy as np

from ...modes import device_memory
from .errors import OutOfMemoryError

MIN_BLOCK = 512
_SMALL, _SMALL_SEGMENT = 1 << 20, 2 << 20
_LARGE_SEGMENT, _MIN_OWN_SEGMENT, _SEGMENT_STEP = 20 << 20, 10 << 20, 2 << 20

POOLS = ("all", "small_pool", "large_pool")
_COUNTED = ("allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes", "active_bytes",
            "inactive_split_bytes", "requested_bytes")
_PLAIN = ("num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free")
#: names of counters that are always equal to others
_EQUAL = {"active": "allocation", "active_bytes": "allocated_bytes"}
#: the most blocks of one size that are kept for reuse without being merged
_MOST_WAITING = 64


class Accesses:
    """The last launches that wrote and read a piece of memory: (stream, number of the launch)."""

    __slots__ = ("reads", "write")

    def __init__(self) -> None:
        self.write: tuple[int, int] | None = None
        self.reads: dict[int, int] = {}

    def join(self, other: Accesses) -> None:
        """Take over those of a neighbour, which is merged with this piece: the write of either counts as a read."""
        for each in (other.write, *other.reads.items()):
            if each is not None:
                self.reads[each[0]] = max(each[1], self.reads.get(each[0], 0))


class _Block:
    """A piece of a segment."""

    __slots__ = ("accesses", "after", "before", "free", "offset", "requested", "segment", "size", "stream", "uses",
                 "waiting")

    def __init__(self, segment: _Segment, offset: int, size: int, stream: int) -> None:
        self.segment, self.offset, self.size, self.stream = segment, offset, size, stream
        self.waiting: list[_Block] | None = None  # where it waits to be used again by an allocation of its size
        self.before: _Block | None = None
        self.after: _Block | None = None
        self.free, self.requested = True, 0
        self.uses: set[int] = set()  # other streams that use it (`record_stream`)
        self.accesses = Accesses()


class _Segment:
    """Memory from the runtime."""

    __slots__ = ("first", "memory", "pool", "size")

    def __init__(self, memory: Any, size: int, pool: str, stream: int) -> None:
        self.memory, self.size, self.pool = memory, size, pool
        self.first = _Block(self, 0, size, stream)


class DeviceMemory:
    """A block of a device's memory that is in use; it is freed when nothing refers to it any more.

    Attributes:
        device: the device.
        nbytes: the bytes that were asked for.
        segment: what the runtime allocated.
        offset: of the block in the segment, in bytes.
        accesses: the launches that used it last.
        address: the device's address, where arrays lie at addresses of the device; else 0.
        allocator: whose block it is; None for memory of another library.
    """

    __slots__ = ("__weakref__", "accesses", "address", "allocator", "block", "device", "nbytes", "offset", "segment",
                 "stand_in")

    def __init__(self, device: Any, nbytes: int, block: Any, stand_in: Callable[[np.ndarray], None],
                 allocator: CachingAllocator | None = None) -> None:
        self.device, self.nbytes, self.block, self.stand_in = device, nbytes, block, stand_in
        self.allocator, self.address = allocator, 0
        if block is None:
            self.segment, self.offset, self.accesses = None, 0, Accesses()
        else:
            self.segment, self.offset, self.accesses = block.segment.memory, block.offset, block.accesses

    def __del__(self) -> None:
        allocator = self.allocator
        if allocator is None:
            return
        block = self.block
        if block is None:
            device_memory.add(-1)
            return
        waiting = block.waiting
        if waiting is None or block.uses or len(waiting) >= _MOST_WAITING:
            allocator.finish(block)
            return
        # no call, so that no other thread and no garbage collection comes in between
        size, requested = block.size, block.requested
        for count, sizes, bytes_asked in allocator.tallies[block.segment.pool]:
            count[0] -= 1
            count[3] += 1
            sizes[0] -= size
            sizes[3] += size
            bytes_asked[0] -= requested
            bytes_asked[3] += requested
        waiting.append(block)


atexit.register(delattr, DeviceMemory, "__del__")  # a process that ends gives nothing back: modules are gone by then


class CachingAllocator:
    """The memory of one device.

    Args:
        device: it.
        malloc: bytes -> memory, raising MemoryError where the device has not as many.
        release: gives memory back.
        capacity: () -> (free bytes, all bytes) of the device.
        stand_in: called with the host's address range of each new block.
        addressed: whether arrays lie at the device's addresses; blocks that are freed are then used again for
            allocations of the same size and stream, before they are merged.
    """

    def __init__(self, device: Any, malloc: Callable[[int], Any], release: Callable[[Any], None],
                 capacity: Callable[[], tuple[int, int]], stand_in: Callable[[np.ndarray], None],
                 addressed: bool = False) -> None:
        self.device, self.addressed = device, addressed
        self._waiting: dict[tuple[int, int], list[_Block]] = {}  # by size and stream
        self._malloc, self._release, self._capacity, self._stand_in = malloc, release, capacity, stand_in
        self._lock = threading.Lock()
        self._freed: deque[_Block] = deque()  # a garbage collection may free blocks at any moment, this one included
        self._segments: list[_Segment] = []
        self._free: dict[tuple[str, int], list[_Block]] = {}
        self.fraction = 1.0
        self.is_shared = False  # whether other processes may use the device
        self.kept: Counter[int] = Counter()  # pools of graphs, whose memory stays: replays use it
        self.empty_statistics()

    def empty_statistics(self) -> None:
        """Set all counters to zero."""
        counters = {(name, pool): [0, 0, 0, 0] for name in _COUNTED for pool in POOLS if name not in _EQUAL}
        self._counters = {(name, pool): counters[_EQUAL.get(name, name), pool] for name in _COUNTED for pool in POOLS}
        self.tallies = {pool: [(counters["allocation", each], counters["allocated_bytes", each],
                                counters["requested_bytes", each]) for each in ("all", pool)] for pool in POOLS[1:]}
        self._plain = dict.fromkeys(_PLAIN, 0)

    # ----- allocation -----

    def allocate(self, nbytes: int, stream: int) -> DeviceMemory:
        """A block of at least `nbytes` bytes for launches on a stream.

        Raises:
            OutOfMemoryError: the device is full (PyTorch's text).
        """
        if not nbytes:
            device_memory.add(1)
            return DeviceMemory(self.device, 0, None, self._stand_in, self)
        size = -(-nbytes // MIN_BLOCK) * MIN_BLOCK
        waiting = self._waiting.get((size, stream))
        if waiting:
            try:
                block = waiting.pop()
            except IndexError:  # another thread has taken it
                return self._allocate(nbytes, size, stream)
            block.requested = nbytes
            for count, sizes, requested in self.tallies[block.segment.pool]:
                count[0] += 1
                count[2] += 1
                sizes[0] += size
                sizes[2] += size
                requested[0] += nbytes
                requested[2] += nbytes
                if count[0] > count[1]:
                    count[1] = count[0]
                if sizes[0] > sizes[1]:
                    sizes[1] = sizes[0]
                if requested[0] > requested[1]:
                    requested[1] = requested[0]
            memory = DeviceMemory(self.device, nbytes, block, self._stand_in, self)
            memory.address = block.segment.memory.address + block.offset
            return memory
        return self._allocate(nbytes, size, stream)

    def _allocate(self, nbytes: int, size: int, stream: int) -> DeviceMemory:
        with self._lock:
            self._take_back()
            pool = "small_pool" if size <= _SMALL else "large_pool"
            block = self._find(size, pool, stream)
            if block is None:
                if self._merge_waiting():
                    block = self._find(size, pool, stream)
                if block is None:
                    block = self._segment(size, pool, stream).first
            self._take(block, size, nbytes)
            if self.addressed:
                block.waiting = self._waiting.get((block.size, stream))
                if block.waiting is None:
                    block.waiting = self._waiting[block.size, stream] = []
        device_memory.add(1)
        memory = DeviceMemory(self.device, nbytes, block, self._stand_in, self)
        if self.addressed:
            memory.address = block.segment.memory.address + block.offset
        return memory

    def _merge_waiting(self) -> bool:
        """Free the blocks that wait to be used again; whether there were any."""
        found = False
        for waiting in self._waiting.values():
            while waiting:
                try:
                    block = waiting.pop()
                except IndexError:
                    break
                found = True
                for count, sizes, requested in self.tallies[block.segment.pool]:  # `_return` subtracts once more
                    count[0] += 1
                    count[3] -= 1
                    sizes[0] += block.size
                    sizes[3] -= block.size
                    requested[0] += block.requested
                    requested[3] -= block.requested
                device_memory.add(-1)
                self._return(block)
        return found

    def _find(self, size: int, pool: str, stream: int) -> _Block | None:
        fitting = [each for each in self._free.get((pool, stream), ()) if each.size >= size]
        return min(fitting, key=lambda each: (each.size, id(each.segment), each.offset), default=None)

    def _segment(self, size: int, pool: str, stream: int) -> _Segment:
        if pool == "small_pool":
            total = _SMALL_SEGMENT
        elif size < _MIN_OWN_SEGMENT:
            total = _LARGE_SEGMENT
        else:
            total = -(-size // _SEGMENT_STEP) * _SEGMENT_STEP
        try:
            memory = self._reserve(total)
        except MemoryError:
            self._plain["num_alloc_retries"] += 1
            self._empty()
            try:
                memory = self._reserve(total)
            except MemoryError:
                self._plain["num_ooms"] += 1
                raise OutOfMemoryError(self._full(size)) from None
        self._plain["num_device_alloc"] += 1
        segment = _Segment(memory, total, pool, stream)
        self._segments.append(segment)
        self._free.setdefault((pool, stream), []).append(segment.first)
        self._count("segment", pool, 1)
        self._count("reserved_bytes", pool, total)
        return segment

    def _reserve(self, total: int) -> Any:
        if self.fraction < 1 and self.read("reserved_bytes.all.current") + total > self.fraction * self._capacity()[1]:
            raise MemoryError
        return self._malloc(total)

    def _take(self, block: _Block, size: int, nbytes: int) -> None:
        """Use the beginning of a free block; the rest stays free where it is large enough."""
        pool = block.segment.pool
        self._free[pool, block.stream].remove(block)
        if self._is_split(block):
            self._count_split(block, -1)
        rest = block.size - size
        if rest >= MIN_BLOCK if pool == "small_pool" else rest > _SMALL:
            after = _Block(block.segment, block.offset + size, rest, block.stream)
            after.accesses.join(block.accesses)
            after.before, after.after = block, block.after
            if block.after is not None:
                block.after.before = after
            block.after, block.size = after, size
            self._free[pool, block.stream].append(after)
            self._count_split(after, 1)
        block.free, block.requested = False, nbytes
        for name, count in (("allocation", 1), ("allocated_bytes", block.size), ("requested_bytes", nbytes)):
            self._count(name, pool, count)

    def finish(self, block: _Block) -> None:
        """Take a block back that is no longer used."""
        device_memory.add(-1)
        self._freed.append(block)
        if self._lock.acquire(blocking=False):
            try:
                self._take_back()
            finally:
                self._lock.release()

    def _take_back(self) -> None:
        while self._freed:
            self._return(self._freed.popleft())

    def _return(self, block: _Block) -> None:
        """Free a block, merged with free neighbours."""
        pool = block.segment.pool
        for name, count in (("allocation", 1), ("allocated_bytes", block.size), ("requested_bytes", block.requested)):
            self._count(name, pool, -count)
        block.free, block.waiting = True, None
        block.accesses, former = Accesses(), block.accesses
        block.accesses.join(former)
        for stream in block.uses:  # what `record_stream` promises: the memory is used again after that stream's work
            block.accesses.reads.pop(stream, None)
        block.uses.clear()
        free = self._free.setdefault((pool, block.stream), [])
        if block.before is not None and block.before.free:
            block = self._merge(block.before, block, free)
        if block.after is not None and block.after.free:
            block = self._merge(block, block.after, free)
        if block not in free:
            free.append(block)
        if self._is_split(block):
            self._count_split(block, 1)

    def _merge(self, first: _Block, second: _Block, free: list[_Block]) -> _Block:
        for each in (first, second):
            if each in free:
                free.remove(each)
                if self._is_split(each):
                    self._count_split(each, -1)
        first.size += second.size
        first.accesses.join(second.accesses)
        first.after = second.after
        if second.after is not None:
            second.after.before = first
        return first

    @staticmethod
    def _is_split(block: _Block) -> bool:
        return block.before is not None or block.after is not None

    def empty_cache(self) -> None:
        """Give segments without blocks in use back to the device."""
        with self._lock:
            self._take_back()
            self._empty()

    def _settle(self) -> None:
        """Merge all free blocks, before statistics of free ones are read."""
        with self._lock:
            self._take_back()
            self._merge_waiting()

    def _empty(self) -> None:
        self._merge_waiting()
        for segment in list(self._segments):
            first = segment.first
            if first.free and first.after is None and not self.kept[first.stream]:
                self._segments.remove(segment)
                self._free[segment.pool, first.stream].remove(first)
                self._release(segment.memory)
                self._plain["num_device_free"] += 1
                self._count("segment", segment.pool, -1)
                self._count("reserved_bytes", segment.pool, -segment.size)

    # ----- statistics -----

    def _count(self, name: str, pool: str, change: int) -> None:
        for each in ("all", pool):
            counter = self._counters[name, each]
            counter[0] += change
            counter[1] = max(counter[0], counter[1])
            counter[2 if change > 0 else 3] += abs(change)

    def _count_split(self, block: _Block, sign: int) -> None:
        self._count("inactive_split", block.segment.pool, sign)
        self._count("inactive_split_bytes", block.segment.pool, sign * block.size)

    def read(self, name: str) -> int:
        """One statistic, such as `allocated_bytes.all.peak`."""
        key, pool, what = name.split(".")
        if key.startswith("inactive"):
            self._settle()
        return self._counters[key, pool][("current", "peak", "allocated", "freed").index(what)]

    def statistics(self) -> OrderedDict[str, int]:
        """All statistics, by PyTorch's names, in their order."""
        self._settle()
        found = {f"{name}.{pool}.{what}": counter[i] for (name, pool), counter in self._counters.items()
                 for i, what in enumerate(("current", "peak", "allocated", "freed"))}
        found |= self._plain
        found["max_split_size"] = -1
        for name in ("oversize_allocations", "oversize_segments"):
            found |= {f"{name}.{what}": 0 for what in ("current", "peak", "allocated", "freed")}
        return OrderedDict(sorted(found.items()))

    def reset_peak(self) -> None:
        """Let peaks begin at the present values."""
        for counter in self._counters.values():
            counter[1] = counter[0]

    def reset_accumulated(self) -> None:
        """Let totals begin at zero."""
        for counter in self._counters.values():
            counter[2] = counter[3] = 0
        self._plain = dict.fromkeys(_PLAIN, 0)

    def snapshot(self) -> list[dict[str, Any]]:
        """The segments and their blocks, as PyTorch's `memory_snapshot` shows them."""
        self._settle()
        found: list[dict[str, Any]] = []
        for segment in self._segments:
            blocks, block = [], segment.first
            while block is not None:
                blocks.append({"size": block.size, "requested_size": block.requested if not block.free else 0,
                               "address": segment.memory.address + block.offset,
                               "state": "inactive" if block.free else "active_allocated", "frames": []})
                block = block.after  # type: ignore[assignment]
            used = [each for each in blocks if each["state"] == "active_allocated"]
            found.append({"device": self.device.index, "address": segment.memory.address, "total_size": segment.size,
                          "allocated_size": sum(each["size"] for each in used),
                          "active_size": sum(each["size"] for each in used),
                          "requested_size": sum(each["requested_size"] for each in used),
                          "stream": segment.first.stream, "segment_type": segment.pool.partition("_")[0],
                          "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks})
        return found

    def _full(self, size: int) -> str:
        free, total = self._capacity()
        allocated, reserved = self.read("allocated_bytes.all.current"), self.read("reserved_bytes.all.current")
        limit = f"{readable(int(total * self.fraction))} allowed; " if self.fraction < 1 else ""
        used = "" if self.is_shared else (
            f"Including non-PyTorch memory, this process has {readable(total - free)} memory in use. ")
        return (f"CUDA out of memory. Tried to allocate {readable(size)}. GPU {self.device.index} has a total capacity "
                f"of {readable(total)} of which {readable(free)} is free. {used}{limit}Of the allocated memory "
                f"{readable(allocated)} is allocated by PyTorch, and {readable(reserved - allocated)} is reserved by "
                "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
                "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
                "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)")


def readable(size: int) -> str:
    """A number of bytes as PyTorch writes it in errors."""
    if size <= 1024:
        return f"{size} bytes"
    for unit, power in (("KiB", 10), ("MiB", 20)):
        if size <= 1 << (power + 10):
            return f"{size / (1 << power):.2f} {unit}"
    return f"{size / (1 << 30):.2f} GiB"


__all__ = ["Accesses", "CachingAllocator", "DeviceMemory", "readable"]
