"""Gradients of views and of selections of elements as operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._tensor import Tensor, functions
from .vector_jacobian import gradient_of, vector_jacobian


def _unfold(grad_in: Tensor, input_sizes: Sequence[int], dim: int, size: int, step: int) -> Tensor:
    zeros = functions.zeros(tuple(input_sizes), dtype=grad_in.dtype, device=grad_in.device)
    return vector_jacobian(lambda x: x.unfold(dim, size, step), [zeros], (grad_in,))[0]


def _value_selecting_reduction(grad: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool) -> Tensor:
    """The gradient at the elements that a maximum or a median selected."""
    if not keepdim and len(sizes):
        grad, indices = grad.unsqueeze(dim), indices.unsqueeze(dim)
    return functions.zeros(tuple(sizes), dtype=grad.dtype, device=grad.device).scatter(dim, indices, grad)


def _cummaxmin(grad: Tensor, input: Tensor, indices: Tensor, dim: int) -> Tensor:
    if not input.numel():
        return input
    zeros = functions.zeros(input.shape, dtype=grad.dtype, device=grad.device)
    return zeros.scatter_add(dim, indices, grad)


def _cumprod(grad: Tensor, input: Tensor, dim: int, output: Tensor) -> Tensor:
    return vector_jacobian(lambda x: functions.cumprod(x, dim), [input], (grad,))[0]


def _masked_scatter(grad_output: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The gradient of the source: the elements under the mask, then zeros."""
    chosen = functions.masked_select(grad_output, mask)
    count = 1
    for size in sizes:
        count *= size
    missing = count - chosen.numel()
    if missing > 0:
        chosen = functions.cat([chosen, chosen.new_zeros(missing)])
    return chosen[:count].view(tuple(sizes)) if missing < 0 else chosen.view(tuple(sizes))


def _masked_select(grad: Tensor, input: Tensor, mask: Tensor) -> Tensor:
    zeros = functions.zeros_like(input.expand(functions.broadcast_shapes(input.shape, mask.shape)))
    return zeros.masked_scatter(mask, grad)


def _gather(grad: Tensor, self: Tensor, dim: int, index: Tensor, sparse_grad: bool) -> Tensor:
    return vector_jacobian(lambda x: functions.gather(x, dim, index, sparse_grad=sparse_grad), [self], (grad,))[0]


def _trace(grad: Tensor, sizes: Sequence[int]) -> Tensor:
    if len(sizes) != 2:
        raise RuntimeError("expected matrix input")
    zeros = functions.zeros(tuple(sizes), dtype=grad.dtype, device=grad.device)
    return vector_jacobian(functions.trace, [zeros], (grad,))[0]


#: "aten.name.overload" -> kernel
KERNELS: dict[str, Callable[..., Any]] = {
    "aten.diagonal_backward.default": gradient_of("diagonal_backward", "diagonal"),
    "aten.select_backward.default": gradient_of("select_backward", "select.int"),
    "aten.slice_backward.default": gradient_of("slice_backward", "slice.Tensor"),
    "aten.index_select_backward.default": gradient_of("index_select_backward", "index_select"),
    "aten.unfold_backward.default": _unfold, "aten.trace_backward.default": _trace,
    "aten.value_selecting_reduction_backward.default": _value_selecting_reduction,
    "aten.cummaxmin_backward.default": _cummaxmin, "aten.cumprod_backward.default": _cumprod,
    "aten.masked_scatter_backward.default": _masked_scatter, "aten.masked_select_backward.default": _masked_select,
    "aten.gather_backward.default": _gather,
}

__all__ = ["KERNELS"]
