"""Introsort of keys and their places as a kernel: the exchanges of C++ standard libraries, so that ties come out alike.

`partition` splits segments around a median of three by Hoare's scheme until they are short, as `kernels.ties` does in
Python. Segments that are split too often are left to the caller, who sorts them by a heap. `insert` is the last pass, a
stable insertion sort of elements that are near their places.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from llvmlite import ir

from ...runtime import compilation
from ..llvm.loop_nests import I64, POINTER

_IR = """
define i64 @introsort_partition(ptr noalias %keys, ptr noalias %places, i64 %count, i64 %limit, i64 %least,
                                ptr noalias %stack, ptr noalias %left, i64 %capacity) {
entry:
  br label %segment
segment:
  %start = phi i64 [ 0, %entry ], [ %start, %split ], [ %start.popped, %pop ]
  %end = phi i64 [ %count, %entry ], [ %i, %split ], [ %end.popped, %pop ]
  %depth = phi i64 [ %limit, %entry ], [ %depth.less, %split ], [ %depth.popped, %pop ]
  %height = phi i64 [ 0, %entry ], [ %height.more, %split ], [ %height.less, %pop ]
  %spent = phi i64 [ 0, %entry ], [ %spent, %split ], [ %spent.now, %pop ]
  %length = sub i64 %end, %start
  %is.short = icmp sle i64 %length, %least
  br i1 %is.short, label %next, label %long
long:
  %is.spent = icmp eq i64 %depth, 0
  br i1 %is.spent, label %give.up, label %partition
give.up:
  %is.full = icmp sge i64 %spent, %capacity
  br i1 %is.full, label %fail, label %note
note:
  %left.offset = shl i64 %spent, 1
  %left.start = getelementptr i64, ptr %left, i64 %left.offset
  store i64 %start, ptr %left.start
  %left.end = getelementptr i64, ptr %left.start, i64 1
  store i64 %end, ptr %left.end
  %spent.more = add i64 %spent, 1
  br label %next
next:
  %spent.now = phi i64 [ %spent, %segment ], [ %spent.more, %note ]
  %is.empty = icmp eq i64 %height, 0
  br i1 %is.empty, label %done, label %pop
pop:
  %height.less = sub i64 %height, 1
  %pop.offset = mul i64 %height.less, 3
  %pop.start = getelementptr i64, ptr %stack, i64 %pop.offset
  %start.popped = load i64, ptr %pop.start
  %pop.end = getelementptr i64, ptr %pop.start, i64 1
  %end.popped = load i64, ptr %pop.end
  %pop.depth = getelementptr i64, ptr %pop.start, i64 2
  %depth.popped = load i64, ptr %pop.depth
  br label %segment
partition:
  %depth.less = sub i64 %depth, 1
  %low = add i64 %start, 1
  %half = lshr i64 %length, 1
  %middle = add i64 %start, %half
  %high = sub i64 %end, 1
  %low.at = getelementptr i64, ptr %keys, i64 %low
  %middle.at = getelementptr i64, ptr %keys, i64 %middle
  %high.at = getelementptr i64, ptr %keys, i64 %high
  %a = load i64, ptr %low.at
  %b = load i64, ptr %middle.at
  %c = load i64, ptr %high.at
  %a.b = icmp slt i64 %a, %b
  %b.c = icmp slt i64 %b, %c
  %a.c = icmp slt i64 %a, %c
  %high.or.low = select i1 %a.c, i64 %high, i64 %low
  %rising = select i1 %b.c, i64 %middle, i64 %high.or.low
  %high.or.middle = select i1 %b.c, i64 %high, i64 %middle
  %falling = select i1 %a.c, i64 %low, i64 %high.or.middle
  %median = select i1 %a.b, i64 %rising, i64 %falling
  %first.key.at = getelementptr i64, ptr %keys, i64 %start
  %first.place.at = getelementptr i64, ptr %places, i64 %start
  %median.key.at = getelementptr i64, ptr %keys, i64 %median
  %median.place.at = getelementptr i64, ptr %places, i64 %median
  %first.key = load i64, ptr %first.key.at
  %first.place = load i64, ptr %first.place.at
  %pivot = load i64, ptr %median.key.at
  %pivot.place = load i64, ptr %median.place.at
  store i64 %pivot, ptr %first.key.at
  store i64 %pivot.place, ptr %first.place.at
  store i64 %first.key, ptr %median.key.at
  store i64 %first.place, ptr %median.place.at
  br label %scan
scan:
  %i.begin = phi i64 [ %low, %partition ], [ %i.after, %exchange ]
  %j.begin = phi i64 [ %high, %partition ], [ %j.after, %exchange ]
  br label %up
up:
  %i = phi i64 [ %i.begin, %scan ], [ %i.next, %up ]
  %i.at = getelementptr i64, ptr %keys, i64 %i
  %key.i = load i64, ptr %i.at
  %i.next = add i64 %i, 1
  %is.below = icmp slt i64 %key.i, %pivot
  br i1 %is.below, label %up, label %down
down:
  %j = phi i64 [ %j.begin, %up ], [ %j.next, %down ]
  %j.at = getelementptr i64, ptr %keys, i64 %j
  %key.j = load i64, ptr %j.at
  %j.next = sub i64 %j, 1
  %is.above = icmp slt i64 %pivot, %key.j
  br i1 %is.above, label %down, label %meet
meet:
  %have.met = icmp sge i64 %i, %j
  br i1 %have.met, label %split, label %exchange
exchange:
  store i64 %key.j, ptr %i.at
  store i64 %key.i, ptr %j.at
  %i.place.at = getelementptr i64, ptr %places, i64 %i
  %j.place.at = getelementptr i64, ptr %places, i64 %j
  %i.place = load i64, ptr %i.place.at
  %j.place = load i64, ptr %j.place.at
  store i64 %j.place, ptr %i.place.at
  store i64 %i.place, ptr %j.place.at
  %i.after = add i64 %i, 1
  %j.after = sub i64 %j, 1
  br label %scan
split:
  %push.offset = mul i64 %height, 3
  %push.start = getelementptr i64, ptr %stack, i64 %push.offset
  store i64 %i, ptr %push.start
  %push.end = getelementptr i64, ptr %push.start, i64 1
  store i64 %end, ptr %push.end
  %push.depth = getelementptr i64, ptr %push.start, i64 2
  store i64 %depth.less, ptr %push.depth
  %height.more = add i64 %height, 1
  br label %segment
done:
  ret i64 %spent.now
fail:
  ret i64 -1
}

