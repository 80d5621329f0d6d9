"""Batching rules of the indexing operators.

Batch dimensions come first. Indices that all batch elements share leave them as they are (`slice(None)`). For indices
that are batched themselves, a range over each batch dimension is added to the key; the indexed dimensions are permuted
behind the batch dimensions first, and the result's dimensions are permuted back.
"""

from __future__ import annotations

from math import prod

from ...shapes import broadcast_shapes, wrap_dim
from .indexing import (
    _add_at_indices,
    _gather_padded,
    gather,
    index_,
    index_add,
    index_copy,
    index_fill_scalar,
    index_fill_tensor,
    index_put,
    index_reduce,
    index_select,
    scatter,
    scatter_add,
    scatter_reduce,
    scatter_scalar,
)
from .masking import (
    _masked_scatter_backward,
    _masked_select_backward,
    masked_fill,
    masked_fill_scalar,
    masked_scatter,
    masked_select,
    nonzero,
    put,
    take,
)

# ----- x[i, j] ---------------------------------------------------------------------------


class _IndexLayout:
    """The layout of advanced indexing on a batch, with one index tensor per dimension (None: the entire dimension).

    Attributes:
        given: (index, whether it is batched) of each index that is not None.
        dims: the dimensions that have an index.
        adjacent: whether these dimensions are adjacent.
        is_batched: whether any index is batched.
        rank: the number of dimensions that the indices broadcast to.
        at: the position of these dimensions in the result, by NumPy's rule.
    """

    def __init__(self, xp, batch, indices, on):
        self.xp, self.k, self.sizes = xp, batch.k, batch.sizes
        self.given = [(i, b) for i, b in zip(indices, on, strict=True) if i is not None]
        self.dims = [d for d, i in enumerate(indices) if i is not None]
        self.adjacent = self.dims[-1] - self.dims[0] == len(self.dims) - 1
        self.at = self.dims[0] if self.adjacent else 0
        self.is_batched = any(b for _, b in self.given)
        self.rank = max(i.ndim - self.k * b for i, b in self.given)

    @property
    def shares_indices(self):
        """Whether the batch dimensions can be indexed by `slice(None)`."""
        return self.adjacent and not self.is_batched

    def batched_indices(self):
        """Return the indices; batched ones are reshaped to the same rank."""
        return [self.xp.reshape(i, (*self.sizes, *(1,) * (self.rank + self.k - i.ndim), *i.shape[self.k:])) if b else i
                for i, b in self.given]

    def key(self):
        """Return the key over the batch dimensions and the indexed dimensions behind them."""
        k = self.k
        if not self.is_batched:
            return [None] * k + [i for i, _ in self.given]
        last = self.rank + k - 1
        return [self.xp.reshape(self.xp.arange(n), (n, *(1,) * (last - d))) for d, n in enumerate(self.sizes)] + (
            self.batched_indices())

    def order(self, n):
        """Return the order of `n` dimensions that puts the indexed ones first."""
        return [*self.dims, *(d for d in range(n) if d not in self.dims)]

    def permute_behind(self, x, order, n_batch):
        """Permute the dimensions of `x` behind the first `n_batch`."""
        if order == sorted(order):
            return x
        return self.xp.permute(x, (*range(n_batch), *(d + n_batch for d in order)))

    def restore_order(self, x):
        """Permute a result (batch, indices, rest) so that the dimensions of the indices are at `at`."""
        r, at, n = self.rank, self.at, x.ndim - self.k
        return self.permute_behind(x, [*range(r, r + at), *range(r), *range(r + at, n)], self.k)

    def reorder(self, x, n_batch):
        """Return the inverse of `restore_order`, for a tensor with `n_batch` batch dimensions."""
        r, at, n = self.rank, self.at, x.ndim - n_batch
        return self.permute_behind(x, [*range(at, at + r), *range(at), *range(at + r, n)], n_batch)


