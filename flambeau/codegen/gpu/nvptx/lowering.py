"""Lowering of kernel IR to LLVM IR for the NVPTX target."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from llvmlite import ir

from ...llvm.lowering import constant, intrinsic, lower_node, memory_type, value_type
from ...scalar.scalar_ir import BOOL, DEVICE_ONLY, Node
from .. import fragments
from ..cuda_math.table import function_of
from ..kernel_ir import BLOCK_X, THREAD, WARP, Kernel
from ..scopes import value_in
from ..statements import (
    Atomic,
    Barrier,
    Buffer,
    GetLocal,
    If,
    Load,
    Local,
    Loop,
    Mma,
    SetLocal,
    Shuffle,
    Store,
    While,
)

I1, I32, I64 = ir.IntType(1), ir.IntType(32), ir.IntType(64)
#: address spaces of NVPTX
GLOBAL, SHARED = ir.PointerType(addrspace=1), ir.PointerType(addrspace=3)
_REGISTERS = {THREAD: "tid.x", BLOCK_X: "ctaid.x", BLOCK_X + 1: "ctaid.y", BLOCK_X + 2: "ctaid.z"}
_ATOMICS = {("add", "f"): "fadd", ("add", "i"): "add", ("add", "u"): "add", ("min", "i"): "min", ("max", "i"): "max",
            ("min", "u"): "umin", ("max", "u"): "umax"}
#: operations of `DEVICE_ONLY`, by bytes of an element -> LLVM's intrinsics; what they make of subnormal numbers only
#: matters where they are exact ("ftz": zero)
_APPROXIMATIONS = {
    ("exp2_approx", 4): "ex2.approx.f", ("log2_approx", 4): "lg2.approx.f", ("sin_approx", 4): "sin.approx.f",
    ("cos_approx", 4): "cos.approx.f", ("recip_approx", 4): "rcp.approx.ftz.f",
    ("rsqrt_approx", 4): "rsqrt.approx.f", ("div_approx", 4): "div.approx.f", ("fma_down", 4): "fma.rm.f",
    ("recip_approx", 8): "rcp.approx.ftz.d", ("rsqrt_approx", 8): "rsqrt.approx.d", ("fma_down", 8): "fma.rm.d"}
_SHARED_NAME = "shared_memory"


def module_of(kernels: Sequence[Kernel]) -> ir.Module:
    """A module with a function for each kernel, under its name."""
    module = ir.Module("kernels")
    for kernel in kernels:
        _Function(module, kernel).emit()
    return module


class _OpaquePointer:
    """A global's address with the opaque pointer type, which llvmlite gives to no global."""

    def __init__(self, variable: ir.GlobalVariable, type_: ir.PointerType) -> None:
        self.variable, self.type = variable, type_

    def get_reference(self) -> str:
        return str(self.variable.get_reference())


