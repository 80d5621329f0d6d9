"""Kernels of `grid_sample` and its gradients as extern values."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ...runtime.launch import Launch, Spec
from ..graph.extern_kernels import ExternKernel
from ..graph.value import Unsupported, Value

#: the operators that are lowered here, and their kernels
_KERNELS = {"_grid_sampler_2d": "forward", "_grid_sampler_3d": "forward", "_grid_sampler_input_gradient": "image",
            "_grid_sampler_grid_gradient": "grid"}
GRID_SAMPLING = frozenset(_KERNELS)
_NEAREST = 1


def _launches(outputs: list[Spec], inputs: list[Spec], kind: str, modes: tuple[int, int, bool]) -> list[Launch]:
    from ...codegen.grid_sampling import grid_sampling

    image, grid = {"forward": inputs, "image": (outputs[0], inputs[1]), "grid": inputs[1:]}[kind]
    sampling = grid_sampling.Sampling(grid.shape[-1], *modes)
    return grid_sampling.launches(kind, sampling, image, prod(grid.shape[1:-1]))


def _with_one_batch_dimension(x: Value, inner: int) -> Value:
    """A dense value (*batch, ...) whose last `inner` dimensions are kept."""
    g, shape = x.graph, (prod(x.shape[:x.ndim - inner]), *x.shape[x.ndim - inner:])
    return g.reshape(g.copy(x), shape)


def lower(name: str, operands: tuple[Value, ...], modes: tuple[int, int, bool]) -> Value:
    """The result of an operator of `GRID_SAMPLING`.

    Args:
        operands: input and grid, after the gradient of the result for a gradient.
        modes: mode, padding and align_corners.

    Raises:
        Unsupported: other dtypes, no elements, or planes that are too large for offsets of 32 bits.
    """
    *gradient, image, grid = operands
    kind, graph, rank, dtype = _KERNELS[name], grid.graph, grid.shape[-1], grid.dtype
    sizes = image.shape[image.ndim - rank:]
    if dtype.char not in "fd" or any(x.dtype != dtype or not x.size for x in operands) or prod(sizes) >> 31:
        raise Unsupported(f"grid samples of {dtype}")
    shape = {"forward": (*image.shape[:image.ndim - rank], *grid.shape[grid.ndim - rank - 1:-1]),
             "image": image.shape, "grid": grid.shape}[kind]
    if kind == "grid" and modes[0] == _NEAREST:  # constant between jumps
        return graph.expand(graph.constant(0, dtype), shape)
    images, points = _with_one_batch_dimension(image, rank + 1), _with_one_batch_dimension(grid, rank + 1)
    if not gradient:
        values, flat = [images, points], (*images.shape[:2], *points.shape[1:-1])
    else:
        values = [_with_one_batch_dimension(gradient[0], rank + 1), *([images] if kind == "grid" else []), points]
        flat = images.shape if kind == "image" else points.shape
    kernel = ExternKernel("grid_sample", _launches, {"kind": kind, "modes": modes})
    [result] = graph.extern(kernel, values, [(flat, dtype)])
    return graph.reshape(result, shape)


class GridSamplingOps:
    """`grid_sample` and its gradients as kernels, where no list receives the taps."""

    #: whether the graph's programs have these kernels
    samples_grids = True

    def lowered_whole(self, op: Any) -> Callable[..., Any] | None:
        """The function that lowers an operator to one kernel; None: its declaration is traced."""
        name = op.name
        if not self.samples_grids or name not in GRID_SAMPLING:
            return None

        def call(*operands: Value, mode: int, padding: int, align_corners: bool, saved: Any) -> Value:
            if saved is not None:
                raise Unsupported("the primitive grid_taps")
            return lower(name, operands, (mode, padding, align_corners))

        return call


__all__ = ["GRID_SAMPLING", "GridSamplingOps", "lower"]
