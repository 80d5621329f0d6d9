"""Windows of images as columns, and columns added up to images, over IR values."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ....ir.graph.value import Value
from ....ir.lowering.indexed_kernels import scatter_add, take
from ....ir.lowering.namespace import Namespace
from ....kernels.convolution import output_size as window_counts


class Windows(Namespace):
    """Primitives behind `unfold` and `fold`: elements at positions that are constants."""

    def im2col(
        self, x: Value, kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
    ) -> Value:
        g = self.graph
        if x.ndim == 3:
            columns = self.im2col(g.unsqueeze(x, 0), kernel, dilation, padding, stride)
            return g.reshape(columns, columns.shape[1:])
        (n, c), size = x.shape[:2], x.shape[2:]
        places = _places(size, kernel, dilation, padding, stride)
        before_after = [p for each in reversed(padding) for p in (each, each)]
        padded = self.constant_pad(x, before_after, 0) if any(padding) else x
        flat = g.reshape(padded, (n, c, prod(padded.shape[2:])))
        columns = take(flat, g.constant(places.reshape(-1)), (n, c, places.size), 2)
        return g.reshape(columns, (n, c * len(places), places.shape[1]))

    def col2im(
        self,
        x: Value,
        size: Sequence[int],
        kernel: Sequence[int],
        dilation: Sequence[int],
        padding: Sequence[int],
        stride: Sequence[int],
    ) -> Value:
        g = self.graph
        if x.ndim == 2:
            image = self.col2im(g.unsqueeze(x, 0), size, kernel, dilation, padding, stride)
            return g.reshape(image, image.shape[1:])
        n, c = x.shape[0], x.shape[1] // prod(kernel)
        places = _places(size, kernel, dilation, padding, stride)
        padded = [m + 2 * p for m, p in zip(size, padding, strict=True)]
        parts = g.reshape(x, (n, c, places.size))
        found = g.reshape(
            scatter_add(parts, g.constant(places.reshape(-1)), (n, c, prod(padded)), 2), (n, c, *padded)
        )
        for axis, (p, m) in enumerate(zip(padding, size, strict=True), 2):
            found = g.slice(found, axis, p, m)
        return found


def _places(
    size: Sequence[int], kernel: Sequence[int], dilation: Sequence[int], padding: Sequence[int], stride: Sequence[int]
) -> np.ndarray:
    """By element of the window and by window, its place in the padded image."""
    counts = window_counts(tuple(size), tuple(kernel), tuple(stride), tuple(padding), tuple(dilation))
    width = size[1] + 2 * padding[1]
    down, across = (
        np.arange(k)[:, None] * d + np.arange(m)[None] * s
        for k, d, m, s in zip(kernel, dilation, counts, stride, strict=True)
    )
    places = down[:, None, :, None] * width + across[None, :, None, :]
    return places.reshape(prod(kernel), prod(counts)).astype(np.int64)


__all__ = ["Windows"]
