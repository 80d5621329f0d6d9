"""Launch stubs: lists of calls of CUDA's C functions as one Python built-in function over arrays of a device.

A launch through several layers of Python costs more than the driver's work. A stub is generated code: it reads the
addresses of the operands from the array objects, packs the arguments, calls `cuLaunchKernel` or a library's function
for each step, and makes the arrays of the results.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from ...runtime import entry_points, numpy_abi
from .array import DeviceArray

#: the most words that a call has
_WORDS = 24
#: where a word of a call comes from
CONSTANT, ADDRESS, STREAM = range(3)
#: NumPy's NPY_ARRAY_ALIGNED | NPY_ARRAY_WRITEABLE
_FLAGS = 0x500
#: fields of a block: the status of the last call; numbers of results, of addresses that are given as integers (the
#: results' and extras), of all addresses, of calls; the bits of addresses that must be 0; the class of results; tables
#: of results, calls, constants; functions of NumPy and CPython; then those of `entry_points`
(_STATUS, _RESULTS, _GIVEN, _ADDRESSES_COUNT, _CALLS, _ALIGNMENT, _CLASS, _RESULT_TABLE, _CALL_TABLE, _CONSTANTS,
 _NEW_ARRAY, _SET_BASE_OBJECT, _NEW_TUPLE, _SET_ITEM, _NONE, _FIXED) = range(16)
_ADDRESSES = 16

_IR = """
define ptr @launch(ptr %self, ptr %arguments, i64 %given) {{
entry:
  %block.at = getelementptr i8, ptr %self, i64 {data}
  %block = load ptr, ptr %block.at
  %number.at = getelementptr i64, ptr %block, i64 {address_of}
  %number = load ptr, ptr %number.at
  %stream.object = load ptr, ptr %arguments
  %stream = call i64 %number(ptr %stream.object)
  %results.at = getelementptr i64, ptr %block, i64 {results}
  %results = load i64, ptr %results.at
  %as.numbers.at = getelementptr i64, ptr %block, i64 {as_numbers}
  %as.numbers = load i64, ptr %as.numbers.at
  %total.at = getelementptr i64, ptr %block, i64 {total}
  %total = load i64, ptr %total.at
  %fixed.at = getelementptr i64, ptr %block, i64 {fixed}
  %fixed = load i64, ptr %fixed.at
  %addresses = alloca i64, i64 %total, align 16
  %words = alloca [{most} x i64], align 16
  %pointers = alloca [{most} x ptr], align 16
  %constants.at = getelementptr i64, ptr %block, i64 {constants}
  %constants = load ptr, ptr %constants.at
  br label %numbers
numbers:
  %i = phi i64 [ 0, %entry ], [ %i.next, %take.number ]
  %more.numbers = icmp slt i64 %i, %as.numbers
  br i1 %more.numbers, label %take.number, label %arrays.begin
take.number:
  %object.index = add i64 %i, 1
  %object.at = getelementptr ptr, ptr %arguments, i64 %object.index
  %object = load ptr, ptr %object.at
  %value = call i64 %number(ptr %object)
  %value.at = getelementptr i64, ptr %addresses, i64 %i
  store i64 %value, ptr %value.at
  %i.next = add i64 %i, 1
  br label %numbers
arrays.begin:
  %memories = add i64 %as.numbers, 1
  %first.array = add i64 %memories, %results
  %arrays.end = sub i64 %total, %fixed
  br label %arrays
arrays:
  %j = phi i64 [ %as.numbers, %arrays.begin ], [ %j.next, %take.array ]
  %bits = phi i64 [ 0, %arrays.begin ], [ %bits.next, %take.array ]
  %more.arrays = icmp slt i64 %j, %arrays.end
  br i1 %more.arrays, label %take.array, label %check
take.array:
  %array.number = sub i64 %j, %as.numbers
  %array.index = add i64 %first.array, %array.number
  %array.at = getelementptr ptr, ptr %arguments, i64 %array.index
  %array = load ptr, ptr %array.at
  %data.at = getelementptr i8, ptr %array, i64 {data}
  %data = load i64, ptr %data.at
  %address.at = getelementptr i64, ptr %addresses, i64 %j
  store i64 %data, ptr %address.at
  %bits.next = or i64 %bits, %data
  %j.next = add i64 %j, 1
  br label %arrays
check:
  %alignment.at = getelementptr i64, ptr %block, i64 {alignment}
  %alignment = load i64, ptr %alignment.at
  %off = and i64 %bits, %alignment
  %aligned = icmp eq i64 %off, 0
  br i1 %aligned, label %constant, label %refuse.alignment
refuse.alignment:
  %none.at = getelementptr i64, ptr %block, i64 {none}
  %none = load ptr, ptr %none.at
  %refer.at = getelementptr i64, ptr %block, i64 {refer}
  %refer.none = load ptr, ptr %refer.at
  call void %refer.none(ptr %none)
  ret ptr %none
constant:
  %k = phi i64 [ %arrays.end, %check ], [ %k.next, %take.constant ]
  %more.constants = icmp slt i64 %k, %total
  br i1 %more.constants, label %take.constant, label %calls
take.constant:
  %constant.index = sub i64 %k, %arrays.end
  %constant.at = getelementptr i64, ptr %constants, i64 %constant.index
  %constant.value = load i64, ptr %constant.at
  %constant.to = getelementptr i64, ptr %addresses, i64 %k
  store i64 %constant.value, ptr %constant.to
  %k.next = add i64 %k, 1
  br label %constant
calls:
  %count.at = getelementptr i64, ptr %block, i64 {calls}
  %count = load i64, ptr %count.at
  %table.at = getelementptr i64, ptr %block, i64 {call_table}
  %table = load ptr, ptr %table.at
  br label %call
call:
  %c = phi i64 [ 0, %calls ], [ %c.next, %called ]
  %at = phi ptr [ %table, %calls ], [ %at.next, %called ]
  %more.calls = icmp slt i64 %c, %count
  br i1 %more.calls, label %pack, label %results.begin
pack:
  %function = load ptr, ptr %at
  %used.at = getelementptr i64, ptr %at, i64 1
  %used = load i64, ptr %used.at
  %indirect.at = getelementptr i64, ptr %at, i64 2
  %indirect = load i64, ptr %indirect.at
  %first = getelementptr i64, ptr %at, i64 3
  br label %word
word:
  %w = phi i64 [ 0, %pack ], [ %w.next, %placed ]
  %more.words = icmp slt i64 %w, %used
  br i1 %more.words, label %fetch, label %go
fetch:
  %word.offset = mul i64 %w, 3
  %word.at = getelementptr i64, ptr %first, i64 %word.offset
  %kind = load i64, ptr %word.at
  %which.at = getelementptr i64, ptr %word.at, i64 1
  %which = load i64, ptr %which.at
  %plus.at = getelementptr i64, ptr %word.at, i64 2
  %plus = load i64, ptr %plus.at
  switch i64 %kind, label %from.constant [ i64 1, label %from.address
                                           i64 2, label %from.stream ]
from.constant:
  br label %placed
from.address:
  %base.at = getelementptr i64, ptr %addresses, i64 %which
  %base = load i64, ptr %base.at
  %sum = add i64 %base, %plus
  br label %placed
from.stream:
  br label %placed
placed:
  %word.value = phi i64 [ %plus, %from.constant ], [ %sum, %from.address ], [ %stream, %from.stream ]
  %to = getelementptr i64, ptr %words, i64 %w
  store i64 %word.value, ptr %to
  %pointer.to = getelementptr ptr, ptr %pointers, i64 %w
  store ptr %to, ptr %pointer.to
  %w.next = add i64 %w, 1
  br label %word
go:
  %direct = icmp eq i64 %indirect, 0
  br i1 %direct, label %plain, label %kernel
plain:
{loads}
  %plain.status = call i32 %function({plain_arguments})
  br label %status
kernel:
{kernel_loads}
  %parameters = getelementptr ptr, ptr %pointers, i64 {kernel_words}
  %kernel.status = call i32 %function(i64 %k0, i64 %k1, i64 %k2, i64 %k3, i64 %k4, i64 %k5, i64 %k6, i64 %k7,
      i64 %k8, ptr %parameters, ptr null)
  br label %status
status:
  %code = phi i32 [ %plain.status, %plain ], [ %kernel.status, %kernel ]
  %good = icmp eq i32 %code, 0
  br i1 %good, label %called, label %failed
failed:
  %wide = zext i32 %code to i64
  %status.at = getelementptr i64, ptr %block, i64 {status}
  store i64 %wide, ptr %status.at
  br label %refuse
called:
  %c.next = add i64 %c, 1
  %length3 = mul i64 %used, 3
  %length = add i64 %length3, 3
  %at.next = getelementptr i64, ptr %at, i64 %length
  br label %call
results.begin:
  %single = icmp eq i64 %results, 1
  %void = icmp eq i64 %results, 0
  br i1 %void, label %nothing, label %some.results
nothing:
  %n.at = getelementptr i64, ptr %block, i64 {stream_object}
  %true.object = load ptr, ptr %n.at
  %refer2.at = getelementptr i64, ptr %block, i64 {refer}
  %refer2 = load ptr, ptr %refer2.at
  call void %refer2(ptr %true.object)
  ret ptr %true.object
some.results:
  br i1 %single, label %make.begin, label %tuple
tuple:
  %new.tuple.at = getelementptr i64, ptr %block, i64 {new_tuple}
  %new.tuple = load ptr, ptr %new.tuple.at
  %several = call ptr %new.tuple(i64 %results)
  br label %make.begin
make.begin:
  %holder = phi ptr [ null, %some.results ], [ %several, %tuple ]
  %new.at = getelementptr i64, ptr %block, i64 {new_array}
  %new = load ptr, ptr %new.at
  %set.base.at = getelementptr i64, ptr %block, i64 {set_base}
  %set.base = load ptr, ptr %set.base.at
  %refer3.at = getelementptr i64, ptr %block, i64 {refer}
  %refer3 = load ptr, ptr %refer3.at
  %class.at = getelementptr i64, ptr %block, i64 {class_of}
  %class = load ptr, ptr %class.at
  %specs.at = getelementptr i64, ptr %block, i64 {result_table}
  %specs = load ptr, ptr %specs.at
  br label %make
make:
  %m = phi i64 [ 0, %make.begin ], [ %m.next, %stored ]
  %spec = phi ptr [ %specs, %make.begin ], [ %spec.next, %stored ]
  %descriptor = load ptr, ptr %spec
  %rank.at = getelementptr i64, ptr %spec, i64 1
  %rank = load i64, ptr %rank.at
  %rank32 = trunc i64 %rank to i32
  %shape = getelementptr i64, ptr %spec, i64 2
  %strides = getelementptr i64, ptr %shape, i64 %rank
  %spec.next = getelementptr i64, ptr %strides, i64 %rank
  %where.at = getelementptr i64, ptr %addresses, i64 %m
  %where = load ptr, ptr %where.at
  call void %refer3(ptr %descriptor)
  %made = call ptr %new(ptr %class, ptr %descriptor, i32 %rank32, ptr %shape, ptr %strides, ptr %where, i32 {flags},
      ptr null)
  %unmade.one = icmp eq ptr %made, null
  br i1 %unmade.one, label %no.memory, label %own
no.memory:
  ret ptr null
own:
  %memory.index = add i64 %memories, %m
  %memory.at = getelementptr ptr, ptr %arguments, i64 %memory.index
  %memory = load ptr, ptr %memory.at
  call void %refer3(ptr %memory)
  %ignored = call i32 %set.base(ptr %made, ptr %memory)
  br i1 %single, label %leave, label %store
store:
  %set.item.at = getelementptr i64, ptr %block, i64 {set_item}
  %set.item = load ptr, ptr %set.item.at
  %ignored2 = call i32 %set.item(ptr %holder, i64 %m, ptr %made)
  br label %stored
stored:
  %m.next = add i64 %m, 1
  %unmade = icmp slt i64 %m.next, %results
  br i1 %unmade, label %make, label %leave
leave:
  %out = phi ptr [ %made, %own ], [ %holder, %stored ]
  ret ptr %out
""" + entry_points.RAISE_TYPE_ERROR + """}}
"""
#: the words of `cuLaunchKernel` before its parameters: function, grid, block, shared memory, stream
_KERNEL_WORDS = 9
_STREAM_OBJECT = _ADDRESSES + entry_points.FIELD_COUNT


class LaunchFailed(Exception):
    """A C function of a stub has returned an error, the block's first word."""


