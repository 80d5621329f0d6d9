"""Embedding lookups and one-hot encoding."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ..._tensor import Tensor, no_grad
from ..._tensor import functions as fn
from ..._tensor.argument_errors.call_sites import FUNCTIONALS
from ..._tensor.argument_errors.guards import raise_refusal
from ..._tensor.argument_errors.messages import unfit
from ..._tensor.fastpath.repeated_layouts import known_by
from ..._tensor.overriding.other_objects import with_other_object
from ...dtypes import int64
from ...modes import special

__all__ = ["embedding", "embedding_bag", "one_hot"]


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Lookup: output[i] = weight[input[i]].

    Args:
        input: indices (*), int32 or int64.
        weight: (V, D).
        padding_idx: index of a row that receives no gradient.
        max_norm: looked-up rows with a larger norm are first scaled down to it, in place.
        norm_type: p of that norm.
        scale_grad_by_freq: divide the gradient of a row by the number of its occurrences in the input.
        sparse: request a sparse gradient.

    Returns:
        (*, D).

    Raises:
        AssertionError: `padding_idx` is out of range.

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
        _renormalize_rows(weight, input, max_norm, norm_type)
    return fn.embedding(weight, input, -1 if padding_idx is None else padding_idx, scale_grad_by_freq, sparse)


def _renormalize_rows(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` selected by `input` to norm `max_norm` at most, in place."""
    weight = weight.detach()  # without the tangent, in forward mode
    with no_grad():
        if special[0] and not isinstance(input._array, np.ndarray):  # batched indices under vmap
            from ..._tensor.dispatch.batching_rules import check_vmap_write

            check_vmap_write(weight, [input], "aten::embedding_renorm_")
            norms = fn.norm(weight, norm_type, 1, True)
            selected = fn.index_put(fn.zeros_like(norms), (input,), fn.ones((), dtype=norms.dtype))
            large = fn.logical_and(selected == 1, norms > max_norm)
            weight.mul_(fn.where(large, max_norm / (norms + 1e-7), fn.ones_like(norms)))
            return
        rows = fn.unique(input)
        selected = weight[rows]
        norms = fn.norm(selected, norm_type, 1, True)
        # 1e-7 as in PyTorch: rounding must not leave a norm above max_norm
        scale = fn.where(norms > max_norm, max_norm / (norms + 1e-7), fn.ones_like(norms))
        weight[rows] = selected * scale


def _one_hot_launch(tensor: Any, num_classes: Any = -1) -> Any:
    """The launch of `one_hot` with a given number of classes; None where it has none, or a class is out of range."""
    from ..._tensor.fastpath.index_launches import one_hot

    if tensor.__class__ is not Tensor or num_classes.__class__ is not int or num_classes < 1:
        return None
    return one_hot(tensor._array, num_classes)


