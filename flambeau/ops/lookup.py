"""Looking rows up by number: embeddings, and bags of them."""

from __future__ import annotations

from .declare import linear


@linear("weight", edgeless=("indices",), widens=False, expose=(), name="embedding", key="_embedding")
def _embedding(xp, weight, indices, *, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """The rows of `weight` that `indices` name.

    Args:
        padding_idx: a row that gets no gradient; -1 for none.
        scale_grad_by_freq: divide a row's gradient by how often it is named.
    """
    return xp.take_rows(weight, indices)


@linear("input", edgeless=("indices",), node="EmbeddingDenseBackwardBackward0", expose=())
def _embedding_backward(xp, input, indices, *, rows, padding_idx, scale_grad_by_freq):
    """Rows added up where `indices` name them, into zeros (rows, width)."""
    return xp.add_rows(input, indices, rows, padding_idx, scale_grad_by_freq)


@linear("input", edgeless=("indices",), expose=())
def _embedding_masked(xp, input, indices, *, padding_idx, scale_grad_by_freq):
    """The transpose of `_embedding_backward`: the rows named, zeros for `padding_idx`."""
    return xp.take_weighted_rows(input, indices, padding_idx, scale_grad_by_freq)


_embedding.vjp(weight=lambda xp, g, indices, weight_shape, padding_idx, scale_grad_by_freq: xp._embedding_backward(
    g, indices, rows=weight_shape[0], padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq))
_embedding_backward.vjp(input=lambda xp, g, indices, padding_idx, scale_grad_by_freq: xp._embedding_masked(
    g, indices, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq))
_embedding_masked.vjp(input=lambda xp, g, indices, input_shape, padding_idx, scale_grad_by_freq: xp._embedding_backward(
    g, indices, rows=input_shape[0], padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq))
