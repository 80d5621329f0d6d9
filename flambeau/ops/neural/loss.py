"""Loss functions, and their gradients as operators.

A gradient (`_mse_loss_backward`, ...) is one pass over arrays where the namespace has a primitive of its name, and a
differentiable formula otherwise.
"""

from __future__ import annotations

from math import prod
from typing import Any

from ... import dtypes
from ...shapes import broadcast_shapes
from ..declare import composite, linear, not_implemented, not_implemented_error, op
from ..missing_tangents import refuse_forward_mode
from ..pointwise.arithmetic import neg
from .nll_loss_batching import nll_loss_backward_vmap, nll_loss_vmap

_LOSS: dict[str, Any] = {"expose": ("nn.functional",)}


def _reduce(xp, loss, reduction, dims=None):
    if reduction == "mean":
        return xp.mean(loss, dims)
    return xp.sum(loss, dims) if reduction == "sum" else loss


def _share_gradient(xp, g, count, reduction):
    """Return the gradient of each element's loss from that of the reduced loss."""
    return g / count if reduction == "mean" else g


def elementwise_loss_vmap(name):
    """Return the batching rule of the elementwise loss `name`: unreduced, then reduced within each batch element."""
    def rule(xp, batch, *inputs, reduction="mean", **params):
        k = batch.k
        ndim = max(len(x.shape) - k * on for x, on in zip(inputs[:2], batch.on, strict=False))
        values = [x if x is None else batch.padded(i, x, ndim) for i, x in enumerate(inputs)]
        values[:2] = [x if on else batch.expand_levels(x) for x, on in zip(values[:2], batch.on, strict=False)]
        loss = getattr(xp, name)(*values, reduction="none", **params)
        dims = tuple(range(k, k + ndim))
        return _reduce(xp, loss, reduction, dims) if dims else loss

    return rule


# ----- regression ---------------------------------------------------------


@op(promote="common", unsupported_dtypes=not_implemented("mse_cpu", "bool", "integer", "complex"), **_LOSS)
def mse_loss(xp, input, target, *, reduction="mean"):
    """(input - target)², reduced.

    Args:
        reduction: "mean", "sum" or "none".

    >>> import flambeau as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1., 2.]), torch.zeros(2))
    tensor(2.5000)
    """
    d = input - target
    return _reduce(xp, d * d, reduction)


@composite(expose=())
def _mse_loss_backward(xp, g, input, target, *, reduction):
    """The gradient by `input`, 2 (input - target) · g, divided by the number of elements for the mean."""
    return (input - target) * (_share_gradient(xp, g, prod(input.shape), reduction) * 2)


mse_loss.vjp(
    input=lambda xp, g, input, target, reduction: xp._mse_loss_backward(g, input, target, reduction=reduction),
    target=lambda xp, g, input, target, reduction: xp._mse_loss_backward(g, target, input, reduction=reduction))


def _distance_jvp(xp, slope, t_input, t_target, reduction):
    t = t_input if t_target is None else -t_target if t_input is None else t_input - t_target
    return _reduce(xp, slope * t, reduction)


mse_loss.jvp(lambda xp, t_input, t_target, input, target, reduction: _distance_jvp(
    xp, (input - target) * 2, t_input, t_target, reduction))


@op(promote="common", unsupported_dtypes=not_implemented("smooth_l1_cpu", "bool", "integer", "complex"), **_LOSS)
def smooth_l1_loss(xp, input, target, *, reduction="mean", beta=1.0):
    """d² / (2 beta) where d = |input - target| < beta, else d - beta / 2; reduced.

    Args:
        reduction: "mean", "sum" or "none".
        beta: where the loss changes from quadratic to linear.

    >>> import flambeau as torch
    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0.5, 3.]), torch.zeros(2), reduction="none")
    tensor([0.1250, 2.5000])
    """
    d = xp.abs(input - target)
    return _reduce(xp, xp.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta), reduction)


def _smooth_l1_slope(xp, input, target, beta):
    d = input - target
    return xp.where(xp.abs(d) >= beta, xp.sign(d), d / beta)  # propagates NaN


_NO_HUBER = RuntimeError("huber_loss does not support non-positive values for delta.")


def _unsupported_in_huber(input, target, *, reduction="mean", delta=1.0):
    return _NO_HUBER if delta <= 0 else not_implemented_error("huber_cpu")


