"""Substitution in triangular systems with few right-hand sides, as a kernel: one dot product for each unknown."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from ...runtime import compilation

_IR = """
define void @substitute(ptr noalias readonly %a, ptr noalias %x, i64 %batch, i64 %n, i64 %m, i64 %a.batch, i64 %a.row,
                        i64 %a.column, i64 %first, i64 %step, i64 %is.unit) {
entry:
  %size = mul i64 %n, %m
  %no.diagonal = icmp ne i64 %is.unit, 0
  %x.step = mul i64 %step, %m
  %a.step = mul i64 %step, %a.column
  br label %system
system:
  %b = phi i64 [ 0, %entry ], [ %b.next, %system.next ]
  %systems.left = icmp slt i64 %b, %batch
  br i1 %systems.left, label %system.begin, label %end
system.begin:
  %a.offset = mul i64 %b, %a.batch
  %a.system = getelementptr {type}, ptr %a, i64 %a.offset
  %x.offset = mul i64 %b, %size
  %x.system = getelementptr {type}, ptr %x, i64 %x.offset
  br label %row
row:
  %done = phi i64 [ 0, %system.begin ], [ %done.next, %row.next ]
  %rows.left = icmp slt i64 %done, %n
  br i1 %rows.left, label %row.begin, label %system.next
row.begin:
  %done.signed = mul i64 %done, %step
  %i = add i64 %first, %done.signed
  %row.offset = mul i64 %i, %a.row
  %a.row.at = getelementptr {type}, ptr %a.system, i64 %row.offset
  %first.column = mul i64 %first, %a.column
  %a.first = getelementptr {type}, ptr %a.row.at, i64 %first.column
  %diagonal.offset = mul i64 %i, %a.column
  %diagonal.at = getelementptr {type}, ptr %a.row.at, i64 %diagonal.offset
  %stored = load {type}, ptr %diagonal.at
  %diagonal = select i1 %no.diagonal, {type} 1.0, {type} %stored
  %x.row = mul i64 %i, %m
  br label %column
column:
  %j = phi i64 [ 0, %row.begin ], [ %j.next, %column.next ]
  %columns.left = icmp slt i64 %j, %m
  br i1 %columns.left, label %column.begin, label %row.next
column.begin:
  %target.offset = add i64 %x.row, %j
  %target = getelementptr {type}, ptr %x.system, i64 %target.offset
  %right = load {type}, ptr %target
  %x.first.row = mul i64 %first, %m
  %x.first.offset = add i64 %x.first.row, %j
  %x.first = getelementptr {type}, ptr %x.system, i64 %x.first.offset
  br label %term
term:
  %k = phi i64 [ 0, %column.begin ], [ %k.next, %term.add ]
  %total = phi {type} [ 0.0, %column.begin ], [ %total.next, %term.add ]
  %terms.left = icmp slt i64 %k, %done
  br i1 %terms.left, label %term.add, label %column.next
term.add:
  %a.k = mul i64 %k, %a.step
  %a.at = getelementptr {type}, ptr %a.first, i64 %a.k
  %factor = load {type}, ptr %a.at
  %x.k = mul i64 %k, %x.step
  %x.at = getelementptr {type}, ptr %x.first, i64 %x.k
  %known = load {type}, ptr %x.at
  %product = fmul reassoc contract {type} %factor, %known
  %total.next = fadd reassoc contract {type} %total, %product
  %k.next = add i64 %k, 1
  br label %term
column.next:
  %rest = fsub {type} %right, %total
  %unknown = fdiv {type} %rest, %diagonal
  store {type} %unknown, ptr %target
  %j.next = add i64 %j, 1
  br label %column
row.next:
  %done.next = add i64 %done, 1
  br label %row
system.next:
  %b.next = add i64 %b, 1
  br label %system
end:
  ret void
}
"""
_TYPES = {np.dtype(np.float32): "float", np.dtype(np.float64): "double"}


@cache
def substitute(dtype: np.dtype) -> Any:
    """`substitute(a, x, batch, n, m, batch stride, row stride, column stride, first, step, unit)`.

    `x` (batch, n, m), row-major, has the right-hand sides and gets the solutions. The strides of `a` are in elements.
    Rows are solved from `first` on by `step`: from 0 by 1 for lower triangles, from n - 1 by -1 for upper ones. `unit`:
    whether the diagonal counts as ones.
    """
    name = _TYPES[dtype]
    library = compilation.load(f"substitute {name}", ("substitute",), lambda: _IR.replace("{type}", name))
    return library.function("substitute", None, ctypes.c_void_p, ctypes.c_void_p, *[ctypes.c_int64] * 9)


__all__ = ["substitute"]
