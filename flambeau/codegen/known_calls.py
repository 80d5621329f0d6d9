"""A built-in function that finds a call among known ones and runs its launch: no bytecode from arguments to result.

A call is known by the layouts of the tensors among its arguments and by its other arguments. The built-in function
reads both from the objects, compares them with the words of each *entry*, calls the entry's function with the arrays,
and makes the tensor of the result.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from ..runtime import entry_points, numpy_abi, object_layout
from . import free_rows
from .llvm import kernel_entry
from .llvm.kernel_entry import FunctionPointer
from .llvm.loop_nests import I1, I32, I64, POINTER, as_opaque_pointer, at, i64, local, loop, word

#: the most tensors among the arguments, arguments of a step, new arrays that it is given, and steps
TENSORS, SOURCES, NEW, STEPS = 8, 32, 8, 48

#: words of a block: the address of the table of the entries' addresses, and their number
ENTRIES, COUNT = 0, 1
#: then objects
OBJECTS = ("tensor", "parameter", "ndarray", "tuple", "float", "int", "str", "none", "false", "true", "zero",
           "grad_mode", "inference", "exception", "_view_steps", "_creation", "no_grad", "multi", "register_view",
           "new_tuple", "size")
#: then lists whose first item must be false or None, the last four of which are the table's own; one whose item must be
#: True; and one whose item says whether a thread may be in inference mode
CLEAR, SET, ASK = 7, 1, 1
#: then functions of CPython's API, and of NumPy's
_FUNCTIONS = ("Py_IncRef", "Py_DecRef", "PyObject_Vectorcall", "PyType_GenericAlloc", "PyContextVar_Get",
              "PyObject_RichCompareBool", "PyDict_Next", "PyDict_Size", "PyErr_ExceptionMatches", "PyErr_Clear",
              "PyErr_Occurred", "PyObject_GetAttr", "PyObject_SetAttr", "PyList_New", "PyList_Append",
              "PyLong_AsLong", "PyWeakref_NewRef", "PyTuple_New")
_FIRST_LIST = 2 + len(OBJECTS)
_FIRST_FUNCTION = _FIRST_LIST + CLEAR + SET + ASK
_OF_NUMPY = ("new_array", "set_base")

#: words of an entry before its arguments: numbers of arguments by position, by name, of tensors; the object that owns
#: the entry and what it refers to; the class of the tuple of several results, or 0; the number of steps, where they
#: begin, and the number of the value that is the result; 0, or where views of the first tensor are described; 0 where
#: nothing is recorded even if a tensor requires gradients; 0, or where free rows are described (`free_rows`)
(BY_POSITION, BY_NAME, TENSOR_COUNT, OWNER, SEVERAL, STEP_COUNT, FIRST_STEP, RESULT, VIEWS, DIFFERENTIABLE, FREE,
 ARGUMENTS) = range(12)
#: words of views: their number, 0 for one that is not in a tuple; of each its offset, rank, shape, strides
VIEW_COUNT, FIRST_VIEW = 0, 1
#: kinds of arguments: a constant [0, object]; a tensor [1, dtype, rank, shape..., strides...]; a tensor that was given
#: before [2, its number]; a list or a tuple with tensors [3, class, length, words of each item...]; a tensor whose
#: first extents are free [4, dtype, rank, how many, stride of a row, other extents..., their strides...]
CONSTANT, TENSOR, AGAIN, SEQUENCE, ROWS = range(5)
#: words of a step before its sources: its length; the function; the number of its arguments; 0 where its value is what
#: it returns, or 1 and more: the number of the new array that is it
STEP_LENGTH, FUNCTION, SOURCE_COUNT, FILLS, FIRST_SOURCE = range(5)
#: kinds of a step's arguments: a value by number, those of the tensors first [0, k]; an object [1, object]; a new array
#: [2, dtype, rank, shape...], or one with the free extents [3, dtype, how many, rank of the rest, its shape...]
GIVEN, FIXED, FRESH, FRESH_ROWS = range(4)

_EQUAL = 2  # Py_EQ
_VOID = ir.VoidType()
_NULL = ir.Constant(POINTER, None)
_BUILTIN = ir.FunctionType(POINTER, [POINTER, POINTER, I64])


@cache
def function_fields() -> tuple[int, ...]:
    """The addresses of functions, the last words of a block."""
    return (*(ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS),
            *map(numpy_abi.function_address, (numpy_abi.NEW_FROM_DESCRIPTOR, numpy_abi.SET_BASE)))


def _memory(b: ir.IRBuilder, type_: ir.Type, count: int = 1) -> Any:
    """Stack memory, as an opaque pointer."""
    return as_opaque_pointer(b, local(b, type_, count))


class _Emission:
    """The instructions of one function.

    Args:
        b: the builder.
        block: the address of the block.
    """

    def __init__(self, b: ir.IRBuilder, block: Any) -> None:
        self.b, self.block = b, block

    def object(self, name: str) -> Any:
        return self.b.inttoptr(word(self.b, self.block, 2 + OBJECTS.index(name)), POINTER)

    def call(self, name: str, result: Any, *arguments: Any) -> Any:
        at_ = _FIRST_FUNCTION + (*_FUNCTIONS, *_OF_NUMPY).index(name)
        pointer = self.b.inttoptr(word(self.b, self.block, at_), POINTER)
        type_ = ir.FunctionType(result, [each.type for each in arguments])
        return self.b.call(FunctionPointer(pointer, type_), arguments)

    def refer(self, object_: Any) -> None:
        self.call("Py_IncRef", _VOID, object_)

    def release(self, object_: Any) -> None:
        self.call("Py_DecRef", _VOID, object_)

    def pointer(self, base: Any, offset: Any) -> Any:
        """Load a pointer at a byte offset."""
        return self.b.load(at(self.b, base, offset), typ=POINTER)

    def same(self, left: Any, right: Any) -> Any:
        return self.b.icmp_unsigned("==", self.b.ptrtoint(left, I64), self.b.ptrtoint(right, I64))

    def class_of(self, object_: Any) -> Any:
        return self.pointer(object_, object_layout.TYPE)

    def unless(self, condition: Any) -> Any:
        return self.b.if_then(self.b.not_(condition), likely=False)

    def leave(self, value: Any) -> None:
        """Return an object of the block."""
        self.refer(value)
        self.b.ret(value)


def _emit_equality(module: ir.Module) -> ir.Function:
    """`equal(block, a, b)`: whether two constants are of one class and equal; floats have the same bits."""
    type_ = ir.FunctionType(I1, [POINTER, POINTER, POINTER])
    function, b = kernel_entry.begin(module, "equal", type_)
    function.linkage = "internal"
    block, left, right = function.args
    e = _Emission(b, block)
    yes, no = ir.Constant(I1, 1), ir.Constant(I1, 0)
    with b.if_then(e.same(left, right)):
        b.ret(yes)
    kind = e.class_of(left)
    with e.unless(e.same(kind, e.class_of(right))):
        b.ret(no)
    with b.if_then(e.same(kind, e.object("float"))):
        bits = [b.load(at(b, each, object_layout.FLOAT), typ=I64) for each in (left, right)]
        b.ret(b.icmp_unsigned("==", *bits))
    with b.if_then(b.or_(e.same(kind, e.object("int")), e.same(kind, e.object("str")))):
        found = e.call("PyObject_RichCompareBool", I32, left, right, ir.Constant(I32, _EQUAL))
        b.ret(b.icmp_signed("==", found, ir.Constant(I32, 1)))
    with e.unless(b.or_(e.same(kind, e.object("tuple")), e.same(kind, e.object("size")))):
        b.ret(no)
    lengths = [b.load(at(b, each, object_layout.LENGTH), typ=I64) for each in (left, right)]
    with e.unless(b.icmp_signed("==", *lengths)):
        b.ret(no)
    with loop(b, i64(0), lengths[0]) as i:
        offset = b.add(b.mul(i, i64(8)), i64(object_layout.ITEMS))
        items = [e.pointer(each, offset) for each in (left, right)]
        with e.unless(b.call(function, [block, *items])):
            b.ret(no)
    b.ret(yes)
    return function


def _emit_match(module: ir.Module, equal: ir.Function, slots: dict[str, int]) -> ir.Function:
    """`match(block, object, words, tensors, values, state)`: the words that describe an argument, 0 where it differs.

    `state` has the number of tensors so far, 1 where one of them requires gradients, the product of the free extents,
    and their address, 0 where none were met.
    """
    type_ = ir.FunctionType(I64, [POINTER] * 6)
    match_rows = _emit_match_of_rows(module, slots)
    function, b = kernel_entry.begin(module, "match", type_)
    function.linkage = "internal"
    block, given, words, tensors, values, state = function.args
    e = _Emission(b, block)
    with b.if_then(b.icmp_signed("==", word(b, words, 0), i64(CONSTANT))):
        with e.unless(b.call(equal, [block, given, e.pointer(words, 8)])):
            b.ret(i64(0))
        b.ret(i64(2))
    with b.if_then(b.icmp_signed("==", word(b, words, 0), i64(SEQUENCE))):
        with e.unless(e.same(e.class_of(given), e.pointer(words, 8))):
            b.ret(i64(0))
        length = word(b, words, 2)
        with e.unless(b.icmp_signed("==", b.load(at(b, given, object_layout.LENGTH), typ=I64), length)):
            b.ret(i64(0))
        items, used = _memory(b, POINTER), _memory(b, I64)
        with b.if_else(e.same(e.pointer(words, 8), e.object("tuple"))) as (inside, outside):
            with inside:
                b.store(at(b, given, object_layout.ITEMS), items)
            with outside:
                b.store(e.pointer(given, object_layout.LIST_ITEMS), items)
        b.store(i64(3), used)
        with loop(b, i64(0), length) as i:
            so_far = b.load(used, typ=I64)
            more = b.call(function, [block, e.pointer(b.load(items, typ=POINTER), b.mul(i, i64(8))),
                                     at(b, words, b.mul(so_far, i64(8))), tensors, values, state])
            with b.if_then(b.icmp_signed("==", more, i64(0))):
                b.ret(i64(0))
            b.store(b.add(so_far, more), used)
        b.ret(b.load(used, typ=I64))
    with b.if_then(b.icmp_signed("==", word(b, words, 0), i64(AGAIN))):
        first = b.mul(word(b, words, 1), i64(8))
        with e.unless(e.same(e.pointer(tensors, first), given)):
            b.ret(i64(0))
        here = b.mul(word(b, state, 0), i64(8))
        for each in (tensors, values):
            b.store(e.pointer(each, first), at(b, each, here))
        b.store(b.add(word(b, state, 0), i64(1)), state)
        b.ret(i64(2))
    with b.if_then(b.icmp_signed("==", word(b, words, 0), i64(ROWS)), likely=False):
        b.ret(b.call(match_rows, function.args))
    _emit_tensor(e, slots, function.args, None)
    return function


def _emit_match_of_rows(module: ir.Module, slots: dict[str, int]) -> ir.Function:
    """`match` of tensors whose first extents are free, which is not inlined: calls without them do without it."""
    extents = free_rows.emit_match(module)
    function, b = kernel_entry.begin(module, "match_tensor_of_rows", ir.FunctionType(I64, [POINTER] * 6))
    function.linkage = "internal"
    function.attributes.add("noinline")
    _emit_tensor(_Emission(b, function.args[0]), slots, function.args, extents)
    return function


def _emit_tensor(e: _Emission, slots: dict[str, int], arguments: Sequence[Any], match_extents: Any) -> None:
    """The rest of `match`: an argument that has to be a tensor of this layout.

    Args:
        match_extents: compares the extents where the first ones are free (`free_rows.emit_match`); None: they are not.
    """
    b, (_, given, words, tensors, values, state) = e.b, arguments
    kind = e.class_of(given)
    with e.unless(b.or_(e.same(kind, e.object("tensor")), e.same(kind, e.object("parameter")))):
        b.ret(i64(0))
    array = e.pointer(given, slots["_array"])
    with b.if_then(e.same(array, _NULL), likely=False):
        b.ret(i64(0))
    rank = word(b, words, 2)
    alike = b.and_(e.same(e.class_of(array), e.object("ndarray")),
                   e.same(e.pointer(array, numpy_abi.DESCR), e.pointer(words, 8)))
    with e.unless(alike):
        b.ret(i64(0))
    with e.unless(b.icmp_signed("==", b.sext(b.load(at(b, array, numpy_abi.NDIM), typ=I32), I64), rank)):
        b.ret(i64(0))
    shape, strides = e.pointer(array, numpy_abi.SHAPE), e.pointer(array, numpy_abi.STRIDES)
    used: Any = None
    if match_extents is None:
        with loop(b, i64(0), rank) as d:
            after = b.add(d, i64(3))
            fits = b.and_(b.icmp_signed("==", word(b, shape, d), word(b, words, after)),
                          b.icmp_signed("==", word(b, strides, d), word(b, words, b.add(after, rank))))
            with e.unless(fits):
                b.ret(i64(0))
    else:
        used = b.call(match_extents, [words, rank, shape, strides, state])
        with b.if_then(b.icmp_signed("==", used, i64(0))):
            b.ret(i64(0))
    count = word(b, state, 0)
    with loop(b, i64(0), count) as i:  # one tensor twice is another call
        with b.if_then(e.same(e.pointer(tensors, b.mul(i, i64(8))), given), likely=False):
            b.ret(i64(0))
    place = b.mul(count, i64(8))
    b.store(given, at(b, tensors, place))
    b.store(array, at(b, values, place))
    b.store(b.add(count, i64(1)), state)
    with e.unless(e.same(e.pointer(given, slots["_requires_grad"]), e.object("false"))):
        b.store(i64(1), at(b, state, 8))
    b.ret(b.add(b.mul(rank, i64(2)), i64(3)) if used is None else used)


def _emit_step(module: ir.Module) -> ir.Function:
    """`step(block, words, values, extents)`: the new reference that is the value of a step; null without it.

    An error may be set then, or not. `extents` are the free ones of the call.
    """
    place_shape = free_rows.emit_place_shape(module)
    function, b = kernel_entry.begin(module, "step", ir.FunctionType(POINTER, [POINTER] * 4))
    function.linkage = "internal"
    block, step, values, extents = function.args
    e = _Emission(b, block)
    count = word(b, step, SOURCE_COUNT)
    arguments, fresh, made, source = _memory(b, POINTER, SOURCES), _memory(b, POINTER, NEW), _memory(b, I64), _memory(
        b, POINTER)
    rank, shape, memory = _memory(b, I64), _memory(b, POINTER), _memory(b, I64, free_rows.RANK)
    b.store(i64(0), made)
    b.store(at(b, step, 8 * FIRST_SOURCE), source)

    def release_fresh(kept: Any = None) -> None:
        with (loop(b, i64(0), b.load(made, typ=I64)) as i,
              b.if_then(b.icmp_signed("!=", i, i64(-1) if kept is None else kept))):
            e.release(e.pointer(fresh, b.mul(i, i64(8))))

    with loop(b, i64(0), count) as i:
        words = b.load(source, typ=POINTER)
        kind = word(b, words, 0)
        place = at(b, arguments, b.mul(i, i64(8)))
        with b.if_else(b.icmp_signed(">=", kind, i64(FRESH))) as (new, known):
            with new:
                descriptor = e.pointer(words, 8)
                b.store(word(b, words, 2), rank)
                b.store(at(b, words, 24), shape)
                b.store(at(b, words, b.mul(b.add(word(b, words, 2), i64(3)), i64(8))), source)
                with b.if_then(b.icmp_signed("==", kind, i64(FRESH_ROWS)), likely=False):
                    b.store(b.call(place_shape, [words, extents, memory]), rank)
                    b.store(memory, shape)
                    b.store(at(b, words, b.mul(b.add(word(b, words, 3), i64(4)), i64(8))), source)
                e.refer(descriptor)
                array = e.call("new_array", POINTER, e.object("ndarray"), descriptor,
                               b.trunc(b.load(rank, typ=I64), I32), b.load(shape, typ=POINTER), _NULL, _NULL,
                               ir.Constant(I32, 0), _NULL)
                with b.if_then(e.same(array, _NULL), likely=False):
                    release_fresh()
                    b.ret(_NULL)
                number = b.load(made, typ=I64)
                b.store(array, at(b, fresh, b.mul(number, i64(8))))
                b.store(b.add(number, i64(1)), made)
                b.store(array, place)
            with known:
                with b.if_else(b.icmp_signed("==", kind, i64(GIVEN))) as (given, fixed):
                    with given:
                        b.store(e.pointer(values, b.mul(word(b, words, 1), i64(8))), place)
                    with fixed:
                        b.store(e.pointer(words, 8), place)
                b.store(at(b, words, 16), source)
    returned = e.call("PyObject_Vectorcall", POINTER, e.pointer(step, 8 * FUNCTION), arguments, count, _NULL)
    with b.if_then(e.same(returned, _NULL), likely=False):
        release_fresh()
        b.ret(_NULL)
    number = b.sub(word(b, step, FILLS), i64(1))
    with b.if_then(b.icmp_signed(">=", number, i64(0))):
        first, filled = e.pointer(arguments, 0), e.pointer(fresh, b.mul(number, i64(8)))
        e.release(returned)
        # it returns its first or second argument where it computes nothing
        given = b.or_(e.same(returned, first), e.same(returned, e.pointer(arguments, 8)))
        with b.if_then(b.and_(given, b.not_(e.same(filled, returned))), likely=False):
            release_fresh()
            b.ret(_NULL)
        release_fresh(number)
        b.ret(filled)
    b.ret(returned)
    return function


def _emit_wrap(module: ir.Module, slots: dict[str, int]) -> ir.Function:
    """`wrap(block, array)`: the new tensor of an array, whose reference it takes."""
    function, b = kernel_entry.begin(module, "wrap", ir.FunctionType(POINTER, [POINTER, POINTER]))
    function.linkage = "internal"
    block, array = function.args
    e = _Emission(b, block)
    tensor = e.call("PyType_GenericAlloc", POINTER, e.object("tensor"), i64(0))
    with b.if_then(e.same(tensor, _NULL), likely=False):
        e.release(array)
        b.ret(_NULL)
    b.store(array, at(b, tensor, slots["_array"]))
    for name, value in (("_requires_grad", "false"), ("_output_nr", "zero"), *((each, "none") for each in (
            "_node", "_grad", "_counter", "_base", "_accumulator"))):
        e.refer(e.object(value))
        b.store(e.object(value), at(b, tensor, slots[name]))
    b.ret(tensor)
    return function


def _emit_wrap_all(module: ir.Module, wrap: ir.Function) -> ir.Function:
    """`wrap_all(block, arrays, class)`: the tensors of a tuple of arrays, as a tuple of a class."""
    function, b = kernel_entry.begin(module, "wrap_all", ir.FunctionType(POINTER, [POINTER] * 3))
    function.linkage = "internal"
    block, arrays, kind = function.args
    e = _Emission(b, block)
    count = b.load(at(b, arrays, object_layout.LENGTH), typ=I64)
    made = e.call("PyTuple_New", POINTER, count)
    with b.if_then(e.same(made, _NULL), likely=False):
        b.ret(_NULL)
    with loop(b, i64(0), count) as i:
        offset = b.add(b.mul(i, i64(8)), i64(object_layout.ITEMS))
        array = e.pointer(arrays, offset)
        e.refer(array)
        tensor = b.call(wrap, [block, array])
        with b.if_then(e.same(tensor, _NULL), likely=False):
            e.release(made)
            b.ret(_NULL)
        b.store(tensor, at(b, made, offset))
    with b.if_then(e.same(kind, e.object("tuple"))):
        b.ret(made)
    pair = _memory(b, POINTER, 2)
    b.store(kind, pair)
    b.store(made, at(b, pair, 8))
    result = e.call("PyObject_Vectorcall", POINTER, e.object("new_tuple"), pair, i64(2), _NULL)
    e.release(made)
    b.ret(result)
    return function


def _emit_run(module: ir.Module, slots: dict[str, int]) -> ir.Function:
    """`run(block, entry, values, extents)`: the result of an entry's steps; `values` has the arrays of the tensors."""
    step, wrap = _emit_step(module), _emit_wrap(module, slots)
    wrap_all = _emit_wrap_all(module, wrap)
    function, b = kernel_entry.begin(module, "run", ir.FunctionType(POINTER, [POINTER] * 4))
    function.linkage = "internal"
    block, entry, values, extents = function.args
    e = _Emission(b, block)
    owner, several = e.pointer(entry, 8 * OWNER), e.pointer(entry, 8 * SEVERAL)
    tensors, steps, last = (word(b, entry, each) for each in (TENSOR_COUNT, STEP_COUNT, RESULT))
    words, count = _memory(b, POINTER), _memory(b, I64)
    # while a step runs, tables and tensors may change
    e.refer(owner)
    with loop(b, i64(0), tensors) as i:
        e.refer(e.pointer(values, b.mul(i, i64(8))))
    b.store(tensors, count)
    b.store(at(b, entry, b.mul(word(b, entry, FIRST_STEP), i64(8))), words)

    def release_values() -> None:
        with loop(b, i64(0), b.load(count, typ=I64)) as i:
            e.release(e.pointer(values, b.mul(i, i64(8))))
        e.release(owner)

    def give_up() -> None:
        """Return None in place of an error: the function itself has to raise it."""
        release_values()
        failed = e.call("PyErr_ExceptionMatches", I32, e.object("exception"))
        with b.if_then(b.icmp_signed("==", failed, ir.Constant(I32, 0))):
            b.ret(_NULL)
        e.call("PyErr_Clear", _VOID)
        e.leave(e.object("none"))

    with loop(b, i64(0), steps) as _:
        here = b.load(words, typ=POINTER)
        value = b.call(step, [block, here, values, extents])
        with b.if_then(e.same(value, _NULL), likely=False):
            raised = e.call("PyErr_Occurred", POINTER)
            with b.if_then(e.same(raised, _NULL)):
                release_values()
                e.leave(e.object("none"))
            give_up()
        number = b.load(count, typ=I64)
        b.store(value, at(b, values, b.mul(number, i64(8))))
        b.store(b.add(number, i64(1)), count)
        fits = b.or_(e.same(e.class_of(value), e.object("ndarray")), b.and_(
            b.not_(e.same(several, _NULL)), e.same(e.class_of(value), e.object("tuple"))))
        with e.unless(fits):
            release_values()
            e.leave(e.object("none"))
        b.store(at(b, here, b.mul(word(b, here, STEP_LENGTH), i64(8))), words)
    array = e.pointer(values, b.mul(last, i64(8)))
    e.refer(array)
    with e.unless(e.same(several, _NULL)):
        with e.unless(e.same(e.class_of(array), e.object("tuple"))):
            e.release(array)
            release_values()
            e.leave(e.object("none"))
        finished = b.call(wrap_all, [block, array, several])
        e.release(array)
        release_values()
        b.ret(finished)
    release_values()
    b.ret(b.call(wrap, [block, array]))
    return function


