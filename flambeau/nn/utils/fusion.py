"""Fusion of batch normalization, in evaluation mode, into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check_eval(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")


def _check_statistics(bn: Any) -> None:
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution that computes `bn(conv(x))`.

    Args:
        conv: a convolution in evaluation mode.
        bn: the batch normalization in evaluation mode.
        transpose: whether the convolution is transposed.

    Raises:
        AssertionError: a module is in training mode, or `bn` has no statistics.

    >>> import flambeau as torch
    >>> conv, bn, x = torch.nn.Conv1d(2, 3, 2).eval(), torch.nn.BatchNorm1d(3).eval(), torch.ones(1, 2, 4)
    >>> torch.allclose(torch.nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)))
    True
    """
    _check_eval(conv, bn)
    fused = copy.deepcopy(conv)
    _check_statistics(bn)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps,
                                                    bn.weight, bn.bias, transpose)
    return fused


def fuse_conv_bn_weights(conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                         bn_w: Tensor | None, bn_b: Tensor | None,
                         transpose: bool = False) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that includes batch normalization.

    Args:
        conv_w: weight of the convolution.
        conv_b: its bias, or None.
        bn_rm: running mean.
        bn_rv: running variance.
        bn_eps: ε of the normalization.
        bn_w: weight of the normalization, or None.
        bn_b: bias of the normalization, or None.
        transpose: whether the convolution is transposed.

    >>> import flambeau as torch
    >>> one = torch.ones(1)
    >>> w, b = torch.nn.utils.fuse_conv_bn_weights(torch.ones(1, 1, 1), None, one, one, 0., one * 2, one)
    >>> w.item(), b.item()
    (2.0, -1.0)
    """
    weight_dtype = conv_w.dtype
    bias_dtype = weight_dtype if conv_b is None else conv_b.dtype
    conv_b = fn.zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = fn.ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = fn.zeros_like(bn_rm) if bn_b is None else bn_b
    rstd = fn.rsqrt(bn_rv + bn_eps)
    shape = ([1, -1] if transpose else [-1, 1]) + [1] * (conv_w.dim() - 2)
    weight = (conv_w * (bn_w * rstd).reshape(shape)).to(dtype=weight_dtype)
    bias = ((conv_b - bn_rm) * rstd * bn_w + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, conv_w.requires_grad), Parameter(bias, conv_b.requires_grad)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer that computes `bn(linear(x))`.

    Args:
        linear: a linear layer in evaluation mode.
        bn: the batch normalization in evaluation mode, of as many features, or of one.

    Raises:
        AssertionError: a module is in training mode, sizes differ, or `bn` has no statistics.

    >>> import flambeau as torch
    >>> linear, bn, x = torch.nn.Linear(2, 3).eval(), torch.nn.BatchNorm1d(3).eval(), torch.ones(1, 2)
    >>> torch.allclose(torch.nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)))
    True
    """
    _check_eval(linear, bn)
    fused = copy.deepcopy(linear)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
                             f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}")
    _check_statistics(bn)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var,
                                                      bn.eps, bn.weight, bn.bias)
    return fused


def fuse_linear_bn_weights(linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float,
                           bn_w: Tensor, bn_b: Tensor) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that includes batch normalization; see `fuse_conv_bn_weights`.

    >>> import flambeau as torch
    >>> one = torch.ones(1)
    >>> w, b = torch.nn.utils.fuse_linear_bn_weights(torch.ones(1, 1), None, one, one, 0., one * 2, one)
    >>> w.item(), b.item()
    (2.0, -1.0)
    """
    weight_dtype = linear_w.dtype
    bias_dtype = weight_dtype if linear_b is None else linear_b.dtype
    linear_b = fn.zeros_like(bn_rm) if linear_b is None else linear_b
    scale = bn_w * fn.rsqrt(bn_rv + bn_eps)
    weight = linear_w * scale.unsqueeze(-1).to(dtype=weight_dtype)
    bias = ((linear_b - bn_rm) * scale + bn_b).to(dtype=bias_dtype)
    return Parameter(weight, linear_w.requires_grad), Parameter(bias, linear_b.requires_grad)
