"""Multi-class and multi-label margin losses."""

from __future__ import annotations

from math import prod
from typing import Any

from ... import dtypes
from ..declare import not_implemented, op
from .loss import _not_differentiable, _reduce, _share_gradient


def _check_scores(shape: tuple[int, ...]) -> None:
    if len(shape) > 2 or (shape and not shape[-1]):
        raise RuntimeError("Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
                           f"{list(shape)}")


def _check_classes(target: Any) -> None:
    if target.dtype is not dtypes.int64:
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.scalar_name}")


def _check_multi_margin(input, target, weight):
    _not_differentiable("multi_margin_loss", "weight", weight)
    shape = tuple(input.shape)
    _check_scores(shape)
    n, classes = _as_rows(shape)
    if len(target.shape) > 1 or prod(target.shape) != n:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
                           f"samples (batch size). Expected target size [{n}], but got {list(target.shape)}. Input has "
                           f"shape {list(shape)}.")
    if weight is not None and tuple(weight.shape) != (classes,):
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    if input.dtype in (dtypes.float32, dtypes.float64):
        _check_classes(target)
        if weight is not None and weight.dtype is not input.dtype and n:
            raise RuntimeError(f"expected scalar type {input.dtype.scalar_name} but found {weight.dtype.scalar_name}")


def _check_multilabel_margin(input, target):
    shape, labels = tuple(input.shape), tuple(target.shape)
    _check_scores(shape)
    if (labels != shape if len(shape) == 2 else len(labels) > 1 or prod(labels) != prod(shape)):
        raise RuntimeError(f"inconsistent target size: {list(labels)} for input of size: {list(shape)}")
    if input.dtype in (dtypes.float32, dtypes.float64):
        _check_classes(target)
    elif prod(labels) and not -1 <= int(target.min()) <= int(target.max()) < _as_rows(shape)[1]:
        raise RuntimeError("argument #2 'target' is out of range")  # of other dtypes no kernel finds it


def _as_rows(shape: tuple[int, ...]) -> tuple[int, int]:
    return (1, shape[0] if shape else 1) if len(shape) < 2 else (shape[0], shape[1])


@op(differentiable=False, expose=())
def _count_classes(xp, target, scores, *, ended):
    """The number of times that each of C classes occurs in rows of (N, K) targets; up to the first -1 if `ended`."""
    return xp.count_classes(target, scores, ended)


def _scores_and_counts(xp, input, target, k, ended):
    """Return the scores as (N, C), and the number of times that each class is among the k targets of its row."""
    rows = _as_rows(tuple(input.shape))
    x = xp.reshape(input, rows)
    return x, xp._count_classes(xp.reshape(target, (rows[0], k)), x, ended=ended)


def _margin_excess(xp, input, target, weight, margin):
    """Return max(0, margin - x[t] + x[i]) for each class i, 0 at the target; the target's mask; its weight."""
    x, counts = _scores_and_counts(xp, input, target, 1, False)
    is_target = counts > 0
    target_score = xp.sum(xp.where(is_target, x, 0), 1, True)
    over = margin - target_score + x
    over = xp.where(xp.logical_and(over > 0, xp.logical_not(is_target)), over, 0)
    return over, is_target, None if weight is None else xp.sum(xp.where(is_target, weight, 0), 1, True)


@op(key="_multi_margin_loss", name="multi_margin_loss", nondifferentiable_inputs=("target", "weight"),
    check=_check_multi_margin,
    unsupported_dtypes=not_implemented("multi_margin_loss_cpu_kernel", "bool", "integer", "complex", "narrow",
                                       empty=False),
    expose=())
def _multi_margin_loss(xp, input, target, weight=None, *, p=1, margin=1.0, reduction="mean"):
    """Σ over the other classes i of weight[t] · max(0, margin - x[t] + x[i])ᵖ, divided by the number of classes."""
    over, _, scale = _margin_excess(xp, input, target, weight, margin)
    loss = xp.sum(over if p == 1 else over * over, 1) / over.shape[1]
    if scale is not None:
        loss = loss * xp.squeeze(scale, 1)
    return _reduce(xp, loss if len(target.shape) else xp.reshape(loss, ()), reduction)


def _margin_slope(xp, input, target, weight, p, margin):
    """The derivative of each row's loss by its scores (N, C)."""
    over, is_target, scale = _margin_excess(xp, input, target, weight, margin)
    slope = (xp.where(over > 0, xp.ones_like(over), 0) if p == 1 else over * 2) / over.shape[1]
    slope = xp.where(is_target, -xp.sum(slope, 1, True), slope)
    return slope if scale is None else slope * scale


