"""Indexing under `vmap`: each element of a batch is indexed by its own indices.

An index that the elements share leaves the hidden dimensions, which stand in front, whole. One
that differs among them gets company: a range over each hidden dimension. The dimensions it
counts are brought right behind the hidden ones first, and their result to its place after.
"""

from __future__ import annotations

from math import prod

from ...shapes import wrap_dim
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
    """How index tensors, one per dimension (None: the whole dimension), act on each element of a batch.

    Attributes:
        own: whether an index differs among the elements.
        dims: the dimensions that have an index.
        at: where the result's dimensions stand that come from indices: NumPy's rule.
        rank: how many these are.
    """

    def __init__(self, xp, batch, indices, on):
        self.xp, self.k, self.sizes = xp, batch.k, batch.sizes
        self.given = [(i, b) for i, b in zip(indices, on, strict=True) if i is not None]
        self.dims = [d for d, i in enumerate(indices) if i is not None]
        self.adjoin = self.dims[-1] - self.dims[0] == len(self.dims) - 1
        self.at = self.dims[0] if self.adjoin else 0
        self.own = any(b for _, b in self.given)
        self.rank = max(i.ndim - self.k * b for i, b in self.given)

    @property
    def in_place(self):
        """Whether the hidden dimensions may just be left whole."""
        return self.adjoin and not self.own

    def batched_indices(self):
        """The indices, all of one rank where they have hidden dimensions."""
        return [self.xp.reshape(i, (*self.sizes, *(1,) * (self.rank + self.k - i.ndim), *i.shape[self.k:])) if b else i
                for i, b in self.given]

    def key(self):
        """What indexes hidden dimensions and those behind them that have an index."""
        k = self.k
        if not self.own:
            return [None] * k + [i for i, _ in self.given]
        behind = self.rank + k - 1
        return [self.xp.reshape(self.xp.arange(n), (n, *(1,) * (behind - d))) for d, n in enumerate(self.sizes)] + (
            self.batched_indices())

    def order(self, n):
        """`n` dimensions, those with an index first."""
        return [*self.dims, *(d for d in range(n) if d not in self.dims)]

    def behind(self, x, order, hidden):
        """`x` with the dimensions behind the first `hidden` in another order."""
        if order == sorted(order):
            return x
        return self.xp.permute(x, (*range(hidden), *(d + hidden for d in order)))

    def restore_order(self, x):
        """A result (hidden, of indices, rest), with the dimensions of indices where they belong."""
        r, at, n = self.rank, self.at, x.ndim - self.k
        return self.behind(x, [*range(r, r + at), *range(r), *range(r + at, n)], self.k)

    def reorder(self, x, hidden):
        """The inverse of `restore_order`, for what has so many hidden dimensions, or lacks them."""
        r, at, n = self.rank, self.at, x.ndim - hidden
        return self.behind(x, [*range(at, at + r), *range(at), *range(at + r, n)], hidden)


def _index_vmap(xp, batch, on, input, indices):
    """The elements of `input` at indices; `on[i]` says whether argument `i` has the hidden dimensions."""
    p = _IndexLayout(xp, batch, indices, on[1:])
    if on[0] and p.in_place:
        return xp._index(input, [None] * p.k + list(indices))
    hidden = p.k if on[0] else 0
    moved = p.behind(input, p.order(input.ndim - hidden), hidden)
    return p.restore_order(xp._index(moved, p.key() if on[0] else p.batched_indices()))


def _index_put_vmap(xp, batch, on, input, values, indices, accumulate):
    """`input` with `values` written, or added, at indices."""
    p = _IndexLayout(xp, batch, indices, on[2:])
    k = p.k
    if not on[0]:
        input = batch.full(input)
    n = input.ndim - k
    full = n - len(p.dims) + p.rank
    if on[1]:
        values = xp.reshape(values, (*p.sizes, *(1,) * (full + k - values.ndim), *values.shape[k:]))
    elif values.ndim:
        values = xp.reshape(values, (*(1,) * (full - values.ndim), *values.shape))
    if p.in_place:
        return xp._index_put(input, values, [None] * k + list(indices), accumulate=accumulate)
    order = p.order(n)
    if values.ndim:
        values = p.reorder(values, k if on[1] else 0)
    found = xp._index_put(p.behind(input, order, k), values, p.key(), accumulate=accumulate)
    return p.behind(found, [order.index(d) for d in range(n)], k)


