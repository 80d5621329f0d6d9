"""Gather and scatter.

A gather has a thread for each element. A scatter into zeros has two forms. With atomics a thread adds each source
element to its place; the order of the additions, and so the last bits, may differ from run to run. The ordered form
gives each group of elements that share an index to one thread, which goes through them in order: as the CPU does, and
the last of several writes wins.

Indices that are out of range read 0 and write nothing. They are noted in a flag, [1, index], or by an assertion: 1 in
the element of int64 whose address is in a table. Of several threads that find one any may write that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...runtime.launch import Spec
from ..scalar import scalar_ir
from ..scalar.scalar_ir import Node, cast, constant
from . import elementwise
from .coordinates import INT32, INT64
from .kernel_ir import KernelBuilder
from .launches import VECTOR, Argument, DeviceLaunch, launch
from .statements import Buffer
from .walks import THREADS, Walk, element_strides

#: fewest destinations of an index entry, and most entries, for which scatters are ordered without being asked for
ORDERED_WIDTH, ORDERED_ENTRIES = 1 << 12, 1 << 6


def _check(index: Spec) -> None:
    if index.dtype.kind not in "iu" or index.dtype == np.dtype(np.uint64):
        raise TypeError(f"an index of dtype {index.dtype}")


class Range:
    """The range of indices along a dimension, and what becomes of those that are out of it.

    Args:
        b: the kernel's builder.
        flag: the buffer that they are noted in; None: they are not.
        table: the buffer with the address of the element that they are asserted by; None: they are not.
        extent: the end of the range.
        wraps: whether negative indices count from the end.
    """

    def __init__(self, b: KernelBuilder, flag: Buffer | None, table: Buffer | None, extent: int, wraps: bool = False
                 ) -> None:
        self.b, self.flag, self.extent, self.wraps = b, flag, extent, wraps
        self.asserted = None if table is None else b.indirect(table, constant(0, INT32), INT64)

    def checked(self, index: Node, inside: Node | None = None) -> tuple[Node, Node]:
        """The index as int64, and whether it is in range; notes it if not. Any of several wrong ones may be noted."""
        wide = cast(index, INT64)
        if self.wraps:
            wide = scalar_ir.select(wide < 0, wide + self.extent, wide)
        valid = (wide >= 0) & (wide < self.extent)
        wrong = ~valid if inside is None else inside & ~valid
        if self.flag is not None:
            self.b.atomic("max", self.flag, constant(0, INT32), constant(1, INT64), wrong)
            self.b.atomic("max", self.flag, constant(1, INT32), wide, wrong)
        if self.asserted is not None:
            self.b.store(self.asserted, constant(0, INT32), constant(1, INT64), wrong)
        return wide, valid


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


def take(out: Spec, flag: Spec | None, x: Spec, index: Spec, dim: int, table: Spec | None = None,
         wraps: bool = False) -> list[DeviceLaunch]:
    """Launches of a gather: out[p] = x[p with index[p] along dim].

    Their operands are the result, the flag if there is one, `x`, the index, and the table if there is one.

    Args:
        out: the result.
        flag: two int64: whether an index is out of range, and one that is; None: they are not noted.
        x: of the result's shape except along `dim`; extents of 1 broadcast.
        index: integers, of a shape that broadcasts to the result's.
        dim: the indexed dimension.
        table: one int64, the address of the element that tells of indices out of range; None: there is none.
        wraps: whether negative indices count from the end.

    Raises:
        TypeError: an index of another dtype.
    """
    _check(index)
    dim %= len(out.shape)
    work = [] if flag is None else [on_operand(clear(flag), 1)]
    if not out.size:
        return work
    shape = out.shape
    strides = [element_strides(out, shape), element_strides(x, shape, dim), element_strides(index, shape)]
    width, whole = _width(out, strides, x.strides[dim] // x.dtype.itemsize, index.dtype)
    scalar = _take(out, flag, x, index, dim, table, wraps, strides, 1, False)
    if width == 1:
        return [*work, scalar]
    return [*work, _take(out, flag, x, index, dim, table, wraps, strides, width, whole)._replace(unaligned=scalar)]


def _width(out: Spec, strides: list[list[int]], step: int, index: np.dtype) -> tuple[int, bool]:
    """How many neighbours along the last dimension a thread gathers, and whether it loads them as one vector.

    Neighbours of one index are a vector; those of neighbouring indices are loaded one by one, but their indices are a
    vector.
    """
    to, base, where = strides
    width = VECTOR // out.dtype.itemsize
    if where[-1] == 0 and base[-1] == 1:
        whole, others = True, [*to[:-1], *base[:-1], step]
    elif where[-1] == 1:
        width = min(width, VECTOR // index.itemsize)
        whole, others = False, [*to[:-1], *where[:-1]]
    else:
        return 1, False
    while width > 1 and (to[-1] != 1 or out.shape[-1] % width or any(each % width for each in others)):
        width //= 2
    return width, whole


def _take(out: Spec, flag: Spec | None, x: Spec, index: Spec, dim: int, table: Spec | None, wraps: bool,
          strides: list[list[int]], width: int, whole: bool) -> DeviceLaunch:
    """The launch of a gather by threads that have `width` neighbours each."""
    b = KernelBuilder("take", THREADS)
    stored, noted, source, indices, address = _buffers(b, out, flag, x, index, table)
    within = Range(b, noted, address, x.shape[dim], wraps)
    shape = (*out.shape[:-1], out.shape[-1] // width)
    walk = Walk(b, shape, [[*each[:-1], each[-1] * width] for each in strides], max(x.size, out.size, index.size))
    to, base, where = walk.at
    step = x.strides[dim] // x.dtype.itemsize
    along = strides[1][-1]
    with b.when(walk.inside):
        chosen = [b.load(indices, where)] if whole or width == 1 else b.load_vector(indices, where, width)
        checked = [within.checked(each) for each in chosen]
        if whole:
            [(place, valid)] = checked
            values = b.load_vector(source, base + cast(place, walk.dtype) * step, width, valid)
        else:
            values = [b.load(source, base + cast(place, walk.dtype) * step + i * along, valid)
                      for i, (place, valid) in enumerate(checked)]
        b.store_vector(stored, to, values)
    return launch(b.kernel(), walk.blocks)


def put(out: Spec, flag: Spec | None, source: Spec, index: Spec, dim: int, op: str = "add",
        ordered: bool | None = None, table: Spec | None = None, wraps: bool = False) -> list[DeviceLaunch]:
    """Launches of a scatter into zeros: out[p with index[p] along dim] += source[p], or = for `op` "set".

    Args:
        out, flag, source, index, dim, table, wraps: as in `take`.
        op: "add", or "set", of which the last write wins.
        ordered: whether additions have a fixed order; None: if no atomic addition of the dtype exists, or if enough
            threads have few elements of their own anyway.

    Raises:
        TypeError: an index of another dtype.
        NotImplementedError: another operation.
    """
    _check(index)
    if op not in ("add", "set"):
        raise NotImplementedError(f"scatter with {op!r} has no GPU kernel; write scatter_add, or scatter")
    dim %= len(out.shape)
    work = [on_operand(clear(out), 0), *([] if flag is None else [on_operand(clear(flag), 1)])]
    shape = source.shape
    if not source.size:
        return work
    atomic = op == "add" and out.dtype.kind in "iuf" and out.dtype.itemsize >= 4
    if ordered is None:
        ordered = not atomic or (shape[dim] <= ORDERED_ENTRIES and source.size // shape[dim] >= ORDERED_WIDTH)
    elif not ordered and not atomic:
        raise TypeError(f"no atomic {op} of {out.dtype}: write ordered=True")
    b = KernelBuilder("put", THREADS)
    stored, noted, values, indices, address = _buffers(b, out, flag, source, index, table)
    within = Range(b, noted, address, out.shape[dim], wraps)
    lines = tuple([1 if d == dim and ordered else n for d, n in enumerate(shape)])
    strides = [element_strides(out, shape, dim), element_strides(source, shape), element_strides(index, shape)]
    if ordered:
        strides = [[0 if d == dim else s for d, s in enumerate(each)] for each in strides]
    walk = Walk(b, lines, strides, max(out.size, source.size))
    base, read, where = walk.at
    step = out.strides[dim] // out.dtype.itemsize
    with b.when(walk.inside):
        if not ordered:
            chosen, valid = within.checked(b.load(indices, where))
            b.atomic("add", stored, base + cast(chosen, walk.dtype) * step, b.load(values, read), valid)
        else:
            along = [element_strides(each, shape)[dim] for each in (source, index)]
            with b.loop(walk.zero, constant(shape[dim], walk.dtype)) as i:
                chosen, valid = within.checked(b.load(indices, where + i * along[1]))
                at = base + cast(chosen, walk.dtype) * step
                value = b.load(values, read + i * along[0])
                if op == "add":
                    before = b.load(stored, at, valid)
                    value = scalar_ir.apply("or", before, value) if out.dtype.kind == "b" else before + value
                b.store(stored, at, value, valid)
    return [*work, launch(b.kernel(), walk.blocks)]


def _buffers(b: KernelBuilder, out: Spec, flag: Spec | None, x: Spec, index: Spec, table: Spec | None
             ) -> list[Any]:
    """The buffers of the operands that there are, in their order."""
    return [None if each is None else b.buffer(each.dtype) for each in (out, flag, x, index, table)]


def assert_range(index: Spec, table: Spec, count: int, but: int | None = None) -> list[DeviceLaunch]:
    """The launch that asserts that indices are in [0, count), or are `but`; its operands are index and table."""
    if not index.size:
        return []
    b = KernelBuilder("assert_range", THREADS)
    indices, address = b.buffer(index.dtype), b.buffer(table.dtype)
    within = Range(b, None, address, count)
    walk = Walk(b, index.shape, [element_strides(index, index.shape)], index.size)
    with b.when(walk.inside):
        chosen = b.load(indices, walk.at[0])
        within.checked(chosen, None if but is None else cast(chosen, INT64) < but)
        if but is not None:
            within.checked(chosen, cast(chosen, INT64) > but)
    return [launch(b.kernel(), walk.blocks)]


def last_writers(out: Spec, index: Spec, table: Spec | None, wraps: bool = False) -> list[DeviceLaunch]:
    """Launches that find for each place the last element of an index that names it.

    Args:
        out: for each place the element's number, int64, or -1; dense.
        index: places, (n,).
        table, wraps: as in `take`.
    """
    [made] = elementwise.launches([constant(-1, INT64)], [out], [])
    work = [on_operand(made, 0)]
    if not index.size:
        return work
    b = KernelBuilder("last_writers", THREADS)
    stored, indices = b.buffer(out.dtype), b.buffer(index.dtype)
    within = Range(b, None, None if table is None else b.buffer(table.dtype), out.size, wraps)
    walk = Walk(b, index.shape, [element_strides(index, index.shape)], max(out.size, index.size))
    with b.when(walk.inside):
        chosen, valid = within.checked(b.load(indices, walk.at[0]))
        b.atomic("max", stored, cast(chosen, walk.dtype), cast(walk.linear, INT64), valid)
    return [*work, launch(b.kernel(), walk.blocks)]


__all__ = ["Range", "assert_range", "clear", "last_writers", "on_operand", "put", "take"]
