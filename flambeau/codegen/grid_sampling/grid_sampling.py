"""Launches of `grid_sample` and its gradients.

    forward     out[n, c, p] = the pixel of input[n, c] at the point grid[n, p], interpolated
    image       the gradient of the input
    grid        the gradient of the grid

>>> import numpy as np
>>> from flambeau import codegen
>>> from flambeau.codegen.grid_sampling import grid_sampling; from flambeau.runtime import launch
>>> image, grid, out = np.float32([[[[1, 2], [3, 4]]]]), np.float32([[[0, -0.5]]]), np.float32([[[1.5]]])
>>> if codegen.available():
...     modes = grid_sampling.Sampling(2, grid_sampling.BILINEAR, grid_sampling.ZEROS, False)
...     launches = grid_sampling.launches("forward", modes, launch.Spec.of(image), 1)
...     launch.run(launches, [out, image, grid])
>>> print(out.item())
1.5
"""

from __future__ import annotations

from ...runtime import compilation, target
from ...runtime.launch import Launch, Spec
from .positions import BICUBIC, BILINEAR, BORDER, NEAREST, REFLECTION, ZEROS, Sampling

#: gathered or added pixels of a chunk: about 10 us of one thread's work
GRAIN = 1 << 14
#: channels at least of a chunk of the image's gradient, which computes the taps of all points
CHANNELS = 4


def is_addressable(x: Spec) -> bool:
    """Whether offsets in a plane of an image (N, C, *spatial) fit into 32 bits, and strides are whole elements."""
    reach = sum((n - 1) * abs(stride) for n, stride in zip(x.shape[2:], x.strides[2:], strict=True))
    return reach // x.dtype.itemsize < 1 << 31 and not any(stride % x.dtype.itemsize for stride in x.strides)


def launches(kind: str, sampling: Sampling, image: Spec, points: int) -> list[Launch]:
    """The launch over the pointers of `kind`'s operands.

    forward: out (N, C, P), input, grid (N, P, rank). image: gradient, g (N, C, P), grid. grid: gradient, g, input,
    grid.

    Args:
        kind: "forward", "image" or "grid".
        image: the input, or its gradient (row-major): (N, C, *spatial) of float32 or float64.
        points: P, at least one. All operands but the input are row-major.
    """
    number, channels, *spatial = image.shape
    item = image.dtype.itemsize
    taps = {NEAREST: 1, BILINEAR: 2, BICUBIC: 4}[sampling.mode] ** sampling.rank
    lanes = target.host().vector_bits // 8 // item
    if kind == "image":
        count = channels
        least = max(CHANNELS, GRAIN // max(1, points * taps))
    else:
        count = points
        least = -(-max(lanes, GRAIN // max(1, channels * taps)) // lanes) * lanes
    block = max(1, min(count, least))
    blocks = max(1, -(-count // block))
    words = (points, channels, blocks, block, image.strides[0], image.strides[1], *spatial,
             *(stride // item for stride in image.strides[2:]))
    recipe = f"grid_sample {kind} {image.dtype} {tuple(sampling)} {lanes}"

    def generate() -> str:
        from . import code

        return code.generate(kind, image.dtype, sampling, lanes)

    library = compilation.load(recipe, ("body",), generate, "few")
    return [Launch(library, library.symbol("body"), number * blocks, words)]


__all__ = ["BICUBIC", "BILINEAR", "BORDER", "NEAREST", "REFLECTION", "ZEROS", "Sampling", "is_addressable", "launches"]