@op(promote="common", unsupported_dtypes=dict.fromkeys(("bool", "integer", "complex"), _unsupported_in_huber), **_LOSS)
def huber_loss(xp, input, target, *, reduction="mean", delta=1.0):
    """d² / 2 where d = |input - target| < delta, else delta · (d - delta / 2); reduced.

    Args:
        reduction: "mean", "sum" or "none".
        delta: where the loss changes from quadratic to linear; > 0.

    >>> import flambeau as torch
    >>> torch.nn.functional.huber_loss(torch.tensor([0.5, 3.]), torch.zeros(2), reduction="none", delta=2.0)
    tensor([0.1250, 4.0000])
    """
    if delta <= 0:
        raise _NO_HUBER
    d = xp.abs(input - target)
    return _reduce(xp, xp.where(d < delta, d * d * 0.5, (d - 0.5 * delta) * delta), reduction)


def _scalar_name(dtype):
    return dtype.scalar_name if isinstance(dtype, dtypes.dtype) else dtypes.of(dtype).scalar_name


def _huber_slope(xp, input, target, delta):
    if input.dtype != target.dtype:
        raise RuntimeError(f"Found dtype {_scalar_name(target.dtype)} but expected {_scalar_name(input.dtype)}")
    d = input - target
    return xp.where(xp.abs(d) >= delta, xp.sign(d) * delta, d)  # propagates NaN


def _reduced_gradient(xp, g, slope, reduction):
    return slope * _share_gradient(xp, g, prod(slope.shape), reduction)


smooth_l1_loss.vjp(
    input=lambda xp, g, input, target, reduction, beta: _reduced_gradient(
        xp, g, _smooth_l1_slope(xp, input, target, beta), reduction),
    target=lambda xp, g, input, target, reduction, beta: _reduced_gradient(
        xp, g, _smooth_l1_slope(xp, target, input, beta), reduction))
smooth_l1_loss.jvp(lambda xp, t_input, t_target, input, target, reduction, beta: _distance_jvp(
    xp, _smooth_l1_slope(xp, input, target, beta), t_input, t_target, reduction))
huber_loss.vjp(
    input=lambda xp, g, input, target, reduction, delta: _reduced_gradient(
        xp, g, _huber_slope(xp, input, target, delta), reduction),
    target=lambda xp, g, input, target, reduction, delta: _reduced_gradient(
        xp, g, _huber_slope(xp, target, input, delta), reduction))
huber_loss.jvp(lambda xp, t_input, t_target, input, target, reduction, delta: _distance_jvp(
    xp, _huber_slope(xp, input, target, delta), t_input, t_target, reduction))


# ----- binary cross entropy -------------------------------------------------------


def _not_differentiable(function: str, name: str, x: Any) -> None:
    if x is not None and x.requires_grad:
        from ...modes import grad_mode

        if grad_mode.get():
            raise RuntimeError(f"The function '{function}' is not differentiable with respect to argument '{name}'. "
                               "This input cannot have requires_grad True.")


def _check_binary_cross_entropy(input, target, weight):
    _not_differentiable("binary_cross_entropy", "weight", weight)
    for x in (target, weight):
        if x is not None and x.dtype is not input.dtype:
            raise RuntimeError(f"Found dtype {x.dtype.scalar_name} but expected {input.dtype.scalar_name}")


@op(nondifferentiable_inputs=("weight",), check=_check_binary_cross_entropy,
    unsupported_dtypes=not_implemented("binary_cross_entropy", "bool", "integer", "complex"), **_LOSS)
def binary_cross_entropy(xp, input, target, weight=None, *, reduction="mean"):
    """-weight · (t log x + (1 - t) log(1 - x)), with logarithms clamped to ≥ -100; reduced.

    Args:
        input: probabilities x.
        target: t, in [0, 1].
        weight: a factor of each element's loss.
        reduction: "mean", "sum" or "none".

    Raises:
        RuntimeError: an element of input or target is outside [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.]))
    tensor(0.6931)
    """
    xp.check_probabilities(input, target)
    log_p, log_q = xp.clamp_below(xp.log(input), -100), xp.clamp_below(xp.log1p(-input), -100)
    loss = (target - 1) * log_q - target * log_p
    return _reduce(xp, loss if weight is None else loss * weight, reduction)


def _bce_vjp_input(xp, g, input, target, weight, reduction):
    slope = (input - target) / xp.clamp_below((1 - input) * input, 1e-12)
    return _reduced_gradient(xp, g, slope if weight is None else slope * weight, reduction)


