"""Convolutions and their gradients, with a thread for each element of the result.

Each thread sums over all that its element depends on, so results do not depend on the grid. No tile is shared between
threads: a library's kernels are many times faster, and this one is for programs that have no library.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...runtime.launch import Spec
from ..scalar.scalar_ir import Node, constant, eq, fma, variable
from .coordinates import coordinates
from .kernel_ir import KernelBuilder, substitute
from .launches import DeviceLaunch, launch
from .walks import THREADS, Walk, element_strides


def launches(kind: str, outputs: Sequence[Spec], x: Spec, y: Spec, extras: Sequence[Spec] = (),
             epilogue: Sequence[Node] | None = None, *, stride: Sequence[int], padding: Sequence[int],
             dilation: Sequence[int], groups: int) -> list[DeviceLaunch]:
    """The launch of a convolution.

    Args:
        kind: "forward": of the image x (N, C, *spatial) and the weight y (O, C / groups, *kernel); "image": the
            image's gradient, of the result's gradient x and the weight y; "weight": the weight's gradient, of the image
            x and the result's gradient y.
        outputs: one for each expression of the epilogue.
        x, y: float32 or float64.
        extras: arrays that broadcast to the outputs' shape.
        epilogue: expressions of variable 0, the convolution, and variables 1, 2, ..., the extras.
        stride, padding, dilation, groups: of the forward convolution.

    Raises:
        TypeError: other dtypes.
    """
    if x.dtype != y.dtype or x.dtype not in (np.float32, np.float64):
        raise TypeError(f"no convolution of {x.dtype} and {y.dtype}: cast them to float32 or float64")
    nodes = (variable(0, x.dtype),) if epilogue is None else tuple(epilogue)
    geometry = (tuple(stride), tuple(padding), tuple(dilation), groups)
    return list(_launches(kind, tuple(outputs), x, y, tuple(extras), nodes, *geometry))


@lru_cache(1024)
def _launches(kind: str, outputs: tuple[Spec, ...], x: Spec, y: Spec, extras: tuple[Spec, ...],
              nodes: tuple[Node, ...], *geometry: Any) -> tuple[DeviceLaunch, ...]:
    shape = outputs[0].shape
    if not prod(shape):
        return ()
    b = KernelBuilder(f"convolution_{kind}", THREADS)
    stored = [b.buffer(each.dtype) for each in outputs]
    left, right, *more = (b.buffer(each.dtype) for each in (x, y, *extras))
    strides = [element_strides(each, shape) for each in (*outputs, *extras)]
    walk = Walk(b, shape, strides, max(prod(x.shape), prod(y.shape)) * 2)
    with b.when(walk.inside):
        total = b.local(constant(0.0, x.dtype))
        sums = _Sum(b, walk, x, y, geometry)
        places = coordinates(walk.linear, list(shape)[::-1])[::-1]

        def add(a: Node, c: Node, valid: Node | None) -> None:
            b.set(total, fma(b.load(left, a, valid), b.load(right, c, valid), b.get(total)))

        {"forward": sums.forward, "image": sums.image, "weight": sums.weight}[kind](places, add)
        known = {variable(0, x.dtype): b.get(total)}
        known |= {variable(i, buffer.dtype): b.load(buffer, at)
                  for i, (buffer, at) in enumerate(zip(more, walk.at[len(outputs):], strict=True), 1)}
        for buffer, at, node in zip(stored, walk.at, nodes, strict=False):
            b.store(buffer, at, substitute(node, known))
    return (launch(b.kernel(), walk.blocks),)


class _Sum:
    """The loops over what an element of the result depends on; `add` takes offsets in x and y, and a condition."""

    def __init__(self, b: KernelBuilder, walk: Walk, x: Spec, y: Spec, geometry: tuple) -> None:
        self.b, self.walk, self.x, self.y = b, walk, x, y
        self.stride, self.padding, self.dilation, self.groups = geometry
        self.at_x, self.at_y = ([s // each.dtype.itemsize for s in each.strides] for each in (x, y))

    def _loops(self, extents: Sequence[int], body: Callable[[list[Node]], None]) -> None:
        with ExitStack() as stack:
            body([stack.enter_context(self.b.loop(self.walk.zero, self.walk.number(n), self.walk.number(1)))
                  for n in extents])

    @staticmethod
    def _offset(strides: Sequence[int], places: Sequence[Node]) -> Node:
        total = places[0] * strides[0]
        for place, stride in zip(places[1:], strides[1:], strict=True):
            total = total + place * stride
        return total

    def _inside(self, places: Sequence[Node], extents: Sequence[int]) -> Node:
        found = (places[0] >= 0) & (places[0] < extents[0])
        for place, extent in zip(places[1:], extents[1:], strict=True):
            found = found & (place >= 0) & (place < extent)
        return found

    def forward(self, places: Sequence[Node], add: Callable[..., None]) -> None:
        """Sum over the channels of the group and the kernel."""
        n, o, *at = places
        channels, spatial = self.y.shape[1], self.x.shape[2:]
        group = o / (self.y.shape[0] // self.groups)

        def body(loop: list[Node]) -> None:
            c, *k = loop
            source = [p * s - pad + tap * d for p, s, pad, tap, d in zip(
                at, self.stride, self.padding, k, self.dilation, strict=True)]
            add(self._offset(self.at_x, [n, group * channels + c, *source]), self._offset(self.at_y, [o, c, *k]),
                self._inside(source, spatial))

        self._loops((channels, *self.y.shape[2:]), body)

    def image(self, places: Sequence[Node], add: Callable[..., None]) -> None:
        """Sum over the outputs of the group and the kernel: the results that an element of the image went into."""
        n, c, *at = places
        outputs, channels, positions = self.y.shape[0] // self.groups, self.y.shape[1], self.x.shape[2:]
        group = c / channels
        within = c - group * channels

        def body(loop: list[Node]) -> None:
            o, *k = loop
            moved = [p + pad - tap * d for p, pad, tap, d in zip(at, self.padding, k, self.dilation, strict=True)]
            source = [each / s for each, s in zip(moved, self.stride, strict=True)]
            valid = self._inside(source, positions)
            for each, place, s in zip(moved, source, self.stride, strict=True):
                valid = valid & eq(place * s, each)  # truncated division: no multiple is negative and rounds to 0
            output = group * outputs + o
            add(self._offset(self.at_x, [n, output, *source]), self._offset(self.at_y, [output, within, *k]), valid)

        self._loops((outputs, *self.y.shape[2:]), body)

    def weight(self, places: Sequence[Node], add: Callable[..., None]) -> None:
        """Sum over images and positions."""
        o, c, *k = places
        spatial, positions = self.x.shape[2:], self.y.shape[2:]
        channels = self.x.shape[1] // self.groups
        group = o / (self.y.shape[1] // self.groups)

        def body(loop: list[Node]) -> None:
            n, *at = loop
            source = [p * s - pad + tap * d for p, s, pad, tap, d in zip(
                at, self.stride, self.padding, k, self.dilation, strict=True)]
            add(self._offset(self.at_x, [n, group * channels + c, *source]), self._offset(self.at_y, [n, o, *at]),
                self._inside(source, spatial))

        self._loops((self.x.shape[0], *positions), body)


__all__ = ["launches"]
