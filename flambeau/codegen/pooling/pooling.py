"""Pooling launches: maxima and means of windows, and their gradients.

Arrays are (N, C, *spatial) with one to three spatial dimensions, of any memory layout; channels last is fastest.
Windows are given along each dimension (`plan.regular`, `plan.adaptive`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from ...runtime import compilation
from ...runtime.launch import Launch, Spec
from ...runtime.symbolic_integers import typical
from ..convolution import input_packing, scratch_slots
from ..convolution.blocking import balanced_size
from ..convolution.correlation import Images, aligned
from ..convolution.geometry import triple
from . import code as pooling_code
from . import max_gradient, row_kernel
from .plan import POOLING, AnyWindows, Windows, adaptive, regular, transposed

#: maximum bytes of a block's input copy and output buffer
BLOCK_BYTES = 1 << 17
#: window elements that are worth a chunk, and the number of chunks aimed at
GRAIN, CHUNKS = 1 << 14, 16
#: maximum number of cached launch lists
CACHE_SIZE = 1024

_UNIT = Windows((0,), (1,), 1, (1,))


def max_pool(outputs: Sequence[Spec], x: Spec, windows: Sequence[AnyWindows]) -> list[Launch]:
    """Max pooling: each window's maximum and the flat index in its plane of the first maximal element.

    NaN is greater than any number; of several NaNs, the last is chosen.

    Args:
        outputs: values (N, C, *windows) of x's dtype; optionally indices (int64).
        x: (N, C, *spatial), float32 or float64.
        windows: along each spatial dimension.

    Returns:
        Launches over the pointers of outputs, x, scratch.

    Raises:
        TypeError: dtypes do not match.
        ValueError: shapes do not match.

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
    what = pooling_code.ARGMAX if len(outputs) > 1 else pooling_code.MAX
    if len(outputs) > 1 and (outputs[1].dtype != np.int64 or outputs[1].shape != outputs[0].shape):
        raise TypeError(f"indices of {outputs[1].dtype} and shape {outputs[1].shape} for values of shape "
                        f"{outputs[0].shape}")
    return list(_launches(what, tuple(outputs), x, tuple(windows), 0))


def max_pool_gradient(outputs: Sequence[Spec], gy: Spec, indices: Spec) -> list[Launch]:
    """Max pooling's gradient: each window's gradient goes to the element that it chose.

    Args:
        outputs: the input gradient, (N, C, *spatial). A plane's elements must have a uniform stride, as they have in
            contiguous and channels-last arrays.
        gy, indices: (N, C, *windows); indices are int64 and flat in their planes.

    Returns:
        Launches over the pointers of the gradient, gy, indices.
    """
    (gx,) = outputs
    return list(max_gradient.launches(gx, gy, indices))


def avg_pool(outputs: Sequence[Spec], x: Spec, windows: Sequence[AnyWindows], divisor: int = 0) -> list[Launch]:
    """Average pooling: each window's sum over its divisor, or over `divisor` if that is not 0.

    Arguments are those of `max_pool`, with one output.
    """
    return list(_launches(pooling_code.MEAN, tuple(outputs), x, tuple(windows), divisor))


def avg_pool_gradient(outputs: Sequence[Spec], gy: Spec, windows: Sequence[AnyWindows],
                      divisor: int = 0) -> list[Launch]:
    """Average pooling's gradient: each window's gradient over its divisor, added to every element in it.

    Args:
        outputs: the input gradient, (N, C, *spatial).
        gy: (N, C, *windows).
        windows: along each spatial dimension, of step 1.

    Returns:
        Launches over the pointers of the gradient, gy, scratch.
    """
    (gx,) = outputs
    if any(each.step != 1 for each in windows):
        raise ValueError("average pooling of dilated windows has no gradient kernel")
    if tuple(each.number for each in windows) != gy.shape[2:]:
        raise ValueError(f"{[each.number for each in windows]} windows for gradients of shape {gy.shape}")
    inverse = tuple(transposed(each, length) for each, length in zip(windows, gx.shape[2:], strict=True))
    return list(_launches(pooling_code.MEAN_GRADIENT, tuple(outputs), gy, inverse, divisor))