def _index_vmap(xp, batch, on, input, indices):
    """Compute `index` on a batch; `on[i]` says whether argument `i` is batched."""
    p = _IndexLayout(xp, batch, indices, on[1:])
    if on[0] and p.shares_indices:
        return xp._index(input, [None] * p.k + list(indices))
    n_batch = p.k if on[0] else 0
    moved = p.permute_behind(input, p.order(input.ndim - n_batch), n_batch)
    return p.restore_order(xp._index(moved, p.key() if on[0] else p.batched_indices()))


def _index_put_vmap(xp, batch, on, input, values, indices, accumulate):
    """Compute `index_put` on a batch."""
    p = _IndexLayout(xp, batch, indices, on[2:])
    k = p.k
    if not on[0]:
        input = batch.expand_levels(input)
    n = input.ndim - k
    full = n - len(p.dims) + p.rank
    if on[1]:
        values = xp.reshape(values, (*p.sizes, *(1,) * (full + k - values.ndim), *values.shape[k:]))
    elif values.ndim:
        values = xp.reshape(values, (*(1,) * (full - values.ndim), *values.shape))
    if p.shares_indices:
        return xp._index_put(input, values, [None] * k + list(indices), accumulate=accumulate)
    order = p.order(n)
    if values.ndim:
        values = p.reorder(values, k if on[1] else 0)
    result = xp._index_put(p.permute_behind(input, order, k), values, p.key(), accumulate=accumulate)
    return p.permute_behind(result, [order.index(d) for d in range(n)], k)


index_.vmap(lambda xp, batch, input, *indices: _index_vmap(xp, batch, batch.on, input, indices))
index_put.vmap(lambda xp, batch, input, values, *indices, accumulate=False: _index_put_vmap(
    xp, batch, batch.on, input, values, indices, accumulate))


@_add_at_indices.vmap
def _add_at_indices_vmap(xp, batch, input, *indices, size):
    p = _IndexLayout(xp, batch, indices, batch.on[1:])
    g = input if batch.on[0] else batch.expand_levels(input)
    if p.shares_indices:
        return xp._add_at_indices(g, [None] * p.k + list(indices), size=(*batch.sizes, *size))
    order = p.order(len(size))
    result = xp._add_at_indices(p.reorder(g, p.k), p.key(), size=(*batch.sizes, *(size[d] for d in order)))
    return p.permute_behind(result, [order.index(d) for d in range(len(size))], p.k)


# ----- along a dimension -------------------------------------------------------------------


def _with_batch(xp, batch, i, x, rank=1):
    """Return argument `i` with the batch dimensions, and at least `rank` dimensions behind them."""
    x = x if batch.on[i] else batch.expand_levels(x)
    missing = batch.k + rank - x.ndim
    return x if missing <= 0 else xp.reshape(x, (*x.shape, *(1,) * missing))


def _shift_dim(batch, dim, x):
    return wrap_dim(dim, x.ndim - batch.k) + batch.k


def _without_added_dim(xp, batch, i, x, result):
    """Return the result without the dimension that `_with_batch` added to argument `i`."""
    return xp.reshape(result, batch.sizes) if x.ndim == (batch.k if batch.on[i] else 0) else result


@gather.vmap
def _gather_vmap(xp, batch, input, index, dim, sparse_grad=False):
    x, positions = _with_batch(xp, batch, 0, input), _with_batch(xp, batch, 1, index)
    return _without_added_dim(xp, batch, 1, index, xp.gather(x, _shift_dim(batch, dim, x), positions))


@_gather_padded.vmap
def _gather_padded_vmap(xp, batch, input, index, dim, size):
    x, positions = _with_batch(xp, batch, 0, input), _with_batch(xp, batch, 1, index)
    result = xp._gather_padded(x, index=positions, dim=_shift_dim(batch, dim, x), size=(*batch.sizes, *(size or (1,))))
    return result if size else xp.reshape(result, batch.sizes)


