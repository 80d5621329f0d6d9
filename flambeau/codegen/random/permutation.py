"""The Fisher-Yates shuffle as a kernel: one random word per swap."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ...runtime import compilation

_IR = """
define void @shuffle(ptr noalias %order, ptr noalias %words, i64 %count) {
entry:
  %last = sub i64 %count, 1
  br label %more
more:
  %i = phi i64 [ 0, %entry ], [ %i.next, %swap ]
  %done = icmp sge i64 %i, %last
  br i1 %done, label %end, label %swap
swap:
  %word.at = getelementptr i32, ptr %words, i64 %i
  %word = load i32, ptr %word.at
  %left = sub i64 %count, %i
  %left.word = trunc i64 %left to i32
  %step = urem i32 %word, %left.word
  %step.wide = zext i32 %step to i64
  %z = add i64 %i, %step.wide
  %here.at = getelementptr i64, ptr %order, i64 %i
  %there.at = getelementptr i64, ptr %order, i64 %z
  %here = load i64, ptr %here.at
  %there = load i64, ptr %there.at
  store i64 %there, ptr %here.at
  store i64 %here, ptr %there.at
  %i.next = add i64 %i, 1
  br label %more
end:
  ret void
}
"""


@cache
def shuffle() -> Any:
    """`shuffle(order, words, count)`: for each i in order, swap elements i and i + words[i] mod (count − i).

    `order` is int64 (count,), `words` uint32 (count − 1,); count is below 2^32.
    """
    library = compilation.load("shuffle", ("shuffle",), lambda: _IR, "few")
    return library.function("shuffle", None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)


__all__ = ["shuffle"]