def clear_cache() -> None:
    """Drop all cached launches."""
    _launches.cache_clear()


@lru_cache(CACHE_SIZE)
def _launches(what: str, outputs: tuple[Spec, ...], x: Spec, windows: tuple[AnyWindows, ...],
              divisor: int) -> tuple[Launch, ...]:
    _check(outputs, x, windows)
    if outputs[0].size == 0:
        return ()
    if what in (pooling_code.MAX, pooling_code.MEAN):
        source, output = (Images.of(each, each.shape) for each in (x, outputs[0]))
        inner = row_kernel.fits(windows[-1], source, output, pooling_code.lanes_of(x.dtype))
        if inner is not None:
            planes = (*[_UNIT] * (3 - len(windows)), *windows)
            return tuple(row_kernel.launches(what == pooling_code.MEAN, source, output, planes, inner, x.shape[0],
                                             x.shape[1], divisor, GRAIN, CHUNKS))
    return tuple(_Pooling(what, outputs, x, windows, divisor).launches())


def _check(outputs: Sequence[Spec], x: Spec, windows: Sequence[AnyWindows]) -> None:
    y = outputs[0]
    if x.dtype.kind != "f" or x.dtype.itemsize < 4 or y.dtype != x.dtype:
        raise TypeError(f"pooling kernels are for float32 or float64, not from {x.dtype} to {y.dtype}")
    rank = len(x.shape) - 2
    if not 1 <= rank <= 3 or len(windows) != rank or y.shape != (*x.shape[:2], *(w.number for w in windows)):
        raise ValueError(f"{[w.number for w in windows]} windows of images of shape {x.shape} for an output of "
                         f"shape {y.shape}: one to three spatial dimensions")
    for each, length in zip(windows, x.shape[2:], strict=True):
        if not isinstance(each, Windows):
            continue  # these do not, by construction
        if any(n and not 0 <= start <= start + (n - 1) * each.step < length
               for start, n in zip(each.starts, each.counts, strict=True)):
            raise ValueError(f"windows extend past {length} elements")
    if prod(x.shape[2:]) > np.iinfo(np.int32).max:
        raise ValueError(f"planes of {prod(x.shape[2:])} elements: at most 2147483647 are supported")


