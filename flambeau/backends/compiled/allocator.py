"""Caching allocator for the memory of large arrays: page faults of fresh memory cost more than a kernel's work.

NumPy allocates arrays through a handler that can be set per context (NEP 49). This handler is compiled code. It passes
requests below `MIN_BYTES` to NumPy's own handler. Larger blocks come from `mmap`, in size classes of an eighth of a
power of two, and go to free lists when they are freed. Bytes in use and idle together do not exceed the peak of
bytes in use by more than half, or `MIN_HELD` if that is more. Where a class is requested again and again after its
blocks were evicted, as in each step of a training loop whose sizes do not fit together, the slack grows by that block,
up to the peak itself. It never exceeds `MAX_SLACK`, idle bytes never exceed `MAX_IDLE`.

The arrays are ordinary: they own their memory and free it.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...errstate import in_quiet
from ...runtime import compilation

#: the smallest block that is cached, in bytes
MIN_BYTES = 1 << 15
#: bytes that may be cached regardless of the peak
MIN_HELD = 64 << 20
#: the most bytes above the peak of bytes in use
MAX_SLACK = 256 << 20
#: how often a class may be requested again after an eviction before the slack grows: the first steps find the peak
TOLERATED = 3
#: the most idle bytes
MAX_IDLE = 1 << 30

#: words of the state: the lock; bytes in use, idle and at the peak; limits; NumPy's handler functions; the system's
#: functions; counters; the slack that repeated requests of evicted classes have added; from _FREE_LISTS on the first
#: free block of every class; and after them, of every class, whether blocks were evicted since it was last requested
#: (bit 0), and how often it was requested after that
_LOCK, _USED, _IDLE, _PEAK, _MAX_IDLE, _MIN_HELD, _MALLOC, _CALLOC, _REALLOC, _FREE, _CONTEXT = range(11)
_MMAP, _MUNMAP, _MADVISE, _REUSED, _FRESH, _ADDED_SLACK = range(11, 17)
_FREE_LISTS = 17
#: size classes: eight per power of two, from MIN_BYTES to 2⁴⁷
_CLASSES = 8 * 33
_EVICTED = _FREE_LISTS + _CLASSES
_WORDS = _EVICTED + _CLASSES
#: a block's header, before its data: the next free block, the capacity, the class, and a magic number xor the address
_HEADER = 64
_MAGIC = 0x666C616D62656175
_PAGE = 4096
_ANONYMOUS = 0x20 if sys.platform.startswith("linux") else 0x1000
#: MADV_HUGEPAGE, for blocks of at least one huge page
_HUGE, _HUGE_PAGE = 14, 1 << 21

_IR = """
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)

define internal void @lock(ptr %state) {{
entry:
  br label %try
try:
  %swap = cmpxchg ptr %state, i64 0, i64 1 acquire monotonic
  %won = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %won, label %done, label %try
done:
  ret void
}}

define internal void @unlock(ptr %state) {{
  store atomic i64 0, ptr %state release, align 8
  ret void
}}

define internal i1 @is_ours(ptr %data) {{
entry:
  %address = ptrtoint ptr %data to i64
  %within = and i64 %address, {page_mask}
  %aligned = icmp eq i64 %within, {head}
  br i1 %aligned, label %look, label %no
look:
  %start = sub i64 %address, {head}
  %sign.at = add i64 %start, 24
  %sign.pointer = inttoptr i64 %sign.at to ptr
  %sign = load i64, ptr %sign.pointer
  %wanted = xor i64 %start, {sign}
  %same = icmp eq i64 %sign, %wanted
  ret i1 %same
no:
  ret i1 false
}}

; unmap a block
define internal void @unmap(ptr %state, ptr %block, i64 %capacity) {{
  %length0 = add i64 %capacity, {head_and_page}
  %length = and i64 %length0, {page_start}
  %at = getelementptr i64, ptr %state, i64 {munmap}
  %munmap = load ptr, ptr %at
  %r = call i32 %munmap(ptr %block, i64 %length)
  ret void
}}

