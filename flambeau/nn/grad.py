"""`torch.nn.grad`: gradients of convolutions with respect to input and weight."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..engine.api import grad
from ..engine.grad_mode import enable_grad, is_grad_enabled
from .ntuple import ntuple

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _gradient(rank: int, size: Sequence[int], other: Tensor, grad_output: Tensor, is_input: bool, stride: Any,
              padding: Any, dilation: Any, groups: int) -> Tensor:
    """The gradient with respect to the input or the weight, a tensor of `size`; `other` is the other one."""
    create_graph = is_grad_enabled() and (other.requires_grad or grad_output.requires_grad)
    with enable_grad():
        x = grad_output.new_zeros(tuple(size)).requires_grad_()
        pair = (x, other) if is_input else (other, x)
        output = getattr(fn, f"conv{rank}d")(*pair, None, ntuple(stride, rank), ntuple(padding, rank),
                                             ntuple(dilation, rank), groups)
        result: Tensor = grad(output, x, grad_output, create_graph=create_graph)[0]
    return result


def conv1d_input(input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv1d` with respect to its input.

    Args:
        input_size: the shape of the input.
        weight: (C_out, C_in / groups, ...).
        grad_output: the gradient of the output.
        stride: see `conv1d`.
        padding: see `conv1d`.
        dilation: see `conv1d`.
        groups: see `conv1d`.

    >>> import flambeau as torch
    >>> torch.nn.grad.conv1d_input((1, 1, 3), torch.ones(1, 1, 2), torch.ones(1, 1, 2)).sum()
    tensor(4.)
    """
    return _gradient(1, input_size, weight, grad_output, True, stride, padding, dilation, groups)


def conv1d_weight(input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv1d` with respect to its weight.

    Args:
        input: (N, C_in, ...).
        weight_size: the shape of the weight.
        grad_output: the gradient of the output.
        stride: see `conv1d`.
        padding: see `conv1d`.
        dilation: see `conv1d`.
        groups: see `conv1d`.

    >>> import flambeau as torch
    >>> torch.nn.grad.conv1d_weight(torch.ones(1, 1, 3), (1, 1, 2), torch.ones(1, 1, 2)).sum()
    tensor(4.)
    """
    return _gradient(1, weight_size, input, grad_output, False, stride, padding, dilation, groups)


def conv2d_input(input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv2d` with respect to its input.

    Args:
        input_size: the shape of the input.
        weight: (C_out, C_in / groups, ...).
        grad_output: the gradient of the output.
        stride: see `conv2d`.
        padding: see `conv2d`.
        dilation: see `conv2d`.
        groups: see `conv2d`.

    >>> import flambeau as torch
    >>> torch.nn.grad.conv2d_input((1, 1, 3, 3), torch.ones(1, 1, 2, 2), torch.ones(1, 1, 2, 2)).sum()
    tensor(16.)
    """
    return _gradient(2, input_size, weight, grad_output, True, stride, padding, dilation, groups)


def conv2d_weight(input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv2d` with respect to its weight.

    Args:
        input: (N, C_in, ...).
        weight_size: the shape of the weight.
        grad_output: the gradient of the output.
        stride: see `conv2d`.
        padding: see `conv2d`.
        dilation: see `conv2d`.
        groups: see `conv2d`.

    >>> import flambeau as torch
    >>> torch.nn.grad.conv2d_weight(torch.ones(1, 1, 3, 3), (1, 1, 2, 2), torch.ones(1, 1, 2, 2)).sum()
    tensor(16.)
    """
    return _gradient(2, weight_size, input, grad_output, False, stride, padding, dilation, groups)


def conv3d_input(input_size: Sequence[int], weight: Tensor, grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                 dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv3d` with respect to its input.

    Args:
        input_size: the shape of the input.
        weight: (C_out, C_in / groups, ...).
        grad_output: the gradient of the output.
        stride: see `conv3d`.
        padding: see `conv3d`.
        dilation: see `conv3d`.
        groups: see `conv3d`.

    >>> import flambeau as torch
    >>> torch.nn.grad.conv3d_input((1, 1, 3, 3, 3), torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2)).sum()
    tensor(64.)
    """
    return _gradient(3, input_size, weight, grad_output, True, stride, padding, dilation, groups)


def conv3d_weight(input: Tensor, weight_size: Sequence[int], grad_output: Tensor, stride: Any = 1, padding: Any = 0,
                  dilation: Any = 1, groups: int = 1) -> Tensor:
    """The gradient of `conv3d` with respect to its weight.

    Args:
        input: (N, C_in, ...).
        weight_size: the shape of the weight.
        grad_output: the gradient of the output.
        stride: see `conv3d`.
        padding: see `conv3d`.
        dilation: see `conv3d`.
        groups: see `conv3d`.

    >>> import flambeau as torch
    >>> torch.nn.grad.conv3d_weight(torch.ones(1, 1, 3, 3, 3), (1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2)).sum()
    tensor(64.)
    """
    return _gradient(3, weight_size, input, grad_output, False, stride, padding, dilation, groups)