class _Pooling:
    """Plans the launches of a pooling."""

    def __init__(self, what: str, outputs: Sequence[Spec], x: Spec, windows: Sequence[AnyWindows],
                 divisor: int) -> None:
        self.what, self.divisor, self.dtype = what, divisor, x.dtype
        self.size = size = x.dtype.itemsize
        missing = [_UNIT] * (3 - len(windows))
        self.windows = (*missing, *windows)
        self.extents = triple(x.shape[2:], 1)
        self.grid = triple(outputs[0].shape[2:], 1)
        self.batch, self.channels = x.shape[:2]
        self.source = Images.of(x, x.shape)
        self.outputs = [Images.of(each, each.shape) for each in outputs]
        self.lanes = pooling_code.lanes_of(x.dtype)
        single = self.channels == 1
        self.direct = not single and all(each.c == each.dtype.itemsize for each in self.outputs)
        self.copied = not (self.source.c == size or single)
        self._choose_blocks()

    def _choose_blocks(self) -> None:
        """Choose blocks of positions and channels, and the layouts of a block's input copy and output buffer."""
        wide = pooling_code.UNROLL * self.lanes
        padded = -(-self.channels // self.lanes) * self.lanes
        self.block_channels = min(padded, wide if self.copied or not self.direct else 4 * wide)
        groups = -(-self.channels // self.block_channels)
        row = self.block_channels * self.size
        extents = [typical(self.batch), *self.grid]
        block = [1, 1, 1, 1]
        for axis in (3, 2, 1, 0):
            block[axis] = extents[axis]
            while block[axis] > 1 and self._bytes(block, row) > BLOCK_BYTES:
                block[axis] = balanced_size(extents[axis], (block[axis] + 1) // 2)
            if block[axis] < extents[axis]:
                break
        window = max(1, typical(prod(each.longest for each in self.windows)))
        min_chunks = min(CHUNKS, -(-prod(extents) * self.channels * window // GRAIN))
        for axis in (0, 1, 2):
            while block[axis] > 1 and groups * prod(
                    -(-a // b) for a, b in zip(extents, block, strict=True)) < min_chunks:
                block[axis] = balanced_size(extents[axis], block[axis] - 1)
        self.block = block
        self.blocks = [-(-a // b) for a, b in zip((self.batch, *self.grid), block, strict=True)]
        self.groups = groups
        copied = [each.max_extent(count) for each, count in zip(self.windows, block[1:], strict=True)]
        self.pitches = (prod(copied) * row, copied[1] * copied[2] * row, copied[2] * row, row)
        # loads and transposed blocks may extend past the last channel or position
        spare = self.lanes * row
        self.copy_bytes = aligned(block[0] * self.pitches[0] + spare) if self.copied else 0
        n, d, h, w = block
        self.buffer = (d * h * w * row, h * w * row, w * row, row)
        self.buffer_bytes = 0 if self.direct else aligned(n * self.buffer[0] + spare)

    def _bytes(self, block: Sequence[int], row: int) -> int:
        total = 0
        if self.copied:
            total += prod(each.max_extent(count) for each, count in zip(self.windows, block[1:], strict=True))
        if not self.direct:
            total += prod(block[1:]) * len(self.outputs)
        if not total:  # nothing is copied or buffered: blocks only divide the work
            total = prod(block[1:])
        return total * block[0] * row

    def _fill_fields(self, channels: int) -> tuple[int, ...]:
        return input_packing.fill_fields(self.extents, self.source.outer, self.source.c, channels, self.pitches)

    def launches(self) -> list[Launch]:
        count, outputs = len(self.outputs), self.outputs
        argmax = self.what == pooling_code.ARGMAX
        chunks = prod(self.blocks) * self.groups
        slot = self.copy_bytes + self.buffer_bytes * count
        slots = scratch_slots.count(chunks) if slot else 0
        last = self.channels - (self.groups - 1) * self.block_channels
        tables = [self._fill_fields(min(self.block_channels, self.channels)), self._fill_fields(last)]
        lists: list[int] = []
        values: dict[str, compilation.Word] = {}
        for axis, windows in zip("dhw", self.windows, strict=True):
            for name, entries in (("starts", windows.starts), ("counts", windows.counts), ("lows", windows.lows),
                                  ("ends", windows.ends), ("divisors", windows.divisors)):
                values[f"{name}.{axis}"] = POOLING.end + len(lists)
                lists += entries
        fill_fields_at = POOLING.end + len(lists)
        from_ = self.pitches if self.copied else self.source.outer
        # pointers: outputs, input, scratch
        values |= {
            "batch": self.batch, "channels": self.channels, "channels.block": self.block_channels,
            "channels.blocks": self.groups, "source": count, "scratch": count + 1, "slots": slots,
            "slots.at": scratch_slots.HEADER, "slot.bytes": slot, "fill": 0, "flush": 0,
            "source.c": self.source.c, "values.c": outputs[0].c, "indices.c": outputs[-1].c,
            "buffer.at": self.copy_bytes, "indices.at": self.copy_bytes + self.buffer_bytes, "flat": int(self._flat),
            "override": self.divisor, "fill_fields.at": fill_fields_at,
            "fill_fields.last.at": fill_fields_at + len(tables[0]),
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
            values["flush"] = pooling_code.flush(self.dtype, argmax).symbol("flush")
        library = pooling_code.body(self.what, self.dtype, self.direct)
        initializing = [scratch_slots.initializing(count + 1, slots)] if slots else []
        return [*initializing, Launch(library, library.symbol("body"), chunks,
                                 POOLING.plan(values, *lists, *tables[0], *tables[1]), 0,
                                 scratch_slots.HEADER + slots * slot)]

    @property
    def _flat(self) -> bool:
        """Whether rows are contiguous in the buffer and in the outputs."""
        width = self.grid[2]
        return self.blocks[3] == 1 and all(each.h == width * each.w for each in self.outputs)


__all__ = ["Windows", "adaptive", "avg_pool", "avg_pool_gradient", "clear_cache", "max_pool", "max_pool_gradient",
           "regular"]