class Word(NamedTuple):
    """An argument of a C function.

    Attributes:
        kind: CONSTANT; ADDRESS, of the entry `which` of the table of addresses, plus `value`; STREAM.
        value: the 64 bits, or the offset in bytes.
    """

    kind: int
    value: int = 0
    which: int = 0


class Call(NamedTuple):
    """A call of a C function that returns a status, 0 for success.

    Attributes:
        function: its address.
        words: its arguments, integers and pointers.
        kernel: whether it is `cuLaunchKernel`, whose words from the tenth on are the kernel's parameters.
    """

    function: int
    words: Sequence[Word]
    kernel: bool = False


class ResultSpec(NamedTuple):
    """A new array: shape, dtype, strides in bytes."""

    shape: tuple[int, ...]
    dtype: np.dtype
    strides: tuple[int, ...]


@cache
def _maker() -> Callable[[np.ndarray], Callable[..., Any]]:
    loads = "\n".join(f"  %w{i}.at = getelementptr i64, ptr %words, i64 {i}\n  %w{i} = load i64, ptr %w{i}.at"
                      for i in range(_WORDS))
    kernel = "\n".join(f"  %k{i}.at = getelementptr i64, ptr %words, i64 {i}\n  %k{i} = load i64, ptr %k{i}.at"
                       for i in range(_KERNEL_WORDS))
    return entry_points.builtin_function_maker("launch", _IR.format(
        data=numpy_abi.DATA, results=_RESULTS, as_numbers=_GIVEN, total=_ADDRESSES_COUNT, fixed=_FIXED,
        most=96, constants=_CONSTANTS, alignment=_ALIGNMENT, none=_NONE, calls=_CALLS, call_table=_CALL_TABLE,
        loads=loads, plain_arguments=", ".join(f"i64 %w{i}" for i in range(_WORDS)), kernel_loads=kernel,
        kernel_words=_KERNEL_WORDS, status=_STATUS, stream_object=_STREAM_OBJECT, new_tuple=_NEW_TUPLE,
        new_array=_NEW_ARRAY, set_base=_SET_BASE_OBJECT, class_of=_CLASS, result_table=_RESULT_TABLE, flags=_FLAGS,
        set_item=_SET_ITEM, **entry_points.field_indices(_ADDRESSES)))


