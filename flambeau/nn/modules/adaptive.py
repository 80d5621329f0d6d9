"""`AdaptiveLogSoftmaxWithLoss`."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..._tensor import Tensor
from ..._tensor import functions as fn
from .. import functional as F
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """Softmax over many classes, of which the frequent ones have their own scores and the rest is in clusters.

    Classes are ordered by frequency. The head scores the classes below the first cutoff and the clusters; the i-th
    cluster scores the classes between two cutoffs, from in_features / div_valueⁱ features.

    Args:
        in_features: size of the input.
        n_classes: number of classes.
        cutoffs: first classes of the clusters, increasing, between 1 and n_classes - 1.
        div_value: factor by which the features of each cluster are fewer than those of the one before.
        head_bias: whether the head has a bias.
        device: device of the parameters.
        dtype: dtype of the parameters.

    Shape:
        Input (N, in_features) or (in_features,); target (N,) or (); output like the target; loss ().

    Returns:
        A named tuple: `output`, the log-probabilities of the targets, and `loss`, their negative mean.

    Raises:
        ValueError: `cutoffs` is empty, or not a sequence as above.
        RuntimeError: the shapes do not match, or a target is out of range.

    >>> import flambeau as torch
    >>> m = torch.nn.AdaptiveLogSoftmaxWithLoss(4, 10, [3, 6], div_value=2.0)
    >>> m(torch.ones(2, 4), torch.tensor([0, 7])).output.shape, m.log_prob(torch.ones(2, 4)).shape
    (flambeau.Size([2]), flambeau.Size([2, 10]))
    """

    in_features: int
    n_classes: int
    cutoffs: list[int]
    div_value: float
    head_bias: bool
    head: Linear
    tail: ModuleList

    def __init__(self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0,
                 head_bias: bool = False, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (cutoffs != sorted(set(cutoffs)) or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1
                or any(int(c) != c for c in cutoffs)):
            raise ValueError("cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                             "where each value is between 1 and n_classes-1")
        kind = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = cutoffs[0]
        self.n_clusters = len(cutoffs)
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **kind)
        self.tail = ModuleList()
        for i, (first, end) in enumerate(pairwise(self.cutoffs)):
            features = int(in_features // div_value ** (i + 1))
            self.tail.append(Sequential(Linear(in_features, features, bias=False, **kind),
                                        Linear(features, end - first, bias=False, **kind)))

    def reset_parameters(self) -> None:
        """Initialize the parameters of head and clusters."""
        self.head.reset_parameters()
        for layer in self.tail.modules():
            if isinstance(layer, Linear):
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """The log-probabilities of targets, and the loss.

        Args:
            input_: see the class.
            target_: see the class.
        """
        if target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        is_batched = target_.dim() == 1
        if is_batched and input_.size(0) != target_.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != target_.dim() + 1:
            raise RuntimeError(f"{target_.dim()}D target tensor expects {target_.dim() + 1}D input tensors, "
                               f"but found inputs with size {input_.size()}")
        input, target = (input_, target_) if is_batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        output = input.new_zeros(target.size(0))
        in_head = target.new_empty(target.size(0))  # the class or the cluster in the head's scores
        n_found = 0
        for i, (low, high) in enumerate(pairwise([0, *self.cutoffs])):
            mask = (target >= low) & (target < high)
            rows = mask.nonzero().squeeze()
            if rows.numel() == 0:
                continue
            n_found += rows.numel()
            if i == 0:
                in_head.index_copy_(0, rows, target[mask])
                continue
            log_prob = F.log_softmax(self.tail[i - 1](input.index_select(0, rows)), dim=1)
            in_head.index_fill_(0, rows, self.shortlist_size + i - 1)
            output.index_copy_(0, rows, log_prob.gather(1, (target[mask] - low).unsqueeze(1)).squeeze(1))
        if n_found != target.size(0):
            raise RuntimeError(f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                               f"[{target.min().item()}, {target.max().item()}] were found. ")
        head_log_prob = F.log_softmax(self.head(input), dim=1)
        output += head_log_prob.gather(1, in_head.unsqueeze(1)).squeeze()
        loss = (-output).mean()
        return _ASMoutput(output if is_batched else output.squeeze(0), loss)

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        """The log-probabilities (N, n_classes) from the head's scores."""
        out = input.new_empty((head_output.size(0), self.n_classes))
        head_log_prob = F.log_softmax(head_output, dim=1)
        out[:, :self.shortlist_size] = head_log_prob[:, :self.shortlist_size]
        for i, (first, end) in enumerate(pairwise(self.cutoffs)):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            out[:, first:end] = cluster + head_log_prob[:, self.shortlist_size + i].unsqueeze(1)
        return out

    def log_prob(self, input: Tensor) -> Tensor:
        """The log-probabilities of all classes, (N, n_classes).

        Args:
            input: (N, in_features).
        """
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row, (N,); clusters are evaluated where the head prefers one.

        Args:
            input: (N, in_features).
        """
        head_output = self.head(input)
        output = fn.argmax(head_output, dim=1)
        in_cluster = output >= self.shortlist_size
        if in_cluster.all():
            return fn.argmax(self._get_full_log_prob(input, head_output), dim=1)
        if in_cluster.any():
            log_prob = self._get_full_log_prob(input[in_cluster], head_output[in_cluster])
            output[in_cluster] = fn.argmax(log_prob, dim=1)
        return output