def _bce_vjp_target(xp, g, input, weight, reduction):
    slope = -xp.logit(input)
    return _reduced_gradient(xp, g, slope if weight is None else slope * weight, reduction)


binary_cross_entropy.vjp(
    input=lambda xp, g, input, target, weight, reduction: _bce_vjp_input(xp, g, input, target, weight, reduction),
    target=lambda xp, g, input, weight, reduction: _bce_vjp_target(xp, g, input, weight, reduction))


@composite(key="clamp_below", name="clamp_below", expose=())
def clamp_below(xp, input, *, limit):
    """max(input, limit), with a scalar limit."""
    return xp.clamp_min(input, limit)


def _check_with_logits(input, target, weight, pos_weight):
    _not_differentiable("binary_cross_entropy_with_logits", "weight", weight)
    _not_differentiable("binary_cross_entropy_with_logits", "pos_weight", pos_weight)
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{input.dtype.scalar_name}'")


@op(promote="common", nondifferentiable_inputs=("weight", "pos_weight"), check=_check_with_logits,
    unsupported_dtypes=not_implemented("log_sigmoid_cpu", "bool", "integer", "complex"), **_LOSS)
def binary_cross_entropy_with_logits(xp, input, target, weight=None, pos_weight=None, *, reduction="mean"):
    """`binary_cross_entropy` of sigmoid(input), without overflow.

    Args:
        weight: a factor of each element's loss.
        pos_weight: a factor of the loss of positive targets.
        reduction: "mean", "sum" or "none".

    >>> import flambeau as torch
    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0.]), torch.tensor([1.]))
    tensor(0.6931)
    """
    neg_log_sigmoid = xp.log1p(xp.exp(-xp.abs(input))) + xp.clamp_below(-input, 0)
    if pos_weight is not None:
        shape = broadcast_shapes(pos_weight.shape, target.shape)
        if shape != tuple(target.shape) and tuple(input.shape) == tuple(target.shape):
            raise RuntimeError(f"output with shape {list(target.shape)} doesn't match the broadcast shape "
                               f"{list(shape)}")
        neg_log_sigmoid = neg_log_sigmoid * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * input + neg_log_sigmoid
    return _reduce(xp, loss if weight is None else loss * weight, reduction)


@composite(expose=())
def _bce_with_logits_backward(xp, input, target, g, weight=None, pos_weight=None, *, reduction):
    """The gradient by the logits."""
    if pos_weight is None:
        slope = xp.sigmoid(input) - target
    else:
        positive = target * pos_weight
        slope = (positive + (1 - target)) * xp.sigmoid(input) - positive
    return _reduced_gradient(xp, g, slope if weight is None else slope * weight, reduction)


def _bce_with_logits_vjp_target(xp, g, input, target_shape, weight, pos_weight, reduction):
    slope = -input
    if pos_weight is not None:
        neg_log_sigmoid = xp.log1p(xp.exp(-xp.abs(input))) + xp.clamp_below(-input, 0)
        slope = slope + (pos_weight - 1) * neg_log_sigmoid
    return _reduced_gradient(xp, g, slope if weight is None else slope * weight, reduction)


binary_cross_entropy_with_logits.vjp(
    input=lambda xp, g, input, target, weight, pos_weight, reduction: xp._bce_with_logits_backward(
        input, target, g, weight, pos_weight, reduction=reduction),
    target=lambda xp, g, input, target_shape, weight, pos_weight, reduction: _bce_with_logits_vjp_target(
        xp, g, input, target_shape, weight, pos_weight, reduction))


for _op in (mse_loss, smooth_l1_loss, huber_loss, binary_cross_entropy, binary_cross_entropy_with_logits):
    _op.vmap(elementwise_loss_vmap(_op.name))


# ----- margins --------------------------------------------------------------------------


def _check_soft_margin(input, target):
    _not_differentiable("soft_margin_loss", "target", target)
    if input.dtype.name == "bool":
        raise neg.unsupported_dtypes["bool"]
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        computed = target.dtype if target.dtype.is_floating_point or target.dtype.is_complex else (
            dtypes.get_default_dtype())
        raise RuntimeError(f"result type {computed.scalar_name} can't be cast to the desired output type "
                           f"{input.dtype.scalar_name}")
    shape = broadcast_shapes(input.shape, target.shape)
    if shape != input.shape:
        raise RuntimeError(f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(shape)}")


