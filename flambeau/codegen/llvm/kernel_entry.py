"""Entry points of kernels that are called through ctypes: they take array objects and run chunks on the thread pool.

A kernel is a function `body(pointers, plan, chunk)`: the operands' addresses, the plan (integers that describe the
loops, defined by each family of kernels), and the index of the chunk to compute.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from ...runtime import compilation, numpy_abi, thread_pool
from .loop_nests import I32, I64, POINTER, at, i64, local, loop, word

BODY = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64])
_RUN = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, POINTER, POINTER, I64])


class FunctionPointer:
    """A function pointer as a callee: llvmlite's builder needs the function type, which an opaque pointer lacks."""

    def __init__(self, address: Any, function_type: ir.FunctionType) -> None:
        self.address, self.function_type, self.type = address, function_type, address.type

    def get_reference(self) -> str:
        return str(self.address.get_reference())


def begin(module: ir.Module, name: str, type_: ir.FunctionType) -> tuple[ir.Function, ir.IRBuilder]:
    """Begin a function; the builder is positioned after the entry block, which is left for stack allocations."""
    function = ir.Function(module, type_, name)
    entry = function.append_basic_block("entry")
    start = function.append_basic_block("start")
    ir.IRBuilder(entry).branch(start)
    return function, ir.IRBuilder(start)


def _data_pointer(builder: ir.IRBuilder, array: Any) -> Any:
    return builder.load(at(builder, array, numpy_abi.DATA), typ=POINTER)


def launch(builder: ir.IRBuilder, body: Any, pool: Any, pointers: Any, plan: Any, total: Any) -> None:
    """Emit the run of `total` chunks, on the thread pool if there are several."""
    several = builder.icmp_signed(">", total, i64(1))
    with builder.if_else(several) as (many, one):
        with many:
            run = builder.load(at(builder, pool, thread_pool.RUN_OFFSET), typ=POINTER)
            builder.call(FunctionPointer(run, _RUN), [pool, body, pointers, plan, total])
        with one:
            builder.call(FunctionPointer(body, BODY), [pointers, plan, i64(0)])


def call(count: int) -> compilation.Library:
    """The function `call(pool, body, plan, total, arrays...)`, which runs `total` chunks on `count` array objects."""
    return compilation.load(f"call {count}", ("call",), lambda: _call(count), "few")


def _call(count: int) -> str:
    module = ir.Module("call")
    function, builder = begin(module, "call", ir.FunctionType(ir.VoidType(), [POINTER, POINTER, POINTER, I64,
                                                                             *[POINTER] * count]))
    pool, body, plan, total, *objects = function.args
    pointers = local(builder, POINTER, count)
    for i, array in enumerate(objects):
        builder.store(_data_pointer(builder, array), builder.gep(pointers, [i64(i)], source_etype=POINTER))
    launch(builder, body, pool, pointers, plan, total)
    builder.ret_void()
    return str(module)


def call_type(count: int) -> tuple:
    """The result and argument types of `call` for ctypes."""
    return (None, *[ctypes.c_void_p] * 3, ctypes.c_int64, *[ctypes.c_void_p] * count)


def flat(outputs: int, sizes: Sequence[int]) -> compilation.Library:
    """The function `flat(pool, info, arrays...)`, the fast path of elementwise kernels: 0 if it ran the kernel, else 1.

    It runs the kernel if the arrays, outputs first, are contiguous, have one shape and the expected dtypes, and if each
    output is writeable and the same as, or disjoint from, every input. `info` holds the elements per chunk, the body's
    address, and the addresses of the dtype objects. Kernels with as many outputs and the same item sizes share it.

    Args:
        outputs: the number of outputs.
        sizes: the item sizes of all operands, outputs first.
    """
    return compilation.load(f"flat {outputs} {' '.join(map(str, sizes))}", ("flat",), lambda: _flat(outputs, sizes),
                            "few")


