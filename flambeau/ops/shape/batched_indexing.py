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
    _masked_scatter_gradient,
    _spread_masked,
    gather,
    index_,
    index_add,
    index_copy,
    index_fill_scalar,
    index_fill_tensor,
    index_put,
    index_reduce,
    index_select,
    masked_fill,
    masked_fill_scalar,
    masked_scatter,
    masked_select,
    nonzero,
    put,
    scatter,
    scatter_add,
    scatter_reduce,
    scatter_scalar,
    take,
)

# ----- x[i, j] ---------------------------------------------------------------------------


class _Placing:
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

    def own_indices(self):
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
            self.own_indices())

    def order(self, n):
        """`n` dimensions, those with an index first."""
        return [*self.dims, *(d for d in range(n) if d not in self.dims)]

    def behind(self, x, order, hidden):
        """`x` with the dimensions behind the first `hidden` in another order."""
        if order == sorted(order):
            return x
        return self.xp.permute(x, (*range(hidden), *(d + hidden for d in order)))

    def placed(self, x):
        """A result (hidden, of indices, rest), with the dimensions of indices where they belong."""
        r, at, n = self.rank, self.at, x.ndim - self.k
        return self.behind(x, [*range(r, r + at), *range(r), *range(r + at, n)], self.k)

    def unplaced(self, x, hidden):
        """The inverse of `placed`, for what has so many hidden dimensions, or lacks them."""
        r, at, n = self.rank, self.at, x.ndim - hidden
        return self.behind(x, [*range(at, at + r), *range(at), *range(at + r, n)], hidden)


def _taken(xp, batch, on, input, indices):
    """The elements of `input` at indices; `on[i]` says whether argument `i` has the hidden dimensions."""
    p = _Placing(xp, batch, indices, on[1:])
    if on[0] and p.in_place:
        return xp._index(input, [None] * p.k + list(indices))
    hidden = p.k if on[0] else 0
    moved = p.behind(input, p.order(input.ndim - hidden), hidden)
    return p.placed(xp._index(moved, p.key() if on[0] else p.own_indices()))


def _written(xp, batch, on, input, values, indices, accumulate):
    """`input` with `values` written, or added, at indices."""
    p = _Placing(xp, batch, indices, on[2:])
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
        values = p.unplaced(values, k if on[1] else 0)
    found = xp._index_put(p.behind(input, order, k), values, p.key(), accumulate=accumulate)
    return p.behind(found, [order.index(d) for d in range(n)], k)


index_.vmap(lambda xp, batch, input, *indices: _taken(xp, batch, batch.on, input, indices))
index_put.vmap(lambda xp, batch, input, values, *indices, accumulate=False: _written(
    xp, batch, batch.on, input, values, indices, accumulate))


@_add_at_indices.vmap
def _added(xp, batch, input, *indices, size):
    p = _Placing(xp, batch, indices, batch.on[1:])
    g = input if batch.on[0] else batch.full(input)
    if p.in_place:
        return xp._add_at_indices(g, [None] * p.k + list(indices), size=(*batch.sizes, *size))
    order = p.order(len(size))
    found = xp._add_at_indices(p.unplaced(g, p.k), p.key(), size=(*batch.sizes, *(size[d] for d in order)))
    return p.behind(found, [order.index(d) for d in range(len(size))], p.k)


# ----- along a dimension -------------------------------------------------------------------


def _ranked(xp, batch, i, x, rank=1):
    """Argument `i` with the hidden dimensions, and at least `rank` behind them."""
    x = x if batch.on[i] else batch.full(x)
    missing = batch.k + rank - x.ndim
    return x if missing <= 0 else xp.reshape(x, (*x.shape, *(1,) * missing))


def _dim_behind(batch, dim, x):
    return wrap_dim(dim, x.ndim - batch.k) + batch.k


def _scalar(xp, batch, i, x, found):
    """The result without the dimension that `_ranked` gave argument `i`."""
    return xp.reshape(found, batch.sizes) if x.ndim == (batch.k if batch.on[i] else 0) else found


@gather.vmap
def _gathered(xp, batch, input, index, dim, sparse_grad=False):
    x, places = _ranked(xp, batch, 0, input), _ranked(xp, batch, 1, index)
    return _scalar(xp, batch, 1, index, xp.gather(x, _dim_behind(batch, dim, x), places))


@_gather_padded.vmap
def _gathered_padded(xp, batch, input, index, dim, size):
    x, places = _ranked(xp, batch, 0, input), _ranked(xp, batch, 1, index)
    found = xp._gather_padded(x, index=places, dim=_dim_behind(batch, dim, x), size=(*batch.sizes, *(size or (1,))))
    return found if size else xp.reshape(found, batch.sizes)


