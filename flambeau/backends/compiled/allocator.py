"""The memory of large arrays, kept when it is given back: fresh pages of the system cost more than a kernel's work.

NumPy takes its arrays' memory from a handler that may be set (NEP 49), by context. This one is compiled code. It hands
blocks of less than `LEAST` bytes on to NumPy's own handler; larger ones it asks the system for, in size classes an
eighth of a power of two apart, and keeps in lists when they are freed. What it holds, in use and idle, never exceeds
what has been in use at the highest by more than a half, or `FLOOR` where that is more: without the half, blocks
of other sizes drive out in every step what the next one asks for again. Idle blocks alone never exceed `MOST`.

Arrays made so are like all others: they own their memory, and it is freed when they are.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...runtime import compilation
from ..errstate import in_quiet

#: bytes from which blocks are kept
LEAST = 1 << 15
#: bytes that may be held, whatever was in use
FLOOR = 64 << 20
#: bytes that may lie idle
MOST = 1 << 30

#: words of the state: the lock, bytes in use and idle, the most ever in use, limits, NumPy's own functions, the
#: system's, counts, and from LISTS on the first free block of every class
_LOCK, _USED, _IDLE, _PEAK, _MOST, _FLOOR, _MALLOC, _CALLOC, _REALLOC, _FREE, _CONTEXT = range(11)
_MMAP, _MUNMAP, _MADVISE, _KEPT, _FRESH = range(11, 16)
_LISTS = 16
#: size classes: eight to every power of two, from LEAST to 2⁴⁷
_CLASSES = 8 * 33
#: a block's head, before its data: the next free one, its capacity, its class, and what shows that it is one
_HEAD = 64
_SIGN = 0x666C616D62656175
_PAGE = 4096
_ANONYMOUS = 0x20 if sys.platform.startswith("linux") else 0x1000
#: advice to use large pages, for blocks of at least as many bytes as one has
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

define internal i1 @ours(ptr %data) {{
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

; give a block's memory back to the system
define internal void @drop(ptr %state, ptr %block, i64 %capacity) {{
  %length0 = add i64 %capacity, {head_and_page}
  %length = and i64 %length0, {page_start}
  %at = getelementptr i64, ptr %state, i64 {munmap}
  %munmap = load ptr, ptr %at
  %r = call i32 %munmap(ptr %block, i64 %length)
  ret void
}}

; free idle blocks, the largest first, until `more` bytes fit into what may be held; called under the lock
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
  %slack = lshr i64 %peak, 1
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
  call void @drop(ptr %state, ptr %block, i64 %capacity)
  br label %freed
freed:
  br label %check
done:
  ret void
}}

; a block of at least `size` bytes; *fresh tells whether it is full of zeros; null where there is none
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
  ; this class, and those up to half as large again
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
  call void @count_in(ptr %state, i64 %its, i64 {kept})
  call void @unlock(ptr %state)
  store i8 0, ptr %fresh
  %data = getelementptr i8, ptr %block, i64 {head}
  ret ptr %data
new:
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
  call void @count_in(ptr %state, i64 %capacity, i64 {fresh})
  call void @unlock(ptr %state)
  store i8 1, ptr %fresh
  %data.new = getelementptr i8, ptr %made, i64 {head}
  ret ptr %data.new
fail:
  ret ptr null
}}

define internal void @count_in(ptr %state, i64 %bytes, i64 %counter) {{
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
  %mine = call i1 @ours(ptr %data)
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
  call void @drop(ptr %state, ptr %block, i64 %capacity)
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
  %mine = call i1 @ours(ptr %data)
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

; give all idle blocks back
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
  call void @drop(ptr %state, ptr %block, i64 %capacity)
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
  call void @unlock(ptr %state)
  ret void
}}
"""

_NAMES = ("allocate", "allocate_zeros", "reallocate", "release", "trim")


def _generate() -> str:
    first_log = LEAST.bit_length() - 2  # of LEAST - 1, whose class is the last of its octave
    return _IR.format(
        page_mask=_PAGE - 1, page_start=-_PAGE, head=_HEAD, head_and_page=_HEAD + _PAGE - 1, sign=_SIGN,
        capacity_back=8 - _HEAD, flags=2 | _ANONYMOUS, huge=_HUGE, huge_page=_HUGE_PAGE, least=LEAST,
        first_log=first_log, classes=_CLASSES, last=_CLASSES - 1, lists=_LISTS, used=_USED, idle=_IDLE, peak=_PEAK,
        most=_MOST, floor=_FLOOR, malloc=_MALLOC, calloc=_CALLOC, realloc=_REALLOC, free=_FREE, context=_CONTEXT,
        mmap=_MMAP, munmap=_MUNMAP, madvise=_MADVISE, kept=_KEPT, fresh=_FRESH)


