"""Scratch slots: per-thread scratch memory, taken by a chunk from a free list, as many as chunks run at once.

Reusing few slots keeps them in the caches. The free list is a 64-bit mask of free slots in scratch memory.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...kernels import threads as limits
from ...runtime import compilation
from ...runtime.launch import Launch
from ...runtime.symbolic_integers import is_symbolic
from ..llvm import kernel_entry
from ..llvm.loop_nests import I64, POINTER, at, i64, local, word
from ..llvm.lowering import intrinsic
from .plan_fields import Plan

#: maximum number of slots: bits of the mask
MAX_SLOTS = 62
#: bytes in front of the first slot, for the mask
HEADER = 64

_FREE = ("free slots", "scratch")


def count(chunks: int) -> int:
    """The number of slots for a launch: at most one per thread."""
    most = min(limits.count(), MAX_SLOTS)
    return most if is_symbolic(chunks) else max(1, min(chunks, most))


def initializing(scratch: int, slots: int) -> Launch:
    """The launch that marks all slots free; `scratch` is the pointer index of scratch memory."""
    library = compilation.load("convolution slots", ("body",), _generate, "few")
    return Launch(library, library.symbol("body"), 1, ((1 << slots) - 1, scratch))


def _generate() -> str:
    module = ir.Module("slots")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, plan, _ = function.args
    free, scratch = (word(b, plan, i) for i in range(len(_FREE)))
    b.store(free, b.load(b.gep(pointers, [scratch], source_etype=POINTER), typ=POINTER))
    b.ret_void()
    return str(module)


class Slot:
    """The slot of a chunk; the entire scratch memory where the launch has no slots.

    Attributes:
        place: its address.
    """

    def __init__(self, builder: ir.IRBuilder, scratch: Any, plan: Plan) -> None:
        """Acquire a slot at the builder's position; spins while none is free."""
        b = builder
        self.scratch = scratch
        self.any = b.icmp_signed("!=", plan["slots"], i64(0))
        self.number, place = local(b, I64), local(b, POINTER)
        b.store(i64(0), self.number)
        b.store(scratch, place)
        with b.if_then(self.any):
            number = self._acquire(b)
            b.store(number, self.number)
            b.store(at(b, at(b, scratch, plan["slots.at"]), b.mul(number, plan["slot.bytes"])), place)
        self.place = b.load(place, typ=POINTER)

    def _acquire(self, builder: ir.IRBuilder) -> Any:
        """Acquire a free slot; its index."""
        spin, free_slots, acquired = (builder.append_basic_block(name) for name in ("spin", "free_slots", "acquired"))
        builder.branch(spin)
        builder.position_at_end(spin)
        free = builder.load_atomic(self.scratch, "monotonic", 8, typ=I64)
        builder.cbranch(builder.icmp_signed("!=", free, i64(0)), free_slots, spin)
        builder.position_at_end(free_slots)
        rest = builder.and_(free, builder.sub(free, i64(1)))
        swap = builder.cmpxchg(self.scratch, free, rest, "acq_rel", "monotonic")
        builder.cbranch(builder.extract_value(swap, 1), acquired, spin)
        builder.position_at_end(acquired)
        return intrinsic(builder, "cttz", I64, [free, ir.Constant(ir.IntType(1), 1)], [I64])

    def release(self, builder: ir.IRBuilder) -> None:
        """Release the slot."""
        with builder.if_then(self.any):
            bit = builder.shl(i64(1), builder.load(self.number, typ=I64))
            builder.atomic_rmw("or", self.scratch, bit, "release")