def _flat(outputs: int, sizes: Sequence[int]) -> str:
    count, module = len(sizes), ir.Module("flat")
    function, builder = begin(module, "flat", ir.FunctionType(I64, [POINTER, POINTER, *[POINTER] * count]))
    pool, info, *objects = function.args
    reject = function.append_basic_block("reject")

    def require(condition: Any) -> None:
        accepted = function.append_basic_block("next")
        builder.cbranch(condition, accepted, reject)
        builder.position_at_end(accepted)

    def field(array: Any, offset: int, type_: Any) -> Any:
        return builder.load(at(builder, array, offset), typ=type_)

    rank = field(objects[0], numpy_abi.NDIM, I32)
    for i, array in enumerate(objects):
        require(builder.icmp_signed("==", builder.ptrtoint(field(array, numpy_abi.DESCR, POINTER), I64),
                                 word(builder, info, i + 2)))
        required = numpy_abi.CONTIGUOUS | (numpy_abi.WRITEABLE if i < outputs else 0)
        flags = builder.and_(field(array, numpy_abi.FLAGS, I32), ir.Constant(I32, required))
        require(builder.icmp_signed("==", flags, ir.Constant(I32, required)))
        if i:
            require(builder.icmp_signed("==", field(array, numpy_abi.NDIM, I32), rank))
    shapes = [field(array, numpy_abi.SHAPE, POINTER) for array in objects]
    total = local(builder, I64)
    builder.store(i64(1), total)
    with loop(builder, i64(0), builder.sext(rank, I64)) as d:
        extent = word(builder, shapes[0], d)
        for shape in shapes[1:]:
            require(builder.icmp_signed("==", word(builder, shape, d), extent))
        builder.store(builder.mul(builder.load(total, typ=I64), extent), total)
    n = builder.load(total, typ=I64)

    pointers = local(builder, POINTER, count)
    data = [_data_pointer(builder, array) for array in objects]
    for i, pointer in enumerate(data):
        builder.store(pointer, builder.gep(pointers, [i64(i)], source_etype=POINTER))
    ends = [builder.add(builder.ptrtoint(pointer, I64), builder.mul(n, i64(size)))
            for pointer, size in zip(data, sizes, strict=True)]
    for i in range(outputs):
        for j in range(i + 1, count):
            a, b = builder.ptrtoint(data[i], I64), builder.ptrtoint(data[j], I64)
            disjoint = builder.or_(builder.icmp_signed("<=", ends[i], b), builder.icmp_signed("<=", ends[j], a))
            if j >= outputs and sizes[i] == sizes[j]:
                disjoint = builder.or_(disjoint, builder.icmp_signed("==", a, b))
            require(disjoint)

    none = function.append_basic_block("none")
    some = function.append_basic_block("some")
    builder.cbranch(builder.icmp_signed("==", n, i64(0)), none, some)
    builder.position_at_end(none)
    builder.ret(i64(0))
    builder.position_at_end(some)
    # the same chunks as iteration_space.blocks
    full_blocks = builder.sdiv(n, word(builder, info, 0))
    chunks = builder.select(builder.icmp_signed(">", full_blocks, i64(1)), full_blocks, i64(1))
    size = builder.sdiv(builder.add(n, builder.sub(chunks, i64(1))), chunks)
    rounded = builder.and_(builder.add(size, i64(63)), i64(-64))
    chunks = builder.sdiv(builder.add(n, builder.sub(rounded, i64(1))), rounded)
    plan = local(builder, I64, 2 + count)
    for i, value in enumerate([n, rounded]):
        builder.store(value, builder.gep(plan, [i64(i)], source_etype=I64))
    body = builder.inttoptr(word(builder, info, 1), POINTER)
    launch(builder, body, pool, pointers, plan, chunks)
    builder.ret(i64(0))
    builder.position_at_end(reject)
    builder.ret(i64(1))
    return str(module)


def flat_type(count: int) -> tuple:
    """The result and argument types of `flat` for ctypes."""
    return (ctypes.c_int64, *[ctypes.c_void_p] * (2 + count))
