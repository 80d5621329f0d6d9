"""`embedding_bag`: sums, means and maxima of bags of rows of a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...engine.tensor_interface import layer
from ...modes import active_tracer, special
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..dispatch.handlers import host_elements
from ..fastpath.levels import beside_handlers
from ..meta import is_meta, lacks_elements, make_meta, meta_array
from ..methods.sparse import implementation as sparse_implementation
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_read
from .layers import raise_dtype_error

__all__ = ["embedding_bag"]

_SUM, _MEAN, _MAX = 0, 1, 2
#: dtypes whose sums and means of bags PyTorch computes by a kernel that reads offsets as they are
_FAST_DTYPES = (dtypes.float16, dtypes.bfloat16, dtypes.float32)
_UNNAMED = "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"


def embedding_bag(weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
                  sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Reduce bags of rows of `weight`.

    Args:
        weight: (V, D).
        indices: (M,), rows of all bags, int32 or int64.
        offsets: (B,), the start of each bag in `indices`.
        scale_grad_by_freq: divide the gradient of rows by the number of occurrences in `indices`.
        mode: 0 for sums, 1 for means, 2 for maxima.
        sparse: request a sparse gradient.
        per_sample_weights: (M,), factor of each row; sums only.
        include_last_offset: the last offset is the end of the last bag.
        padding_idx: index of a row that is skipped.

    Returns:
        The result (B, D), the bag of each index, the size of each bag, and for maxima their rows (B, D).

    Raises:
        RuntimeError: a shape, dtype or index is wrong.

    >>> import flambeau as torch
    >>> torch.embedding_bag(torch.eye(3), torch.tensor([0, 1, 2]), torch.tensor([0, 2]))[0]
    tensor([[1., 1., 0.],
            [0., 0., 1.]])
    """
    if lacks_elements(weight) or lacks_elements(offsets):
        if not is_meta(weight):
            return _without_elements(weight, indices, offsets, mode, include_last_offset, padding_idx is None)
        return _on_meta(weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
                        include_last_offset, padding_idx)
    if special[0]:
        from ..dispatch.batched_tensor import is_batched, vmap_levels
        from ..dispatch.batching_rules import fallback_loop, warn_fallback

        inputs = [weight, indices, offsets, per_sample_weights]
        if is_batched(*inputs):
            warn_fallback("_embedding_bag")
            return fallback_loop(lambda w, i, o, p: embedding_bag(
                w, i, o, scale_grad_by_freq, mode, sparse, p, include_last_offset, padding_idx),
                inputs, vmap_levels(inputs))
    is_fast = mode != _MAX and padding_idx is None and weight.dtype in _FAST_DTYPES
    if special[0] and active_tracer.get() is not None:
        if mode != _MAX and padding_idx is None and not scale_grad_by_freq and not sparse:
            result = _traced(weight, indices, offsets, mode, per_sample_weights, include_last_offset, is_fast)
            if result is not None:
                return result
        notify_read(offsets, "embedding_bag")
    rows = _check(weight, indices, offsets, mode, per_sample_weights, include_last_offset, padding_idx)
    index, starts = indices._array.astype(np.int64).reshape(-1), offsets._array.astype(np.int64)
    summed = None
    if include_last_offset:
        if is_fast and starts[-1] < index.size:
            if mode == _MEAN:
                summed = int(starts[-1])
            else:
                index = index[:starts[-1]]
        starts = starts[:-1]
    count = starts.size
    bags = np.cumsum(np.bincount(starts, minlength=index.size + 1)[:index.size]) - 1
    _check_range(index, bags, rows, is_fast)
    if not count:
        index = bags = index[:0]
    dtype = np.dtype(np.float32) if weight._array.dtype in dtypes.NARROW else weight._array.dtype
    frequencies = _frequency_factors(index, rows).astype(dtype) if scale_grad_by_freq else None
    kind = np.promote_types(indices._array.dtype, offsets._array.dtype)
    bag_of_index = wrap((bags[:0] if is_fast and mode == _SUM else bags).astype(kind))
    if padding_idx is not None:
        kept = np.flatnonzero(index != padding_idx % rows)
        index, bags = index[kept], bags[kept]
        frequencies = None if frequencies is None else frequencies[kept]
        per_sample_weights = None if per_sample_weights is None else per_sample_weights[wrap(kept)]
    sizes = np.bincount(bags, minlength=count)
    bag_sizes = sizes.astype(kind) if mode != _SUM else np.zeros(
        _sum_sizes(weight, offsets, count, is_fast), kind)
    if mode == _MAX:
        positions = _argmax_per_bag(dtypes.widen(host_elements(weight)), index, bags, count)
        result = apply(REGISTRY["_embedding_bag_max"], [weight], {"positions": positions})
        width = max(weight._array.shape[1], 1)
        of_maxima = np.where(positions < 0, 0, positions // width).astype(kind)
        return result, bag_of_index, wrap(bag_sizes), wrap(of_maxima)
    divisors = np.maximum(sizes, 1).astype(dtype) if mode == _MEAN else None
    params = {"indices": index, "bags": bags, "count": count, "frequencies": frequencies, "sizes": divisors,
              "inverse_sizes": None if divisors is None else 1 / divisors}
    if summed is not None:
        params["summed"] = summed
    if sparse and weight._requires_grad and (not special[0] or beside_handlers(weight)):
        result = sparse_implementation("embeddings", "embedding_bag")(weight, per_sample_weights, params)
    else:
        result = apply(REGISTRY["_embedding_bag"], [weight, per_sample_weights], params)
    return result, bag_of_index, wrap(bag_sizes), wrap(bag_sizes.copy())


def _sum_sizes(weight: Tensor, offsets: Tensor, count: int, is_fast: bool) -> int:
    """How many sizes of bags sums return: PyTorch's kernel for weights without gradients has one for each offset."""
    return count if is_fast and weight.requires_grad else offsets.shape[0]


def _without_elements(weight: Tensor, indices: Tensor, offsets: Tensor, mode: int, include_last_offset: bool,
                      keeps_all: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`embedding_bag` on fake tensors: its results are as large as those of bags that take all indices."""
    count = offsets.shape[0] - include_last_offset
    is_fast = mode != _MAX and keeps_all and weight.dtype in _FAST_DTYPES
    sizes = count if mode != _SUM else _sum_sizes(weight, offsets, count, is_fast)
    maxima = (count, weight.shape[1]) if mode == _MAX else (sizes,)
    return (weight.new_empty((count, weight.shape[1])),
            indices.new_empty((0 if is_fast and mode == _SUM else indices.shape[0],)), indices.new_empty((sizes,)),
            indices.new_empty(maxima))


def _on_meta(weight: Tensor, indices: Tensor, offsets: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`embedding_bag` on meta tensors: its results are as large as on zeros."""
    rows, index, starts = [layer.functions.zeros_like(x, device="cpu") for x in (weight, indices, offsets)]
    scale_grad_by_freq, mode, sparse, per_sample_weights, *rest = others
    weights = per_sample_weights if per_sample_weights is None else layer.functions.zeros_like(
        per_sample_weights, device="cpu")
    result, *sizes = embedding_bag(rows, index, starts, scale_grad_by_freq, mode, sparse, weights, *rest)
    if mode == _MAX:
        positions = meta_array(result.shape, np.dtype(np.int64))
        out = apply(REGISTRY["_embedding_bag_max"], [weight], {"positions": positions})
    else:
        places = meta_array((indices.numel(),), np.dtype(np.int64))
        out = apply(REGISTRY["_embedding_bag"], [weight, per_sample_weights], {
            "indices": places, "bags": places, "count": result.shape[0], "frequencies": None, "sizes": None,
            "inverse_sizes": None})
    return out, *map(make_meta, sizes)


def _traced(weight: Tensor, indices: Tensor, offsets: Tensor, mode: int, per_sample_weights: Tensor | None,
            include_last_offset: bool, is_fast: bool) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """`embedding_bag` by operators on the indices and offsets, for the compiler's tracer.

    Returns:
        The results; None for arguments that `embedding_bag` refuses or reads.
    """
    fn = layer.functions
    kinds = (np.int32, np.int64)
    if offsets.dim() != 1 or weight.dim() != 2 or not weight.dtype.is_floating_point or not offsets.numel() or (
            indices._array.dtype not in kinds or offsets._array.dtype not in kinds) or mode not in (_SUM, _MEAN):
        return None
    if per_sample_weights is not None and (mode != _SUM or per_sample_weights.dtype is not weight.dtype
                                           or per_sample_weights.shape != indices.reshape(-1).shape):
        return None
    index, starts = indices.to(dtypes.int64, copy=True).reshape(-1), offsets.to(dtypes.int64, copy=True)
    if include_last_offset:
        starts, ends = starts[:-1], starts[1:]
    else:
        ends = fn.cat((starts[1:], fn.full((1,), index.numel(), dtype=dtypes.int64)))
    if not starts.numel() or not index.numel():
        return None
    sizes = ends - starts
    is_valid = (starts[0] == 0) & (sizes >= 0).all() & ((index >= 0) & (index < len(weight._array))).all() & (
        ends[-1] == index.numel())
    if not bool(is_valid):  # a guard of the program
        return None
    bags = fn.searchsorted(starts, fn.arange(index.numel()), right=True) - 1
    dtype = dtypes.float32 if weight.dtype in (dtypes.float16, dtypes.bfloat16) else weight.dtype
    divisors = sizes.clamp(1).to(dtype) if mode == _MEAN else None
    result = apply(REGISTRY["_embedding_bag"], [weight, per_sample_weights], {
        "indices": index._array, "bags": bags._array, "count": starts.numel(), "frequencies": None,
        "sizes": None if divisors is None else divisors._array,
        "inverse_sizes": None if divisors is None else divisors.reciprocal()._array})
    kind = dtypes.promote_types(indices.dtype, offsets.dtype)
    bag_of_index = (bags[:0] if is_fast and mode == _SUM else bags).to(kind)
    bag_sizes = sizes.to(kind) if mode == _MEAN else fn.zeros(
        _sum_sizes(weight, offsets, starts.numel(), is_fast), dtype=kind)
    return result, bag_of_index, bag_sizes, bag_sizes.clone()


def _check(weight: Tensor, indices: Tensor, offsets: Tensor, mode: int, per_sample_weights: Tensor | None,
           include_last_offset: bool, padding_idx: int | None) -> int:
    """Check the arguments; return the number of rows."""
    if indices._array.ndim not in (1, 2):
        raise RuntimeError(f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {indices._array.ndim}")
    if weight._array.ndim != 2:
        raise RuntimeError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight._array.ndim}")
    rows: int = weight._array.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got "
                           f"{padding_idx}")
    if np.promote_types(indices._array.dtype, offsets._array.dtype) not in (np.int64, np.int32):
        wrong = indices if indices._array.dtype not in (np.int64, np.int32) else offsets
        raise_dtype_error("embedding_bag", "indices", wrong, "Long, Int")
    if not weight.dtype.is_floating_point:
        raise_dtype_error("embedding_bag", "weight", weight, "Half, BFloat16, Float, Double")
    if mode not in (_SUM, _MEAN, _MAX):
        raise RuntimeError("`mode` must be sum, mean, or max.")
    if offsets._array.ndim != 1:
        raise RuntimeError(f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets._array.ndim}")
    starts, n = offsets._array, indices._array.shape[0] if indices._array.ndim else 1
    if starts.size and starts[0] != 0:
        raise RuntimeError("offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from "
                           f"position 0. However, got {starts[0]}\n[ torch.{offsets.dtype.legacy}{{}} ]")
    if starts.size and starts[-1] > n:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length {n} but got offsets[-1] of "
                           f"{starts[-1]}")
    if per_sample_weights is not None:
        if mode != _SUM:
            raise RuntimeError("embedding_bag: per_sample_weights only supported with mode='sum'")
        if per_sample_weights.dtype != weight.dtype:
            raise RuntimeError(
                "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
                f"'per_sample_weights'; but type torch.{weight.dtype.legacy} does not equal "
                f"torch.{per_sample_weights.dtype.legacy} (while checking arguments for embedding_bag)")
        if per_sample_weights._array.ndim != 1:
            raise RuntimeError("Expected per_sample_weights.value().dim() == 1 to be true, but got false.  " + _UNNAMED)
        if per_sample_weights._array.size != indices._array.size:
            raise RuntimeError("Expected per_sample_weights.value().numel() == indices.numel() to be true, but got "
                               "false.  " + _UNNAMED)
    if include_last_offset and not starts.size:
        raise RuntimeError("include_last_offset: number of offset should be at least 1")
    return rows


