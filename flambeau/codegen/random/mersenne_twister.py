"""The Mersenne Twister MT19937 as a kernel: bulk draws from the state of NumPy's bit generator.

Matsumoto and Nishimura, "Mersenne Twister", ACM Transactions on Modeling and Computer Simulation 8 (1998). The twist is
vectorized by eight words: word i depends on the words i + 1 and i + 397, modulo 624.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from ...runtime import compilation

WORDS = 624
_FAR, _LANES = 397, 8
_VECTOR = f"<{_LANES} x i32>"
#: the tempering steps (shift, mask); left shifts are negative
_TEMPERING = ((11, 0xFFFFFFFF), (-7, 0x9D2C5680), (-15, 0xEFC60000), (18, 0xFFFFFFFF))
_HIGH, _LOW, _MATRIX = 0x80000000, 0x7FFFFFFF, 0x9908B0DF


def _number(value: int, type_: str) -> str:
    """A constant of the type, splatted over the lanes."""
    signed = value - (1 << 32) if value >> 31 else value
    return str(signed) if type_ == "i32" else f"<{', '.join([f'i32 {signed}'] * _LANES)}>"


def _twist_function(name: str, type_: str) -> list[str]:
    """A function that twists the word or vector of words at an index."""
    high, low, matrix = (_number(value, type_) for value in (_HIGH, _LOW, _MATRIX))
    return [f"define internal void @{name}(ptr %key, i64 %i, i64 %following, i64 %distant) alwaysinline {{",
            *(f"  %{each}.at = getelementptr i32, ptr %key, i64 %{each}" for each in ("i", "following", "distant")),
            f"  %this = load {type_}, ptr %i.at, align 4",
            f"  %next = load {type_}, ptr %following.at, align 4",
            f"  %far = load {type_}, ptr %distant.at, align 4",
            f"  %high = and {type_} %this, {high}",
            f"  %low = and {type_} %next, {low}",
            f"  %both = or {type_} %high, %low",
            f"  %half = lshr {type_} %both, {_number(1, type_)}",
            f"  %odd = and {type_} %next, {_number(1, type_)}",
            f"  %all = sub {type_} {_number(0, type_)}, %odd",
            f"  %twist = and {type_} %all, {matrix}",
            f"  %part = xor {type_} %far, %half",
            f"  %word = xor {type_} %part, %twist",
            f"  store {type_} %word, ptr %i.at, align 4",
            "  ret void", "}"]


def _temper_function(name: str, type_: str) -> list[str]:
    """A function that tempers the word or vector of words at an address into another address."""
    lines = [f"define internal void @{name}(ptr %from, ptr %to) alwaysinline {{",
             f"  %y0 = load {type_}, ptr %from, align 4"]
    for k, (shift, mask) in enumerate(_TEMPERING):
        way = "lshr" if shift > 0 else "shl"
        lines += [f"  %s{k} = {way} {type_} %y{k}, {_number(abs(shift), type_)}",
                  f"  %m{k} = and {type_} %s{k}, {_number(mask, type_)}",
                  f"  %y{k + 1} = xor {type_} %y{k}, %m{k}"]
    return [*lines, f"  store {type_} %y{len(_TEMPERING)}, ptr %to, align 4", "  ret void", "}"]


def _twist() -> list[str]:
    """The function that twists the entire state: vectors up to where index i + 397 wraps, then up to the end."""
    lines = ["define internal void @twist(ptr %key) {", "entry:"]
    before = "entry"
    start = 0
    for part, (end, distance) in enumerate(((WORDS - _FAR, _FAR), (WORDS - 1, _FAR - WORDS))):
        vector_end = start + (end - start) // _LANES * _LANES
        lines += [f"  br label %part{part}", f"part{part}:",
                  f"  %i{part} = phi i64 [ {start}, %{before} ], [ %next{part}, %part{part} ]",
                  f"  %following{part} = add i64 %i{part}, 1",
                  f"  %distant{part} = add i64 %i{part}, {distance}",
                  f"  call void @twist.many(ptr %key, i64 %i{part}, i64 %following{part}, i64 %distant{part})",
                  f"  %next{part} = add i64 %i{part}, {_LANES}",
                  f"  %done{part} = icmp eq i64 %next{part}, {vector_end}",
                  f"  br i1 %done{part}, label %rest{part}, label %part{part}", f"rest{part}:"]
        lines += [f"  call void @twist.one(ptr %key, i64 {i}, i64 {i + 1}, i64 {i + distance})"
                  for i in range(vector_end, end)]
        before, start = f"rest{part}", end
    last = WORDS - 1
    return [*lines, f"  call void @twist.one(ptr %key, i64 {last}, i64 0, i64 {last + _FAR - WORDS})", "  ret void",
            "}"]


_DRAW = f"""
define i64 @draw(ptr noalias %out, i64 %count, ptr noalias %key, i64 %position) {{
entry:
  br label %more
more:
  %done = phi i64 [ 0, %entry ], [ %done.next, %drawn ]
  %at = phi i64 [ %position, %entry ], [ %at.next, %drawn ]
  %rest = sub i64 %count, %done
  %nothing = icmp eq i64 %rest, 0
  br i1 %nothing, label %end, label %check
check:
  %used = icmp eq i64 %at, {WORDS}
  br i1 %used, label %refill, label %temper
refill:
  call void @twist(ptr %key)
  br label %temper
temper:
  %from = phi i64 [ %at, %check ], [ 0, %refill ]
  %there = sub i64 {WORDS}, %from
  %few = icmp ult i64 %rest, %there
  %n = select i1 %few, i64 %rest, i64 %there
  %vector_end = and i64 %n, -{_LANES}
  %source = getelementptr i32, ptr %key, i64 %from
  %target = getelementptr i32, ptr %out, i64 %done
  br label %many
many:
  %i = phi i64 [ 0, %temper ], [ %i.next, %several ]
  %enough = icmp eq i64 %i, %vector_end
  br i1 %enough, label %one, label %several
several:
  %source.many = getelementptr i32, ptr %source, i64 %i
  %target.many = getelementptr i32, ptr %target, i64 %i
  call void @temper.many(ptr %source.many, ptr %target.many)
  %i.next = add i64 %i, {_LANES}
  br label %many
one:
  %j = phi i64 [ %vector_end, %many ], [ %j.next, %single ]
  %all = icmp eq i64 %j, %n
  br i1 %all, label %drawn, label %single
single:
  %source.one = getelementptr i32, ptr %source, i64 %j
  %target.one = getelementptr i32, ptr %target, i64 %j
  call void @temper.one(ptr %source.one, ptr %target.one)
  %j.next = add i64 %j, 1
  br label %one
drawn:
  %done.next = add i64 %done, %n
  %at.next = add i64 %from, %n
  br label %more
end:
  ret i64 %at
}}
"""


def _generate() -> str:
    lines = [*_twist_function("twist.one", "i32"), *_twist_function("twist.many", _VECTOR),
             *_temper_function("temper.one", "i32"), *_temper_function("temper.many", _VECTOR), *_twist()]
    return "\n".join(lines) + _DRAW


def _library() -> compilation.Library:
    return compilation.load("mt19937", ("draw",), _generate, "few")


@cache
def address() -> int:
    """The address of `draw`."""
    return _library().address("draw")


@cache
def draw() -> Any:
    """`draw(out, count, key, position)`: write `count` words drawn from a state; returns its new position."""
    return _library().function("draw", ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)


__all__ = ["WORDS", "address", "draw"]