def _scattering(of, key):
    """State that an operator that scatters is one with ranges for hidden dimensions."""
    def rule(xp, batch, input, index, src=None, *, dim, **params):
        x, places = _ranked(xp, batch, 0, input), _ranked(xp, batch, 1, index)
        given = {} if src is None else {"src": _ranked(xp, batch, 2, src)}
        found = getattr(xp, key)(x, index=places, **given, dim=_dim_behind(batch, dim, x), **params)
        return _scalar(xp, batch, 0, input, found)

    of.vmap(rule)


_scattering(scatter, "_scatter")
_scattering(scatter_scalar, "_scatter_scalar")
_scattering(scatter_add, "scatter_add")
_scattering(scatter_reduce, "scatter_reduce")


# ----- whole slices ------------------------------------------------------------------------


def _row_index(xp, batch, i, index):
    """A vector of indices of its own for each element."""
    return _ranked(xp, batch, i, index) if index.ndim == batch.k else index


def _at_dim(dim, index):
    return [None] * dim + [index]


@index_select.vmap
def _rows(xp, batch, input, index, dim):
    x = _ranked(xp, batch, 0, input) if batch.on[0] else input if input.ndim else xp.reshape(input, (1,))
    if not batch.on[1]:
        found = xp.index_select(x, _dim_behind(batch, dim, x), index)
    else:
        places = _row_index(xp, batch, 1, index)
        n = x.ndim - (batch.k if batch.on[0] else 0)
        at = _at_dim(wrap_dim(dim, n), places)
        found = _taken(xp, batch, (batch.on[0], *(i is not None for i in at)), x, at)
    return _scalar(xp, batch, 0, input, found)


def _rows_put(xp, batch, input, index, values, on_values, dim, accumulate):
    x = _ranked(xp, batch, 0, input)
    at = _at_dim(_dim_behind(batch, dim, x) - batch.k, _row_index(xp, batch, 1, index))
    on = (True, on_values, *(i is not None for i in at))
    return _scalar(xp, batch, 0, input, _written(xp, batch, on, x, values, at, accumulate))


def _sources(xp, batch, input, source):
    """Input and source with hidden dimensions, of one rank where the source has none of its own."""
    x = _ranked(xp, batch, 0, input)
    bare = source.ndim == (batch.k if batch.on[2] else 0)
    return x, _ranked(xp, batch, 2, source, x.ndim - batch.k if bare else 1)


@index_add.vmap
def _rows_added(xp, batch, input, index, source, dim, alpha=1):
    if not batch.on[1]:
        x, rows = _sources(xp, batch, input, source)
        return _scalar(xp, batch, 0, input, xp.index_add(
            x, index=index, source=rows, dim=_dim_behind(batch, dim, x), alpha=alpha))
    if alpha != 1:
        source = xp.to(source * alpha, input.dtype)
    return _rows_put(xp, batch, input, index, source, batch.on[2], dim, True)


@index_copy.vmap
def _rows_copied(xp, batch, input, index, source, dim):
    if not batch.on[1]:
        x, rows = _sources(xp, batch, input, source)
        return _scalar(xp, batch, 0, input, xp.index_copy(
            x, index=index, source=rows, dim=_dim_behind(batch, dim, x)))
    return _rows_put(xp, batch, input, index, source, batch.on[2], dim, False)


@index_fill_scalar.vmap
def _rows_filled(xp, batch, input, index, dim, value):
    if not batch.on[1]:
        x = _ranked(xp, batch, 0, input)
        return _scalar(xp, batch, 0, input, xp._index_fill_scalar(
            x, index=index, dim=_dim_behind(batch, dim, x), value=value))
    return _rows_put(xp, batch, input, index, xp.full((), value, dtype=input.dtype), False, dim, False)


@index_fill_tensor.vmap
def _rows_filled_alike(xp, batch, input, index, value, dim):
    x = _ranked(xp, batch, 0, input)
    axis = _dim_behind(batch, dim, x)
    if batch.on[1]:
        at = _at_dim(axis - batch.k, _row_index(xp, batch, 1, index))
        on = (True, False, *(i is not None for i in at))
        named = _written(xp, batch, on, xp.zeros_like(x), xp.ones((), dtype=x.dtype), at, False)
    else:
        named = xp._index_fill_scalar(xp.zeros_like(x), index=index, dim=axis, value=1)
    value = xp.to(value, x.dtype)
    if batch.on[2]:
        value = xp.reshape(value, (*batch.sizes, *(1,) * (x.ndim - batch.k)))
    return _scalar(xp, batch, 0, input, xp.where(named == 1, value, x))  # each place counts once, however often named


@index_reduce.vmap
def _rows_reduced(xp, batch, input, index, source, dim, reduce, include_self=True):
    x, rows = _sources(xp, batch, input, source)
    axis = _dim_behind(batch, dim, x)
    if not batch.on[1]:
        found = xp.index_reduce(x, index=index, source=rows, dim=axis, reduce=reduce, include_self=include_self)
    else:
        k = batch.k
        places = _row_index(xp, batch, 1, index)
        places = xp.reshape(places, (*batch.sizes, *(1,) * (axis - k), places.shape[k], *(1,) * (rows.ndim - 1 - axis)))
        found = xp.scatter_reduce(x, index=xp.broadcast_to(places, rows.shape), src=rows, dim=axis, reduce=reduce,
                                  include_self=include_self)
    return _scalar(xp, batch, 0, input, found)