def _emit_views(module: ir.Module, slots: dict[str, int]) -> ir.Function:
    """`views(block, entry, source)`: the view of a tensor that does not require gradients, or the tuple of views.

    None where the tensor's version is not 0, or its views are made in steps.
    """
    function, b = kernel_entry.begin(module, "views", ir.FunctionType(POINTER, [POINTER, POINTER, POINTER]))
    function.linkage = "internal"
    block, entry, source = function.args
    e = _Emission(b, block)
    none, false, zero = e.object("none"), e.object("false"), e.object("zero")
    base, array = e.pointer(source, slots["_base"]), e.pointer(source, slots["_array"])
    described = at(b, entry, b.mul(word(b, entry, VIEWS), i64(8)))
    several = b.icmp_signed("!=", word(b, described, VIEW_COUNT), i64(0))
    creation, root = _memory(b, POINTER), _memory(b, POINTER)
    b.store(none, creation)
    b.store(source, root)

    def attribute(name: str) -> Any:
        """A class-level default, or the attribute of this tensor; the class keeps it, or the tensor does."""
        value = e.call("PyObject_GetAttr", POINTER, source, e.object(name))
        with b.if_then(e.same(value, _NULL), likely=False):
            b.ret(_NULL)
        e.release(value)
        return value

    with e.unless(e.same(base, none)):
        b.store(base, root)
        with e.unless(e.same(attribute("_view_steps"), none)):
            e.leave(none)
        b.store(attribute("_creation"), creation)
    counter = e.pointer(source, slots["_counter"])
    with b.if_then(e.same(counter, none)):
        made = e.call("PyList_New", POINTER, i64(1))
        with b.if_then(e.same(made, _NULL), likely=False):
            b.ret(_NULL)
        e.refer(zero)
        b.store(zero, e.pointer(made, object_layout.LIST_ITEMS))
        b.store(made, at(b, source, slots["_counter"]))
        e.release(none)
    counter = e.pointer(source, slots["_counter"])
    with e.unless(e.same(e.pointer(e.pointer(counter, object_layout.LIST_ITEMS), 0), zero)):
        e.leave(none)
    mode = _memory(b, POINTER)
    e.call("PyContextVar_Get", I32, e.object("grad_mode"), _NULL, mode)
    enabled = b.load(mode, typ=POINTER)
    e.release(enabled)
    with b.if_else(e.same(enabled, false)) as (off, on):
        with off:
            b.store(e.object("no_grad"), creation)
        with on, b.if_then(several):
            b.store(e.object("multi"), creation)
    why, first = b.load(creation, typ=POINTER), b.load(root, typ=POINTER)
    e.refer(why)  # attributes may change while objects are made
    e.refer(first)
    e.refer(array)
    e.refer(counter)
    owner = e.pointer(entry, 8 * OWNER)
    e.refer(owner)
    result, words = _memory(b, POINTER), _memory(b, POINTER)
    b.store(_NULL, result)
    b.store(at(b, described, 8 * FIRST_VIEW), words)

    def leave(value: Any) -> None:
        for each in (why, first, array, counter, owner):
            e.release(each)
        b.ret(value)

    def fail_if(condition: Any, *made: Any) -> None:
        with b.if_then(condition, likely=False):
            for each in made:
                e.release(each)
            with e.unless(e.same(b.load(result, typ=POINTER), _NULL)):
                e.release(b.load(result, typ=POINTER))
            leave(_NULL)

    with b.if_then(several):
        b.store(e.call("PyTuple_New", POINTER, word(b, described, VIEW_COUNT)), result)
        fail_if(e.same(b.load(result, typ=POINTER), _NULL))
    count = b.select(several, word(b, described, VIEW_COUNT), i64(1))
    flags = b.and_(b.load(at(b, array, numpy_abi.FLAGS), typ=I32), ir.Constant(I32, numpy_abi.WRITEABLE))
    with loop(b, i64(0), count) as number:
        here = b.load(words, typ=POINTER)
        rank = word(b, here, 1)
        shape = at(b, here, 16)
        strides = at(b, shape, b.mul(rank, i64(8)))
        b.store(at(b, strides, b.mul(rank, i64(8))), words)
        descriptor = e.pointer(array, numpy_abi.DESCR)
        e.refer(descriptor)
        data = at(b, e.pointer(array, numpy_abi.DATA), word(b, here, 0))
        view = e.call("new_array", POINTER, e.object("ndarray"), descriptor, b.trunc(rank, I32), shape, strides, data,
                      flags, _NULL)
        fail_if(e.same(view, _NULL))
        e.refer(array)
        failed = e.call("set_base", I32, view, array)
        fail_if(b.icmp_signed("<", failed, ir.Constant(I32, 0)), view)
        tensor = e.call("PyType_GenericAlloc", POINTER, e.object("tensor"), i64(0))
        fail_if(e.same(tensor, _NULL), view)
        b.store(view, at(b, tensor, slots["_array"]))
        for name, value in (("_requires_grad", e.pointer(first, slots["_requires_grad"])), ("_output_nr", zero),
                            ("_node", none), ("_grad", none), ("_accumulator", none), ("_counter", counter),
                            ("_base", first)):
            e.refer(value)
            b.store(value, at(b, tensor, slots[name]))
        with e.unless(e.same(why, none)):
            failed = e.call("PyObject_SetAttr", I32, tensor, e.object("_creation"), why)
            fail_if(b.icmp_signed("<", failed, ir.Constant(I32, 0)), tensor)
        length = b.load(at(b, counter, object_layout.LENGTH), typ=I64)
        room = _memory(b, I64)
        b.store(i64(0), room)
        with b.if_then(b.icmp_signed(">", length, i64(1))):
            b.store(e.call("PyLong_AsLong", I64, e.pointer(e.pointer(counter, object_layout.LIST_ITEMS), 8)), room)
        with b.if_else(b.icmp_signed("<=", length, b.load(room, typ=I64))) as (fits, full):
            with fits:
                reference = e.call("PyWeakref_NewRef", POINTER, tensor, _NULL)
                fail_if(e.same(reference, _NULL), tensor)
                failed = e.call("PyList_Append", I32, counter, reference)
                e.release(reference)
                fail_if(b.icmp_signed("<", failed, ir.Constant(I32, 0)), tensor)
            with full:
                pair = _memory(b, POINTER, 2)
                b.store(tensor, pair)
                b.store(counter, at(b, pair, 8))
                registered = e.call("PyObject_Vectorcall", POINTER, e.object("register_view"), pair, i64(2), _NULL)
                fail_if(e.same(registered, _NULL), tensor)
                e.release(registered)
        with b.if_else(several) as (many, single):
            with many:
                place = at(b, b.load(result, typ=POINTER), b.add(b.mul(number, i64(8)), i64(object_layout.ITEMS)))
                b.store(tensor, place)
            with single:
                b.store(tensor, result)
    leave(b.load(result, typ=POINTER))
    return function