define void @introsort_insert(ptr noalias %keys, ptr noalias %places, i64 %count) {
entry:
  br label %element
element:
  %i = phi i64 [ 1, %entry ], [ %i.next, %placed ]
  %is.done = icmp sge i64 %i, %count
  br i1 %is.done, label %end, label %take
take:
  %key.at = getelementptr i64, ptr %keys, i64 %i
  %place.at = getelementptr i64, ptr %places, i64 %i
  %key = load i64, ptr %key.at
  %place = load i64, ptr %place.at
  br label %compare
compare:
  %j = phi i64 [ %i, %take ], [ %before, %shift ]
  %is.first = icmp eq i64 %j, 0
  br i1 %is.first, label %placed, label %look
look:
  %before = sub i64 %j, 1
  %before.key.at = getelementptr i64, ptr %keys, i64 %before
  %before.key = load i64, ptr %before.key.at
  %is.larger = icmp slt i64 %key, %before.key
  br i1 %is.larger, label %shift, label %placed
shift:
  %here.key.at = getelementptr i64, ptr %keys, i64 %j
  store i64 %before.key, ptr %here.key.at
  %before.place.at = getelementptr i64, ptr %places, i64 %before
  %before.place = load i64, ptr %before.place.at
  %here.place.at = getelementptr i64, ptr %places, i64 %j
  store i64 %before.place, ptr %here.place.at
  br label %compare
placed:
  %final.key.at = getelementptr i64, ptr %keys, i64 %j
  store i64 %key, ptr %final.key.at
  %final.place.at = getelementptr i64, ptr %places, i64 %j
  store i64 %place, ptr %final.place.at
  %i.next = add i64 %i, 1
  br label %element
end:
  ret void
}
"""
#: types of the two functions, for generated code
TYPES = (ir.FunctionType(I64, [POINTER, POINTER, I64, I64, I64, POINTER, POINTER, I64]),
         ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64]))
_POINTER, _INTEGER = ctypes.c_void_p, ctypes.c_int64


@cache
def _library() -> compilation.Library:
    return compilation.load("introsort", ("introsort_partition", "introsort_insert"), lambda: _IR, "few")


def address(name: str) -> int:
    """The address of `introsort_partition` or `introsort_insert`, for generated code."""
    return _library().address(name)


@cache
def partition() -> Any:
    """`partition(keys, places, count, limit, least, stack, left, capacity)`: the number of segments left, or -1.

    `keys` and `places` are int64 (count,). Segments of up to `least` elements are not split. `stack` holds 3 numbers
    for each of `limit` segments, `left` the start and end of up to `capacity` segments that were split `limit` times.
    """
    return _library().function("introsort_partition", _INTEGER, _POINTER, _POINTER, *[_INTEGER] * 3, _POINTER, _POINTER,
                               _INTEGER)


@cache
def insert() -> Any:
    """`insert(keys, places, count)`: a stable insertion sort."""
    return _library().function("introsort_insert", None, _POINTER, _POINTER, _INTEGER)


__all__ = ["TYPES", "address", "insert", "partition"]
