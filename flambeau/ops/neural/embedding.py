"""Embedding lookup, embedding bags, and their gradients."""

from __future__ import annotations

from math import prod

from ..declare import linear, op


@linear("weight", nondifferentiable_inputs=("indices",), opmath=False, expose=(), name="embedding", key="_embedding",
        saved="indices padding_idx scale_grad_by_freq sparse weight_sym_argsize_0")
def _embedding(xp, weight, indices, *, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    """The rows of `weight` at `indices`.

    Args:
        padding_idx: the row that gets no gradient; -1 for none.
        scale_grad_by_freq: whether to divide a row's gradient by the number of its occurrences in `indices`.
    """
    return xp.take_rows(weight, indices)


@linear("input", nondifferentiable_inputs=("indices",), node="EmbeddingDenseBackwardBackward0", expose=())
def _embedding_backward(xp, input, indices, *, rows, padding_idx, scale_grad_by_freq):
    """Zeros (rows, width) with the input's rows added at `indices`."""
    return xp.add_rows(input, indices, rows, padding_idx, scale_grad_by_freq)


@linear("input", nondifferentiable_inputs=("indices",), expose=())
def _embedding_masked(xp, input, indices, *, padding_idx, scale_grad_by_freq):
    """The transpose of `_embedding_backward`: the rows at `indices`, zeros for `padding_idx`."""
    return xp.take_weighted_rows(input, indices, padding_idx, scale_grad_by_freq)


_embedding.vjp(weight=lambda xp, g, indices, weight_shape, padding_idx, scale_grad_by_freq: xp._embedding_backward(
    g, indices, rows=weight_shape[0], padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq))
_embedding_backward.vjp(input=lambda xp, g, indices, padding_idx, scale_grad_by_freq: xp._embedding_masked(
    g, indices, padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq))
_embedding_masked.vjp(input=lambda xp, g, indices, input_shape, padding_idx, scale_grad_by_freq: xp._embedding_backward(
    g, indices, rows=input_shape[0], padding_idx=padding_idx, scale_grad_by_freq=scale_grad_by_freq))


# ----- batching rules -----


def _rows_vmap(name, adds_rows):
    """Return the batching rule of an operator on rows: the matrices of the batch are concatenated.

    Args:
        name: the operator.
        adds_rows: whether it accumulates rows, so that its first input has the shape of the indices.
    """
    def rule(xp, batch, input, indices, *, padding_idx, scale_grad_by_freq=False, **params):
        k, sizes, count = batch.k, batch.sizes, batch.count
        call = getattr(xp, name)
        options = {"padding_idx": padding_idx, "scale_grad_by_freq": scale_grad_by_freq}
        if not batch.on[1]:  # shared indices: concatenate along the width
            n = input.ndim - k
            front = (*range(k, k + n - 1), *range(k), k + n - 1)
            wide = xp.permute(input, front)
            wide = xp.reshape(wide, (*input.shape[k:-1], count * input.shape[-1]))
            result = call(wide, indices, **options, **params)
            m = result.ndim - 1
            result = xp.reshape(result, (*result.shape[:-1], *sizes, input.shape[-1]))
            return xp.permute(result, (*range(m, m + k), *range(m), m + k))
        if not (batch.on[0] or adds_rows):
            return call(input, indices, **options, **params)
        rows = params["rows"] if adds_rows else input.shape[k if batch.on[0] else 0]
        if indices.numel() and not 0 <= int(indices.min()) <= int(indices.max()) < rows:
            raise IndexError("index out of range in self")
        offset = xp.reshape(xp.arange(count), (*sizes, *(1,) * (indices.ndim - k))) * rows
        padding = xp.unsqueeze(indices == padding_idx, -1) if padding_idx >= 0 else None
        options["padding_idx"] = -1
        x = input if batch.on[0] else batch.expand_levels(input)
        if adds_rows:
            if padding is not None:
                x = xp._masked_fill_scalar(x, mask=padding, value=0)
            result = call(x, indices + offset, **options, rows=count * rows)
            return xp.reshape(result, (*sizes, rows, x.shape[-1]))
        result = call(xp.reshape(x, (count * rows, x.shape[-1])), indices + offset, **options, **params)
        if padding is None:
            return result
        return xp.where(padding, result.detach() if name == "_embedding" else xp.zeros_like(result), result)

    return rule


def _embedding_vmap(xp, batch, weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    return _rows_vmap("_embedding", False)(xp, batch, weight, indices, padding_idx=padding_idx,
                                         scale_grad_by_freq=scale_grad_by_freq, sparse=sparse)


_embedding.vmap(_embedding_vmap)
_embedding_backward.vmap(_rows_vmap("_embedding_backward", True))
_embedding_masked.vmap(_rows_vmap("_embedding_masked", False))


# ----- bags -----------------------------------------------------------------------------


@linear(expose=(), node="IndexSelectBackward0")
def _take_rows(xp, input, *, index):
    """The rows at an index array."""
    return xp.take_rows(input, index)


@linear(expose=(), node="IndexAddBackward0")
def _add_rows(xp, input, *, index, rows):
    """Zeros (rows, ...) with the input's rows added at an index array."""
    return xp.add_rows(input, index, rows, -1, False)


def _row_lookup_vmap(name):
    """Return the batching rule of an operator on the rows of a matrix: the batch is concatenated along the width."""
    def rule(xp, batch, input, **params):
        k, width = batch.k, input.shape[-1]
        wide = xp.reshape(xp.permute(input, (k, *range(k), k + 1)), (input.shape[k], batch.count * width))
        result = getattr(xp, name)(wide, **params)
        result = xp.reshape(result, (result.shape[0], *batch.sizes, width))
        return xp.permute(result, (*range(1, k + 1), 0, k + 1))

    return rule


_take_rows.vmap(_row_lookup_vmap("_take_rows"))
_add_rows.vmap(_row_lookup_vmap("_add_rows"))
_take_rows.vjp(input=lambda xp, g, input_shape, index: xp._add_rows(g, index=index, rows=input_shape[0]))
_add_rows.vjp(input=lambda xp, g, index: xp._take_rows(g, index=index))


@op(name="embedding_bag", key="_embedding_bag", node="EmbeddingBagBackward0", expose=(),
    saved="per_sample_weights weight_sym_argsize_0")
def _embedding_bag(xp, weight, per_sample_weights=None, *, indices, bags, count, sizes=None, frequencies=None,
                   inverse_sizes=None, summed=None):
    """The sums over bags of rows of `weight`, divided by the sizes of the bags for means.

    Args:
        indices, bags: arrays, the row and the bag of each sample.
        count: the number of bags.
        sizes: an array, the divisor of each bag, or None.
        inverse_sizes: their reciprocals, for the gradient.
        frequencies: an array, by which the gradient of each sample's row is multiplied, or None.
        summed: how many samples are summed. PyTorch's means count those behind the last offset, too, which get
            gradients. None for all.
    """
    if summed is not None:
        indices, bags = indices[:summed], bags[:summed]
    rows = xp.take_rows(weight, indices)
    if per_sample_weights is not None:
        rows = rows * xp.unsqueeze(per_sample_weights, 1)
    result = xp.add_rows(rows, bags, count, -1, False)
    return result if sizes is None else result / xp.unsqueeze(sizes, 1)


def _bag_vjp_weight(xp, g, weight_shape, per_sample_weights, indices, bags, inverse_sizes, frequencies):
    if inverse_sizes is not None:
        g = xp._scale_rows(g, factors=inverse_sizes)
    rows = xp._take_rows(g, index=bags)
    if frequencies is not None:
        rows = xp._scale_rows(rows, factors=frequencies)
    if per_sample_weights is not None:
        rows = rows * xp.unsqueeze(per_sample_weights, 1)
    return xp._add_rows(rows, index=indices, rows=weight_shape[0])


@linear(expose=())
def _scale_rows(xp, input, *, factors):
    """Each row times its element of an array."""
    return input * xp.unsqueeze(factors, 1)


_scale_rows.vmap(_row_lookup_vmap("_scale_rows"))
_scale_rows.vjp(input=lambda xp, g, factors: xp._scale_rows(g, factors=factors))
_embedding_bag.vjp(
    weight=lambda xp, g, weight_shape, per_sample_weights, indices, bags, inverse_sizes, frequencies: _bag_vjp_weight(
        xp, g, weight_shape, per_sample_weights, indices, bags, inverse_sizes, frequencies),
    per_sample_weights=lambda xp, g, weight, indices, bags: xp.sum(
        xp._take_rows(g, index=bags) * xp._take_rows(weight, index=indices), 1))


@linear(name="embedding_bag", key="_embedding_bag_max", node="EmbeddingBagBackward0", expose=(), opmath=False,
        saved="weight_sym_argsize_0")
def _embedding_bag_max(xp, weight, *, positions):
    """The elements of `weight` at flat positions, those of each bag's maxima; 0 where a position is -1."""
    return xp.take_flat_positions(weight, positions)


@linear(expose=())
def _scatter_flat(xp, input, *, positions, size):
    """Zeros of shape `size` with the input added at flat positions; those of -1 are skipped."""
    return xp.add_at_flat_positions(input, positions, size)


def _scatter_flat_vmap(xp, batch, input, *, positions, size):
    """Offset the positions of each batch element, into one tensor."""
    import numpy as np

    first = np.arange(batch.count).reshape(-1, *(1 for _ in positions.shape)) * prod(size)
    offset_positions = np.where(positions < 0, -1, positions + first)
    result = xp._scatter_flat(xp.reshape(input, offset_positions.shape), positions=offset_positions,
                              size=(batch.count, *size))
    return xp.reshape(result, (*batch.sizes, *size))


_scatter_flat.vmap(_scatter_flat_vmap)
_embedding_bag_max.vjp(weight=lambda xp, g, weight_shape, positions: xp._scatter_flat(
    g, positions=positions, size=weight_shape))
_scatter_flat.vjp(input=lambda xp, g, positions: xp._embedding_bag_max(g, positions=positions))