def _declare_scatter_vmap(of, key):
    """Declare the batching rule of a scatter: all its inputs are expanded to the batch."""
    def rule(xp, batch, input, index, src=None, *, dim, **params):
        x, positions = _with_batch(xp, batch, 0, input), _with_batch(xp, batch, 1, index)
        given = {} if src is None else {"src": _with_batch(xp, batch, 2, src)}
        result = getattr(xp, key)(x, index=positions, **given, dim=_shift_dim(batch, dim, x), **params)
        return _without_added_dim(xp, batch, 0, input, result)

    of.vmap(rule)


_declare_scatter_vmap(scatter, "_scatter")
_declare_scatter_vmap(scatter_scalar, "_scatter_scalar")
_declare_scatter_vmap(scatter_add, "scatter_add")
_declare_scatter_vmap(scatter_reduce, "scatter_reduce")


# ----- slices ------------------------------------------------------------------------


def _index_per_element(xp, batch, i, index):
    """Return a batched vector of indices; a scalar index becomes a vector."""
    return _with_batch(xp, batch, i, index) if index.ndim == batch.k else index


def _key_at_dim(dim, index):
    return [None] * dim + [index]


@index_select.vmap
def _index_select_vmap(xp, batch, input, index, dim):
    x = _with_batch(xp, batch, 0, input) if batch.on[0] else input if input.ndim else xp.reshape(input, (1,))
    if not batch.on[1]:
        result = xp.index_select(x, _shift_dim(batch, dim, x), index)
    else:
        positions = _index_per_element(xp, batch, 1, index)
        n = x.ndim - (batch.k if batch.on[0] else 0)
        at = _key_at_dim(wrap_dim(dim, n), positions)
        result = _index_vmap(xp, batch, (batch.on[0], *(i is not None for i in at)), x, at)
    return _without_added_dim(xp, batch, 0, input, result)


def _put_slices(xp, batch, input, index, values, on_values, dim, accumulate):
    x = _with_batch(xp, batch, 0, input)
    at = _key_at_dim(_shift_dim(batch, dim, x) - batch.k, _index_per_element(xp, batch, 1, index))
    on = (True, on_values, *(i is not None for i in at))
    return _without_added_dim(xp, batch, 0, input, _index_put_vmap(xp, batch, on, x, values, at, accumulate))


def _align_source(xp, batch, input, source):
    """Return input and source with the batch dimensions; a scalar source gets the input's rank."""
    x = _with_batch(xp, batch, 0, input)
    is_scalar = source.ndim == (batch.k if batch.on[2] else 0)
    return x, _with_batch(xp, batch, 2, source, x.ndim - batch.k if is_scalar else 1)


@index_add.vmap
def _index_add_vmap(xp, batch, input, index, source, dim, alpha=1):
    if not batch.on[1]:
        x, rows = _align_source(xp, batch, input, source)
        return _without_added_dim(xp, batch, 0, input, xp.index_add(
            x, index=index, source=rows, dim=_shift_dim(batch, dim, x), alpha=alpha))
    if alpha != 1:
        source = xp.to(source * alpha, input.dtype)
    return _put_slices(xp, batch, input, index, source, batch.on[2], dim, True)


@index_copy.vmap
def _index_copy_vmap(xp, batch, input, index, source, dim):
    if not batch.on[1]:
        x, rows = _align_source(xp, batch, input, source)
        return _without_added_dim(xp, batch, 0, input, xp.index_copy(
            x, index=index, source=rows, dim=_shift_dim(batch, dim, x)))
    return _put_slices(xp, batch, input, index, source, batch.on[2], dim, False)


@index_fill_scalar.vmap
def _index_fill_vmap(xp, batch, input, index, dim, value):
    if not batch.on[1]:
        x = _with_batch(xp, batch, 0, input)
        return _without_added_dim(xp, batch, 0, input, xp._index_fill_scalar(
            x, index=index, dim=_shift_dim(batch, dim, x), value=value))
    return _put_slices(xp, batch, input, index, xp.full((), value, dtype=input.dtype), False, dim, False)


