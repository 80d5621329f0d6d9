"""The functions of the C interface that make weights of stored bytes, as LLVM IR.

Weights in a file beside are used where the file is mapped (`NAME_weights_open`). Weights that are stored in fewer bits
are decoded into the caller's memory, once (`NAME_weights_init`).
"""

from __future__ import annotations

from collections.abc import Iterator

from .interface import STATUSES, Interface
from .weights import Storage, StoredWeights

_STATUS = {name: number for number, (name, _) in enumerate(STATUSES)}
#: alignment that the address of a file or of memory for weights must have
FILE_ALIGNMENT = 8


def weights_functions(interface: Interface, weights: StoredWeights, size: str) -> Iterator[str]:
    """The functions.

    Args:
        interface: the C interface.
        weights: what is stored.
        size: the type of `size_t` in IR.
    """
    name = interface.name
    if weights.header:
        yield from _file_check(name, weights, size)
    if not weights.segments:
        yield f"define i32 @{name}_weights_open(ptr %file, {size} %file_bytes, ptr %weights) {{\nentry:"
        yield from _check("no.place", "icmp eq ptr %weights, null", "NULL_POINTER")
        yield from _check_file(name, size)
        yield f"  %data = getelementptr i8, ptr %file, i64 {len(weights.header)}"
        yield "  store ptr %data, ptr %weights\n  ret i32 0\n}"
        return
    yield from _decoder(name, weights, size)
    yield f"define {size} @{name}_weights_size() {{\n  ret {size} {weights.memory}\n}}"
    parameters = f", ptr %file, {size} %file_bytes" if weights.header else ""
    yield f"define i32 @{name}_weights_init(ptr %weights, {size} %weights_bytes{parameters}) {{\nentry:"
    yield from _check("no.weights", "icmp eq ptr %weights, null", "NULL_POINTER")
    yield f"  %address = ptrtoint ptr %weights to i64\n  %low = and i64 %address, {FILE_ALIGNMENT - 1}"
    yield from _check("off.weights", "icmp ne i64 %low, 0", "MISALIGNED")
    yield from _check("small.weights", f"icmp ult {size} %weights_bytes, {weights.memory}", "SMALL_WEIGHTS")
    if weights.header:
        yield from _check_file(name, size)
        yield f"  %data = getelementptr i8, ptr %file, i64 {len(weights.header)}"
    source = "%data" if weights.header else f"@{name}_weights"
    yield f"  call void @{name}_decode(ptr %weights, ptr {source})\n  ret i32 0\n}}"


def _check(label: str, condition: str, status: str) -> Iterator[str]:
    yield f"  %{label}.holds = {condition}\n  br i1 %{label}.holds, label %{label}, label %{label}.not"
    yield f"{label}:\n  ret i32 {_STATUS[status]}\n{label}.not:"


def _check_file(name: str, size: str) -> Iterator[str]:
    yield f"  %checked = call i32 @{name}_check_file(ptr %file, {size} %file_bytes)"
    yield "  %is.fine = icmp eq i32 %checked, 0\n  br i1 %is.fine, label %fine, label %not.fine"
    yield "not.fine:\n  ret i32 %checked\nfine:"


def _file_check(name: str, weights: StoredWeights, size: str) -> Iterator[str]:
    """The function that compares a file's size and header with those that were written."""
    data = "".join(f"\\{byte:02X}" for byte in weights.header)
    count = len(weights.header)
    yield f'@{name}_file_header = internal constant [{count} x i8] c"{data}"'
    yield f"define internal i32 @{name}_check_file(ptr %file, {size} %file_bytes) {{\nentry:"
    yield from _check("no.file", "icmp eq ptr %file, null", "NULL_POINTER")
    yield f"  %address = ptrtoint ptr %file to i64\n  %low = and i64 %address, {FILE_ALIGNMENT - 1}"
    yield from _check("off.file", "icmp ne i64 %low, 0", "MISALIGNED")
    yield from _check("wrong.size", f"icmp ne {size} %file_bytes, {count + len(weights.stored)}", "BAD_WEIGHTS")
    yield f"""  br label %head
head:
  %i = phi i64 [ 0, %wrong.size.not ], [ %next, %same ]
  %more = icmp slt i64 %i, {count}
  br i1 %more, label %compare, label %equal
compare:
  %mine.at = getelementptr i8, ptr @{name}_file_header, i64 %i
  %mine = load i8, ptr %mine.at
  %theirs.at = getelementptr i8, ptr %file, i64 %i
  %theirs = load i8, ptr %theirs.at
  %differ = icmp ne i8 %mine, %theirs
  br i1 %differ, label %bad, label %same
same:
  %next = add i64 %i, 1
  br label %head
bad:
  ret i32 {_STATUS["BAD_WEIGHTS"]}
equal:
  ret i32 0
}}"""