@op(promote="common", check=_check_soft_margin, **_LOSS)
def soft_margin_loss(xp, input, target, *, reduction="mean"):
    """log(1 + e^(-target · input)), reduced.

    Args:
        target: 1 or -1.
        reduction: "mean", "sum" or "none".

    >>> import flambeau as torch
    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.]), torch.tensor([1.]))
    tensor(0.6931)
    """
    return _reduce(xp, xp.log1p(xp.exp(-target * input)), reduction)


soft_margin_loss.nondifferentiable_inputs = ("target",)
soft_margin_loss.vjp(
    input=lambda xp, g, input, target, reduction: _reduced_gradient(
        xp, g, -target * xp.sigmoid(-target * input), reduction))
soft_margin_loss.vmap(elementwise_loss_vmap("soft_margin_loss"))


# ----- negative log-likelihood --------------------------------------------------------------------------


@linear("input", node="NllLossBackward0", nondifferentiable_inputs=("target", "weight"),
        unsupported_dtypes=not_implemented("nll_loss_out_frame", "bool", "integer", "complex"), expose=())
def _nll_loss(xp, input, target, weight=None, *, reduction="mean", ignore_index=-100):
    """-weight[t] · input[n, t] for the classes t of (N, C) or (C) log-probabilities."""
    return xp.nll_loss(input, target, weight, reduction, ignore_index)


@linear("input", node="NllLoss2DBackward0", nondifferentiable_inputs=("target", "weight"),
        unsupported_dtypes=not_implemented("nll_loss2d_forward_out_frame", "bool", "integer", "complex"), expose=())
def _nll_loss2d(xp, input, target, weight=None, *, reduction="mean", ignore_index=-100):
    """-weight[t] · input[n, t, y, x] for the classes t of (N, C, H, W) log-probabilities."""
    return xp.nll_loss(input, target, weight, reduction, ignore_index)


@linear("grad_output", node="NllLossBackwardBackward0", nondifferentiable_inputs=("target", "weight"), expose=())
def _nll_loss_backward(xp, grad_output, input, target, weight=None, *, reduction, ignore_index):
    """The transpose of `_nll_loss`: the gradient at each sample's class, zeros elsewhere, in the input's shape."""
    return xp.nll_loss_backward(grad_output, target, weight, input.shape, reduction, ignore_index)


for _op in (_nll_loss, _nll_loss2d):
    _op.vjp(input=lambda xp, g, input, target, weight, reduction, ignore_index: xp._nll_loss_backward(
        g, input, target, weight, reduction=reduction, ignore_index=ignore_index))
_nll_loss_backward.vjp(
    grad_output=lambda xp, g, target, weight, reduction, ignore_index: xp._nll_loss(
        g, target, weight, reduction=reduction, ignore_index=ignore_index),
    input=lambda xp, input: xp.zeros_like(input))
_nll_loss.vmap(nll_loss_vmap("_nll_loss"))
_nll_loss2d.vmap(nll_loss_vmap("_nll_loss2d"))
_nll_loss_backward.vmap(nll_loss_backward_vmap)


# ----- connectionist temporal classification -----------------------------------------------------------------------


@op(node="CtcLossBackward0", expose=(),
    unsupported_dtypes=not_implemented("ctc_loss_cpu", "bool", "integer", "complex", "narrow"))
def _ctc_loss(xp, log_probs, *, targets, input_lengths, target_lengths, blank, zero_infinity, saved):
    """The negative log-likelihood of each target, summed over its alignments with (T, N, C) log-probabilities."""
    return xp.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, saved)


@op(node="CtcLossBackwardBackward0", expose=())
def _ctc_loss_backward(xp, grad_output, log_probs, *, targets, input_lengths, target_lengths, blank, zero_infinity,
                       saved):
    """The gradient by log-probabilities, which are a log_softmax's result."""
    return xp.ctc_loss_backward(grad_output, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity,
                             saved)


def _refuse_second_derivative(g):
    raise RuntimeError("derivative for aten::_ctc_loss_backward is not implemented")


_ctc_loss.vjp(
    log_probs=lambda xp, g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity, saved:
    xp._ctc_loss_backward(g, log_probs, targets=targets, input_lengths=input_lengths, target_lengths=target_lengths,
                          blank=blank, zero_infinity=zero_infinity, saved=saved))
_ctc_loss.jvp(lambda t_log_probs: refuse_forward_mode("_ctc_loss"))
_ctc_loss_backward.vjp(grad_output=_refuse_second_derivative, log_probs=_refuse_second_derivative)