; unmap idle blocks, the largest first, until `more` bytes fit the limit; called under the lock
define internal void @make_room(ptr %state, i64 %more) {{
entry:
  %used.at = getelementptr i64, ptr %state, i64 {used}
  %idle.at = getelementptr i64, ptr %state, i64 {idle}
  %peak.at = getelementptr i64, ptr %state, i64 {peak}
  %floor.at = getelementptr i64, ptr %state, i64 {floor}
  %used = load i64, ptr %used.at
  %peak = load i64, ptr %peak.at
  %floor = load i64, ptr %floor.at
  %wanted = add i64 %used, %more
  %half = lshr i64 %peak, 1
  %added.at = getelementptr i64, ptr %state, i64 {added}
  %added = load i64, ptr %added.at
  %sum = add i64 %half, %added
  %slack.most = call i64 @llvm.umin.i64(i64 %peak, i64 {max_slack})
  %slack = call i64 @llvm.umin.i64(i64 %sum, i64 %slack.most)
  %with.slack = add i64 %peak, %slack
  %most0 = call i64 @llvm.umax.i64(i64 %with.slack, i64 %floor)
  %most = call i64 @llvm.umax.i64(i64 %most0, i64 %wanted)
  br label %check
check:
  %class = phi i64 [ {last}, %entry ], [ %class, %freed ], [ %lower, %next ]
  %idle = load i64, ptr %idle.at
  %held = add i64 %wanted, %idle
  %fits = icmp ule i64 %held, %most
  %none = icmp eq i64 %idle, 0
  %enough = or i1 %fits, %none
  br i1 %enough, label %done, label %look
look:
  %place = add i64 %class, {lists}
  %list = getelementptr i64, ptr %state, i64 %place
  %block = load ptr, ptr %list
  %empty = icmp eq ptr %block, null
  br i1 %empty, label %next, label %take
next:
  %lower = sub i64 %class, 1
  %below = icmp slt i64 %lower, 0
  br i1 %below, label %done, label %check
take:
  %after = load ptr, ptr %block
  store ptr %after, ptr %list
  %capacity.at = getelementptr i64, ptr %block, i64 1
  %capacity = load i64, ptr %capacity.at
  %left = sub i64 %idle, %capacity
  store i64 %left, ptr %idle.at
  %note = add i64 %class, {evicted}
  %note.at = getelementptr i64, ptr %state, i64 %note
  %noted = load i64, ptr %note.at
  %noted.now = or i64 %noted, 1
  store i64 %noted.now, ptr %note.at
  call void @unmap(ptr %state, ptr %block, i64 %capacity)
  br label %freed
freed:
  br label %check
done:
  ret void
}}