class _Function:
    """The function of a kernel.

    Attributes:
        scopes: the values of the expressions that are known, for each enclosing body.
    """

    def __init__(self, module: ir.Module, kernel: Kernel) -> None:
        self.module, self.kernel = module, kernel
        types = [GLOBAL if isinstance(each, Buffer) else value_type(each.dtype) for each in kernel.parameters]
        self.function = function = ir.Function(module, ir.FunctionType(ir.VoidType(), types), kernel.name)
        function.calling_convention = "ptx_kernel"
        threads = ir.Constant(I32, kernel.threads)
        module.add_named_metadata("nvvm.annotations", module.add_metadata([function, "maxntidx", threads]))
        self.entry = ir.IRBuilder(function.append_basic_block("entry"))
        self.builder = ir.IRBuilder(function.append_basic_block("start"))
        self.scopes: list[dict[Node, Any]] = [{}]
        self.buffers: dict[int, Any] = {}
        self.locals: dict[Local, Any] = {}
        for each, argument in zip(kernel.parameters, function.args, strict=True):
            if isinstance(each, Buffer):
                self.buffers[each.position] = argument
            else:
                self.scopes[0][each] = argument

    def emit(self) -> None:
        """Emit the kernel's statements."""
        self._run(self.kernel.body)
        self.builder.ret_void()
        self.entry.branch(self.function.blocks[1])

    def _run(self, body: Sequence[Any]) -> None:
        for statement in body:
            self._EMIT[type(statement)](self, statement)

    # ----- expressions -----

    def _value(self, root: Node) -> Any:
        return value_in(self.scopes, root, self._made)

    def _made(self, node: Node, operands: list[Any]) -> Any:
        if node.op == "input":
            return self._register(node)
        if node.op in DEVICE_ONLY:
            name = _APPROXIMATIONS[node.op, node.dtype.itemsize]
            return intrinsic(self.builder, f"nvvm.{name}", operands[0].type, operands, [])
        function = function_of(node.op, node.dtype)
        if function is not None:
            return self._value(function(*node.args))
        return lower_node(self.builder, node, operands)

    def _register(self, node: Node) -> Any:
        name = _REGISTERS.get(node.const)
        if name is None:
            raise ValueError(f"{node} of kernel {self.kernel.family} is used where it is not known")
        return intrinsic(self.builder, f"nvvm.read.ptx.sreg.{name}", I32, [], [])

    # ----- memory -----

    def _address(self, buffer: Buffer, index: Node) -> Any:
        b, element = self.builder, memory_type(buffer.dtype) if buffer.dtype.kind != "V" else ir.IntType(16)
        at = self._value(index)
        if at.type.width < 64:
            at = b.sext(at, I64) if index.dtype.kind == "i" else b.zext(at, I64)
        if buffer.space == "shared":
            base = b.gep(self._shared(), [ir.Constant(I32, buffer.position)], source_etype=ir.IntType(8))
        elif buffer.space == "global":
            base = self.buffers[buffer.position]
        elif buffer.space == "constant":
            base = self._constants(buffer)
        else:
            assert buffer.table is not None
            assert buffer.slot is not None
            address = b.load(self._address(buffer.table, buffer.slot), typ=I64)
            base = b.inttoptr(address, GLOBAL)
        return b.gep(base, [at], source_etype=element)

    def _shared(self) -> Any:
        shared = self.module.globals.get(_SHARED_NAME)
        if shared is None:
            shared = ir.GlobalVariable(self.module, ir.ArrayType(ir.IntType(8), 0), _SHARED_NAME, addrspace=3)
            shared.align = 16
        return _OpaquePointer(shared, SHARED)

    def _constants(self, buffer: Buffer) -> Any:
        name = f"constants_{buffer.dtype}_{hashlib.sha256(repr(buffer.values).encode()).hexdigest()[:16]}"
        table = self.module.globals.get(name)
        if table is None:
            type_ = ir.ArrayType(memory_type(buffer.dtype), len(buffer.values))
            table = ir.GlobalVariable(self.module, type_, name, addrspace=1)
            table.global_constant, table.linkage = True, "internal"
            table.initializer = ir.Constant(type_, list(buffer.values))
        return _OpaquePointer(table, GLOBAL)

    def _load(self, statement: Load) -> None:
        b, dtype, width = self.builder, statement.buffer.dtype, len(statement.results)
        element = memory_type(dtype) if dtype.kind != "V" else ir.IntType(16)
        type_ = ir.VectorType(element, width) if width > 1 else element
        if statement.where is None:
            value = b.load(self._address(statement.buffer, statement.at), typ=type_, align=width * dtype.itemsize)
        else:
            condition = self._value(statement.where)
            before = b.block
            with b.if_then(condition):
                self.scopes.append({})
                inside = b.load(self._address(statement.buffer, statement.at), typ=type_,
                                align=width * dtype.itemsize)
                self.scopes.pop()
                end = b.block
            value = b.phi(type_)
            value.add_incoming(inside, end)
            value.add_incoming(ir.Constant(type_, None), before)
        for k, result in enumerate(statement.results):
            one = b.extract_element(value, ir.Constant(I32, k)) if width > 1 else value
            self.scopes[-1][result] = b.icmp_unsigned("!=", one, constant(0, one.type)) if dtype == BOOL else one

    def _guarded(self, where: Node | None, emit: Any) -> None:
        if where is None:
            emit()
            return
        with self.builder.if_then(self._value(where)):
            self.scopes.append({})
            emit()
            self.scopes.pop()

    def _store(self, statement: Store) -> None:
        b, dtype, width = self.builder, statement.buffer.dtype, len(statement.values)

        def emit() -> None:
            values = [self._value(each) for each in statement.values]
            if dtype == BOOL:
                values = [b.zext(each, ir.IntType(8)) for each in values]
            whole = values[0]
            if width > 1:
                whole = ir.Constant(ir.VectorType(whole.type, width), ir.Undefined)
                for k, each in enumerate(values):
                    whole = b.insert_element(whole, each, ir.Constant(I32, k))
            b.store(whole, self._address(statement.buffer, statement.at), align=width * dtype.itemsize)

        self._guarded(statement.where, emit)

    def _atomic(self, statement: Atomic) -> None:
        def emit() -> None:
            address = self._address(statement.buffer, statement.at)
            op = _ATOMICS[statement.op, statement.buffer.dtype.kind]
            self.builder.atomic_rmw(op, address, self._value(statement.value), "monotonic")

        self._guarded(statement.where, emit)

    # ----- threads -----

    def _barrier(self, statement: Barrier) -> None:
        intrinsic(self.builder, "nvvm.barrier0", ir.VoidType(), [], [])

    def _shuffle(self, statement: Shuffle) -> None:
        b, value = self.builder, self._value(statement.value)
        bits = 1 if value.type == I1 else 8 * statement.value.dtype.itemsize
        whole = value if isinstance(value.type, ir.IntType) else b.bitcast(value, ir.IntType(bits))
        if bits < 32:
            result = b.trunc(self._exchange(b.zext(whole, I32), statement.lanes), whole.type)
        elif bits == 32:
            result = self._exchange(whole, statement.lanes)
        else:
            low = self._exchange(b.trunc(whole, I32), statement.lanes)
            high = self._exchange(b.trunc(b.lshr(whole, constant(32, I64)), I32), statement.lanes)
            result = b.or_(b.zext(low, I64), b.shl(b.zext(high, I64), constant(32, I64)))
        self.scopes[-1][statement.result] = result if result.type == value.type else b.bitcast(result, value.type)

    def _exchange(self, word: Any, lanes: int) -> Any:
        arguments = [ir.Constant(I32, -1), word, ir.Constant(I32, lanes), ir.Constant(I32, WARP - 1)]
        return intrinsic(self.builder, "nvvm.shfl.sync.bfly.i32", I32, arguments, [])

    def _mma(self, statement: Mma) -> None:
        b, layout = self.builder, fragments.SHAPES[statement.shape]
        operands = [*self._packed(statement.a, layout.dtype), *self._packed(statement.b, layout.dtype),
                    *(self._value(each) for each in statement.c)]
        result = ir.LiteralStructType([each.type for each in operands[-len(statement.c):]])
        found = intrinsic(b, layout.intrinsic, result, operands, [])
        for k, each in enumerate(statement.results):
            self.scopes[-1][each] = b.extract_value(found, k)

    def _packed(self, nodes: Sequence[Node], dtype: np.dtype) -> list[Any]:
        """The elements of a fragment in registers of 32 bits; of float16 as vectors of two, which LLVM's names want."""
        b, values = self.builder, [self._value(each) for each in nodes]
        if dtype.itemsize == 4:
            return [b.bitcast(each, I32) for each in values]
        pairs = []
        for low, high in zip(values[::2], values[1::2], strict=True):
            pair = ir.Constant(ir.VectorType(low.type, 2), ir.Undefined)
            for k, each in enumerate((low, high)):
                pair = b.insert_element(pair, each, ir.Constant(I32, k))
            pairs.append(pair if dtype.kind == "f" else b.bitcast(pair, I32))
        return pairs

    # ----- state and control flow -----

    def _set(self, statement: SetLocal) -> None:
        value, local = self._value(statement.value), statement.local
        if local not in self.locals:
            self.locals[local] = self.entry.alloca(value.type)
        self.builder.store(value, self.locals[local])

    def _get(self, statement: GetLocal) -> None:
        type_ = value_type(statement.local.dtype)
        self.scopes[-1][statement.result] = self.builder.load(self.locals[statement.local], typ=type_)

    def _loop(self, statement: Loop) -> None:
        b, function = self.builder, self.function
        start, stop, step = (self._value(each) for each in statement.expressions())
        before = b.block
        head, inside, end = (function.append_basic_block(each) for each in ("loop", "body", "end"))
        b.branch(head)
        b.position_at_end(head)
        index = b.phi(start.type)
        index.add_incoming(start, before)
        compare = b.icmp_signed if statement.counter.dtype.kind == "i" else b.icmp_unsigned
        b.cbranch(compare("<", index, stop), inside, end)
        b.position_at_end(inside)
        self.scopes.append({statement.counter: index})
        self._run(statement.body)
        self.scopes.pop()
        index.add_incoming(b.add(index, step), b.block)
        b.branch(head)
        b.position_at_end(end)

    def _while(self, statement: While) -> None:
        b, function = self.builder, self.function
        head, inside, end = (function.append_basic_block(each) for each in ("while", "body", "end"))
        b.branch(head)
        b.position_at_end(head)
        b.cbranch(b.load(self.locals[statement.going], typ=I1), inside, end)
        b.position_at_end(inside)
        self.scopes.append({})
        self._run(statement.body)
        self.scopes.pop()
        b.branch(head)
        b.position_at_end(end)

    def _if(self, statement: If) -> None:
        with self.builder.if_then(self._value(statement.condition)):
            self.scopes.append({})
            self._run(statement.body)
            self.scopes.pop()

    _EMIT: ClassVar[dict[type, Any]] = {
        Load: _load, Store: _store, Atomic: _atomic, Barrier: _barrier, Shuffle: _shuffle, Mma: _mma, SetLocal: _set,
        GetLocal: _get, Loop: _loop, While: _while, If: _if}


__all__ = ["module_of"]