@index_fill_tensor.vmap
def _index_fill_tensor_vmap(xp, batch, input, index, value, dim):
    x = _with_batch(xp, batch, 0, input)
    axis = _shift_dim(batch, dim, x)
    if batch.on[1]:
        at = _key_at_dim(axis - batch.k, _index_per_element(xp, batch, 1, index))
        on = (True, False, *(i is not None for i in at))
        named = _index_put_vmap(xp, batch, on, xp.zeros_like(x), xp.ones((), dtype=x.dtype), at, False)
    else:
        named = xp._index_fill_scalar(xp.zeros_like(x), index=index, dim=axis, value=1)
    value = xp.to(value, x.dtype)
    if batch.on[2]:
        value = xp.reshape(value, (*batch.sizes, *(1,) * (x.ndim - batch.k)))
    # repeated indices fill a slice once
    return _without_added_dim(xp, batch, 0, input, xp.where(named == 1, value, x))


@index_reduce.vmap
def _index_reduce_vmap(xp, batch, input, index, source, dim, reduce, include_self=True):
    x, rows = _align_source(xp, batch, input, source)
    axis = _shift_dim(batch, dim, x)
    if not batch.on[1]:
        result = xp.index_reduce(x, index=index, source=rows, dim=axis, reduce=reduce, include_self=include_self)
    else:
        k = batch.k
        positions = _index_per_element(xp, batch, 1, index)
        positions = xp.reshape(positions, (*batch.sizes, *(1,) * (axis - k), positions.shape[k],
                                           *(1,) * (rows.ndim - 1 - axis)))
        result = xp.scatter_reduce(x, index=xp.broadcast_to(positions, rows.shape), src=rows, dim=axis, reduce=reduce,
                                  include_self=include_self)
    return _without_added_dim(xp, batch, 0, input, result)


# ----- masks -------------------------------------------------------------------------------

masked_fill_scalar.batching_rule = "elementwise"


def _broadcast_logical(xp, batch, *given):
    """Broadcast inputs, given as (position, tensor), to one shape behind the batch dimensions."""
    k = batch.k
    shape = broadcast_shapes(*(x.shape[k if batch.on[i] else 0:] for i, x in given))
    result = []
    for i, x in given:
        if batch.on[i]:
            x = xp.reshape(x, (*batch.sizes, *(1,) * (len(shape) + k - x.ndim), *x.shape[k:]))
        result.append(xp.broadcast_to(x, (*batch.sizes, *shape)))
    return result