index_.vmap(lambda xp, batch, input, *indices: _index_vmap(xp, batch, batch.on, input, indices))
index_put.vmap(lambda xp, batch, input, values, *indices, accumulate=False: _index_put_vmap(
    xp, batch, batch.on, input, values, indices, accumulate))


@_add_at_indices.vmap
def _add_at_indices_vmap(xp, batch, input, *indices, size):
    p = _IndexLayout(xp, batch, indices, batch.on[1:])
    g = input if batch.on[0] else batch.full(input)
    if p.in_place:
        return xp._add_at_indices(g, [None] * p.k + list(indices), size=(*batch.sizes, *size))
    order = p.order(len(size))
    found = xp._add_at_indices(p.reorder(g, p.k), p.key(), size=(*batch.sizes, *(size[d] for d in order)))
    return p.behind(found, [order.index(d) for d in range(len(size))], p.k)


# ----- along a dimension -------------------------------------------------------------------


def _with_batch(xp, batch, i, x, rank=1):
    """Argument `i` with the hidden dimensions, and at least `rank` behind them."""
    x = x if batch.on[i] else batch.full(x)
    missing = batch.k + rank - x.ndim
    return x if missing <= 0 else xp.reshape(x, (*x.shape, *(1,) * missing))


def _shift_dim(batch, dim, x):
    return wrap_dim(dim, x.ndim - batch.k) + batch.k


def _without_added_dim(xp, batch, i, x, found):
    """The result without the dimension that `_with_batch` gave argument `i`."""
    return xp.reshape(found, batch.sizes) if x.ndim == (batch.k if batch.on[i] else 0) else found


@gather.vmap
def _gather_vmap(xp, batch, input, index, dim, sparse_grad=False):
    x, places = _with_batch(xp, batch, 0, input), _with_batch(xp, batch, 1, index)
    return _without_added_dim(xp, batch, 1, index, xp.gather(x, _shift_dim(batch, dim, x), places))


@_gather_padded.vmap
def _gather_padded_vmap(xp, batch, input, index, dim, size):
    x, places = _with_batch(xp, batch, 0, input), _with_batch(xp, batch, 1, index)
    found = xp._gather_padded(x, index=places, dim=_shift_dim(batch, dim, x), size=(*batch.sizes, *(size or (1,))))
    return found if size else xp.reshape(found, batch.sizes)


def _declare_scatter_vmap(of, key):
    """State that an operator that scatters is one with ranges for hidden dimensions."""
    def rule(xp, batch, input, index, src=None, *, dim, **params):
        x, places = _with_batch(xp, batch, 0, input), _with_batch(xp, batch, 1, index)
        given = {} if src is None else {"src": _with_batch(xp, batch, 2, src)}
        found = getattr(xp, key)(x, index=places, **given, dim=_shift_dim(batch, dim, x), **params)
        return _without_added_dim(xp, batch, 0, input, found)

    of.vmap(rule)


_declare_scatter_vmap(scatter, "_scatter")
_declare_scatter_vmap(scatter_scalar, "_scatter_scalar")
_declare_scatter_vmap(scatter_add, "scatter_add")
_declare_scatter_vmap(scatter_reduce, "scatter_reduce")


# ----- whole slices ------------------------------------------------------------------------


def _index_per_element(xp, batch, i, index):
    """A vector of indices of its own for each element."""
    return _with_batch(xp, batch, i, index) if index.ndim == batch.k else index


def _key_at_dim(dim, index):
    return [None] * dim + [index]