def _decoder(name: str, weights: StoredWeights, size: str) -> Iterator[str]:
    """The function that decodes all segments."""
    count = len(weights.segments)
    rows = ", ".join(f"i64 {int(word)}" for segment in weights.segments for word in segment)
    fields = ("kind", "target", "source", "rows", "columns", "scales")
    yield f"@{name}_segments = internal constant [{count * len(fields)} x i64] [{rows}]"
    yield f"declare void @llvm.memmove.p0.p0.{size}(ptr, ptr, {size}, i1)"
    yield f"define internal void @{name}_decode(ptr %to, ptr %from) {{\nentry:\n  br label %head"
    yield "head:\n  %s = phi i64 [ 0, %entry ], [ %s.next, %done ]"
    yield f"  %more = icmp slt i64 %s, {count}\n  br i1 %more, label %segment, label %end\nsegment:"
    yield f"  %row = mul i64 %s, {len(fields)}"
    for i, field in enumerate(fields):
        yield f"  %{field}.i = add i64 %row, {i}"
        yield f"  %{field}.at = getelementptr i64, ptr @{name}_segments, i64 %{field}.i"
        yield f"  %{field} = load i64, ptr %{field}.at"
    narrow = "  %bytes = add i64 %columns, 0" if size == "i64" else "  %bytes = trunc i64 %columns to i32"
    yield f"""  %out = getelementptr i8, ptr %to, i64 %target
  %in = getelementptr i8, ptr %from, i64 %source
  %scale.base = getelementptr i8, ptr %from, i64 %scales
  %count = mul i64 %rows, %columns
  %is.raw = icmp eq i64 %kind, {int(Storage.RAW)}
  br i1 %is.raw, label %raw, label %elements
raw:
{narrow}
  call void @llvm.memmove.p0.p0.{size}(ptr %out, ptr %in, {size} %bytes, i1 false)
  br label %done
elements:
  %i = phi i64 [ 0, %segment ], [ %i.next, %stored ]
  %left = icmp slt i64 %i, %count
  br i1 %left, label %element, label %done
element:
  %place = getelementptr float, ptr %out, i64 %i
  %is.half = icmp eq i64 %kind, {int(Storage.BFLOAT16)}
  br i1 %is.half, label %half, label %byte
half:
  %half.at = getelementptr i16, ptr %in, i64 %i
  %half.bits = load i16, ptr %half.at, align 1
  %wide = zext i16 %half.bits to i32
  %high = shl i32 %wide, 16
  store i32 %high, ptr %place, align 4
  br label %stored
byte:
  %byte.at = getelementptr i8, ptr %in, i64 %i
  %byte.value = load i8, ptr %byte.at
  %number = sitofp i8 %byte.value to float
  %which = udiv i64 %i, %columns
  %scale.at = getelementptr float, ptr %scale.base, i64 %which
  %scale = load float, ptr %scale.at, align 1
  %product = fmul float %number, %scale
  store float %product, ptr %place, align 4
  br label %stored
stored:
  %i.next = add i64 %i, 1
  br label %elements
done:
  %s.next = add i64 %s, 1
  br label %head
end:
  ret void
}}"""


__all__ = ["FILE_ALIGNMENT", "weights_functions"]
