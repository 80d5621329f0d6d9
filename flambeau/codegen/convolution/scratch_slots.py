"""Scratch memory that chunks take in turn: as many slots as chunks run at once, so that it stays in the caches.

A word of scratch memory has a bit set for each slot that is free. Which slot a chunk gets does not matter to it.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ...kernels import threads as limits
from ...runtime import compilation
from ...runtime.launch import Launch
from ..llvm import kernel_entry
from ..llvm.loop_nests import I64, POINTER, at, i64, local, word
from ..llvm.lowering import intrinsic
from .plan_fields import Plan

#: slots that the bits of a word can stand for
MOST = 62
#: bytes in front of the first slot
HEADER = 64

_FREE = ("free slots", "scratch")


def count(chunks: int) -> int:
    """How many slots are worth their memory."""
    return max(1, min(chunks, limits.count(), MOST))


def opening(scratch: int, slots: int) -> Launch:
    """The launch that declares all slots free, for scratch memory that is pointer number `scratch`."""
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
    """The slot that a chunk has, if its launch has any; else scratch memory as a whole.

    Attributes:
        place: where it begins.
    """

    def __init__(self, builder: ir.IRBuilder, scratch: Any, plan: Plan) -> None:
        """Take a slot where the builder stands, waiting if all are taken."""
        b = builder
        self.scratch = scratch
        self.any = b.icmp_signed("!=", plan["slots"], i64(0))
        self.number, place = local(b, I64), local(b, POINTER)
        b.store(i64(0), self.number)
        b.store(scratch, place)
        with b.if_then(self.any):
            number = self._take(b)
            b.store(number, self.number)
            b.store(at(b, at(b, scratch, plan["slots.at"]), b.mul(number, plan["slot.bytes"])), place)
        self.place = b.load(place, typ=POINTER)

    def _take(self, builder: ir.IRBuilder) -> Any:
        """The number of a slot that is free and no longer is."""
        look, some, taken = (builder.append_basic_block(name) for name in ("look", "some", "taken"))
        builder.branch(look)
        builder.position_at_end(look)
        free = builder.load_atomic(self.scratch, "monotonic", 8, typ=I64)
        builder.cbranch(builder.icmp_signed("!=", free, i64(0)), some, look)
        builder.position_at_end(some)
        rest = builder.and_(free, builder.sub(free, i64(1)))
        swap = builder.cmpxchg(self.scratch, free, rest, "acq_rel", "monotonic")
        builder.cbranch(builder.extract_value(swap, 1), taken, look)
        builder.position_at_end(taken)
        return intrinsic(builder, "cttz", I64, [free, ir.Constant(ir.IntType(1), 1)], [I64])

    def give(self, builder: ir.IRBuilder) -> None:
        """The slot is free again."""
        with builder.if_then(self.any):
            bit = builder.shl(i64(1), builder.load(self.number, typ=I64))
            builder.atomic_rmw("or", self.scratch, bit, "release")