@index_select.vmap
def _index_select_vmap(xp, batch, input, index, dim):
    x = _with_batch(xp, batch, 0, input) if batch.on[0] else input if input.ndim else xp.reshape(input, (1,))
    if not batch.on[1]:
        found = xp.index_select(x, _shift_dim(batch, dim, x), index)
    else:
        places = _index_per_element(xp, batch, 1, index)
        n = x.ndim - (batch.k if batch.on[0] else 0)
        at = _key_at_dim(wrap_dim(dim, n), places)
        found = _index_vmap(xp, batch, (batch.on[0], *(i is not None for i in at)), x, at)
    return _without_added_dim(xp, batch, 0, input, found)


def _put_slices(xp, batch, input, index, values, on_values, dim, accumulate):
    x = _with_batch(xp, batch, 0, input)
    at = _key_at_dim(_shift_dim(batch, dim, x) - batch.k, _index_per_element(xp, batch, 1, index))
    on = (True, on_values, *(i is not None for i in at))
    return _without_added_dim(xp, batch, 0, input, _index_put_vmap(xp, batch, on, x, values, at, accumulate))


def _align_source(xp, batch, input, source):
    """Input and source with hidden dimensions, of one rank where the source has none of its own."""
    x = _with_batch(xp, batch, 0, input)
    bare = source.ndim == (batch.k if batch.on[2] else 0)
    return x, _with_batch(xp, batch, 2, source, x.ndim - batch.k if bare else 1)


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
    # a slice that is named several times is filled once
    return _without_added_dim(xp, batch, 0, input, xp.where(named == 1, value, x))


@index_reduce.vmap
def _index_reduce_vmap(xp, batch, input, index, source, dim, reduce, include_self=True):
    x, rows = _align_source(xp, batch, input, source)
    axis = _shift_dim(batch, dim, x)
    if not batch.on[1]:
        found = xp.index_reduce(x, index=index, source=rows, dim=axis, reduce=reduce, include_self=include_self)
    else:
        k = batch.k
        places = _index_per_element(xp, batch, 1, index)
        places = xp.reshape(places, (*batch.sizes, *(1,) * (axis - k), places.shape[k], *(1,) * (rows.ndim - 1 - axis)))
        found = xp.scatter_reduce(x, index=xp.broadcast_to(places, rows.shape), src=rows, dim=axis, reduce=reduce,
                                  include_self=include_self)
    return _without_added_dim(xp, batch, 0, input, found)


# ----- masks -------------------------------------------------------------------------------

masked_fill_scalar.batching_rule = "elementwise"


def _broadcast_logical(xp, batch, *given):
    """Inputs, by number, broadcast to one shape behind the hidden dimensions."""
    from ...shapes import broadcast_shapes

    k = batch.k
    shape = broadcast_shapes(*(x.shape[k if batch.on[i] else 0:] for i, x in given))
    found = []
    for i, x in given:
        if batch.on[i]:
            x = xp.reshape(x, (*batch.sizes, *(1,) * (len(shape) + k - x.ndim), *x.shape[k:]))
        found.append(xp.broadcast_to(x, (*batch.sizes, *shape)))
    return found


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


_MASK_HIDDEN = ("vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because "
                "for each batch this would return a differently shaped Tensor. Please file an issue at "
                "https://github.com/pytorch/pytorch/issues if you need this feature.")


def _mask_positions(xp, batch, mask, shape):
    """The places where a mask that all elements share is true, by dimension of `shape`."""
    if batch.on[1]:
        raise RuntimeError(_MASK_HIDDEN)
    if mask.dtype.name != "bool":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    return list(xp.nonzero(xp.broadcast_to(mask, shape), as_tuple=True))


