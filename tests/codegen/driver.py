"""Compiles one function of flambeau.codegen.math.functions in a minimal loop over arrays."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
from llvmlite import binding, ir

from flambeau.codegen.math import functions
from flambeau.runtime import target

_alive: list = []


def over_arrays(name: str, dtype: np.dtype, lanes: int, fused: bool | None = None) -> Callable[..., np.ndarray]:
    """The function over contiguous arrays of any length, `lanes` elements at a time (0: scalars)."""
    dtype = np.dtype(dtype)
    element = ir.FloatType() if dtype == np.float32 else ir.DoubleType()
    type_ = ir.VectorType(element, lanes) if lanes else element
    arity = 2 if name in functions.BINARY else 1
    module = ir.Module(name)
    i64, pointer = ir.IntType(64), ir.PointerType()
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [pointer] * (arity + 1) + [i64]), "loop")
    *operands, out, count = loop.args
    entry, body, end = (loop.append_basic_block(n) for n in ("entry", "body", "end"))
    builder = ir.IRBuilder(entry)
    builder.cbranch(builder.icmp_signed(">", count, i64(0)), body, end)
    builder.position_at_end(body)
    i = builder.phi(i64)
    i.add_incoming(i64(0), entry)
    values = []
    for operand in operands:
        values.append(builder.load(builder.gep(operand, [i], source_etype=element), typ=type_,
                                   align=dtype.itemsize))
    result = functions.emit(name, builder, values, type_, fused=fused)
    assert builder.block is body, "emit left its block"
    builder.store(result, builder.gep(out, [i], source_etype=element), align=dtype.itemsize)
    following = builder.add(i, i64(max(lanes, 1)))
    i.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, count), body, end)
    builder.position_at_end(end)
    builder.ret_void()

    machine = target.machine()
    compiled = target.optimize(str(module), machine)
    engine = binding.create_mcjit_compiler(compiled, machine, use_lmm=True)  # sections side by side
    engine.finalize_object()
    _alive.append(engine)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (arity + 1), ctypes.c_int64)(
        engine.get_function_address("loop"))

    def run(*arrays: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        n = arrays[0].size
        step = max(lanes, 1)
        padded = -(-n // step) * step
        if padded != n:
            arrays = tuple(np.concatenate([a, np.ones(padded - n, dtype)]) for a in arrays)
        arrays = tuple(np.ascontiguousarray(a, dtype) for a in arrays)
        if out is None:
            out = np.empty(padded, dtype)
        call(*(a.ctypes.data for a in arrays), out.ctypes.data, padded)
        return out[:n]

    run.address = call
    run.assembly = lambda: machine.emit_assembly(compiled)
    return run