def _check_range(index: np.ndarray, bags: np.ndarray, rows: int, is_fast: bool) -> None:
    """Raise the error of the first index that is out of range."""
    if index.size and (index.min() < 0 or index.max() >= rows):
        first = int(np.flatnonzero((index < 0) | (index >= rows))[0])
        if not is_fast:
            raise RuntimeError("embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be "
                               f"{index[first]}")
        if bags[first] > 0:
            raise RuntimeError(f"Expected i < index_size to be true, but got false.  {_UNNAMED}")
        raise RuntimeError(f"Index {first} of input takes value {index[first]} which is not in the valid range [0, "
                           f"{rows})")


def _frequency_factors(index: np.ndarray, rows: int) -> np.ndarray:
    """What PyTorch multiplies the gradient of each sample by, for `scale_grad_by_freq`.

    It is 1 / count of the k-th smallest index instead of the sample's own, where k is the rank of the sample's index
    among the distinct ones.
    """
    ordered = np.sort(index, kind="stable")
    _, rank = np.unique(index, return_inverse=True)
    return 1.0 / np.bincount(index, minlength=rows)[ordered[rank]]


def _argmax_per_bag(rows: np.ndarray, index: np.ndarray, bags: np.ndarray, count: int) -> Any:
    """Flat indices of the largest elements of each bag, the first of equal ones; -1 for an empty bag."""
    width = rows.shape[1]
    positions = np.full((count, width), -1, np.int64)
    if index.size:
        taken = rows[index]
        starts = np.flatnonzero(np.concatenate(([True], bags[1:] != bags[:-1])))
        top = np.repeat(np.maximum.reduceat(taken, starts, 0), np.diff(np.append(starts, len(bags))), 0)
        order = np.where(taken == top, np.arange(len(bags))[:, None], len(bags))
        first = np.minimum(np.minimum.reduceat(order, starts, 0), len(bags) - 1)
        positions[bags[starts]] = index[first] * width + np.arange(width)
    return positions
