"""Max pooling's gradient: a scatter-add of each window's gradient to the element that it chose.

A chunk owns some planes, so that additions have one order.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import lru_cache

import numpy as np
from llvmlite import ir

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from ..convolution.correlation import Images
from ..convolution.geometry import triple
from ..convolution.plan import PlanLayout
from ..convolution.plan_fields import Plan
from ..llvm import kernel_entry
from ..llvm.loop_nests import I64, POINTER, at, i64, loop, smaller
from ..llvm.lowering import constant, intrinsic, memory_type

#: minimum elements of a chunk, and maximum number of chunks where channels are last
GRAIN, MAX_CHUNKS = 1 << 14, 8

SCATTER = PlanLayout("""
    channels share blocks grid.dhw elements dense
    to.n to.c to.w gradient.ndhw gradient.c indices.ndhw indices.c
""")


@lru_cache(1024)
def launches(gx: Spec, gy: Spec, indices: Spec) -> tuple[Launch, ...]:
    """The launches, from the windows' gradient and indices to the input gradient.

    Raises:
        TypeError: dtypes do not match.
        ValueError: shapes do not match, or a plane's elements have no uniform stride.
    """
    size = gx.dtype.itemsize
    if gx.dtype.kind != "f" or size < 4 or gy.dtype != gx.dtype or indices.dtype != np.int64:
        raise TypeError(f"gradients of {gy.dtype} to {gx.dtype} by indices of {indices.dtype}: float32 or float64, "
                        "and int64")
    if not 3 <= len(gx.shape) <= 5 or gy.shape != indices.shape or gy.shape[:2] != gx.shape[:2]:
        raise ValueError(f"gradients of shapes {gy.shape} and {gx.shape} by indices of shape {indices.shape}")
    if gx.size == 0:
        return ()
    to, source, places = (Images.of(each, each.shape) for each in (gx, gy, indices))
    step, elements = _step(gx, to), gx.size // (gx.shape[0] * gx.shape[1])
    batch, channels = gx.shape[:2]
    channels_last = channels > 1 and to.c == size
    share = max(1, min(channels, GRAIN // elements))
    if channels_last:  # a window's channels choose nearby elements: few chunks per image, of entire cache lines
        chunks = max(1, min(MAX_CHUNKS, gx.size // GRAIN) // batch)
        share = min(channels, -(-channels // chunks * size // 64) * 64 // size)
    blocks = -(-channels // share)
    dense = channels_last and share == channels and step == channels * size
    values = {"channels": channels, "share": share, "blocks": blocks, "elements": elements,
              "dense": 2 if dense else int(step == size), "to.n": to.n, "to.c": to.c, "to.w": step,
              "gradient.c": source.c, "indices.c": places.c}
    for i, axis in enumerate("ndhw"):
        values |= {f"gradient.{axis}": source.outer[i], f"indices.{axis}": places.outer[i]}
    for extent, axis in zip(triple(gy.shape[2:], 1), "dhw", strict=True):
        values[f"grid.{axis}"] = extent
    library = compilation.load(f"pooling scatter {gx.dtype} {channels_last}", ("body",),
                               lambda: _generate(gx.dtype, channels_last), "few")
    return (Launch(library, library.symbol("body"), batch * blocks, SCATTER.plan(values)),)


def _step(gx: Spec, to: Images) -> int:
    """The stride of neighbouring elements in a plane."""
    step = distance = 0
    for extent, stride in zip(reversed(triple(gx.shape[2:], 1)), (to.w, to.h, to.d), strict=True):
        if extent == 1:
            continue
        if not step:
            step = distance = stride
        if stride != distance:
            raise ValueError(f"planes of shape {gx.shape[2:]} with strides {gx.strides[2:]}: a uniform stride "
                             "is required")
        distance *= extent
    return step or gx.dtype.itemsize


def _generate(dtype: np.dtype, channels_last: bool) -> str:
    """The module's text; with `channels_last` the innermost loop is over channels."""
    module = ir.Module("scatter")
    function, b = kernel_entry.begin(module, "body", kernel_entry.BODY)
    pointers, words, chunk = function.args
    plan = Plan(b, words, SCATTER)
    n, block = b.udiv(chunk, plan["blocks"]), b.urem(chunk, plan["blocks"])
    channel = b.mul(block, plan["share"])
    channels = smaller(b, plan["share"], b.sub(plan["channels"], channel))
    to, gradient, indices = (
        at(b, at(b, b.load(b.gep(pointers, [i64(i)], source_etype=POINTER), typ=POINTER), b.mul(n, plan[f"{name}.n"])),
           b.mul(channel, plan[f"{name}.c"])) for i, name in enumerate(("to", "gradient", "indices")))
    kind, size = memory_type(dtype), dtype.itemsize
    step, plane, elements = plan["to.w"], plan["to.c"], plan["elements"]
    _clear(b, plan["dense"], to, channels, elements, step, plane, dtype)
    axes = "dhwc" if channels_last else "cdhw"
    strides = [[plan[f"{name}.{axis}"] for axis in axes] for name in ("gradient", "indices")]
    counts = {axis: plan[f"grid.{axis}"] for axis in "dhw"} | {"c": channels}
    here = [gradient, indices]
    with ExitStack() as nest:
        for i, axis in enumerate(axes):
            each = nest.enter_context(loop(b, i64(0), counts[axis]))
            here = [at(b, base, b.mul(each, stride[i])) for base, stride in zip(here, strides, strict=True)]
            if axis == "c":
                to = at(b, to, b.mul(each, plane))
        place = at(b, to, b.mul(b.load(here[1], typ=I64, align=8), step))
        total = b.fadd(b.load(place, typ=kind, align=size), b.load(here[0], typ=kind, align=size))
        b.store(total, place, align=size)
    b.ret_void()
    return str(module)


def _clear(b: ir.IRBuilder, dense: object, to: object, channels: object, elements: object, step: object,
           plane: object, dtype: np.dtype) -> None:
    """Zero the chunk's planes; `dense`: 2 where all are contiguous, 1 where each is."""
    size = dtype.itemsize

    def zeros(place: object, count: object) -> None:
        intrinsic(b, "memset", ir.VoidType(), [place, ir.Constant(ir.IntType(8), 0), b.mul(count, i64(size)),
                                               ir.Constant(ir.IntType(1), 0)], [POINTER, I64])

    with b.if_else(b.icmp_signed("==", dense, i64(2))) as (one, several):
        with one:
            zeros(to, b.mul(elements, channels))
        with several, b.if_else(b.icmp_signed("==", dense, i64(1))) as (each, strided):
            with each, loop(b, i64(0), channels) as c:
                zeros(at(b, to, b.mul(c, plane)), elements)
            with strided, loop(b, i64(0), elements) as e:
                row = at(b, to, b.mul(e, step))
                with loop(b, i64(0), channels) as c:
                    b.store(constant(0.0, memory_type(dtype)), at(b, row, b.mul(c, plane)), align=size)
