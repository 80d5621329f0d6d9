"""Margin loss functions: hinge, ranking, cosine, triplet and multi-label losses."""

from __future__ import annotations

from collections.abc import Callable

from ..._tensor import Tensor
from ..._tensor import functions as fn
from ..._tensor.argument_errors.parsed_calls import parsed_as
from ..._tensor.argument_errors.seen_classes import SeenClasses
from ..._tensor.dispatch.apply import apply
from ..._tensor.fastpath.repeated_calls import repeated
from ..._tensor.overriding.other_objects import with_other_object
from ...dtypes import bool_
from ...engine.grad_mode import is_grad_enabled
from ...modes import special
from ...ops.declare import REGISTRY
from .distance import pairwise_distance
from .reduction import check_reduction, legacy_reduction, reduce_loss

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]


# ----- arithmetic with a scalar, under the nodes of PyTorch's C++ -----


def _plus(x: Tensor, number: float) -> Tensor:
    if x.__class__ is Tensor and not (x._requires_grad or special[0]):  # without a node
        return x + float(number)
    return apply(REGISTRY["_add_scalar"], [x], {"other": float(number)})


def _minus(x: Tensor, number: float) -> Tensor:
    return apply(REGISTRY["_sub_scalar"], [x], {"other": float(number)})


def _from_number(number: float, x: Tensor) -> Tensor:
    """number - x, with the number in the dtype of `x`."""
    return fn.full((), number, dtype=x.dtype) - x


# ----- losses -----


_hinge_classes = SeenClasses("torch", "hinge_embedding_loss", skips=False)
_cosine_classes = SeenClasses("torch", "cosine_embedding_loss", skips=False)


@repeated
def hinge_embedding_loss(input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None,
                         reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Hinge embedding loss: input where target = 1, max(0, margin - input) where target = -1.

    Args:
        input: any shape.
        target: 1 or -1, the shape of `input`.
        margin: the margin.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    >>> import flambeau as torch
    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0]))
    tensor(0.6250)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _hinge_classes.look((input, target, margin), {})
    zeros = fn.zeros_like(input)
    dissimilar = fn.where(target != 1, _from_number(margin, input).clamp_min(0), zeros)
    similar = fn.where(target != -1, input, zeros)
    return reduce_loss(dissimilar + similar, reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                        size_average: bool | None = None, reduce: bool | None = None,
                        reduction: str = "mean") -> Tensor:
    """Margin ranking loss: max(0, -target · (input1 - input2) + margin).

    Args:
        input1: any shape.
        input2: the rank of `input1`.
        target: 1 or -1, the rank of `input1`.
        margin: the margin.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    Raises:
        RuntimeError: the ranks differ.

    >>> import flambeau as torch
    >>> torch.nn.functional.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([1.0]))
    tensor(1.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: "
                           f"input1: {input1.size()}, input2: {input2.size()}, target: {target.size()} ")
    difference = input1 - input2
    return reduce_loss(_plus(-target * difference, margin).clamp_min(0), reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0,
                          size_average: bool | None = None, reduce: bool | None = None,
                          reduction: str = "mean") -> Tensor:
    """Cosine embedding loss: 1 - cos(x1, x2) where target = 1, max(0, cos(x1, x2) - margin) where target = -1.

    Args:
        input1: x1, (N, D) or (D,).
        input2: x2, (N, D) or (D,).
        target: 1 or -1, (N,) or ().
        margin: the margin, in [-1, 1].
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    Raises:
        RuntimeError: the ranks do not match.

    >>> import flambeau as torch
    >>> torch.nn.functional.cosine_embedding_loss(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), torch.tensor(1))
    tensor(1.)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _cosine_classes.look((input1, input2, target, margin), {})
    try:
        dim, ranks = target.dim(), (input1.dim(), input2.dim())
    except AttributeError as error:
        return with_other_object(error, cosine_embedding_loss, (input1, input2, target))
    if dim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if dim == 0 and ranks != (1, 1):
        raise RuntimeError("0D target tensor expects 1D input tensors, but found inputs with sizes "
                           f"{list(input1.size())} and {list(input2.size())}.")
    if dim == 1 and ranks != (2, 2):
        raise RuntimeError("1D target tensor expects 2D input tensors, but found inputs with sizes "
                           f"{list(input1.size())} and {list(input2.size())}.")
    eps = 1e-12
    products = (input1 * input2).sum(dim)
    squares = _plus((input1 * input1).sum(dim), eps) * _plus((input2 * input2).sum(dim), eps)
    cosine = products / squares.sqrt()
    zeros = fn.zeros_like(cosine)
    similar = fn.where(target == 1, _from_number(1, cosine), zeros)
    dissimilar = fn.where(target == -1, _minus(cosine, margin).clamp_min(0), zeros)
    return reduce_loss(similar + dissimilar, reduction)