; a block of at least `size` bytes, or null; *fresh: whether it is zero-filled
define internal ptr @take(ptr %state, i64 %size, ptr %fresh) {{
entry:
  %less = sub i64 %size, 1
  %zeros = call i64 @llvm.ctlz.i64(i64 %less, i1 true)
  %log = sub i64 63, %zeros
  %shift = sub i64 %log, 3
  %top = lshr i64 %less, %shift
  %eighth = and i64 %top, 7
  %above = sub i64 %log, {first_log}
  %octave = shl i64 %above, 3
  %class = or i64 %octave, %eighth
  %count = add i64 %eighth, 9
  %capacity = shl i64 %count, %shift
  %possible = icmp ult i64 %class, {classes}
  br i1 %possible, label %search, label %fail
search:
  ; this class, and classes up to half as large again
  call void @lock(ptr %state)
  %last0 = add i64 %class, 5
  %last = call i64 @llvm.umin.i64(i64 %last0, i64 {classes})
  br label %look
look:
  %c = phi i64 [ %class, %search ], [ %c.next, %nothing ]
  %more = icmp ult i64 %c, %last
  br i1 %more, label %list, label %new
list:
  %place = add i64 %c, {lists}
  %list.at = getelementptr i64, ptr %state, i64 %place
  %block = load ptr, ptr %list.at
  %empty = icmp eq ptr %block, null
  br i1 %empty, label %nothing, label %reuse
nothing:
  %c.next = add i64 %c, 1
  br label %look
reuse:
  %after = load ptr, ptr %block
  store ptr %after, ptr %list.at
  %its.at = getelementptr i64, ptr %block, i64 1
  %its = load i64, ptr %its.at
  %idle.at = getelementptr i64, ptr %state, i64 {idle}
  %idle = load i64, ptr %idle.at
  %idle.less = sub i64 %idle, %its
  store i64 %idle.less, ptr %idle.at
  call void @count_use(ptr %state, i64 %its, i64 {reused})
  call void @unlock(ptr %state)
  store i8 0, ptr %fresh
  %data = getelementptr i8, ptr %block, i64 {head}
  ret ptr %data
new:
  %note = add i64 %class, {evicted}
  %note.at = getelementptr i64, ptr %state, i64 %note
  %noted = load i64, ptr %note.at
  %was.evicted = and i64 %noted, 1
  %times = lshr i64 %noted, 1
  %times.now = add i64 %times, %was.evicted
  %noted.now = shl i64 %times.now, 1
  store i64 %noted.now, ptr %note.at
  %evicted.now = icmp ne i64 %was.evicted, 0
  %often = icmp ugt i64 %times.now, {tolerated}
  %again = and i1 %evicted.now, %often
  %more.slack = select i1 %again, i64 %capacity, i64 0
  %added.at = getelementptr i64, ptr %state, i64 {added}
  %added = load i64, ptr %added.at
  %added.more = add i64 %added, %more.slack
  %added.most = call i64 @llvm.umin.i64(i64 %added.more, i64 {max_slack})
  store i64 %added.most, ptr %added.at
  call void @make_room(ptr %state, i64 %capacity)
  call void @unlock(ptr %state)
  %length0 = add i64 %capacity, {head_and_page}
  %length = and i64 %length0, {page_start}
  %mmap.at = getelementptr i64, ptr %state, i64 {mmap}
  %mmap = load ptr, ptr %mmap.at
  %made = call ptr %mmap(ptr null, i64 %length, i32 3, i32 {flags}, i32 -1, i64 0)
  %start = ptrtoint ptr %made to i64
  %failed = icmp eq i64 %start, -1
  br i1 %failed, label %fail, label %advise
advise:
  %advice.at = getelementptr i64, ptr %state, i64 {madvise}
  %advice = load ptr, ptr %advice.at
  %can = icmp ne ptr %advice, null
  %large = icmp uge i64 %capacity, {huge_page}
  %should = and i1 %can, %large
  br i1 %should, label %ask, label %sign
ask:
  %r = call i32 %advice(ptr %made, i64 %length, i32 {huge})
  br label %sign
sign:
  %capacity.at = getelementptr i64, ptr %made, i64 1
  store i64 %capacity, ptr %capacity.at
  %class.at = getelementptr i64, ptr %made, i64 2
  store i64 %class, ptr %class.at
  %sign.at = getelementptr i64, ptr %made, i64 3
  %mark = xor i64 %start, {sign}
  store i64 %mark, ptr %sign.at
  call void @lock(ptr %state)
  call void @count_use(ptr %state, i64 %capacity, i64 {fresh})
  call void @unlock(ptr %state)
  store i8 1, ptr %fresh
  %data.new = getelementptr i8, ptr %made, i64 {head}
  ret ptr %data.new
fail:
  ret ptr null
}}

define internal void @count_use(ptr %state, i64 %bytes, i64 %counter) {{
  %used.at = getelementptr i64, ptr %state, i64 {used}
  %used = load i64, ptr %used.at
  %now = add i64 %used, %bytes
  store i64 %now, ptr %used.at
  %peak.at = getelementptr i64, ptr %state, i64 {peak}
  %peak = load i64, ptr %peak.at
  %highest = call i64 @llvm.umax.i64(i64 %peak, i64 %now)
  store i64 %highest, ptr %peak.at
  %counter.at = getelementptr i64, ptr %state, i64 %counter
  %n = load i64, ptr %counter.at
  %n.next = add i64 %n, 1
  store i64 %n.next, ptr %counter.at
  ret void
}}

