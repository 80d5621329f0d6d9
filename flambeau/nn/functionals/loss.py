"""Regression and likelihood losses: argument checks, deprecated arguments, and losses composed of operators."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any, SupportsFloat

from ..._tensor import Tensor, no_grad
from ..._tensor import functions as fn
from ..._tensor.argument_errors.parsed_calls import parsed_as
from ..._tensor.argument_errors.seen_classes import SeenClasses
from ..._tensor.argument_errors.type_names import type_name
from ..._tensor.dispatch.apply import apply
from ..._tensor.fastpath.repeated_calls import ANY, launched, repeated
from ..._tensor.overriding.other_objects import with_other_object
from ...dtypes import bool_, can_cast, promote_types
from ...dtypes import dtype as dtype_type
from ...engine.tensor_interface import layer
from ...modes import active_tracers, dispatch_in_use, forward_levels
from ...ops.declare import REGISTRY
from ...ops.pointwise.arithmetic import NO_DIFFERENCE
from ...shapes import broadcast_shapes
from ...warning_location import stacklevel_beside_wrappers
from .reduction import broadcast_operands, check_reduction, legacy_reduction, reduce_loss, reduction_number

#: the most elements of `cross_entropy` from known calls: with more, its operators take longer than what records them
_LOGITS = 1 << 20

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "ctc_loss", "gaussian_nll_loss",
    "huber_loss", "kl_div", "l1_loss", "mse_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss",
]


@repeated
def mse_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
             reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Squared error: (input - target)².

    Args:
        input: any shape.
        target: the shape of `input`.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".
        weight: weight of each element, of the input's shape; the mean divides by the sum of the weights.

    >>> import flambeau as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
    tensor(2.5000)
    """
    input, target = broadcast_operands(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if weight is None:
        return fn.mse_loss(input, target, reduction=check_reduction(reduction))
    return _weighted_reduction(fn.mse_loss(input, target, reduction="none"), weight, input, reduction)


@repeated
def l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
            reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """Absolute error: |input - target|.

    Args:
        input: any shape.
        target: the shape of `input`.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".
        weight: weight of each element, of the input's shape; the mean divides by the sum of the weights.

    >>> import flambeau as torch
    >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
    tensor(1.5000)
    """
    input, target = broadcast_operands(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = (input - target).abs()
    return reduce_loss(loss, reduction) if weight is None else _weighted_reduction(loss, weight, input, reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
                   reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Smooth L1 loss: d² / (2 · beta) where d = |input - target| < beta, else d - beta / 2.

    Args:
        input: any shape.
        target: the shape of `input`.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".
        beta: the threshold, non-negative; 0 makes it the absolute error.

    Raises:
        RuntimeError: `beta` is negative.

    >>> import flambeau as torch
    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([0.5, 2.0]), torch.zeros(2))
    tensor(0.8125)
    """
    input, target = broadcast_operands(input, target)
    reduction = legacy_reduction(size_average, reduce, reduction)
    if beta == 0.0:
        return reduce_loss((input - target).abs(), reduction)
    reduction = check_reduction(reduction)
    if beta.__class__ is not float and not isinstance(beta, SupportsFloat):
        raise TypeError(f"smooth_l1_loss(): argument 'beta' (position 4) must be float, not {type_name(beta)}")
    if not beta >= 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    return fn.smooth_l1_loss(input, target, reduction=reduction, beta=beta)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0,
               weight: Tensor | None = None) -> Tensor:
    """Huber loss: d² / 2 where d = |input - target| < delta, else delta · (d - delta / 2).

    Args:
        input: any shape.
        target: the shape of `input`.
        reduction: "mean", "sum" or "none".
        delta: the threshold, positive.
        weight: weight of each element, of the input's shape; the mean divides by the sum of the weights.

    >>> import flambeau as torch
    >>> torch.nn.functional.huber_loss(torch.tensor([0.5, 2.0]), torch.zeros(2))
    tensor(0.8125)
    """
    input, target = broadcast_operands(input, target)
    if input.dtype is not target.dtype:
        common = promote_types(input.dtype, target.dtype)
        if not can_cast(common, input.dtype):
            raise RuntimeError(f"result type {common.scalar_name} can't be cast to the desired output type "
                               f"{input.dtype.scalar_name}")
        if weight is None and common is not input.dtype:
            loss = fn.huber_loss(input, target, reduction=check_reduction(reduction), delta=delta)
            return _under_its_node(loss, input.dtype)
    if weight is None:
        return fn.huber_loss(input, target, reduction=check_reduction(reduction), delta=delta)
    return _weighted_reduction(fn.huber_loss(input, target, reduction="none", delta=delta), weight, input, reduction)


def _under_its_node(loss: Tensor, dtype: dtype_type) -> Tensor:
    """A loss in another dtype under its own node: PyTorch computes it so, and backward refuses the dtypes."""
    if active_tracers[0] or forward_levels or not loss._requires_grad or (
            dispatch_in_use[0] and layer.is_handled(loss)):
        return loss.to(dtype)
    cast: Tensor = loss.detach().to(dtype)
    cast._requires_grad, cast._node = True, loss._node
    return cast


def _weighted_reduction(loss: Tensor, weight: Tensor, input: Tensor, reduction: str) -> Tensor:
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    loss = loss * weight
    if reduction == "none":
        return loss
    if reduction == "sum":
        return fn.sum(loss)
    if reduction == "mean":
        return fn.sum(loss) / fn.sum(weight)
    raise ValueError(f"Invalid reduction mode: {reduction}. Expected one of 'none', 'mean', 'sum'.")


@partial(launched, most=ANY)
def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
             ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Negative log-likelihood: -weight[t] · input[t].

    Args:
        input: log-probabilities, (C,), (N, C) or (N, C, d₁, ...).
        target: int64 classes, (), (N,) or (N, d₁, ...).
        weight: weight of each class, (C,); the mean divides by the sum of the targets' weights.
        ignore_index: a target class that is skipped.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    >>> import flambeau as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-0.5, -1.0]]), torch.tensor([1]))
    tensor(1.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    try:
        return fn.nll_loss(input, target, weight=weight, ignore_index=ignore_index,
                           reduction=check_reduction(reduction))
    except AttributeError as error:
        return with_other_object(error, nll_loss, (input, target, weight), name="nll_loss_nd")


@partial(repeated, most=_LOGITS)
def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                  size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """Cross entropy between logits and targets: nll_loss(log_softmax(input), target).

    For targets that are probabilities p it is -Σ weight · p · log_softmax(input), summed over the classes.

    Args:
        input: logits, (C,), (N, C) or (N, C, d₁, ...).
        target: int64 classes, (), (N,) or (N, d₁, ...), or probabilities of the shape of `input`.
        weight: weight of each class, (C,); the mean divides by the sum of the targets' weights.
        ignore_index: a target class that is skipped.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".
        label_smoothing: mix the target with this share of the uniform distribution, in [0, 1].

    >>> import flambeau as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    try:
        return fn.cross_entropy(input, target, weight=weight, ignore_index=ignore_index,
                                reduction=check_reduction(reduction), label_smoothing=label_smoothing)
    except AttributeError as error:
        return with_other_object(error, cross_entropy, (input, target, weight), name="cross_entropy_loss")


def binary_cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None,
                         size_average: bool | None = None, reduce: bool | None = None,
                         reduction: str = "mean") -> Tensor:
    """Binary cross entropy: -weight · (t · log x + (1 - t) · log(1 - x)), the logarithms clamped to -100 from below.

    Args:
        input: probabilities of any shape.
        target: t, the shape of `input`.
        weight: weight of each element, broadcastable to the input.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: input and target differ in size.

    >>> import flambeau as torch
    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    tensor(0.6931)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Using a target size ({target.size()}) that is different to the input size "
                         f"({input.size()}) is deprecated. Please ensure they have the same size.")
    if weight is not None:
        weight = weight.expand(fn.broadcast_shapes(target.size(), weight.size()))
        if weight.dim() > input.dim():
            raise RuntimeError(f"output with shape {list(input.size())} doesn't match the broadcast shape "
                               f"{list(weight.size())}")
        if weight.dtype is not input.dtype:
            weight = weight.to(input.dtype)
    return fn.binary_cross_entropy(input, target, weight=weight, reduction=check_reduction(reduction))


def binary_cross_entropy_with_logits(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                     size_average: bool | None = None, reduce: bool | None = None,
                                     reduction: str = "mean", pos_weight: Tensor | None = None) -> Tensor:
    """Binary cross entropy of sigmoid(input), computed without overflow.

    Args:
        input: logits of any shape.
        target: the shape of `input`.
        weight: weight of each element, broadcastable to the input.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".
        pos_weight: factor of the term t · log x, broadcastable to the input.

    Raises:
        ValueError: input and target differ in size.

    >>> import flambeau as torch
    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.zeros(2), torch.ones(2))
    tensor(0.6931)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    return bce_with_logits(input, target, weight, pos_weight, check_reduction(reduction))


