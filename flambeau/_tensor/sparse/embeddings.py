"""Embedding lookups with sparse gradients: one row of values for each index, in their order."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...engine.grad_mode import no_grad
from ...engine.tensor_interface import layer
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..tensor import Tensor, wrap
from .constructors import coo
from .recording import needs, record


def _row_gradient(rows: Tensor, index: np.ndarray, shape: tuple[int, ...]) -> Tensor:
    """The COO gradient of a matrix that has these rows at the indices."""
    return coo(wrap(index.reshape(1, index.size).astype(np.int64)), rows, shape, coalesced=False)


def embedding(weight: Tensor, indices: Tensor, padding_idx: int, scale_grad_by_freq: bool) -> Tensor:
    """The rows of `weight` at `indices`; the gradient of `weight` is sparse.

    Raises:
        RuntimeError: in backward, with `scale_grad_by_freq`.
    """
    with no_grad():
        out = apply(REGISTRY["_embedding"], [weight, indices], {
            "padding_idx": padding_idx, "scale_grad_by_freq": scale_grad_by_freq, "sparse": True})
    shape = weight._array.shape

    def rule(g: Tensor) -> tuple[Tensor]:
        if scale_grad_by_freq:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        index = indices._array.reshape(-1)
        rows = g.reshape((index.size, shape[1]))
        if padding_idx != -1:
            kept = np.flatnonzero(index != padding_idx)
            index, rows = index[kept], layer.functions.index_select(rows, 0, wrap(kept))
        return (_row_gradient(rows, index, shape),)

    return record(out, "EmbeddingBackward0", (weight,), rule, (indices,))


def embedding_bag(weight: Tensor, per_sample_weights: Tensor | None, params: dict[str, Any]) -> Tensor:
    """The sums or means of bags of rows of `weight`, whose gradient is sparse.

    Args:
        params: the parameters of the operator `_embedding_bag`.
    """
    with no_grad():
        out = apply(REGISTRY["_embedding_bag"], [weight, per_sample_weights], params)
    index, bags, sizes = params["indices"], params["bags"], params["sizes"]
    shape = weight._array.shape
    fn: Any = layer.functions

    def rule(g: Tensor) -> tuple[Any, Any]:
        if params["frequencies"] is not None:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        rows = fn.index_select(g, 0, wrap(bags))
        if sizes is not None:
            rows = (rows / wrap(sizes[bags][:, None])).to(g.dtype)  # the sizes are float32 for narrow dtypes
        of_samples = None
        if needs(per_sample_weights):
            of_samples = fn.sum(rows * fn.index_select(weight, 0, wrap(index)), 1)
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.unsqueeze(1)
        return _row_gradient(rows, index, shape) if needs(weight) else None, of_samples

    return record(out, "EmbeddingBagBackward0", (weight, per_sample_weights), rule,
                  (weight if needs(per_sample_weights) else None, per_sample_weights))


__all__ = ["embedding", "embedding_bag"]