define ptr @allocate(ptr %state, i64 %size) {{
entry:
  %small = icmp ult i64 %size, {least}
  br i1 %small, label %other, label %large
large:
  %fresh = alloca i8
  %data = call ptr @take(ptr %state, i64 %size, ptr %fresh)
  %none = icmp eq ptr %data, null
  br i1 %none, label %other, label %done
done:
  ret ptr %data
other:
  %context.at = getelementptr i64, ptr %state, i64 {context}
  %context = load ptr, ptr %context.at
  %malloc.at = getelementptr i64, ptr %state, i64 {malloc}
  %malloc = load ptr, ptr %malloc.at
  %its = call ptr %malloc(ptr %context, i64 %size)
  ret ptr %its
}}

define ptr @allocate_zeros(ptr %state, i64 %count, i64 %each) {{
entry:
  %size = mul i64 %count, %each
  %small = icmp ult i64 %size, {least}
  br i1 %small, label %other, label %large
large:
  %fresh = alloca i8
  %data = call ptr @take(ptr %state, i64 %size, ptr %fresh)
  %none = icmp eq ptr %data, null
  br i1 %none, label %other, label %fill
fill:
  %is.fresh = load i8, ptr %fresh
  %zero = icmp ne i8 %is.fresh, 0
  br i1 %zero, label %done, label %set
set:
  call void @llvm.memset.p0.i64(ptr align 64 %data, i8 0, i64 %size, i1 false)
  br label %done
done:
  ret ptr %data
other:
  %context.at = getelementptr i64, ptr %state, i64 {context}
  %context = load ptr, ptr %context.at
  %calloc.at = getelementptr i64, ptr %state, i64 {calloc}
  %calloc = load ptr, ptr %calloc.at
  %its = call ptr %calloc(ptr %context, i64 %count, i64 %each)
  ret ptr %its
}}

define void @release(ptr %state, ptr %data, i64 %size) {{
entry:
  %mine = call i1 @is_ours(ptr %data)
  br i1 %mine, label %keep, label %other
keep:
  %block = getelementptr i8, ptr %data, i64 -{head}
  %capacity.at = getelementptr i64, ptr %block, i64 1
  %capacity = load i64, ptr %capacity.at
  %class.at = getelementptr i64, ptr %block, i64 2
  %class = load i64, ptr %class.at
  call void @lock(ptr %state)
  %used.at = getelementptr i64, ptr %state, i64 {used}
  %used = load i64, ptr %used.at
  %used.less = sub i64 %used, %capacity
  store i64 %used.less, ptr %used.at
  %idle.at = getelementptr i64, ptr %state, i64 {idle}
  %idle = load i64, ptr %idle.at
  %idle.more = add i64 %idle, %capacity
  %most.at = getelementptr i64, ptr %state, i64 {most}
  %most = load i64, ptr %most.at
  %fits = icmp ule i64 %idle.more, %most
  br i1 %fits, label %list, label %back
list:
  store i64 %idle.more, ptr %idle.at
  %place = add i64 %class, {lists}
  %list.at = getelementptr i64, ptr %state, i64 %place
  %first = load ptr, ptr %list.at
  store ptr %first, ptr %block
  store ptr %block, ptr %list.at
  call void @unlock(ptr %state)
  ret void
back:
  call void @unlock(ptr %state)
  call void @unmap(ptr %state, ptr %block, i64 %capacity)
  ret void
other:
  %context.at = getelementptr i64, ptr %state, i64 {context}
  %context = load ptr, ptr %context.at
  %free.at = getelementptr i64, ptr %state, i64 {free}
  %free = load ptr, ptr %free.at
  call void %free(ptr %context, ptr %data, i64 %size)
  ret void
}}