def bce_with_logits(input: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Tensor | None,
                    reduction: str) -> Tensor:
    """The loss in the target's dtype, of sizes that broadcast.

    Raises:
        RuntimeError: the target's dtype cannot hold the loss.
        NotImplementedError: the input has integers.
    """
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{input.dtype.scalar_name}'")
    if not can_cast(input.dtype, target.dtype):  # PyTorch computes in the memory of 1 - target
        if target.dtype is bool_:
            raise NO_DIFFERENCE["bool"]
        raise RuntimeError(f"result type {input.dtype.scalar_name} can't be cast to the desired output type "
                           f"{target.dtype.scalar_name}")
    for factor in (pos_weight, weight):
        if factor.__class__ is Tensor and factor.shape != input.shape:
            shape = broadcast_shapes(input.shape, target.shape)
            common = broadcast_shapes(*((shape, factor.shape) if factor is weight else (factor.shape, shape)))
            if common != shape:  # PyTorch multiplies in place
                raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(common)}")
        elif factor is not None and not isinstance(factor, Tensor):
            name, position = ("weight", 3) if factor is weight else ("pos_weight", 4)
            raise TypeError(f"binary_cross_entropy_with_logits(): argument '{name}' (position {position}) must be "
                            f"Tensor, not {type_name(factor)}")
    loss = fn.binary_cross_entropy_with_logits(input, target, weight=weight, pos_weight=pos_weight,
                                               reduction=reduction)
    if loss.dtype is target.dtype:
        return loss
    return loss.to(target.dtype)


