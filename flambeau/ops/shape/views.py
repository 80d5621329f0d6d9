"""Views: operators whose result shares memory with the input under another shape.

The vjp of a view of a part of its input embeds the gradient in zeros (`_embed`); the vjp of `_embed` is the part
(`_basic_index`).
"""

from __future__ import annotations

from typing import Any

from ...shapes import wrap_dim
from ..declare import REGISTRY, Op, composite, linear, view

VIEW_OPTIONS: dict[str, Any] = {"holomorphic": False, "moves_gradients": True}  # data movement: nothing to conjugate


# ----- parts of a tensor ------------------------------------------------------------------


@linear(name="_embed", expose=(), opmath=False, **VIEW_OPTIONS)
def _embed(xp, input, *, size, key):
    """Zeros of shape `size` with the input at the basic index `key`."""
    return xp.embed(input, size, key)


_embed.vmap(lambda xp, batch, input, size, key: xp._embed(
    input, size=(*batch.sizes, *size), key=(slice(None),) * batch.k + tuple(key)))
_embed.vjp(input=lambda xp, g, key: xp._basic_index(g, key=key))


@linear(name="_basic_index", expose=(), opmath=False, **VIEW_OPTIONS)
def _basic_index(xp, input, *, key):
    """The part of the input at the basic index `key`."""
    return input[key]


_basic_index.vmap(lambda xp, batch, input, key: xp._basic_index(input, key=(slice(None),) * batch.k + tuple(key)))
_basic_index.vjp(input=lambda xp, g, input_shape, key: xp._embed(g, size=input_shape, key=key))


@linear(name="_embed_diagonal", expose=(), opmath=False, **VIEW_OPTIONS)
def _embed_diagonal(xp, input, *, size, offset, dim1, dim2):
    """Zeros of shape `size` with the input on a diagonal, the transpose of `diagonal`."""
    return xp.embed_diagonal(input, size, offset, dim1, dim2)


def _shift_dim(dim, n, k):
    """Return the position of dimension `dim` of `n` behind `k` batch dimensions."""
    return wrap_dim(dim, n) + k


_embed_diagonal.vmap(lambda xp, batch, input, size, offset, dim1, dim2: xp._embed_diagonal(
    input, size=(*batch.sizes, *size), offset=offset, dim1=_shift_dim(dim1, len(size), batch.k),
    dim2=_shift_dim(dim2, len(size), batch.k)))
_embed_diagonal.vjp(input=lambda xp, g, offset, dim1, dim2: xp.diagonal(g, offset=offset, dim1=dim1, dim2=dim2))


@linear(name="_embed_windows", node="UnfoldBackwardBackward0", expose=(), opmath=False, holomorphic=False)
def _embed_windows(xp, input, *, size, dimension, window, step):
    """The transpose of `unfold`: windows accumulated at their positions."""
    return xp.embed_windows(input, size, dimension, window, step)


_embed_windows.vmap(lambda xp, batch, input, size, dimension, window, step: xp._embed_windows(
    input, size=(*batch.sizes, *size), dimension=_shift_dim(dimension, len(size), batch.k), window=window, step=step)
    if size else xp.sum(input, batch.k))
_embed_windows.vjp(input=lambda xp, g, dimension, window, step: xp.unfold(
    g, dimension=dimension, size=window, step=step))


def index_at(shape, dim, key):
    """Return the basic index that is `key` in dimension `dim` and `slice(None)` in those before it."""
    return (slice(None),) * wrap_dim(dim, len(shape)) + (key,)


def slice_bounds(shape, dim, start, end, step):
    """Return the slice of dimension `dim` of a shape, with bounds clamped as in PyTorch."""
    length = shape[wrap_dim(dim, len(shape))]
    begin, stop, _ = slice(start, end).indices(length)
    return slice(begin, max(begin, stop), step)


# ----- views -----------------------------------------------------------------------------


