"""Pooling: maxima and means of windows, and their gradients, with a thread for each element of the result.

The arguments are those of `codegen.pooling`. Gradients of maxima are added up by atomics, since windows may overlap;
so their last bits may differ from run to run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from math import prod

import numpy as np

from ...dtypes import NARROW
from ...runtime.launch import Spec
from ..pooling.plan import Windows, transposed
from ..scalar.scalar_ir import Node, cast, constant, ne, select
from .coordinates import INT64, coordinates
from .indexing import clear, on_operand
from .kernel_ir import KernelBuilder
from .launches import DeviceLaunch, launch
from .statements import Buffer
from .walks import THREADS, Walk, element_strides


class _WindowLoops:
    """Loops over the elements of the thread's window.

    Args:
        b: the builder.
        walk: over the results.
        windows: along each spatial dimension.
        shape: of the results.
    """

    def __init__(self, b: KernelBuilder, walk: Walk, windows: Sequence[Windows], shape: Sequence[int]) -> None:
        self.b, self.walk, self.windows = b, walk, windows
        self.places = coordinates(walk.linear, list(shape)[::-1])[:len(windows)][::-1]
        self.starts = [self._look_up(each.starts, place) for each, place in zip(windows, self.places, strict=True)]
        self.counts = [self._look_up(each.counts, place) for each, place in zip(windows, self.places, strict=True)]

    def _look_up(self, table: Sequence[int], place: Node) -> Node:
        if len(set(table)) == 1:
            return self.walk.number(table[0])
        return cast(self.b.load(self.b.constants(table), place), self.walk.dtype)

    def run(self, body: Callable[[list[Node]], None]) -> None:
        """Call `body` with the position of an element along each dimension, within the loops."""
        with ExitStack() as stack:
            found = []
            for each, start, count in zip(self.windows, self.starts, self.counts, strict=True):
                i = stack.enter_context(self.b.loop(self.walk.zero, count, self.walk.number(1)))
                found.append(start + i * each.step)
            body(found)

    def divisor(self, divisors: Sequence[Buffer | int], places: Sequence[Node]) -> Node:
        """The product of a window's divisors."""
        total = self.walk.number(1)
        for each, place in zip(divisors, places, strict=True):
            factor = self.walk.number(each) if isinstance(each, int) else cast(self.b.load(each, place),
                                                                                self.walk.dtype)
            total = total * factor
        return total


def _check(x: Spec) -> None:
    if x.dtype not in (np.float32, np.float64):
        raise TypeError(f"pooling of {x.dtype}: cast it to float32 or float64")


def _tables(b: KernelBuilder, windows: Sequence[Windows]) -> list[Buffer | int]:
    return [each.divisors[0] if len(set(each.divisors)) == 1 else b.constants(each.divisors) for each in windows]