@repeated
def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, size_average: bool | None = None,
                        reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Triplet loss: max(0, margin + d(anchor, positive) - d(anchor, negative)), d(a, b) = ‖a - b + eps‖ₚ.

    Args:
        anchor: (N, D) or (D,).
        positive: the shape of `anchor`.
        negative: the shape of `anchor`.
        margin: the margin, positive.
        p: order of the norm.
        eps: added to the difference.
        swap: use d(positive, negative) where it is smaller than d(anchor, negative).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: `margin` is not positive.
        RuntimeError: the ranks differ.

    >>> import flambeau as torch
    >>> torch.nn.functional.triplet_margin_loss(torch.zeros(1, 2), torch.ones(1, 2), torch.ones(1, 2))
    tensor(1.0000)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    try:
        return triplet_loss(anchor, positive, negative, margin, p, eps, swap, reduction)
    except AttributeError as error:
        return with_other_object(error, triplet_margin_loss, (anchor, positive, negative))


def triplet_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, p: float, eps: float, swap: bool,
                 reduction: str) -> Tensor:
    """`triplet_margin_loss` of any margin."""
    _check_triplet(anchor, positive, negative)
    positive_distance = pairwise_distance(anchor, positive, p, eps)
    negative_distance = pairwise_distance(anchor, negative, p, eps)
    if swap:
        negative_distance = fn.min(negative_distance, pairwise_distance(positive, negative, p, eps))
    return reduce_loss(fn.clamp_min(_plus(positive_distance, margin) - negative_distance, 0), reduction)


def triplet_margin_with_distance_loss(
        anchor: Tensor, positive: Tensor, negative: Tensor, *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
        swap: bool = False, reduction: str = "mean") -> Tensor:
    """Triplet loss with a custom distance: max(0, margin + d(anchor, positive) - d(anchor, negative)).

    Args:
        anchor: (N, D) or (D,).
        positive: the shape of `anchor`.
        negative: the shape of `anchor`.
        distance_function: maps two tensors to their distance; `pairwise_distance` by default.
        margin: the margin, positive.
        swap: use d(positive, negative) where it is smaller than d(anchor, negative).
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: `margin` is not positive, or `reduction` is unknown.
        RuntimeError: the ranks differ.

    >>> import flambeau as torch
    >>> torch.nn.functional.triplet_margin_with_distance_loss(torch.zeros(1, 2), torch.ones(1, 2), torch.ones(1, 2))
    tensor(1.0000)
    """
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    distance = distance_function if distance_function is not None else pairwise_distance
    _check_triplet(anchor, positive, negative)
    positive_distance, negative_distance = distance(anchor, positive), distance(anchor, negative)
    if swap:
        negative_distance = fn.minimum(negative_distance, distance(positive, negative))
    return reduce_loss(fn.clamp_min(_plus(positive_distance, margin) - negative_distance, 0), reduction)


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor) -> None:
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have "
                           f"the same number of dimensions, but got: anchor {anchor.dim()}D, "
                           f"positive {positive.dim()}D, and negative {negative.dim()}D inputs")


