"""Gradients of pooling, padding, upsampling and grid sampling as operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor, functions
from ...devices import channels_last, channels_last_3d
from ...nn import functional as F
from .vector_jacobian import gradient_of, vector_jacobian


def _adaptive_avg_pool(rank: int) -> Callable[..., Any]:
    def run(grad_output: Tensor, self: Tensor) -> Tensor:
        size = tuple(grad_output.shape[-rank:])
        pool = getattr(F, f"adaptive_avg_pool{rank}d")
        found = vector_jacobian(lambda x: pool(x, size), [self], (grad_output,))[0]
        last = channels_last if rank == 2 else channels_last_3d
        if self.ndim == rank + 2 and self.is_contiguous(memory_format=last) and not self.is_contiguous():
            return found.contiguous(memory_format=last)
        return found

    return run


def _scattered(rank: int, grad_output: Tensor, self: Tensor, indices: Tensor) -> Tensor:
    """The gradient added to the elements whose positions in their plane are given."""
    lead = self.ndim - rank
    zeros = functions.zeros(self.shape, dtype=grad_output.dtype, device=grad_output.device)
    flat = zeros.flatten(lead).scatter_add(-1, indices.flatten(lead), grad_output.flatten(lead))
    return flat.view(self.shape)


def _max_pool_by_indices(rank: int, trailing: bool) -> Callable[..., Any]:
    """Where the maxima are is known, so that the sizes of the window matter no more.

    Args:
        rank: the number of spatial dimensions.
        trailing: whether the indices come after the sizes of the window.
    """
    def run(grad_output: Tensor, self: Tensor, *rest: Any, indices: Tensor | None = None, **sizes: Any) -> Tensor:
        found = indices if indices is not None else rest[-1 if trailing else 0]
        return _scattered(rank, grad_output, self, found)

    return run


def _affine_grid_generator(grad: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    rank = len(size) - 2
    theta = functions.zeros((size[0], rank, rank + 1), dtype=grad.dtype, device=grad.device)
    return vector_jacobian(lambda x: F.affine_grid(x, list(size), align_corners), [theta], (grad,))[0]


_SPATIAL = ("reflection_pad1d", "reflection_pad2d", "reflection_pad3d", "replication_pad1d", "replication_pad2d",
            "replication_pad3d", "avg_pool2d", "avg_pool3d", "upsample_nearest1d",
            "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d", "_upsample_nearest_exact2d",
            "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d",
            "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa", "_upsample_lanczos2d_aa")

#: "aten.name.overload" -> kernel
KERNELS: dict[str, Callable[..., Any]] = {
    **{f"aten.{name}_backward.default": gradient_of(f"{name}_backward", name) for name in _SPATIAL},
    **{f"aten.grid_sampler_{rank}d_backward.default": gradient_of(
        f"grid_sampler_{rank}d_backward", f"grid_sampler_{rank}d", by=("input", "grid")) for rank in (2, 3)},
    **{f"aten._adaptive_avg_pool{rank}d_backward.default": _adaptive_avg_pool(rank) for rank in (2, 3)},
    "aten.adaptive_avg_pool3d_backward.default": _adaptive_avg_pool(3),
    **{f"aten.adaptive_max_pool{rank}d_backward.default": _max_pool_by_indices(rank, False) for rank in (2, 3)},
    **{f"aten.fractional_max_pool{rank}d_backward.default": _max_pool_by_indices(rank, True) for rank in (2, 3)},
    **{f"aten.max_pool{rank}d_with_indices_backward.default": _max_pool_by_indices(rank, True) for rank in (2, 3)},
    "aten.affine_grid_generator_backward.default": _affine_grid_generator,
}

__all__ = ["KERNELS"]