def max_pool(outputs: Sequence[Spec], x: Spec, windows: Sequence[Windows]) -> list[DeviceLaunch]:
    """Each window's maximum, and the index in its plane of the first maximal element; NaN is the greatest.

    Raises:
        TypeError: dtypes other than float16, bfloat16, float32 and float64.
    """
    if x.dtype not in NARROW:
        _check(x)
    wide = np.dtype(np.float32) if x.dtype in NARROW else x.dtype
    shape, spatial = outputs[0].shape, x.shape[2:]
    if not prod(shape):
        return []
    b = KernelBuilder("max_pool", THREADS)
    stored, source = [b.buffer(each.dtype) for each in outputs], b.buffer(x.dtype)
    planes = (*x.shape[:2], *(1 for _ in spatial))
    plane = Spec(planes, x.strides, x.dtype)
    walk = Walk(b, shape, [*(element_strides(each, shape) for each in outputs), element_strides(plane, shape)],
                prod(x.shape))
    steps = [s // x.dtype.itemsize for s in x.strides[2:]]
    with b.when(walk.inside):
        loops = _WindowLoops(b, walk, windows, shape)
        best, index = b.local(constant(-np.inf, wide)), b.local(constant(0, INT64))
        first = b.local(constant(True, "bool"))

        def body(places: list[Node]) -> None:
            at, flat = walk.at[-1], walk.zero
            for place, step, extent in zip(places, steps, spatial, strict=True):
                at, flat = at + place * step, flat * extent + place
            value, before = cast(b.load(source, at), wide), b.get(best)
            better = (value > before) | ne(value, value) | b.get(first)
            b.set(best, select(better, value, before))
            b.set(index, select(better, cast(flat, INT64), b.get(index)))
            b.set(first, constant(False, "bool"))

        loops.run(body)
        for buffer, at, local in zip(stored, walk.at, (best, index), strict=False):
            b.store(buffer, at, cast(b.get(local), buffer.dtype))
    return [launch(b.kernel(), walk.blocks)]


def max_pool_gradient(gx: Spec, gy: Spec, indices: Spec) -> list[DeviceLaunch]:
    """Each window's gradient, added to the element that it chose; `gx` is dense."""
    _check(gx)
    work = [on_operand(clear(gx), 0)]
    if not gy.size:
        return work
    b = KernelBuilder("max_pool_gradient", THREADS)
    stored, source, chosen = (b.buffer(each.dtype) for each in (gx, gy, indices))
    shape, size = gy.shape, prod(gx.shape[2:])
    planes = [gx.shape[1] * size, size, *(0 for _ in shape[2:])]
    walk = Walk(b, shape, [planes, element_strides(gy, shape), element_strides(indices, shape)], gx.size)
    with b.when(walk.inside):
        at = walk.at[0] + cast(b.load(chosen, walk.at[2]), walk.dtype)
        b.atomic("add", stored, at, b.load(source, walk.at[1]))
    return [*work, launch(b.kernel(), walk.blocks)]


def avg_pool(out: Spec, x: Spec, windows: Sequence[Windows], divisor: int = 0) -> list[DeviceLaunch]:
    """Each window's sum over its divisor, or over `divisor` if that is not 0."""
    return _sums("avg_pool", out, x, windows, divisor, of_window=True)


def avg_pool_gradient(gx: Spec, gy: Spec, windows: Sequence[Windows], divisor: int = 0) -> list[DeviceLaunch]:
    """Each window's gradient over its divisor, added to every element in it: a sum over each element's windows.

    Raises:
        ValueError: dilated windows.
    """
    if any(each.step != 1 for each in windows):
        raise ValueError("average pooling of dilated windows has no gradient kernel")
    inverse = [transposed(each, length) for each, length in zip(windows, gx.shape[2:], strict=True)]
    return _sums("avg_pool_gradient", gx, gy, inverse, divisor, of_window=False)


def _sums(name: str, out: Spec, x: Spec, windows: Sequence[Windows], divisor: int, of_window: bool
          ) -> list[DeviceLaunch]:
    """Sums over windows, divided by the divisor of the window (`of_window`), or each element by that of its own."""
    _check(x)
    shape, spatial = out.shape, x.shape[2:]
    if not prod(shape):
        return []
    b = KernelBuilder(name, THREADS)
    stored, source = b.buffer(out.dtype), b.buffer(x.dtype)
    plane = Spec((*x.shape[:2], *(1 for _ in spatial)), x.strides, x.dtype)
    walk = Walk(b, shape, [element_strides(out, shape), element_strides(plane, shape)], prod(x.shape))
    steps = [s // x.dtype.itemsize for s in x.strides[2:]]
    divisors: list[Buffer | int] = _tables(b, windows)
    with b.when(walk.inside):
        loops = _WindowLoops(b, walk, windows, shape)
        total = b.local(constant(0.0, x.dtype))

        def body(places: list[Node]) -> None:
            at = walk.at[1]
            for place, step in zip(places, steps, strict=True):
                at = at + place * step
            value = b.load(source, at)
            if not of_window:
                value = value / (constant(float(divisor), x.dtype) if divisor else
                                 cast(loops.divisor(divisors, places), x.dtype))
            b.set(total, b.get(total) + value)

        loops.run(body)
        result = b.get(total)
        if of_window:
            result = result / (constant(float(divisor), x.dtype) if divisor else
                               cast(loops.divisor(divisors, loops.places), x.dtype))
        b.store(stored, walk.at[0], result)
    return [launch(b.kernel(), walk.blocks)]


__all__ = ["avg_pool", "avg_pool_gradient", "max_pool", "max_pool_gradient"]