@masked_select.vmap
def _masked_select_vmap(xp, batch, input, mask):
    from ...shapes import broadcast_shapes

    k = batch.k
    shape = broadcast_shapes(input.shape[k:], mask.shape) if not batch.on[1] else ()
    places = _mask_positions(xp, batch, mask, shape)
    if not shape:
        return xp._index(xp.unsqueeze(input, -1), [None] * k + places)
    x = xp.broadcast_to(xp.reshape(input, (*batch.sizes, *(1,) * (len(shape) + k - input.ndim), *input.shape[k:])),
                        (*batch.sizes, *shape))
    return xp._index(x, [None] * k + places)


@_masked_select_backward.vmap
def _masked_select_backward_vmap(xp, batch, input, mask, size):
    from ...shapes import broadcast_shapes

    shape = broadcast_shapes(size, mask.shape) if not batch.on[1] else ()
    places = _mask_positions(xp, batch, mask, shape)
    found = xp._add_at_indices(input, [None] * batch.k + places, size=(*batch.sizes, *(shape or (1,))))
    lead = len(shape) - len(size)
    return xp.reshape(xp.sum_to_size(found, (*batch.sizes, *(1,) * lead, *size)) if shape else found,
                      (*batch.sizes, *size))


def _count_true_before(xp, batch, mask):
    """How many true elements come before each, of each element's mask: (hidden, elements)."""
    flat = xp.reshape(mask, (*batch.sizes, -1))
    return flat, xp.clamp(xp.cumsum(xp.to(flat, xp.arange(0).dtype), -1) - 1, 0)


@masked_scatter.vmap
def _masked_scatter_vmap(xp, batch, input, mask, source):
    x, where = _broadcast_logical(xp, batch, (0, input), (1, mask))
    values = source if batch.on[2] else batch.full(source)
    count = prod(values.shape[batch.k:])
    if not count or not x.numel():
        return NotImplemented
    flat, places = _count_true_before(xp, batch, where)
    if int(xp.sum(flat, -1).max()) > count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    taken = xp.gather(xp.reshape(values, (*batch.sizes, count)), batch.k, xp.clamp(places, 0, count - 1))
    return xp.where(where, xp.reshape(taken, x.shape), x)


@_masked_scatter_backward.vmap
def _masked_scatter_backward_vmap(xp, batch, input, mask, size):
    g, where = _broadcast_logical(xp, batch, (0, input), (1, mask))
    count = prod(size)
    if not count or not g.numel():
        return xp.zeros((*batch.sizes, *size), dtype=g.dtype)
    flat, places = _count_true_before(xp, batch, where)
    values = xp._masked_fill_scalar(xp.reshape(g, flat.shape), mask=xp.logical_not(flat), value=0)
    whole = xp.zeros((*batch.sizes, count), dtype=g.dtype)
    found = xp.scatter_add(whole, batch.k, xp.clamp(places, 0, count - 1), values)
    return xp.reshape(found, (*batch.sizes, *size))


# ----- positions in the flattened tensor ---------------------------------------------------


def _flatten(xp, batch, i, x):
    """Argument `i` as one dimension, behind the hidden ones where it has them."""
    return xp.reshape(x, (*batch.sizes, prod(x.shape[batch.k:]))) if batch.on[i] else xp.reshape(x, (prod(x.shape),))


take.vmap(lambda xp, batch, input, index: _index_vmap(xp, batch, batch.on, _flatten(xp, batch, 0, input), [index]))


@put.vmap
def _put_vmap(xp, batch, input, index, source, accumulate=False):
    x = input if batch.on[0] else batch.full(input)
    flat = xp.reshape(x, (*batch.sizes, prod(x.shape[batch.k:])))
    found = _index_put_vmap(xp, batch, (True, batch.on[2], batch.on[1]), flat, _flatten(xp, batch, 2, source),
                     [_flatten(xp, batch, 1, index)], accumulate)
    return xp.reshape(found, x.shape)


# ----- where something is ------------------------------------------------------------------


@nonzero.vmap
def _nonzero_vmap(xp, batch, input):
    raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
                       "over aten::nonzero. Please file an issue at https://github.com/pytorch/pytorch/issues if you "
                       "need this feature.")