@cache
def _functions() -> tuple[int, ...]:
    """Addresses: of PyArray_NewFromDescr and PyArray_SetBaseObject, PyTuple_New and PyTuple_SetItem, and of None."""
    api = ctypes.pythonapi
    of_tuples = [ctypes.cast(each, ctypes.c_void_p).value or 0 for each in (api.PyTuple_New, api.PyTuple_SetItem)]
    of_arrays = [numpy_abi.function_address(each) for each in (numpy_abi.NEW_FROM_DESCRIPTOR, numpy_abi.SET_BASE)]
    return *of_arrays, *of_tuples, id(None)


class LaunchStub:
    """A built-in function that makes calls and returns new arrays of a device.

    Args:
        calls: the calls, in order.
        results: the new arrays.
        extras: the number of further words that are given: the address of scratch memory, a library's handle.
        constants: addresses of memory that calls use, which stays.
        inputs: the number of arrays that are given.
        aligned: whether the arrays' addresses must be multiples of 16.

    Attributes:
        enter: the function, `enter(stream, *addresses of the results, *extras, *memory of the results, *arrays)`: the
            array, or a tuple of arrays; True where there are no results; None where an array is not aligned. The table
            of addresses has the results, extras, arrays, constants.

    Raises:
        LaunchFailed: by `enter`, where a call returns an error; `status` has its code.
    """

    __slots__ = ("_block", "_references", "enter")

    def __init__(self, calls: Sequence[Call], results: Sequence[ResultSpec], extras: int, constants: Sequence[int],
                 inputs: int, aligned: bool) -> None:
        table: list[int] = []
        for each in calls:
            table += [each.function, len(each.words), int(each.kernel)]
            for word in each.words:
                table += [word.kind, word.which, _signed(word.value)]
        specs: list[int] = []
        for spec in results:
            specs += [id(spec.dtype), len(spec.shape), *spec.shape, *spec.strides]
        tables = [np.array(each or [0], np.int64) for each in (specs, table, [_signed(each) for each in constants])]
        given = len(results) + extras
        fields = [0, len(results), given, given + inputs + len(constants), len(calls), 15 if aligned else 0,
                  id(DeviceArray), *(each.ctypes.data for each in tables), *_functions(), len(constants),
                  *_block_fields(), id(True)]
        self._block = np.array(fields, np.int64)
        self._references = tables, [spec.dtype for spec in results]
        self.enter = _maker()(self._block)

    @property
    def table(self) -> np.ndarray:
        """The calls: for each the function, the number of words, whether it starts a kernel, and each word's fields."""
        found: np.ndarray = self._references[0][1]
        return found

    @property
    def status(self) -> int:
        """The code of the last error."""
        return int(self._block[_STATUS])


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


@cache
def _block_fields() -> tuple[int, ...]:
    """Those of `entry_points`, with the class of errors of stubs."""
    fields = list(entry_points.block_fields())
    fields[1] = id(LaunchFailed)
    fields[2] = ctypes.addressof(_TEXT)
    return tuple(fields)


_TEXT = ctypes.create_string_buffer(b"a call of CUDA failed")

__all__ = ["ADDRESS", "CONSTANT", "STREAM", "Call", "LaunchFailed", "LaunchStub", "ResultSpec", "Word"]