@view(name="view", expose=("method",), spread="size", batching_rule="size", **VIEW_OPTIONS)
def view_(xp, input, *, size):
    """The same memory under another shape.

    Args:
        size: the shape; one size may be -1, which is inferred.

    Raises:
        RuntimeError: the strides do not allow it.

    >>> import flambeau as torch
    >>> torch.arange(6).view(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    return xp.view(input, size)


view_.vjp(input=lambda xp, g, input_shape: xp.reshape(g, input_shape))


@view(name="view", key="_view_dtype", node="ViewBackward1", expose=(), differentiable=False)
def view_dtype(xp, input, *, dtype):
    """The same bytes as elements of another dtype."""
    return xp.view_dtype(input, dtype)


def _view_dtype_vmap(xp, batch, input, dtype):
    if input.ndim == batch.k and dtype.itemsize != input.dtype.itemsize:
        raise RuntimeError(f"self.dim() cannot be 0 to view {input.dtype.scalar_name} as {dtype.scalar_name} "
                           "(different element sizes)")
    return xp._view_dtype(input, dtype=dtype)


view_dtype.vmap(_view_dtype_vmap)


@view(key="_alias", name="alias", expose=(), batching_rule="trailing", **VIEW_OPTIONS)
def alias(xp, input):
    """A view of the entire input."""
    return input[...]


alias.vjp(input=lambda g: g)


@linear(name="_unsafe_view", node="UnsafeViewBackward0", expose=(), opmath=False, batching_rule="size", **VIEW_OPTIONS)
def _unsafe_view(xp, input, *, size):
    """`view` of a temporary, not tracked as a view."""
    return xp.view(input, size)


_unsafe_view.vjp(input=lambda xp, g, input_shape: xp.reshape(g, input_shape))


@view(expose=("torch", "method"), **VIEW_OPTIONS)
def t(xp, input):
    """The transpose of a matrix; a vector or scalar is returned unchanged.

    >>> import flambeau as torch
    >>> torch.t(torch.ones(2, 3)).shape
    flambeau.Size([3, 2])
    """
    return xp.t(input)


def _t_vmap(xp, batch, input):
    n = input.ndim - batch.k
    if n > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {n}D")
    return xp.transpose(input, batch.k, batch.k + 1) if n == 2 else xp._alias(input)


t.vmap(_t_vmap)
t.vjp(input=lambda xp, g: xp.t(g))


@view(aliases=("swapaxes", "swapdims"), **VIEW_OPTIONS)
def transpose(xp, input, *, dim0, dim1):
    """The input with dimensions `dim0` and `dim1` swapped.

    >>> import flambeau as torch
    >>> torch.transpose(torch.ones(2, 3), 0, 1).shape
    flambeau.Size([3, 2])
    """
    return xp.transpose(input, dim0, dim1)


transpose.vjp(input=lambda xp, g, dim0, dim1: xp.transpose(g, dim0, dim1))


@view(spread="dims", **VIEW_OPTIONS)
def permute(xp, input, *, dims):
    """The input with its dimensions permuted: dimension i of the result is `dims[i]` of the input.

    >>> import flambeau as torch
    >>> torch.permute(torch.ones(2, 3, 5), (2, 0, 1)).shape
    flambeau.Size([5, 2, 3])
    """
    return xp.permute(input, dims)


def _inverse(dims):
    order = [0] * len(dims)
    for i, d in enumerate(dims):
        order[d] = i
    return tuple(order)


permute.vmap(lambda xp, batch, input, dims: xp.permute(
    input, (*range(batch.k), *(_shift_dim(d, input.ndim - batch.k, batch.k) for d in dims))))
permute.vjp(input=lambda xp, g, dims: xp.permute(g, dims=_inverse(dims)))


@view(spread="size", expose=("method",), batching_rule="size", **VIEW_OPTIONS)
def expand(xp, input, *, size, implicit=False):
    """Dimensions of size 1 expanded without a copy; -1 keeps a dimension's size.

    >>> import flambeau as torch
    >>> torch.tensor([[1], [2]]).expand(-1, 3)
    tensor([[1, 1, 1],
            [2, 2, 2]])
    """
    return xp.expand(input, size)


expand.moves_gradients = False
expand.vjp(input=lambda xp, g, input_shape: xp.sum_to_size(g, input_shape))


@view(expose=("torch", "method"), spread="size", **VIEW_OPTIONS)
def broadcast_to(xp, input, *, size):
    """The input broadcast to shape `size` without a copy.

    >>> import flambeau as torch
    >>> torch.broadcast_to(torch.ones(1), (2, 3)).shape
    flambeau.Size([2, 3])
    """
    return xp.expand(input, size)


broadcast_to.batching_rule = expand.batching_rule
broadcast_to.node = "ExpandBackward0"
broadcast_to.moves_gradients = False
broadcast_to.vjp(input=lambda xp, g, input_shape: xp.sum_to_size(g, input_shape))


@composite(name="_squeeze_to", expose=())
def _squeeze_to(xp, input, *, size):
    """The input, which has one dimension of size 1 more, in the shape `size`: the gradient of `unsqueeze`."""
    shape = tuple(input.shape)
    return xp.squeeze(input, next(i for i, n in enumerate(shape) if n == 1 and shape[:i] + shape[i + 1:] == size))


@composite(name="_unsqueeze_to", expose=())
def _unsqueeze_to(xp, input, *, size):
    """The input in the shape `size`, which has more dimensions of size 1: the gradient of `squeeze`."""
    for i, n in enumerate(size):
        if i >= len(input.shape) or input.shape[i] != n:
            input = xp.unsqueeze(input, i)
    return input


@view(name="squeeze", key="_squeeze_all", node="SqueezeBackward0", expose=(), **VIEW_OPTIONS)
def squeeze_all(xp, input):
    """The input without its dimensions of size 1."""
    return xp.squeeze(input)


@view(name="squeeze", key="_squeeze_dim", node="SqueezeBackward1", expose=(),
      saved="dim self_sym_sizes", **VIEW_OPTIONS)
def squeeze_dim(xp, input, *, dim):
    """The input without dimension `dim` if its size is 1."""
    return xp.squeeze(input, dim)


@view(name="squeeze", key="_squeeze_dims", node="SqueezeBackward2", expose=(),
      saved="dim[] self_sym_sizes", **VIEW_OPTIONS)
def squeeze_dims(xp, input, *, dim):
    """The input without the dimensions `dim` whose sizes are 1."""
    return xp.squeeze(input, dim)


squeeze_all.vmap(lambda xp, batch, input: xp.squeeze(input, tuple(range(batch.k, input.ndim))))
for _op in (squeeze_all, squeeze_dim, squeeze_dims):
    _op.vjp(input=lambda xp, g, input_shape: xp._unsqueeze_to(g, size=input_shape))


@view(saved="dim", **VIEW_OPTIONS)
def unsqueeze(xp, input, *, dim):
    """The input with a new dimension of size 1 at `dim`.

    >>> import flambeau as torch
    >>> torch.unsqueeze(torch.ones(2), 1).shape
    flambeau.Size([2, 1])
    """
    return xp.unsqueeze(input, dim)


unsqueeze.vjp(input=lambda xp, g, input_shape: xp._squeeze_to(g, size=input_shape))


@view(argument_order=("input", "dim", "index"), **VIEW_OPTIONS)
def select(xp, input, *, dim, index):
    """The elements at `index` of dimension `dim`, without that dimension.

    >>> import flambeau as torch
    >>> torch.select(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """
    return xp.select(input, dim, index)


select.vjp(input=lambda xp, g, input_shape, dim, index: xp._embed(
    g, size=input_shape, key=index_at(input_shape, dim, index)))


@view(name="slice", expose=(), **VIEW_OPTIONS)
def slice_(xp, input, *, dim=0, start=None, end=None, step=1):
    """The slice start:end:step of dimension `dim`."""
    return xp.slice(input, dim, start, end, step)


slice_.vjp(input=lambda xp, g, input_shape, dim, start, end, step: xp._embed(
    g, size=input_shape, key=index_at(input_shape, dim, slice_bounds(input_shape, dim, start, end, step))))


@view(**VIEW_OPTIONS)
def diagonal(xp, input, *, offset=0, dim1=0, dim2=1):
    """The diagonal of two dimensions, as a new last dimension.

    Args:
        offset: which diagonal; above the main one if positive, below if negative.

    >>> import flambeau as torch
    >>> torch.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return xp.diagonal(input, offset, dim1, dim2)


diagonal.vjp(input=lambda xp, g, input_shape, offset, dim1, dim2: xp._embed_diagonal(
    g, size=input_shape, offset=offset, dim1=dim1, dim2=dim2))


@view(name="unfold", expose=("method",), **VIEW_OPTIONS)
def unfold(xp, input, *, dimension, size, step):
    """The windows of `size` elements, `step` apart, of a dimension, as a new last dimension.

    >>> import flambeau as torch
    >>> torch.arange(4).unfold(0, 2, 1)
    tensor([[0, 1],
            [1, 2],
            [2, 3]])
    """
    return xp.unfold(input, dimension, size, step)


def _unfold_vmap(xp, batch, input, dimension, size, step):
    k = batch.k
    if input.ndim > k:
        return xp.unfold(input, _shift_dim(dimension, input.ndim - k, k), size, step)
    return xp.select(xp.unfold(xp.unsqueeze(input, k), k, size, step), k, 0)


unfold.moves_gradients = False  # they add where windows overlap
unfold.vmap(_unfold_vmap)
unfold.vjp(input=lambda xp, g, input_shape, dimension, size, step: xp._embed_windows(
    g, size=input_shape, dimension=dimension, window=size, step=step))


@view(name="as_strided", key="_as_strided", expose=(), batching_rule="trailing",
      saved="size storage_offset stride", **VIEW_OPTIONS)
def as_strided(xp, input, *, size, stride, storage_offset, geometry):
    """Any shape and strides over the input's storage; `geometry` describes them relative to the input."""
    return xp.strided_view(input, size, stride, storage_offset)


as_strided.moves_gradients = False
as_strided.vjp(input=lambda xp, g, geometry: xp._embed_strided(g, geometry=geometry) if 0 not in geometry.shape else
               xp.zeros(geometry.base_shape, dtype=g.dtype))


# ----- lists of views ------------------------------------------------------------


@view(tensor_list=True, multi_output_view=True, **VIEW_OPTIONS)
def unbind(xp, input, *, dim=0):
    """The slices of dimension `dim`, without that dimension.

    >>> import flambeau as torch
    >>> torch.unbind(torch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """
    return xp.unbind(input, dim)


unbind.vjp(input=lambda xp, gs, dim: xp.stack(gs, dim=dim))


@view(name="split", key="_split", tensor_list=True, multi_output_view=True, expose=(),
      saved="dim self_sym_sizes split_size", **VIEW_OPTIONS)
def split(xp, input, *, split_size, dim=0):
    """Chunks of `split_size` along `dim`; the last one is smaller where it does not divide."""
    return xp.split(input, split_size, dim)


@view(tensor_list=True, multi_output_view=True, saved="dim self_sym_sizes split_sizes", **VIEW_OPTIONS)
def split_with_sizes(xp, input, *, split_sizes, dim=0):
    """Chunks of the given sizes along `dim`.

    >>> import flambeau as torch
    >>> torch.split_with_sizes(torch.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return xp.split_with_sizes(input, split_sizes, dim)


for _op in (split, split_with_sizes):
    _op.vjp(input=lambda xp, gs, input_shape, dim: xp.reshape(xp.cat(gs, dim=dim), input_shape))


@linear(name="unsafe_split", tensor_list=True, expose=("torch", "method"), opmath=False,
        saved="dim self_sym_sizes split_size", **VIEW_OPTIONS)
def unsafe_split(xp, input, *, split_size, dim=0):
    """`split`, with results that autograd does not track as views.

    >>> import flambeau as torch
    >>> torch.unsafe_split(torch.arange(3), 2)
    (tensor([0, 1]), tensor([2]))
    """
    return xp.split(input, split_size, dim)


@linear(name="unsafe_split_with_sizes", tensor_list=True, expose=("torch", "method"), opmath=False, **VIEW_OPTIONS)
def unsafe_split_with_sizes(xp, input, *, split_sizes, dim=0):
    """`split_with_sizes`, with results that autograd does not track as views.

    >>> import flambeau as torch
    >>> torch.unsafe_split_with_sizes(torch.arange(3), [1, 2])
    (tensor([0]), tensor([1, 2]))
    """
    return xp.split_with_sizes(input, split_sizes, dim)


for _op in (unsafe_split, unsafe_split_with_sizes):
    _op.vjp(input=lambda xp, gs, input_shape, dim: xp.reshape(xp.cat(gs, dim=dim), input_shape))


# ----- composites ------------------------------------------------------------------------------


@composite(expose=("method",))
def view_as(input, other):
    """`view` with the shape of `other`.

    >>> import flambeau as torch
    >>> torch.arange(4).view_as(torch.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return input.view(other.shape)


@composite(expose=("method",))
def expand_as(input, other):
    """`expand` to the shape of `other`.

    >>> import flambeau as torch
    >>> torch.ones(1).expand_as(torch.ones(3))
    tensor([1., 1., 1.])
    """
    return input.expand(other.shape)


@composite(expose=("method",))
def reshape_as(input, other):
    """`reshape` to the shape of `other`.

    >>> import flambeau as torch
    >>> torch.arange(4).reshape_as(torch.ones(2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return input.reshape(other.shape)


# ----- the same views under other nodes ------------------------------------------------------


def _declare_variant(of: Op, key: str, node: str) -> None:
    """Declare a variant of a view (in place, by `reshape`): the same formulas under another node."""
    REGISTRY[key] = of.derived(node=node, expose=(), aliases=(), key=key)


for _op, _name, _node in ((view_, "_reshape_alias", "ReshapeAliasBackward0"),
                          (t, "_t_", "TBackward1"),
                          (transpose, "_transpose_", "TransposeBackward1"),
                          (squeeze_all, "_squeeze_all_", "SqueezeBackward3"),
                          (squeeze_dim, "_squeeze_dim_", "SqueezeBackward4"),
                          (squeeze_dims, "_squeeze_dims_", "SqueezeBackward5"),
                          (unsqueeze, "_unsqueeze_", "UnsqueezeBackward1"),
                          (as_strided, "_as_strided_", "AsStridedBackward1")):
    _declare_variant(_op, _name, _node)