def _generate(slots: dict[str, int]) -> str:
    module = ir.Module("known_call")
    equal = _emit_equality(module)
    match, run, views = _emit_match(module, equal, slots), _emit_run(module, slots), _emit_views(module, slots)
    set_words = free_rows.emit_set_words(module)
    function, b = kernel_entry.begin(module, "known_call", _BUILTIN)
    self, arguments, _ = function.args
    block = b.load(at(b, self, numpy_abi.DATA), typ=POINTER)
    e = _Emission(b, block)
    unknown, zero, false = e.object("none"), e.object("zero"), e.object("false")
    mode = _memory(b, POINTER)
    for i in range(CLEAR + SET + ASK):
        item = e.pointer(e.pointer(b.inttoptr(word(b, block, _FIRST_LIST + i), POINTER), object_layout.LIST_ITEMS), 0)
        fits = e.same(item, e.object("true")) if CLEAR <= i < CLEAR + SET else b.or_(e.same(item, unknown), b.or_(
            e.same(item, zero), e.same(item, false)))
        with e.unless(fits):
            if i < CLEAR + SET:
                e.leave(unknown)
            else:
                e.call("PyContextVar_Get", I32, e.object("inference"), _NULL, mode)
                inferring = b.load(mode, typ=POINTER)
                e.release(inferring)
                with e.unless(e.same(inferring, false)):
                    e.leave(unknown)
    by_position, by_name = e.pointer(arguments, 0), e.pointer(arguments, 8)
    positional = b.load(at(b, by_position, object_layout.LENGTH), typ=I64)
    named = e.call("PyDict_Size", I64, by_name)
    tensors, values = _memory(b, POINTER, TENSORS), _memory(b, POINTER, TENSORS + STEPS)
    state, step = _memory(b, I64, free_rows.STATE), _memory(b, I64)
    here, key, value = _memory(b, POINTER), _memory(b, POINTER), _memory(b, POINTER)
    table = e.pointer(block, 8 * ENTRIES)
    with loop(b, i64(0), word(b, block, COUNT)) as number:
        entry = e.pointer(table, b.mul(number, i64(8)))
        counts_fit = b.and_(b.icmp_signed("==", word(b, entry, BY_POSITION), positional),
                            b.icmp_signed("==", word(b, entry, BY_NAME), named))
        with b.if_then(counts_fit):
            b.store(i64(0), state)
            b.store(i64(0), at(b, state, 8))
            b.store(i64(0), at(b, state, 8 * free_rows.EXTENTS))
            b.store(at(b, entry, 8 * ARGUMENTS), here)
            after = function.append_basic_block("differs")

            def compare(object_: Any) -> None:
                """Go on after the words of an argument, to `differs` if it is another one."""
                words = b.load(here, typ=POINTER)
                used = b.call(match, [block, object_, words, tensors, values, state])
                with b.if_then(b.icmp_signed("==", used, i64(0))):
                    b.branch(after)
                b.store(at(b, words, b.mul(used, i64(8))), here)

            with loop(b, i64(0), positional) as i:
                compare(e.pointer(by_position, b.add(b.mul(i, i64(8)), i64(object_layout.ITEMS))))
            b.store(i64(0), step)
            with loop(b, i64(0), named) as _:
                e.call("PyDict_Next", I32, by_name, step, key, value)
                words = b.load(here, typ=POINTER)
                with e.unless(e.same(b.load(key, typ=POINTER), e.pointer(words, 0))):
                    b.branch(after)
                b.store(at(b, words, 8), here)
                compare(b.load(value, typ=POINTER))
            is_free = b.icmp_signed("!=", word(b, entry, FREE), i64(0))
            with b.if_then(is_free, likely=False):
                described = at(b, entry, b.mul(word(b, entry, FREE), i64(8)))
                with b.if_then(b.not_(free_rows.fits(b, described, state))):
                    b.branch(after)
            with b.if_then(b.icmp_signed("!=", b.and_(word(b, state, 1), word(b, entry, DIFFERENTIABLE)), i64(0))):
                e.call("PyContextVar_Get", I32, e.object("grad_mode"), _NULL, mode)
                enabled = b.load(mode, typ=POINTER)
                e.release(enabled)
                with e.unless(e.same(enabled, false)):
                    e.leave(false)
            with b.if_then(b.icmp_signed("!=", word(b, entry, VIEWS), i64(0))):
                b.ret(b.call(views, [block, entry, e.pointer(tensors, 0)]))
            with b.if_then(is_free, likely=False):
                b.call(set_words, [at(b, entry, b.mul(word(b, entry, FREE), i64(8))), state])
                b.ret(b.call(run, [block, entry, values, e.pointer(state, 8 * free_rows.EXTENTS)]))
            b.ret(b.call(run, [block, entry, values, _NULL]))
            b.position_at_end(after)
    e.leave(unknown)
    return str(module)


@cache
def maker(slots: tuple[tuple[str, int], ...]) -> Callable[[np.ndarray], Callable[..., Any]]:
    """The function that makes a built-in function `known_call(args, kwargs)` from a block.

    It returns the result; None where the call is not known, or its steps compute nothing, or raise; False where the
    call would be recorded.

    Args:
        slots: the offsets of the tensor's slots.
    """
    return entry_points.builtin_function_maker("known_call", _generate(dict(slots)))


__all__ = ["AGAIN", "ARGUMENTS", "CLEAR", "CONSTANT", "FIXED", "FRESH", "FRESH_ROWS", "GIVEN", "NEW", "ROWS",
           "SEQUENCE", "SOURCES", "STEPS", "TENSOR", "TENSORS", "function_fields", "maker"]