@parsed_as("soft_margin_loss", lambda input, target, *_, **named: ((input, target), {}))
def soft_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                     reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Logistic loss: log(1 + e^(-target · input)).

    Args:
        input: any shape.
        target: 1 or -1, the shape of `input`.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    >>> import flambeau as torch
    >>> torch.nn.functional.soft_margin_loss(torch.zeros(2), torch.tensor([1.0, -1.0]))
    tensor(0.6931)
    """
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    if input.dtype.is_complex and input.requires_grad and is_grad_enabled():
        raise RuntimeError("soft_margin_loss does not support automatic differentiation for outputs with complex "
                           "dtype.")
    if target.dtype is not input.dtype and target.dtype is not bool_ and (
            input.dtype.is_floating_point or input.dtype.is_complex) and not target.requires_grad:
        target = target.to(input.dtype)  # losses are computed in a tensor of the input's
    result = fn.soft_margin_loss(input, target, reduction=reduction)
    return result if result.dtype is input.dtype else result.to(input.dtype)


def multilabel_soft_margin_loss(input: Tensor, target: Tensor, weight: Tensor | None = None,
                                size_average: bool | None = None, reduce: bool | None = None,
                                reduction: str = "mean") -> Tensor:
    """Multi-label logistic loss: -(t · log σ(x) + (1 - t) · log σ(-x)), averaged over the classes.

    Args:
        input: x, (N, C) or (C,).
        target: t, 0 or 1, the shape of `input`.
        weight: weight of each class, (C,).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: `reduction` is unknown.

    >>> import flambeau as torch
    >>> torch.nn.functional.multilabel_soft_margin_loss(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    loss = -(target * fn.logsigmoid(input) + (1 - target) * fn.logsigmoid(-input))
    if weight is not None:
        loss = loss * weight
    classes = input.dim() - 1
    loss = loss.sum(dim=classes) / input.size(classes)
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(reduction + " is not valid")
    return reduce_loss(loss, reduction)


def multi_margin_loss(input: Tensor, target: Tensor, p: int = 1, margin: float = 1.0,
                      weight: Tensor | None = None, size_average: bool | None = None,
                      reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Multi-class hinge loss: Σ weight[t] · max(0, margin - x[t] + x[i])ᵖ / C over the classes i ≠ t.

    Args:
        input: scores x, (N, C) or (C,).
        target: int64 classes t, (N,) or ().
        p: the exponent, 1 or 2.
        margin: the margin.
        weight: weight of each class, (C,).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    Raises:
        ValueError: `p` is neither 1 nor 2, or `weight` is not 1-D.

    >>> import flambeau as torch
    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.1, 0.2, 0.4]]), torch.tensor([2]))
    tensor(0.5000)
    """
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if not isinstance(margin, (int, float)):
        raise TypeError("multi_margin_loss(): argument 'margin' (position 4) must be Number, not "
                        f"{type(margin).__name__}")
    return fn._multi_margin_loss(input, target, weight, p=p, margin=margin, reduction=reduction)


def multilabel_margin_loss(input: Tensor, target: Tensor, size_average: bool | None = None,
                           reduce: bool | None = None, reduction: str = "mean") -> Tensor:
    """Multi-label hinge loss: Σ max(0, 1 - (x[t] - x[i])) / C over the target classes t and the other classes i.

    Args:
        input: scores x, (N, C) or (C,).
        target: int64 classes, the shape of `input`; the entries after the first negative one are ignored.
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.
        reduction: "mean", "sum" or "none".

    >>> import flambeau as torch
    >>> torch.nn.functional.multilabel_margin_loss(torch.tensor([0.1, 0.2, 0.4]), torch.tensor([2, -1, 0]))
    tensor(0.5000)
    """
    reduction = check_reduction(legacy_reduction(size_average, reduce, reduction))
    return fn._multilabel_margin_loss(input, target, reduction=reduction)
