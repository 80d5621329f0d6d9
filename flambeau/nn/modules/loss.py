"""Loss layers."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from ..._tensor import Tensor
from .. import functional as F
from ..functionals.reduction import legacy_reduction
from .distance import PairwiseDistance
from .linear import Linear
from .linear_cross_entropy_options import LinearCrossEntropyOptions
from .module import Module

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss",
    "MSELoss", "MarginRankingLoss",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d",
    "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss",
]


class _Loss(Module):
    reduction: str

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = legacy_reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    weight: Tensor | None

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """Absolute error: |input - target|.

    Args:
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.L1Loss()(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
    tensor(1.5000)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Squared error: (input - target)².

    Args:
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.MSELoss()(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
    tensor(2.5000)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Smooth L1 loss: d² / (2 · beta) where d = |input - target| < beta, else d - beta / 2.

    Args:
        beta: the threshold, non-negative.
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.SmoothL1Loss()(torch.tensor([0.5, 2.0]), torch.zeros(2))
    tensor(0.8125)
    """

    __constants__ = ["reduction"]

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                 beta: float = 1.0) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Huber loss: d² / 2 where d = |input - target| < delta, else delta · (d - delta / 2).

    Args:
        delta: the threshold, positive.
        reduction: "mean", "sum" or "none".

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    Raises:
        TypeError: `delta` is not a number.

    >>> import flambeau as torch
    >>> torch.nn.HuberLoss(delta=1.0)(torch.tensor([0.5, 2.0]), torch.zeros(2))
    tensor(0.8125)
    """

    __constants__ = ["reduction", "delta"]

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        if not isinstance(delta, float | int):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class NLLLoss(_WeightedLoss):
    """Negative log-likelihood: -weight[t] · input[t], where the input holds log-probabilities.

    Args:
        weight: weight of each class, (C,); the mean divides by the sum of the targets' weights.
        ignore_index: a target class that is skipped.
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input (C,), (N, C) or (N, C, d₁, ...). Target, int64 classes: (), (N,) or (N, d₁, ...). Output: (), or
        the class target's shape with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.NLLLoss()(torch.tensor([[-0.5, -1.0]]), torch.tensor([1]))
    tensor(1.)
    """

    __constants__ = ["ignore_index", "reduction"]

    ignore_index: int

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index,
                          reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """Deprecated: use `NLLLoss`.

    Args:
        weight: weight of each class, (C,).
        ignore_index: a target class that is skipped.
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input (N, C, H, W), target (N, H, W).

    >>> import flambeau as torch
    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     loss = torch.nn.NLLLoss2d()
    >>> loss(torch.full((1, 2, 1, 1), -0.5), torch.zeros(1, 1, 1, dtype=torch.int64))
    tensor(0.5000)
    """

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean") -> None:
        import warnings

        warnings.warn("NLLLoss2d has been deprecated. Please use NLLLoss instead as a drop-in replacement and "
                      "see https://pytorch.org/docs/main/nn.html#torch.nn.NLLLoss for more details.",
                      FutureWarning, stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy between logits and targets: -weight[t] · log softmax(input)[t].

    For targets that are probabilities p it is -Σ weight · p · log softmax(input), summed over the classes.

    Args:
        weight: weight of each class, (C,); the mean divides by the sum of the targets' weights.
        ignore_index: a target class that is skipped.
        label_smoothing: mix the target with this share of the uniform distribution, in [0, 1].
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input (C,), (N, C) or (N, C, d₁, ...). Target, int64 classes: (), (N,) or (N, d₁, ...), or probabilities of the
        input's shape. Output: (), or
        the class target's shape with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.CrossEntropyLoss()(torch.zeros(3, 5), torch.tensor([1, 0, 4]))
    tensor(1.6094)
    """

    __constants__ = ["ignore_index", "reduction", "label_smoothing"]

    ignore_index: int
    label_smoothing: float

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(input, target, weight=self.weight, ignore_index=self.ignore_index,
                               reduction=self.reduction, label_smoothing=self.label_smoothing)


class BCELoss(_WeightedLoss):
    """Binary cross entropy: -weight · (t · log x + (1 - t) · log(1 - x)), the logarithms clamped to -100 from below.

    Args:
        weight: weight of each element, broadcastable to the input.
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    Raises:
        ValueError: input and target differ in size.

    >>> import flambeau as torch
    >>> torch.nn.BCELoss()(torch.tensor([0.5, 0.5]), torch.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """`BCELoss` of sigmoid(input), computed without overflow.

    Args:
        weight: weight of each element, broadcastable to the input.
        pos_weight: factor of the term t · log x, broadcastable to the input.
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    Raises:
        ValueError: input and target differ in size.

    >>> import flambeau as torch
    >>> torch.nn.BCEWithLogitsLoss()(torch.zeros(2), torch.ones(2))
    tensor(0.6931)
    """

    def __init__(self, weight: Tensor | None = None, size_average: bool | None = None,
                 reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(input, target, self.weight, pos_weight=self.pos_weight,
                                                  reduction=self.reduction)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence: target · (log target - input), where the input holds log-probabilities.

    Args:
        log_target: whether the target holds log-probabilities.
        reduction: "mean", "sum", "batchmean" (sum / N) or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.KLDivLoss(reduction="sum")(torch.tensor([0.5, 0.5]).log(), torch.tensor([1.0, 0.0]))
    tensor(0.6931)
    """

    __constants__ = ["reduction"]

    def __init__(self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
                 log_target: bool = False) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class PoissonNLLLoss(_Loss):
    """Poisson negative log-likelihood: e^input - target · input, or input - target · log(input + eps).

    Args:
        log_input: whether the input is the logarithm of the rate.
        full: add Stirling's approximation of log(target!).
        eps: added to the rate before the logarithm, if not `log_input`.
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.PoissonNLLLoss()(torch.zeros(2), torch.ones(2))
    tensor(1.)
    """

    __constants__ = ["log_input", "full", "eps", "reduction"]

    def __init__(self, log_input: bool = True, full: bool = False, size_average: bool | None = None,
                 eps: float = 1e-8, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(log_input, target, log_input=self.log_input, full=self.full, eps=self.eps,
                                  reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """Gaussian negative log-likelihood: ½ · (log v + (input - target)² / v), v = max(var, eps).

    Args:
        full: add the constant ½ · log 2π.
        eps: lower bound of the variance.
        reduction: "mean", "sum" or "none".

    Shape:
        Input and target (N, ...); var: a float, the input's shape, that shape without the last dimension, or with
        sizes of 1. Output: (), or the input's shape with `reduction="none"`.

    Raises:
        ValueError: a variance is negative, or the sizes do not match.

    >>> import flambeau as torch
    >>> torch.nn.GaussianNLLLoss()(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([2.0]))
    tensor(1.3466)
    """

    __constants__ = ["full", "eps", "reduction"]

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(None, None, reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class HingeEmbeddingLoss(_Loss):
    """Hinge embedding loss: input where target = 1, max(0, margin - input) where target = -1.

    Args:
        margin: the margin.
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.HingeEmbeddingLoss()(torch.tensor([0.5, 0.25]), torch.tensor([1.0, -1.0]))
    tensor(0.6250)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(self, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """Logistic loss: log(1 + e^(-target · input)), with targets 1 and -1.

    Args:
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target: the same shape. Output: (), or the input's shape with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.SoftMarginLoss()(torch.zeros(2), torch.tensor([1.0, -1.0]))
    tensor(0.6931)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Multi-label hinge loss: Σ max(0, 1 - (x[t] - x[i])) / C over the target classes t and the other classes i.

    Args:
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input (N, C) or (C,). Target, int64 classes: the input's shape; the entries after the first negative one are
        ignored. Output: (), or (N,) with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.MultiLabelMarginLoss()(torch.tensor([0.1, 0.2, 0.4]), torch.tensor([2, -1, 0]))
    tensor(0.5000)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Multi-label logistic loss: -(t · log σ(x) + (1 - t) · log σ(-x)), averaged over the classes.

    Args:
        weight: weight of each class, (C,).
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input and target (N, C). Output: (), or (N,) with `reduction="none"`.

    >>> import flambeau as torch
    >>> torch.nn.MultiLabelSoftMarginLoss()(torch.zeros(1, 2), torch.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """

    __constants__ = ["reduction"]

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Multi-class hinge loss: Σ weight[t] · max(0, margin - x[t] + x[i])ᵖ / C over the classes i ≠ t.

    Args:
        p: the exponent, 1 or 2.
        margin: the margin.
        weight: weight of each class, (C,).
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Input (N, C) or (C,); target, int64 classes: (N,) or (). Output: (), or (N,) with `reduction="none"`.

    Raises:
        ValueError: `p` is neither 1 nor 2, or `weight` is not 1-D.

    >>> import flambeau as torch
    >>> torch.nn.MultiMarginLoss()(torch.tensor([[0.1, 0.2, 0.4]]), torch.tensor([2]))
    tensor(0.5000)
    """

    __constants__ = ["p", "margin", "reduction"]

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None,
                 size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.dim() != 1:
            raise ValueError("MultiMarginLoss: expected weight to be None or 1D tensor, "
                             f"got {weight.dim()}D instead")
        self.p = p
        self.margin = margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(input, target, p=self.p, margin=self.margin, weight=self.weight,
                                   reduction=self.reduction)


class CosineEmbeddingLoss(_Loss):
    """Cosine embedding loss: 1 - cos(x1, x2) where target = 1, max(0, cos(x1, x2) - margin) where target = -1.

    Args:
        margin: the margin, in [-1, 1].
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        x1 and x2 (N, D) or (D,); target (N,) or (). Output: (), or the target's shape with `reduction="none"`.

    Raises:
        RuntimeError: the ranks do not match.

    >>> import flambeau as torch
    >>> torch.nn.CosineEmbeddingLoss()(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), torch.tensor(1))
    tensor(1.)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_Loss):
    """Margin ranking loss: max(0, -target · (x1 - x2) + margin), with targets 1 and -1.

    Args:
        margin: the margin.
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        x1, x2 and target: the same shape. Output: (), or that shape with `reduction="none"`.

    Raises:
        RuntimeError: the ranks differ.

    >>> import flambeau as torch
    >>> torch.nn.MarginRankingLoss(0.5)(torch.tensor([1.0]), torch.tensor([2.0]), torch.tensor([1.0]))
    tensor(1.5000)
    """

    __constants__ = ["margin", "reduction"]

    def __init__(self, margin: float = 0.0, size_average: bool | None = None, reduce: bool | None = None,
                 reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class TripletMarginLoss(_Loss):
    """Triplet loss: max(0, margin + d(anchor, positive) - d(anchor, negative)), d(a, b) = ‖a - b + eps‖ₚ.

    Args:
        margin: the margin, positive.
        p: order of the norm.
        eps: added to the difference.
        swap: use d(positive, negative) where it is smaller than d(anchor, negative).
        reduction: "mean", "sum" or "none" (the elementwise loss).
        size_average: deprecated, use `reduction`.
        reduce: deprecated, use `reduction`.

    Shape:
        Anchor, positive and negative: (N, D) or (D,). Output: (), or (N,) with `reduction="none"`.

    Raises:
        ValueError: `margin` is not positive.

    >>> import flambeau as torch
    >>> torch.nn.TripletMarginLoss()(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2)).item() == 0
    True
    """

    __constants__ = ["margin", "p", "eps", "swap", "reduction"]

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean") -> None:
        super().__init__(size_average, reduce, reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin = margin
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps,
                                     swap=self.swap, reduction=self.reduction)


class TripletMarginWithDistanceLoss(_Loss):
    """Triplet loss with a custom distance: max(0, margin + d(anchor, positive) - d(anchor, negative)).

    Args:
        distance_function: maps two tensors to their distance; `PairwiseDistance()` by default.
        margin: the margin, positive.
        swap: use d(positive, negative) where it is smaller than d(anchor, negative).
        reduction: "mean", "sum" or "none".

    Shape:
        Anchor, positive and negative: (N, D) or (D,). Output: (), or (N,) with `reduction="none"`.

    Raises:
        ValueError: `margin` is not positive.

    >>> import flambeau as torch
    >>> loss = torch.nn.TripletMarginWithDistanceLoss(distance_function=lambda a, b: (a - b).abs().sum(-1))
    >>> loss(torch.zeros(1, 2), torch.ones(1, 2), torch.ones(1, 2))
    tensor(1.)
    """

    __constants__ = ["margin", "swap", "reduction"]

    def __init__(self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
                 margin: float = 1.0, swap: bool = False, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError("TripletMarginWithDistanceLoss: expected margin to be greater than 0, "
                             f"got {margin} instead")
        self.distance_function: Any = PairwiseDistance() if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin,
            swap=self.swap, reduction=self.reduction)


class CTCLoss(_Loss):
    """The connectionist temporal classification loss: minus the log-probability of the targets over all alignments.

    Args:
        blank: the index of the blank class.
        reduction: "mean" (each loss divided by its target's length), "sum" or "none".
        zero_infinity: set infinite losses and their gradients to 0.

    Shape:
        Log-probabilities (T, N, C) or (T, C); targets (N, S), or concatenated, (sum of lengths); lengths of inputs and
        targets (N,) or (). Output: (), or (N,) with `reduction="none"`.

    >>> import flambeau as torch
    >>> logs = torch.zeros(2, 1, 2).log_softmax(2)
    >>> torch.nn.CTCLoss()(logs, torch.tensor([[1]]), (2,), (1,)).item() < 0.3
    True
    """

    __constants__ = ["blank", "reduction"]

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction,
                          self.zero_infinity)


class LinearCrossEntropyLoss(_WeightedLoss):
    """Cross entropy of a linear map of the input, whose weight is a parameter.

    Args:
        in_features: size of the input.
        num_classes: C.
        out_features: (d₁, ...), for a loss at several positions.
        bias: whether the map has a bias.
        device: device of the parameters.
        dtype: dtype of the parameters.
        reduction: "mean", "sum" or "none".
        weight: (C,), factor of each class.
        ignore_index: a class that does not count; None for -100.
        label_smoothing: share of the uniform distribution in the targets.
        options: to compute chunk by chunk of the batch.

    Shape:
        Input (N, in_features) or (in_features,); target (N, d₁, ...) classes or (N, C, d₁, ...) probabilities; output
        a scalar, or (N, d₁, ...) without reduction.

    Raises:
        RuntimeError: `weight` has another shape, or `label_smoothing` is not between 0 and 1.

    >>> import flambeau as torch
    >>> loss = torch.nn.LinearCrossEntropyLoss(5, 10)
    >>> loss(torch.ones(3, 5), torch.tensor([1, 0, 4])).shape
    flambeau.Size([])
    """

    __constants__ = ["num_classes", "out_features", "reduction", "ignore_index", "label_smoothing"]

    num_classes: int
    out_features: tuple[int, ...]
    ignore_index: int | None
    label_smoothing: float
    options: LinearCrossEntropyOptions | None

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
                 device: Any = None, dtype: Any = None, reduction: str = "mean", weight: Tensor | None = None,
                 ignore_index: int | None = None, label_smoothing: float = 0.0,
                 options: LinearCrossEntropyOptions | None = None) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if label_smoothing < 0 or label_smoothing > 1.0:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, prod(out_features, start=num_classes), bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = None if self.linear.bias is None else self.linear.bias.reshape(shape)
        return F.linear_cross_entropy(
            input, self.linear.weight.reshape(*shape, self.linear.in_features), target, linear_bias=bias,
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self) -> str:
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
                f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
                f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}")