class _Handler(ctypes.Structure):
    """NumPy's `PyDataMem_Handler`."""

    _fields_ = (("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("context", ctypes.c_void_p),
                ("malloc", ctypes.c_void_p), ("calloc", ctypes.c_void_p), ("realloc", ctypes.c_void_p),
                ("free", ctypes.c_void_p))


class Memory(NamedTuple):
    """Bytes and counts of large blocks: `used` now, at the highest, `idle`; how often one was kept, and was fresh."""

    used: int
    highest: int
    idle: int
    kept: int
    fresh: int


#: what NumPy calls the capsules of its handlers
_CAPSULE = b"mem_handler"


class Allocator:
    """The handler and its state, which live as long as the process: arrays may be freed at its very end."""

    def __init__(self) -> None:
        source = _generate()
        library = compilation.load(f"allocator\n{source}", _NAMES, lambda: source)
        system = ctypes.CDLL(None)
        system.mmap.restype = ctypes.c_void_p
        system.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int,
                                ctypes.c_long)
        # one that is never given back holds the state
        size = 8 * (_LISTS + _CLASSES) + ctypes.sizeof(_Handler) + len(_CAPSULE) + 1
        self._state: int = system.mmap(None, size, 3, 2 | _ANONYMOUS, -1, 0)
        if self._state in (None, ctypes.c_void_p(-1).value):
            raise MemoryError("no memory for the allocator's state")
        self._get, self._set, self._pointer, capsule = _numpy_handlers()
        theirs = _Handler.from_address(self._pointer(self._get(), _CAPSULE))
        for word, value in ((_MOST, MOST), (_FLOOR, FLOOR), (_MALLOC, theirs.malloc), (_CALLOC, theirs.calloc),
                            (_REALLOC, theirs.realloc), (_FREE, theirs.free), (_CONTEXT, theirs.context or 0),
                            (_MMAP, _address(system.mmap)), (_MUNMAP, _address(system.munmap)),
                            (_MADVISE, _address(system.madvise) if sys.platform.startswith("linux") else 0)):
            self._word(word).value = value
        handler = _Handler.from_address(self._state + 8 * (_LISTS + _CLASSES))
        handler.name, handler.version, handler.context = b"flambeau", 1, self._state
        handler.malloc, handler.calloc = library.address("allocate"), library.address("allocate_zeros")
        handler.realloc, handler.free = library.address("reallocate"), library.address("release")
        # NumPy compares the capsule's name whenever it frees an array: it must not go with this module
        name = ctypes.addressof(handler) + ctypes.sizeof(_Handler)
        ctypes.memmove(name, _CAPSULE, len(_CAPSULE))
        self.capsule = capsule(ctypes.addressof(handler), name, None)
        self._trim = library.function("trim", None, ctypes.c_void_p)

    def _word(self, word: int) -> Any:
        return ctypes.c_int64.from_address(self._state + 8 * word)

    def use(self) -> None:
        """Take the memory of this context's arrays from here, from now on."""
        self._set(self.capsule)

    def trim(self) -> None:
        """Give all idle memory back to the system."""
        self._trim(self._state)

    def memory(self) -> Memory:
        """What is held."""
        return Memory(*(self._word(word).value for word in (_USED, _PEAK, _IDLE, _KEPT, _FRESH)))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _numpy_handlers() -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """NumPy's functions that get and set the handler, and Python's that open and make the capsules it lies in."""
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
_making = threading.Lock()


def allocator() -> Allocator | None:
    """The allocator, once it is in use; None where this system has no such memory.

    From its first call on, operators that run quietly (`backends.errstate`) take large arrays' memory from it. Who
    calls while another thread makes it does without: that thread may wait for the caller to be done running quietly.
    """
    global _allocator
    if _allocator is None and sys.platform != "win32" and _making.acquire(blocking=False):
        try:
            if _allocator is None:
                made = Allocator()
                in_quiet(made.use)
                _allocator = made
        finally:
            _making.release()
    return _allocator


def trim() -> None:
    """Give idle memory back to the system: what is kept here, and what the C library keeps, where it can be told to."""
    if _allocator is not None:
        _allocator.trim()
    theirs = None if sys.platform == "win32" else getattr(ctypes.CDLL(None), "malloc_trim", None)
    if theirs is not None:
        theirs(ctypes.c_size_t(0))


__all__ = ["FLOOR", "LEAST", "MOST", "Allocator", "Memory", "allocator", "trim"]