@known_by(_one_hot_launch)
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """One-hot encoding: 1 at the class and 0 elsewhere along a new last dimension.

    Args:
        tensor: classes (*), int64, non-negative.
        num_classes: C; -1 for the largest class plus 1.

    Returns:
        (*, C), int64.

    Raises:
        RuntimeError: the dtype is wrong, or a class is out of range.

    >>> import flambeau as torch
    >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
    tensor([[1, 0, 0],
            [0, 0, 1]])
    """
    try:
        dtype = tensor.dtype
    except AttributeError as error:
        return with_other_object(error, one_hot, (tensor,))
    if num_classes.__class__ is not int:
        raise_refusal(unfit(("one_hot",), (tensor, num_classes), {}, inside=FUNCTIONALS))
    if dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if tensor.numel() == 0:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return tensor.new_empty((*tensor.shape, num_classes))
    if tensor.is_meta and num_classes != -1:
        return tensor.new_zeros((*tensor.shape, num_classes))
    if special[0] and not isinstance(tensor._array, np.ndarray):
        if num_classes == -1:
            raise RuntimeError("When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive "
                               "num_classes argument.")
        return (tensor.unsqueeze(-1) == fn.arange(num_classes, device=tensor.device)).to(tensor.dtype)
    if special[0] and getattr(type(tensor), "_has_parts", False):
        if num_classes == -1:
            num_classes = int(tensor.max()) + 1
        classes = fn.cumsum(tensor.new_ones((num_classes,)), 0) - 1  # placed as a tensor that all processes have
        return (tensor.unsqueeze(-1) == classes).to(dtype=tensor.dtype)
    if tensor.is_meta:
        tensor.max().item()  # which raises
    if special[0] and num_classes != -1:  # truth values, which a compiled program guards on
        is_negative, is_large = bool((tensor < 0).any()), bool((tensor >= num_classes).any())
    else:
        least, largest = (int(tensor.min()), int(tensor.max())) if special[0] else (
            int(np.minimum.reduce(tensor._array, None)), int(np.maximum.reduce(tensor._array, None)))
        is_negative, is_large = least < 0, num_classes != -1 and largest >= num_classes
    if is_negative:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = largest + 1
    elif num_classes < 1:
        raise RuntimeError("num_classes should be positive")
    elif is_large:
        raise RuntimeError("Class values must be smaller than num_classes.")
    if not special[0]:
        classes = tensor._array.reshape(-1)
        rows = np.zeros((classes.size, num_classes), classes.dtype)
        rows.reshape(-1)[classes + np.arange(0, rows.size, num_classes)] = 1
        return fn.from_numpy(rows.reshape(*tensor._array.shape, num_classes))
    zeros = fn.zeros((*tensor.shape, num_classes), dtype=tensor.dtype, device=tensor.device)
    return zeros.scatter_(-1, tensor.unsqueeze(-1), 1)


def embedding_bag(input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
                  norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
    """Reduce bags of rows of `weight` by sum, mean or maximum.

    Args:
        input: indices, int32 or int64: (B, N), one bag per row; or (M,), concatenated bags.
        weight: (V, D).
        offsets: (B,), the start of each bag in a 1-D input.
        max_norm: looked-up rows with a larger norm are first scaled down to it, in place.
        norm_type: p of that norm.
        scale_grad_by_freq: divide the gradient of a row by the number of its occurrences in the input.
        mode: "sum", "mean" or "max".
        sparse: request a sparse gradient.
        per_sample_weights: factor of each row, of the input's shape; mode "sum" only.
        include_last_offset: `offsets` has B + 1 elements, the last one the end of the last bag.
        padding_idx: index of a row that is skipped.

    Returns:
        (B, D).

    Raises:
        ValueError: the shapes do not match, or `mode` is unknown.
        NotImplementedError: `per_sample_weights` with another mode than "sum".

    >>> import flambeau as torch
    >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), torch.tensor([[1.0], [3.0]]))
    tensor([[2.]])
    """
    if weight.dtype == int64 and input.is_floating_point():
        warnings.warn("Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, "
                      "...)` is deprecated, and should now be `embedding_bag(input, weight, ...)`.", stacklevel=2)
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must "
                         f"have the same shape as the input ({input.shape})")
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of "
                             f"fixed length sequences. However, found offsets of type {type(offsets)}")
        offsets = fn.arange(0, input.numel(), input.size(1), dtype=input.dtype, device=input.device)
        include_last_offset = False
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in ("sum", "mean", "max"):
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError("embedding_bag: per_sample_weights was not None. per_sample_weights is only "
                                  f"supported for mode='sum' (got mode='{mode}'). Please open a feature request on "
                                  "GitHub.")
    if max_norm is not None:
        _renormalize_rows(weight, input, max_norm, norm_type)
    return fn.embedding_bag(weight, input, offsets, scale_grad_by_freq, ("sum", "mean", "max").index(mode), sparse,
                            per_sample_weights, include_last_offset, padding_idx)[0]
