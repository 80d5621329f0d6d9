"""What chunks of convolutions begin with: which block of positions is theirs, and where its part of an array lies."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..llvm.loop_nests import POINTER, at, i64, local, smaller
from .input_packing import ABOUT, FILL
from .plan_fields import Callee, Plan

Places = dict[str, Any]


def block(builder: ir.IRBuilder, plan: Plan, number: Any) -> tuple[Places, Places]:
    """First position and count along each dimension of block number `number`.

    Along w the last block takes what is left.
    """
    b = builder
    first: Places = {}
    count: Places = {}
    rest = number
    for axis in "whdn":
        size = plan[f"block.{axis}"]
        if axis == "n":
            first[axis], extent = b.mul(rest, size), plan["batch"]
        else:
            blocks, extent = plan[f"blocks.{axis}"], plan[f"grid.{axis}"]
            index, rest = b.urem(rest, blocks), b.udiv(rest, blocks)
            first[axis] = b.mul(index, size)
        left = b.sub(extent, first[axis])
        count[axis] = smaller(b, size, left)
        if axis == "w":
            last = b.icmp_signed("==", index, b.sub(blocks, i64(1)))
            count[axis] = b.select(last, left, size)
    return first, count


def seen(builder: ir.IRBuilder, plan: Plan, first: Places, count: Places) -> list[Any]:
    """What a block's positions see of the source: first place and extent along d, h and w."""
    found = []
    for axis in "dhw":
        step = plan[f"step.{axis}"]
        found += [builder.add(builder.mul(first[axis], step), plan[f"least.{axis}"]),
                  builder.add(builder.mul(builder.sub(count[axis], i64(1)), step), plan[f"span.{axis}"])]
    return found


def brought(builder: ir.IRBuilder, plan: Plan, base: Any, names: tuple[str, str, str], first: Places, images: Any,
            sizes: list[Any], copy: Any) -> Any:
    """Where a block's first position is in an array, or in its copy, made now.

    Args:
        names: the words of the address of `fill`, 0 if the array is read where it lies; of the table that `fill`
            takes; and of the array's strides.
        sizes: the part's first place and extent along each dimension.
        copy: where the copy goes.
    """
    b = builder
    fill, about, strides = names
    result = local(b, POINTER)
    with b.if_else(b.icmp_signed("!=", plan[fill], i64(0))) as (copied, direct):
        with copied:
            image = at(b, base, b.mul(first["n"], plan.at(about, i64(ABOUT.index("from.n")))))
            b.call(Callee(b, plan[fill], FILL), [copy, image, plan.list(about), images, *sizes])
            b.store(copy, result)
        with direct:
            place = at(b, base, plan[f"{strides}.first"])
            for axis in "ndhw":
                place = at(b, place, b.mul(first[axis], plan[f"{strides}.{axis}"]))
            b.store(place, result)
    return b.load(result, typ=POINTER)