@repeated
@parsed_as("kl_div", lambda input, target, size_average=None, reduce=None, reduction="mean", log_target=False: (
    (input, target, 1), {"log_target": log_target}))
def kl_div(input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
           reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Kullback-Leibler divergence: target · (log target - input).

    Args:
        input: log-probabilities of any shape.
        target: probabilities or, with `log_target`, log-probabilities.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean" (over all elements), "batchmean" (sum / N), "sum" or "none".
        log_target: whether `target` holds log-probabilities.

    >>> import flambeau as torch
    >>> torch.nn.functional.kl_div(torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 0.0]), reduction="sum")
    tensor(0.6931)
    """
    batches = reduction == "batchmean"  # divides the mean of the deprecated arguments, too
    reduction = legacy_reduction(size_average, reduce, "sum" if batches else reduction)
    if reduction == "mean" and size_average is None and reduce is None:
        warnings.warn("reduction: 'mean' divides the total loss by both the batch size and the support size."
                      "'batchmean' divides only by the batch size, and aligns with the KL div math definition."
                      "'mean' will be changed to behave the same as 'batchmean' in the next major release.",
                      stacklevel=stacklevel_beside_wrappers(2))
    try:
        if not (input.is_floating_point() and target.is_floating_point()):
            kind = "Complex" if input.is_complex() or target.is_complex() else "Integral"
            raise RuntimeError(f"kl_div: {kind} inputs not supported.")
    except AttributeError as error:
        return with_other_object(error, kl_div, (input, target))
    loss = target.exp() * (target - input) if log_target else fn.xlogy(target, target) - target * input
    reduced = reduce_loss(loss, reduction)
    return reduced / input.size()[0] if batches and input.dim() != 0 else reduced


_poisson_classes = SeenClasses("torch", "poisson_nll_loss", skips=False)


def poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool = True, full: bool = False,
                     size_average: bool | None = None, eps: float = 1e-8, reduce: bool | None = None,
                     reduction: str = "mean") -> Tensor:
    """Poisson negative log-likelihood: e^input - target · input, or input - target · log(input + eps).

    Args:
        input: the rate or, with `log_input`, its logarithm; any shape.
        target: counts, the shape of `input`.
        log_input: selects the first formula.
        full: add Stirling's approximation of log(target!).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".
        eps: added to the rate before the logarithm.

    Raises:
        ValueError: `reduction` is unknown.

    >>> import flambeau as torch
    >>> torch.nn.functional.poisson_nll_loss(torch.zeros(2), torch.ones(2))
    tensor(1.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not a valid value for reduction")
    _poisson_classes.look((input, target, log_input, full, eps, 0), {})
    try:
        loss = input.exp() - target * input if log_input else (
            input - target * fn.log(apply(REGISTRY["_add_scalar"], [input], {"other": eps})))
    except AttributeError as error:
        return with_other_object(error, poisson_nll_loss, (input, target))
    if full:
        stirling = target * fn.log(target) - target + 0.5 * fn.log(2 * math.pi * target)
        loss = loss.add_(stirling.masked_fill(target <= 1, 0))  # which keeps its dtype
    return reduce_loss(loss, reduction)


def gaussian_nll_loss(input: Tensor, target: Tensor, var: Tensor | float, full: bool = False,
                      eps: float = 1e-6, reduction: str = "mean") -> Tensor:
    """Gaussian negative log-likelihood: ½ · (log v + (input - target)² / v), v = max(var, eps).

    Args:
        input: the mean, (N, ...).
        target: the shape of `input`.
        var: the variance: a float, the shape of `input`, that shape without the last dimension, or with sizes of 1.
        full: add the constant ½ · log 2π.
        eps: lower bound of the variance; the gradient ignores the clamping.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: a variance is negative, the sizes do not match, or `reduction` is unknown.

    >>> import flambeau as torch
    >>> torch.nn.functional.gaussian_nll_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([2.0]))
    tensor(1.3466)
    """
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        variance: Tensor = var * fn.ones_like(input)
    elif fn.any(var < 0):
        raise ValueError("var has negative entry/entries")
    else:
        variance = var
    if variance.size() != input.size():
        if input.size()[:-1] == variance.size():
            variance = fn.unsqueeze(variance, -1)
        elif (not (input.size()[:-1] == variance.size()[:-1] and variance.size(-1) == 1)
              and not _broadcasts_to(variance, input)):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    clamped = variance.clone()
    with no_grad():
        clamped.clamp_(min=eps)
    loss = 0.5 * (fn.log(clamped) + (input - target) ** 2 / clamped)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction)


def _broadcasts_to(var: Tensor, input: Tensor) -> bool:
    """Whether `var` has the input's rank and broadcasts to its shape."""
    return var.dim() == input.dim() and all(v in (1, n) for v, n in zip(var.size(), input.size(), strict=True))


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """The connectionist temporal classification loss: minus the log-probability of the targets over all alignments.

    Args:
        log_probs: (T, N, C) or (T, C), from a log_softmax.
        targets: (N, S), or concatenated, (sum of target_lengths).
        input_lengths, target_lengths: (N) each, or () for one sample.
        blank: the index of the blank class.
        reduction: "mean", which divides by the targets' lengths first, "sum" or "none".
        zero_infinity: set infinite losses and their gradients to 0.

    Raises:
        RuntimeError: invalid lengths or classes.

    >>> import flambeau as torch
    >>> logs = torch.zeros(2, 1, 2).log_softmax(2)
    >>> torch.nn.functional.ctc_loss(logs, torch.tensor([[1]]), (2,), (1,))
    tensor(0.2877)
    """
    return fn.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction_number(reduction),
                       zero_infinity)