define ptr @reallocate(ptr %state, ptr %data, i64 %size) {{
entry:
  %none = icmp eq ptr %data, null
  br i1 %none, label %first, label %some
first:
  %new = call ptr @allocate(ptr %state, i64 %size)
  ret ptr %new
some:
  %mine = call i1 @is_ours(ptr %data)
  br i1 %mine, label %move, label %other
move:
  %capacity.at = getelementptr i8, ptr %data, i64 {capacity_back}
  %capacity = load i64, ptr %capacity.at
  %moved = call ptr @allocate(ptr %state, i64 %size)
  %failed = icmp eq ptr %moved, null
  br i1 %failed, label %done, label %copy
copy:
  %bytes = call i64 @llvm.umin.i64(i64 %capacity, i64 %size)
  call void @llvm.memcpy.p0.p0.i64(ptr %moved, ptr %data, i64 %bytes, i1 false)
  call void @release(ptr %state, ptr %data, i64 %capacity)
  br label %done
done:
  ret ptr %moved
other:
  %context.at = getelementptr i64, ptr %state, i64 {context}
  %context = load ptr, ptr %context.at
  %realloc.at = getelementptr i64, ptr %state, i64 {realloc}
  %realloc = load ptr, ptr %realloc.at
  %its = call ptr %realloc(ptr %context, ptr %data, i64 %size)
  ret ptr %its
}}

; unmap all idle blocks
define void @trim(ptr %state) {{
entry:
  call void @lock(ptr %state)
  br label %each
each:
  %class = phi i64 [ 0, %entry ], [ %class, %take ], [ %next, %empty ]
  %place = add i64 %class, {lists}
  %list.at = getelementptr i64, ptr %state, i64 %place
  %block = load ptr, ptr %list.at
  %none = icmp eq ptr %block, null
  br i1 %none, label %empty, label %take
take:
  %after = load ptr, ptr %block
  store ptr %after, ptr %list.at
  %capacity.at = getelementptr i64, ptr %block, i64 1
  %capacity = load i64, ptr %capacity.at
  call void @unmap(ptr %state, ptr %block, i64 %capacity)
  br label %each
empty:
  %next = add i64 %class, 1
  %more = icmp ult i64 %next, {classes}
  br i1 %more, label %each, label %done
done:
  %idle.at = getelementptr i64, ptr %state, i64 {idle}
  store i64 0, ptr %idle.at
  %used.at = getelementptr i64, ptr %state, i64 {used}
  %used = load i64, ptr %used.at
  %peak.at = getelementptr i64, ptr %state, i64 {peak}
  store i64 %used, ptr %peak.at
  %added.at = getelementptr i64, ptr %state, i64 {added}
  store i64 0, ptr %added.at
  call void @unlock(ptr %state)
  ret void
}}
"""

_NAMES = ("allocate", "allocate_zeros", "reallocate", "release", "trim")


def _generate() -> str:
    first_log = MIN_BYTES.bit_length() - 2  # log2 of MIN_BYTES - 1, whose class is the last of its octave
    return _IR.format(
        page_mask=_PAGE - 1, page_start=-_PAGE, head=_HEADER, head_and_page=_HEADER + _PAGE - 1, sign=_MAGIC,
        capacity_back=8 - _HEADER, flags=2 | _ANONYMOUS, huge=_HUGE, huge_page=_HUGE_PAGE, least=MIN_BYTES,
        first_log=first_log, classes=_CLASSES, last=_CLASSES - 1, lists=_FREE_LISTS, used=_USED, idle=_IDLE, peak=_PEAK,
        max_slack=MAX_SLACK, added=_ADDED_SLACK, evicted=_EVICTED, tolerated=TOLERATED, most=_MAX_IDLE, floor=_MIN_HELD,
        malloc=_MALLOC, calloc=_CALLOC, realloc=_REALLOC, free=_FREE, context=_CONTEXT, mmap=_MMAP, munmap=_MUNMAP,
        madvise=_MADVISE, reused=_REUSED, fresh=_FRESH)


class _Handler(ctypes.Structure):
    """NumPy's `PyDataMem_Handler`."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
                ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
                ("free", ctypes.c_void_p))


class MemoryStats(NamedTuple):
    """Statistics of large blocks.

    Attributes:
        used, peak, idle: bytes in use, their maximum, and bytes in free lists.
        reused, fresh: how many requests were served from free lists, and by the system.
    """

    used: int
    peak: int
    idle: int
    reused: int
    fresh: int


#: NumPy's name for the capsules of its handlers
_CAPSULE = b"mem_handler"


