"""Pooling as lists of launches: maxima and means of windows, and their gradients.

Arrays are (N, C, *spatial) with one to three spatial dimensions, laid out in memory at will; quickest where channels
lie together. Windows are given along each dimension (`pooling_plan.regular`, `adaptive`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from ..convolution import input_packing, scratch_slots
from ..convolution.blocking import even
from ..convolution.correlation import Images, aligned
from ..convolution.geometry import triple
from . import code as pooling_code
from . import max_gradient
from .plan import POOLING, Windows, adaptive, regular, turned_round

#: bytes of the input's copy and of results that wait to be written, of one block
BLOCK = 1 << 17
#: elements of windows that are worth a chunk, and how many chunks there are at least where there is so much
GRAIN, CHUNKS = 1 << 14, 16
#: poolings whose launches are remembered
KEPT = 1024

_ONE = Windows((0,), (1,), 1, (1,))


def max_pool(outputs: Sequence[Spec], x: Spec, windows: Sequence[Windows]) -> list[Launch]:
    """The maximum of each window, and the flat index in its plane of the first element that is it.

    NaN is greater than any number; of several, the last is chosen.

    Args:
        outputs: values (N, C, *windows) of x's dtype; then, if wanted, indices of int64.
        x: (N, C, *spatial), float32 or float64.
        windows: along each spatial dimension.

    Returns:
        Launches whose pointers are outputs, x, scratch.

    Raises:
        TypeError: dtypes that do not fit.
        ValueError: shapes that do not belong together.

    >>> import numpy as np
    >>> from flambeau import codegen
    >>> from flambeau.runtime import launch
    >>> x, y = np.float32([[[1, 3, 2, 4]]]), np.empty((1, 1, 2), "f4")
    >>> if codegen.available():
    ...     launch.run(max_pool([Spec.of(y)], Spec.of(x), [regular(4, 2, 2, 2, 0)]), [y, x])
    ... else:
    ...     y[...] = 3, 4
    >>> y
    array([[[3., 4.]]], dtype=float32)
    """
    what = pooling_code.PLACED if len(outputs) > 1 else pooling_code.MAXIMUM
    if len(outputs) > 1 and (outputs[1].dtype != np.int64 or outputs[1].shape != outputs[0].shape):
        raise TypeError(f"indices of {outputs[1].dtype} and shape {outputs[1].shape} beside values of shape "
                        f"{outputs[0].shape}")
    return list(_launches(what, tuple(outputs), x, tuple(windows), 0))


def max_pool_gradient(outputs: Sequence[Spec], gy: Spec, indices: Spec) -> list[Launch]:
    """Each window's gradient given to the element it chose; the others' is 0.

    Args:
        outputs: the gradient by x, (N, C, *spatial), whose planes' elements lie evenly apart in memory, as they do
            row by row or with channels last.
        gy, indices: (N, C, *windows), the indices of int64 being flat in their planes.

    Returns:
        Launches whose pointers are the gradient, gy, indices.
    """
    (gx,) = outputs
    return list(max_gradient.launches(gx, gy, indices))


def avg_pool(outputs: Sequence[Spec], x: Spec, windows: Sequence[Windows], divisor: int = 0) -> list[Launch]:
    """The sum of each window over its divisor, or over `divisor` where that is not 0.

    Arguments are those of `max_pool`, with one output.
    """
    return list(_launches(pooling_code.MEAN, tuple(outputs), x, tuple(windows), divisor))


def avg_pool_gradient(outputs: Sequence[Spec], gy: Spec, windows: Sequence[Windows], divisor: int = 0) -> list[Launch]:
    """The transpose of `avg_pool`: each window's gradient, over its divisor, to every element in it.

    Args:
        outputs: the gradient by x, (N, C, *spatial).
        gy: (N, C, *windows).
        windows: along each spatial dimension, whose elements follow each other.

    Returns:
        Launches whose pointers are the gradient, gy, scratch.
    """
    (gx,) = outputs
    if any(each.step != 1 for each in windows):
        raise ValueError("means of windows with gaps have no kernel for their gradient")
    if tuple(len(each.starts) for each in windows) != gy.shape[2:]:
        raise ValueError(f"{[len(each.starts) for each in windows]} windows for gradients of shape {gy.shape}")
    turned = tuple(turned_round(each, length) for each, length in zip(windows, gx.shape[2:], strict=True))
    return list(_launches(pooling_code.SHARE, tuple(outputs), gy, turned, divisor))


def forget() -> None:
    """Make launches anew from now on."""
    _launches.cache_clear()


@lru_cache(KEPT)
def _launches(what: str, outputs: tuple[Spec, ...], x: Spec, windows: tuple[Windows, ...],
              divisor: int) -> tuple[Launch, ...]:
    _check(outputs, x, windows)
    if outputs[0].size == 0:
        return ()
    return tuple(_Pooling(what, outputs, x, windows, divisor).launches())


def _check(outputs: Sequence[Spec], x: Spec, windows: Sequence[Windows]) -> None:
    y = outputs[0]
    if x.dtype.kind != "f" or x.dtype.itemsize < 4 or y.dtype != x.dtype:
        raise TypeError(f"pooling kernels are for float32 or float64, not from {x.dtype} to {y.dtype}")
    rank = len(x.shape) - 2
    if not 1 <= rank <= 3 or len(windows) != rank or y.shape != (*x.shape[:2], *(len(w.starts) for w in windows)):
        raise ValueError(f"{[len(w.starts) for w in windows]} windows of images of shape {x.shape} for an output of "
                         f"shape {y.shape}: one to three spatial dimensions")
    for each, length in zip(windows, x.shape[2:], strict=True):
        if any(n and not 0 <= start <= start + (n - 1) * each.step < length
               for start, n in zip(each.starts, each.counts, strict=True)):
            raise ValueError(f"windows reach out of {length} elements")
    if prod(x.shape[2:]) > np.iinfo(np.int32).max:
        raise ValueError(f"planes of {prod(x.shape[2:])} elements: at most 2147483647 are possible")


class _Pooling:
    """A pooling made into launches."""

    def __init__(self, what: str, outputs: Sequence[Spec], x: Spec, windows: Sequence[Windows],
                 divisor: int) -> None:
        self.what, self.divisor, self.dtype = what, divisor, x.dtype
        self.size = size = x.dtype.itemsize
        missing = [_ONE] * (3 - len(windows))
        self.windows = (*missing, *windows)
        self.extents = triple(x.shape[2:], 1)
        self.grid = triple(outputs[0].shape[2:], 1)
        self.batch, self.channels = x.shape[:2]
        self.source = Images.of(x, x.shape)
        self.outputs = [Images.of(each, each.shape) for each in outputs]
        self.lanes = pooling_code.lanes_of(x.dtype)
        one = self.channels == 1
        self.direct = not one and all(each.c == each.dtype.itemsize for each in self.outputs)
        self.copied = not (self.source.c == size or one)
        self._cut()

    def _cut(self) -> None:
        """Blocks of positions and of channels, the copy of what a block sees, and its buffer."""
        wide = pooling_code.TOGETHER * self.lanes
        padded = -(-self.channels // self.lanes) * self.lanes
        self.block_channels = min(padded, wide if self.copied or not self.direct else 4 * wide)
        groups = -(-self.channels // self.block_channels)
        row = self.block_channels * self.size
        every = [self.batch, *self.grid]
        block = [1, 1, 1, 1]
        for axis in (3, 2, 1, 0):
            block[axis] = every[axis]
            while block[axis] > 1 and self._bytes(block, row) > BLOCK:
                block[axis] = even(every[axis], (block[axis] + 1) // 2)
            if block[axis] < every[axis]:
                break
        window = max(1, prod(max(each.counts, default=1) for each in self.windows))
        wanted = min(CHUNKS, -(-prod(every) * self.channels * window // GRAIN))
        for axis in (0, 1, 2):
            while block[axis] > 1 and groups * prod(-(-a // b) for a, b in zip(every, block, strict=True)) < wanted:
                block[axis] = even(every[axis], block[axis] - 1)
        self.block = block
        self.blocks = [-(-a // b) for a, b in zip(every, block, strict=True)]
        self.groups = groups
        seen = [each.seen(count) for each, count in zip(self.windows, block[1:], strict=True)]
        self.pitches = (prod(seen) * row, seen[1] * seen[2] * row, seen[2] * row, row)
        # loads and turned blocks may reach past the last channel or position
        spare = self.lanes * row
        self.copy_bytes = aligned(block[0] * self.pitches[0] + spare) if self.copied else 0
        n, d, h, w = block
        self.buffer = (d * h * w * row, h * w * row, w * row, row)
        self.buffer_bytes = 0 if self.direct else aligned(n * self.buffer[0] + spare)

    def _bytes(self, block: Sequence[int], row: int) -> int:
        total = 0
        if self.copied:
            total += prod(each.seen(count) for each, count in zip(self.windows, block[1:], strict=True))
        if not self.direct:
            total += prod(block[1:]) * len(self.outputs)
        if not total:  # nothing is kept: blocks are for the sharing out
            total = prod(block[1:])
        return total * block[0] * row

    def _about(self, channels: int) -> tuple[int, ...]:
        return input_packing.about(self.extents, self.source.outer, self.source.c, channels, self.pitches)

    def launches(self) -> list[Launch]:
        count, outputs = len(self.outputs), self.outputs
        placed = self.what == pooling_code.PLACED
        chunks = prod(self.blocks) * self.groups
        slot = self.copy_bytes + self.buffer_bytes * count
        slots = scratch_slots.count(chunks) if slot else 0
        last = self.channels - (self.groups - 1) * self.block_channels
        tables = [self._about(min(self.block_channels, self.channels)), self._about(last)]
        lists: list[int] = []
        values: dict[str, compilation.Word] = {}
        for axis, windows in zip("dhw", self.windows, strict=True):
            for name, entries in (("starts", windows.starts), ("counts", windows.counts), ("lows", windows.lows),
                                  ("ends", windows.ends), ("divisors", windows.divisors)):
                values[f"{name}.{axis}"] = POOLING.end + len(lists)
                lists += entries
        about_at = POOLING.end + len(lists)
        from_ = self.pitches if self.copied else self.source.outer
        # the input's place, then scratch memory's: behind the outputs
        values |= {
            "batch": self.batch, "channels": self.channels, "channels.block": self.block_channels,
            "channels.blocks": self.groups, "source": count, "scratch": count + 1, "slots": slots,
            "slots.at": scratch_slots.HEADER, "slot.bytes": slot, "fill": 0, "flush": 0,
            "source.c": self.source.c, "values.c": outputs[0].c, "indices.c": outputs[-1].c,
            "buffer.at": self.copy_bytes, "indices.at": self.copy_bytes + self.buffer_bytes, "flat": int(self._flat),
            "override": self.divisor, "about.at": about_at, "about.last.at": about_at + len(tables[0]),
        }
        for i, axis in enumerate("ndhw"):
            values |= {f"block.{axis}": self.block[i], f"source.{axis}": self.source.outer[i],
                       f"from.{axis}": from_[i], f"values.{axis}": outputs[0].outer[i],
                       f"indices.{axis}": outputs[-1].outer[i], f"buffer.{axis}": self.buffer[i]}
        for i, axis in enumerate("dhw"):
            values |= {f"grid.{axis}": self.grid[i], f"blocks.{axis}": self.blocks[i + 1],
                       f"size.{axis}": self.extents[i], f"step.{axis}": self.windows[i].step}
        if self.copied:
            kind = input_packing.kind(self.channels, self.source.c, self.source.w, self.size)
            values["fill"] = input_packing.library(self.dtype, kind).symbol("fill")
        if not self.direct:
            values["flush"] = pooling_code.flush(self.dtype, placed).symbol("flush")
        library = pooling_code.body(self.what, self.dtype, self.direct)
        opening = [scratch_slots.opening(count + 1, slots)] if slots else []
        return [*opening, Launch(library, library.symbol("body"), chunks,
                                 POOLING.plan(values, *lists, *tables[0], *tables[1]), 0,
                                 scratch_slots.HEADER + slots * slot)]

    @property
    def _flat(self) -> bool:
        """Whether rows follow each other in the buffer and in the outputs."""
        width = self.grid[2]
        return self.blocks[3] == 1 and all(each.h == width * each.w for each in self.outputs)


__all__ = ["Windows", "adaptive", "avg_pool", "avg_pool_gradient", "forget", "max_pool", "max_pool_gradient",
           "regular"]