# ----- masks -------------------------------------------------------------------------------

masked_fill_scalar.batching_rule = "elementwise"


def _alike(xp, batch, *given):
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
def _filled(xp, batch, input, mask, value):
    x, where = _alike(xp, batch, (0, input), (1, mask))
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


def _where_true(xp, batch, mask, shape):
    """The places where a mask that all elements share is true, by dimension of `shape`."""
    if batch.on[1]:
        raise RuntimeError(_MASK_HIDDEN)
    if mask.dtype.name != "bool":
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    return list(xp.nonzero(xp.broadcast_to(mask, shape), as_tuple=True))


@masked_select.vmap
def _selected(xp, batch, input, mask):
    from ...shapes import broadcast_shapes

    k = batch.k
    shape = broadcast_shapes(input.shape[k:], mask.shape) if not batch.on[1] else ()
    places = _where_true(xp, batch, mask, shape)
    if not shape:
        return xp._index(xp.unsqueeze(input, -1), [None] * k + places)
    x = xp.broadcast_to(xp.reshape(input, (*batch.sizes, *(1,) * (len(shape) + k - input.ndim), *input.shape[k:])),
                        (*batch.sizes, *shape))
    return xp._index(x, [None] * k + places)


@_spread_masked.vmap
def _spread(xp, batch, input, mask, size):
    from ...shapes import broadcast_shapes

    shape = broadcast_shapes(size, mask.shape) if not batch.on[1] else ()
    places = _where_true(xp, batch, mask, shape)
    found = xp._add_at_indices(input, [None] * batch.k + places, size=(*batch.sizes, *(shape or (1,))))
    lead = len(shape) - len(size)
    return xp.reshape(xp.sum_to_size(found, (*batch.sizes, *(1,) * lead, *size)) if shape else found,
                      (*batch.sizes, *size))


def _ordinals(xp, batch, mask):
    """How many true elements come before each, of each element's mask: (hidden, elements)."""
    flat = xp.reshape(mask, (*batch.sizes, -1))
    return flat, xp.clamp(xp.cumsum(xp.to(flat, xp.arange(0).dtype), -1) - 1, 0)


@masked_scatter.vmap
def _scattered_masked(xp, batch, input, mask, source):
    x, where = _alike(xp, batch, (0, input), (1, mask))
    values = source if batch.on[2] else batch.full(source)
    count = prod(values.shape[batch.k:])
    if not count or not x.numel():
        return NotImplemented
    flat, places = _ordinals(xp, batch, where)
    if int(xp.sum(flat, -1).max()) > count:
        raise RuntimeError("Number of elements of source < number of ones in mask")
    taken = xp.gather(xp.reshape(values, (*batch.sizes, count)), batch.k, xp.clamp(places, 0, count - 1))
    return xp.where(where, xp.reshape(taken, x.shape), x)


@_masked_scatter_gradient.vmap
def _unscattered(xp, batch, input, mask, size):
    g, where = _alike(xp, batch, (0, input), (1, mask))
    count = prod(size)
    if not count or not g.numel():
        return xp.zeros((*batch.sizes, *size), dtype=g.dtype)
    flat, places = _ordinals(xp, batch, where)
    values = xp._masked_fill_scalar(xp.reshape(g, flat.shape), mask=xp.logical_not(flat), value=0)
    whole = xp.zeros((*batch.sizes, count), dtype=g.dtype)
    found = xp.scatter_add(whole, batch.k, xp.clamp(places, 0, count - 1), values)
    return xp.reshape(found, (*batch.sizes, *size))


# ----- positions in the flattened tensor ---------------------------------------------------


def _flat(xp, batch, i, x):
    """Argument `i` as one dimension, behind the hidden ones where it has them."""
    return xp.reshape(x, (*batch.sizes, prod(x.shape[batch.k:]))) if batch.on[i] else xp.reshape(x, (prod(x.shape),))


take.vmap(lambda xp, batch, input, index: _taken(xp, batch, batch.on, _flat(xp, batch, 0, input), [index]))


@put.vmap
def _put_flat(xp, batch, input, index, source, accumulate=False):
    x = input if batch.on[0] else batch.full(input)
    flat = xp.reshape(x, (*batch.sizes, prod(x.shape[batch.k:])))
    found = _written(xp, batch, (True, batch.on[2], batch.on[1]), flat, _flat(xp, batch, 2, source),
                     [_flat(xp, batch, 1, index)], accumulate)
    return xp.reshape(found, x.shape)


# ----- where something is ------------------------------------------------------------------


@nonzero.vmap
def _refused(xp, batch, input):
    raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
                       "over aten::nonzero. Please file an issue at https://github.com/pytorch/pytorch/issues if you "
                       "need this feature.")