@op(nondifferentiable_inputs=("target", "weight"), expose=(), node="torch::autograd::NotImplemented")
def _multi_margin_loss_backward(xp, grad_output, input, target, weight=None, *, p, margin, reduction):
    """The gradient by the scores."""
    slope = _margin_slope(xp, input, target, weight, p, margin)
    g = _share_gradient(xp, grad_output, slope.shape[0], reduction)
    return xp.reshape(slope * xp.reshape(g, (-1, 1)), input.shape)


def _multi_margin_jvp(xp, t_input, input, target, weight, p, margin, reduction):
    slope = _margin_slope(xp, input, target, weight, p, margin)
    t = xp.sum(slope * xp.reshape(t_input, slope.shape), 1)
    return _reduce(xp, t if len(target.shape) else xp.reshape(t, ()), reduction)


def _refuse_second_derivative(g):
    raise RuntimeError("derivative for aten::multi_margin_loss_backward is not implemented")


_multi_margin_loss_backward.vjp(grad_output=_refuse_second_derivative, input=_refuse_second_derivative)
_multi_margin_loss.vjp(
    input=lambda xp, g, input, target, weight, p, margin, reduction: xp._multi_margin_loss_backward(
        g, input, target, weight, p=p, margin=margin, reduction=reduction))
_multi_margin_loss.jvp(_multi_margin_jvp)


def _pair_excess(xp, input, target):
    """Return max(0, 1 - x[t] + x[i]) as (N, t, i), 0 unless t is a target and i is not; the targets' counts (N, C)."""
    x, counts = _scores_and_counts(xp, input, target, _as_rows(tuple(input.shape))[1], True)
    over = 1 - xp.unsqueeze(x, 2) + xp.unsqueeze(x, 1)
    apart = xp.logical_and(xp.unsqueeze(counts > 0, 2), xp.unsqueeze(counts == 0, 1))
    return xp.where(xp.logical_and(over > 0, apart), over, 0), counts


@op(key="_multilabel_margin_loss", name="multilabel_margin_loss", nondifferentiable_inputs=("target",),
    check=_check_multilabel_margin, expose=(),
    unsupported_dtypes=not_implemented("multilabel_margin_loss_forward_out_frame", "bool", "integer", "complex",
                                       "narrow"))
def _multilabel_margin_loss(xp, input, target, *, reduction="mean"):
    """Σ over targets t and other classes i of max(0, 1 - x[t] + x[i]), divided by the number of classes."""
    over, counts = _pair_excess(xp, input, target)
    loss = xp.sum(xp.sum(over, 2) * counts, 1) / over.shape[1]
    return _reduce(xp, loss if len(input.shape) == 2 else xp.reshape(loss, ()), reduction)


@op(nondifferentiable_inputs=("target",), expose=(), node="torch::autograd::NotImplemented")
def _multilabel_margin_loss_backward(xp, grad_output, input, target, *, reduction):
    """The gradient by the scores."""
    over, counts = _pair_excess(xp, input, target)
    multiplicity = xp.where(over > 0, xp.unsqueeze(counts, 2), 0)  # (N, t, i): the multiplicity of each pair
    slope = xp.sum(multiplicity, 1) - xp.sum(multiplicity, 2)
    g = _share_gradient(xp, grad_output, over.shape[0], reduction) / over.shape[1]
    return xp.reshape(xp.reshape(g, (-1, 1)) * slope, input.shape)


def _multilabel_margin_jvp(xp, t_input, input, target, reduction):
    over, counts = _pair_excess(xp, input, target)
    multiplicity = xp.where(over > 0, xp.unsqueeze(counts, 2), 0)
    slope = (xp.sum(multiplicity, 1) - xp.sum(multiplicity, 2)) / over.shape[1]
    t = xp.sum(slope * xp.reshape(t_input, slope.shape), 1)
    return _reduce(xp, t if len(input.shape) == 2 else xp.reshape(t, ()), reduction)


def _refuse_multilabel_derivative(g):
    raise RuntimeError("derivative for aten::multilabel_margin_loss_backward is not implemented")


_multilabel_margin_loss_backward.vjp(grad_output=_refuse_multilabel_derivative, input=_refuse_multilabel_derivative)
_multilabel_margin_loss.vjp(
    input=lambda xp, g, input, target, reduction: xp._multilabel_margin_loss_backward(
        g, input, target, reduction=reduction))
_multilabel_margin_loss.jvp(_multilabel_margin_jvp)