class Allocator:
    """The handler and its state, which are never freed: arrays may be freed at the end of the process."""

    def __init__(self) -> None:
        source = _generate()
        library = compilation.load(f"allocator\n{source}", _NAMES, lambda: source)
        system = ctypes.CDLL(None)
        system.mmap.restype = ctypes.c_void_p
        system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                                ctypes.c_long)
        # never unmapped
        size = 8 * _WORDS + ctypes.sizeof(_Handler) + len(_CAPSULE) + 1
        self._state: int = system.mmap(None, size, 3, 2 | _ANONYMOUS, -1, 0)
        if self._state in (None, ctypes.c_void_p(-1).value):
            raise MemoryError("no memory for the allocator's state")
        self._get, self._set, self._pointer, capsule = _numpy_handlers()
        numpy_handler = _Handler.from_address(self._pointer(self._get(), _CAPSULE))
        for word, value in ((_MAX_IDLE, MAX_IDLE), (_MIN_HELD, MIN_HELD), (_MALLOC, numpy_handler.malloc),
                            (_CALLOC, numpy_handler.calloc), (_REALLOC, numpy_handler.realloc),
                            (_FREE, numpy_handler.free), (_CONTEXT, numpy_handler.context or 0),
                            (_MMAP, _address(system.mmap)), (_MUNMAP, _address(system.munmap)),
                            (_MADVISE, _address(system.madvise) if sys.platform.startswith("linux") else 0)):
            self._word(word).value = value
        handler = _Handler.from_address(self._state + 8 * _WORDS)
        handler.name, handler.version, handler.context = b"flambeau", 1, self._state
        handler.malloc, handler.calloc = library.address("allocate"), library.address("allocate_zeros")
        handler.realloc, handler.free = library.address("reallocate"), library.address("release")
        # NumPy compares the capsule's name whenever it frees an array, even after this module is gone
        name = ctypes.addressof(handler) + ctypes.sizeof(_Handler)
        ctypes.memmove(name, _CAPSULE, len(_CAPSULE))
        self.capsule = capsule(ctypes.addressof(handler), name, None)
        self._trim = library.function("trim", None, ctypes.c_void_p)

    def _word(self, word: int) -> Any:
        return ctypes.c_int64.from_address(self._state + 8 * word)

    def use(self) -> None:
        """Install the handler in the current context."""
        self._set(self.capsule)

    def trim(self) -> None:
        """Return all idle memory to the system."""
        self._trim(self._state)

    def memory(self) -> MemoryStats:
        """The statistics."""
        return MemoryStats(*(self._word(word).value for word in (_USED, _PEAK, _IDLE, _REUSED, _FRESH)))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _numpy_handlers() -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """NumPy's getter and setter of the handler, and Python's functions that read and make its capsule."""
    api = ctypes.pythonapi
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", api))
    capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCapsule_New", api))
    table = ctypes.cast(pointer(np._core._multiarray_umath._ARRAY_API, None),  # type: ignore[attr-defined]
                        ctypes.POINTER(ctypes.c_void_p))
    set_ = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])
    get = ctypes.PYFUNCTYPE(ctypes.py_object)(table[305])
    return get, set_, pointer, capsule


_allocator: Allocator | None = None
_creation = threading.Lock()


def allocator() -> Allocator | None:
    """The allocator, installed on the first call; None on systems without `mmap`.

    It serves the arrays that are made in the quiet context (`errstate`). While another thread installs it,
    None is returned: that thread may wait for this one to leave the quiet context.
    """
    global _allocator
    if _allocator is None and sys.platform != "win32" and _creation.acquire(blocking=False):
        try:
            if _allocator is None:
                new = Allocator()
                in_quiet(new.use)
                _allocator = new
        finally:
            _creation.release()
    return _allocator


def trim() -> None:
    """Return idle memory to the system, that of the allocator and that of the C library (`malloc_trim`)."""
    if _allocator is not None:
        _allocator.trim()
    malloc_trim = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(ctypes.c_size_t(0))


__all__ = ["MAX_IDLE", "MIN_BYTES", "MIN_HELD", "Allocator", "MemoryStats", "allocator", "trim"]