@masked_fill.vmap
def _masked_fill_vmap(xp, batch, input, mask, value):
    x, where = _broadcast_logical(xp, batch, (0, input), (1, mask))
    if not batch.on[2]:
        return xp.masked_fill(x, where, value)
    if value.ndim > batch.k:
        raise RuntimeError("masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                           f"{value.ndim - batch.k} dimension(s).")
    value = xp.reshape(xp.to(value, x.dtype), (*batch.sizes, *(1,) * (x.ndim - batch.k)))
    return xp.where(where, value, x)


_MASK_ERROR = ("vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because "
               "for each batch this would return a differently shaped Tensor. Please file an issue at "
               "https://github.com/pytorch/pytorch/issues if you need this feature.")


def _mask_positions(xp, batch, mask, shape):
    """Return the indices, per dimension of `shape`, at which an unbatched mask is true."""
    if batch.on[1]:
        raise RuntimeError(_MASK_ERROR)
    if mask.dtype.name != "bool":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    return list(xp.nonzero(xp.broadcast_to(mask, shape), as_tuple=True))


@masked_select.vmap
def _masked_select_vmap(xp, batch, input, mask):
    k = batch.k
    shape = broadcast_shapes(input.shape[k:], mask.shape) if not batch.on[1] else ()
    positions = _mask_positions(xp, batch, mask, shape)
    if not shape:
        return xp._index(xp.unsqueeze(input, -1), [None] * k + positions)
    x = xp.broadcast_to(xp.reshape(input, (*batch.sizes, *(1,) * (len(shape) + k - input.ndim), *input.shape[k:])),
                        (*batch.sizes, *shape))
    return xp._index(x, [None] * k + positions)


@_masked_select_backward.vmap
def _masked_select_backward_vmap(xp, batch, input, mask, size):
    shape = broadcast_shapes(size, mask.shape) if not batch.on[1] else ()
    positions = _mask_positions(xp, batch, mask, shape)
    result = xp._add_at_indices(input, [None] * batch.k + positions, size=(*batch.sizes, *(shape or (1,))))
    lead = len(shape) - len(size)
    return xp.reshape(xp.sum_to_size(result, (*batch.sizes, *(1,) * lead, *size)) if shape else result,
                      (*batch.sizes, *size))


def _count_true_before(xp, batch, mask):
    """Return the flattened masks (batch, elements), and the number of true elements before each element."""
    flat = xp.reshape(mask, (*batch.sizes, -1))
    return flat, xp.clamp(xp.cumsum(xp.to(flat, xp.arange(0).dtype), -1) - 1, 0)


@masked_scatter.vmap
def _masked_scatter_vmap(xp, batch, input, mask, source):
    x, where = _broadcast_logical(xp, batch, (0, input), (1, mask))
    values = source if batch.on[2] else batch.expand_levels(source)
    count = prod(values.shape[batch.k:])
    if not count or not x.numel():
        return NotImplemented
    flat, positions = _count_true_before(xp, batch, where)
    if int(xp.sum(flat, -1).max()) > count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    gathered = xp.gather(xp.reshape(values, (*batch.sizes, count)), batch.k, xp.clamp(positions, 0, count - 1))
    return xp.where(where, xp.reshape(gathered, x.shape), x)


@_masked_scatter_backward.vmap
def _masked_scatter_backward_vmap(xp, batch, input, mask, size):
    g, where = _broadcast_logical(xp, batch, (0, input), (1, mask))
    count = prod(size)
    if not count or not g.numel():
        return xp.zeros((*batch.sizes, *size), dtype=g.dtype)
    flat, positions = _count_true_before(xp, batch, where)
    values = xp._masked_fill_scalar(xp.reshape(g, flat.shape), mask=xp.logical_not(flat), value=0)
    zeros = xp.zeros((*batch.sizes, count), dtype=g.dtype)
    result = xp.scatter_add(zeros, batch.k, xp.clamp(positions, 0, count - 1), values)
    return xp.reshape(result, (*batch.sizes, *size))


# ----- positions in the flattened tensor ---------------------------------------------------


def _flatten(xp, batch, i, x):
    """Flatten argument `i` behind its batch dimensions."""
    return xp.reshape(x, (*batch.sizes, prod(x.shape[batch.k:]))) if batch.on[i] else xp.reshape(x, (prod(x.shape),))


take.vmap(lambda xp, batch, input, index: _index_vmap(xp, batch, batch.on, _flatten(xp, batch, 0, input), [index]))


@put.vmap
def _put_vmap(xp, batch, input, index, source, accumulate=False):
    x = input if batch.on[0] else batch.expand_levels(input)
    flat = xp.reshape(x, (*batch.sizes, prod(x.shape[batch.k:])))
    result = _index_put_vmap(xp, batch, (True, batch.on[2], batch.on[1]), flat, _flatten(xp, batch, 2, source),
                     [_flatten(xp, batch, 1, index)], accumulate)
    return xp.reshape(result, x.shape)


# ----- nonzero ------------------------------------------------------------------


@nonzero.vmap
def _nonzero_vmap(xp, batch, input):
    raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
                       "over aten::nonzero. Please file an issue at https://github.com/pytorch/pytorch/issues if you "
                       "need this feature.")
