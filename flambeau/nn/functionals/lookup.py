"""Looking things up by integer: embeddings and one-hot vectors."""

from __future__ import annotations

from ...tensor import Tensor, no_grad
from ...tensor import functions as fn

__all__ = ["embedding", "one_hot"]


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """The rows of `weight` that `input` names.

    Args:
        padding_idx: a row that gets no gradient.
        max_norm: rows with a larger norm, of those named, are scaled down in place first.
        scale_grad_by_freq: divide the gradient of a row by how often the input names it.

    >>> import flambeau as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1.0], [2.0]]))
    tensor([[2.],
            [1.]])
    """
    if padding_idx is not None:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _limit_norms(weight, input, max_norm, norm_type)
    return fn.embedding(input, weight, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq,
                        sparse=sparse)


def _limit_norms(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the named rows whose norm exceeds `max_norm` down to it, in place."""
    with no_grad():
        rows = fn.unique(input)
        named = weight[rows]
        norms = fn.norm(named, norm_type, 1, True)
        # the small number is PyTorch's guard against a division that rounds the norm up again
        scale = fn.where(norms > max_norm, max_norm / (norms + 1e-7), fn.ones_like(norms))
        weight[rows] = named * scale


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A new last dimension, 1 at the class and 0 elsewhere; by default as long as the largest class needs.

    >>> import flambeau as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    if tensor.dtype != fn.tensor(0).dtype:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return tensor.new_empty((*tensor.shape, num_classes))
    if int(tensor.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    largest = int(tensor.max())
    if num_classes == -1:
        num_classes = largest + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif largest >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    zeros = fn.zeros((*tensor.shape, num_classes), dtype=tensor.dtype, device=tensor.device)
    return zeros.scatter_(-1, tensor.unsqueeze(-1), 1)
