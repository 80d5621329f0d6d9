"""Gather and scatter.

A gather has a thread for each element. A scatter into zeros has two forms. With atomics a thread adds each source
element to its place; the order of the additions, and so the last bits, may differ from run to run. The ordered form
gives each group of elements that share an index to one thread, which goes through them in order: as the CPU does, and
the last of several writes wins.

Indices that are out of range read 0, write nothing, and are noted in the flag: [1, index].
"""

from __future__ import annotations

import numpy as np

from ...runtime.launch import Spec
from ..scalar import scalar_ir
from ..scalar.scalar_ir import Node, cast, constant
from . import elementwise
from .coordinates import INT32, INT64
from .kernel_ir import KernelBuilder
from .launches import Argument, DeviceLaunch, launch
from .statements import Buffer
from .walks import THREADS, Walk, element_strides

#: fewest destinations of one index entry for which the ordered scatter is used without being asked for
ORDERED_WIDTH = 1 << 12


def _check(index: Spec) -> None:
    if index.dtype.kind not in "iu" or index.dtype == np.dtype(np.uint64):
        raise TypeError(f"an index of dtype {index.dtype}")


def _valid(b: KernelBuilder, flag: Buffer, index: Node, extent: int, inside: Node) -> Node:
    """Whether an index is in range; notes it if not. Any of several wrong ones may be noted."""
    wide = cast(index, INT64)
    valid = (wide >= 0) & (wide < extent)
    wrong = inside & ~valid
    b.atomic("max", flag, constant(0, INT32), constant(1, INT64), wrong)
    b.atomic("max", flag, constant(1, INT32), wide, wrong)
    return valid


def clear(spec: Spec) -> DeviceLaunch:
    """The launch that writes zeros."""
    zero = scalar_ir.constant(0, spec.dtype) if spec.dtype.kind in "biuf" and spec.dtype.itemsize > 2 else cast(
        scalar_ir.constant(0.0, "float32"), spec.dtype)
    [made] = elementwise.launches([zero], [spec], [])
    return made


def on_operand(made: DeviceLaunch, operand: int) -> DeviceLaunch:
    """A launch with one argument, for this operand."""
    arguments = (Argument(operand),)
    unaligned = None if made.unaligned is None else made.unaligned._replace(arguments=arguments)
    return made._replace(arguments=arguments, unaligned=unaligned)


def take(out: Spec, flag: Spec, x: Spec, index: Spec, dim: int) -> list[DeviceLaunch]:
    """Launches of a gather: out[p] = x[p with index[p] along dim].

    Args:
        out: the result.
        flag: two int64: whether an index is out of range, and one that is.
        x: of the result's shape except along `dim`; extents of 1 broadcast.
        index: integers, of a shape that broadcasts to the result's.
        dim: the indexed dimension.

    Raises:
        TypeError: an index of another dtype.
    """
    _check(index)
    dim %= len(out.shape)
    work = [on_operand(clear(flag), 1)]
    if not out.size:
        return work
    b = KernelBuilder("take", THREADS)
    stored, noted, source, indices = (b.buffer(each.dtype) for each in (out, flag, x, index))
    shape = out.shape
    strides = [element_strides(out, shape), element_strides(x, shape, dim), element_strides(index, shape)]
    walk = Walk(b, shape, strides, x.size)
    to, base, where = walk.at
    with b.when(walk.inside):
        chosen = b.load(indices, where)
        valid = _valid(b, noted, chosen, x.shape[dim], walk.inside)
        step = x.strides[dim] // x.dtype.itemsize
        b.store(stored, to, b.load(source, base + cast(chosen, walk.dtype) * step, valid))
    return [*work, launch(b.kernel(), walk.blocks)]


def put(out: Spec, flag: Spec, source: Spec, index: Spec, dim: int, op: str = "add", ordered: bool | None = None
        ) -> list[DeviceLaunch]:
    """Launches of a scatter into zeros: out[p with index[p] along dim] += source[p], or = for `op` "set".

    Args:
        out, flag, source, index, dim: as in `take`.
        op: "add", or "set", of which the last write wins.
        ordered: whether additions have a fixed order; None: if no atomic addition of the dtype exists, or if enough
            threads have elements of their own anyway.

    Raises:
        TypeError: an index of another dtype.
        NotImplementedError: another operation.
    """
    _check(index)
    if op not in ("add", "set"):
        raise NotImplementedError(f"scatter with {op!r} has no GPU kernel; write scatter_add, or scatter")
    dim %= len(out.shape)
    work = [on_operand(clear(out), 0), on_operand(clear(flag), 1)]
    shape = source.shape
    if not source.size:
        return work
    atomic = op == "add" and out.dtype.kind in "iuf" and out.dtype.itemsize >= 4
    if ordered is None:
        ordered = not atomic or source.size // shape[dim] >= ORDERED_WIDTH
    elif not ordered and not atomic:
        raise TypeError(f"no atomic {op} of {out.dtype}: write ordered=True")
    b = KernelBuilder("put", THREADS)
    stored, noted, values, indices = (b.buffer(each.dtype) for each in (out, flag, source, index))
    lines = tuple([1 if d == dim and ordered else n for d, n in enumerate(shape)])
    strides = [element_strides(out, shape, dim), element_strides(source, shape), element_strides(index, shape)]
    if ordered:
        strides = [[0 if d == dim else s for d, s in enumerate(each)] for each in strides]
    walk = Walk(b, lines, strides, max(out.size, source.size))
    base, read, where = walk.at
    step = out.strides[dim] // out.dtype.itemsize
    with b.when(walk.inside):
        if not ordered:
            chosen = b.load(indices, where)
            valid = _valid(b, noted, chosen, out.shape[dim], walk.inside)
            b.atomic("add", stored, base + cast(chosen, walk.dtype) * step, b.load(values, read), valid)
        else:
            along = [element_strides(each, shape)[dim] for each in (source, index)]
            with b.loop(walk.zero, constant(shape[dim], walk.dtype)) as i:
                chosen = b.load(indices, where + i * along[1])
                valid = _valid(b, noted, chosen, out.shape[dim], walk.inside)
                at = base + cast(chosen, walk.dtype) * step
                value = b.load(values, read + i * along[0])
                if op == "add":
                    before = b.load(stored, at, valid)
                    value = scalar_ir.apply("or", before, value) if out.dtype.kind == "b" else before + value
                b.store(stored, at, value, valid)
    return [*work, launch(b.kernel(), walk.blocks)]


__all__ = ["clear", "on_operand", "put", "take"]
