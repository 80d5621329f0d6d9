"""Chunk preamble of convolution kernels: the block of positions of a chunk, and the address of its part of an array."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ..llvm.loop_nests import POINTER, at, i64, local, smaller
from .input_packing import FILL, FILL_FIELDS
from .plan_fields import Callee, Plan

Indices = dict[str, Any]


def block(builder: ir.IRBuilder, plan: Plan, number: Any) -> tuple[Indices, Indices]:
    """First position and count along each dimension of block `number`.

    Along w the last block includes the remainder.
    """
    b = builder
    first: Indices = {}
    count: Indices = {}
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


def input_region(builder: ir.IRBuilder, plan: Plan, first: Indices, count: Indices) -> list[Any]:
    """The region of the source that a block reads: first index and extent along d, h and w."""
    region = []
    for axis in "dhw":
        step = plan[f"step.{axis}"]
        region += [builder.add(builder.mul(first[axis], step), plan[f"min_offset.{axis}"]),
                  builder.add(builder.mul(builder.sub(count[axis], i64(1)), step), plan[f"span.{axis}"])]
    return region


def block_pointer(builder: ir.IRBuilder, plan: Plan, base: Any, names: tuple[str, str, str], first: Indices,
                  images: Any,
                  sizes: list[Any], copy: Any) -> Any:
    """The address of a block's first position, in the array itself or in a copy that is made now.

    Args:
        names: plan fields: the address of `fill` (0 if the array is read in place), `fill`'s fields, and the array's
            strides.
        sizes: the region's first index and extent along each dimension.
        copy: address of the copy.
    """
    b = builder
    fill, fill_fields, strides = names
    result = local(b, POINTER)
    with b.if_else(b.icmp_signed("!=", plan[fill], i64(0))) as (copied, direct):
        with copied:
            image = at(b, base, b.mul(first["n"], plan.at(fill_fields, i64(FILL_FIELDS.index("from.n")))))
            b.call(Callee(b, plan[fill], FILL), [copy, image, plan.list(fill_fields), images, *sizes])
            b.store(copy, result)
        with direct:
            place = at(b, base, plan[f"{strides}.first"])
            for axis in "ndhw":
                place = at(b, place, b.mul(first[axis], plan[f"{strides}.{axis}"]))
            b.store(place, result)
    return b.load(result, typ=POINTER)
