"""Concatenation, repetition, reversal, rotation, triangles, diagonals and padding."""

from __future__ import annotations

from math import prod

from ...shapes import wrap_dim
from ..declare import composite, linear

_DATA_MOVEMENT = {"opmath": False, "moves_gradients": True, "holomorphic": False}


@linear(promote="common", aliases=("concat", "concatenate"), expose=("torch",), disjoint_out=True, **_DATA_MOVEMENT)
def cat(xp, *tensors, dim=0):
    """The tensors concatenated along dimension `dim`.

    >>> import flambeau as torch
    >>> torch.cat([torch.zeros(2), torch.ones(1)])
    tensor([0., 0., 1.])
    """
    return xp.cat(*tensors, dim=dim)


def _cat_vjp(xp, g, tensors_shapes, dim):
    if all(shape == (0,) for shape in tensors_shapes):
        return [xp.zeros((0,), dtype=g.dtype) for _ in tensors_shapes]
    axis = wrap_dim(dim, len(g.shape))
    sizes = [0 if shape == (0,) else shape[axis] for shape in tensors_shapes]
    parts = xp.split_with_sizes(g, split_sizes=tuple(sizes), dim=axis)
    return [xp.zeros((0,), dtype=g.dtype) if shape == (0,) else part
            for part, shape in zip(parts, tensors_shapes, strict=True)]


cat.joint_vjp(_cat_vjp)


@cat.vmap
def _cat_vmap(xp, batch, *tensors, dim=0):
    k = batch.k
    shapes = [x.shape[k if b else 0:] for x, b in zip(tensors, batch.on, strict=True)]
    reference = next((s for s in shapes if tuple(s) != (0,)), (0,))  # PyTorch skips empty vectors
    if not reference:
        raise RuntimeError("zero-dimensional tensor (at position 0) cannot be concatenated")
    axis = wrap_dim(dim, len(reference))
    empty = (*batch.sizes, *reference[:axis], 0, *reference[axis + 1:])
    given = [x if b else batch.expand_levels(x) for x, b in zip(tensors, batch.on, strict=True)]
    given = [xp.reshape(x, empty) if tuple(s) == (0,) else x for x, s in zip(given, shapes, strict=True)]
    return xp.cat(given, dim=axis + k)


@linear(promote="common", expose=("torch",), **_DATA_MOVEMENT)
def stack(xp, *tensors, dim=0):
    """The tensors concatenated along a new dimension `dim`.

    >>> import flambeau as torch
    >>> torch.stack([torch.zeros(2), torch.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    return xp.stack(*tensors, dim=dim)


stack.joint_vjp(lambda xp, g, dim: xp.unbind(g, dim=dim))


@linear(name="block_diag", key="_block_diag", promote="common", expose=(), **_DATA_MOVEMENT)
def block_diag(xp, *tensors):
    """A block-diagonal matrix."""
    return xp.block_diag(*tensors)


def _block_diag_vjp(xp, g, tensors_shapes):
    result, row, column = [], 0, 0
    for shape in tensors_shapes:
        height, width = (1,) * (2 - len(shape)) + tuple(shape)
        part = xp._basic_index(g, key=(slice(row, row + height), slice(column, column + width)))
        result.append(xp.reshape(part, shape))
        row, column = row + height, column + width
    return result


block_diag.joint_vjp(_block_diag_vjp)


@block_diag.vmap
def _block_diag_vmap(xp, batch, *tensors):
    k = batch.k
    full = [x if b else batch.expand_levels(x) for x, b in zip(tensors, batch.on, strict=True)]
    for i, x in enumerate(full):
        if x.ndim > k + 2:
            raise RuntimeError("torch.block_diag: Input tensors must have 2 or fewer dimensions. Input "
                               f"{i} has {x.ndim - k} dimensions")
    full = [xp.reshape(x, (*batch.sizes, *(1,) * (k + 2 - x.ndim), *x.shape[k:])) for x in full]
    width, before, rows = sum(x.shape[-1] for x in full), 0, []
    for x in full:
        rows.append(xp.constant_pad_nd(x, (before, width - before - x.shape[-1])))
        before += x.shape[-1]
    return xp.cat(rows, dim=k)


@linear(spread="repeats", expose=("method",), **_DATA_MOVEMENT)
def repeat(xp, input, *, repeats):
    """The input repeated `repeats[i]` times along each dimension.

    >>> import flambeau as torch
    >>> torch.tensor([1, 2]).repeat(2, 2)
    tensor([[1, 2, 1, 2],
            [1, 2, 1, 2]])
    """
    return xp.repeat(input, repeats)


def _repeat_vjp(xp, g, input_shape, repeats):
    if 0 in repeats:
        return xp.zeros(input_shape, dtype=g.dtype)
    lead = len(repeats) - len(input_shape)
    full = (1,) * lead + tuple(input_shape)
    pairs, axes = [], []
    for i, (r, s) in enumerate(zip(repeats, full, strict=True)):
        axes.append(2 * i)
        pairs += [r, s]
    summed = xp.sum(xp.reshape(g, tuple(pairs)), tuple(axes)) if axes else g
    return xp.reshape(summed, input_shape)


repeat.moves_gradients = False  # they add the gradients of all copies
repeat.vjp(input=_repeat_vjp)


@repeat.vmap
def _repeat_vmap(xp, batch, input, repeats):
    k = batch.k
    lead = len(repeats) - (input.ndim - k)
    if lead > 0:
        input = xp.reshape(input, (*batch.sizes, *(1,) * lead, *input.shape[k:]))
    elif lead < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    return input.repeat((1,) * k + tuple(repeats))


@linear(spread="dims", **_DATA_MOVEMENT)
def flip(xp, input, *, dims):
    """The elements in reverse order along `dims`.

    >>> import flambeau as torch
    >>> torch.flip(torch.arange(3), (0,))
    tensor([2, 1, 0])
    """
    return xp.flip(input, dims)


flip.vjp(input=lambda xp, g, dims: xp.flip(g, dims=dims))


@linear(saved="dims[] shifts[]", **_DATA_MOVEMENT)
def roll(xp, input, *, shifts, dims=()):
    """The elements shifted cyclically along `dims`.

    Args:
        shifts: the number of positions, per dimension.
        dims: the dimensions; the flattened input is shifted if empty or None.

    >>> import flambeau as torch
    >>> torch.roll(torch.arange(4), 1)
    tensor([3, 0, 1, 2])
    """
    return xp.roll(input, shifts, dims)


roll.vjp(input=lambda xp, g, shifts, dims: xp.roll(
    g, shifts=-shifts if isinstance(shifts, int) else tuple(-s for s in shifts), dims=dims))


@roll.vmap
def _roll_vmap(xp, batch, input, shifts, dims=()):
    k, n = batch.k, input.ndim - batch.k
    dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
    if dims:
        if not n:
            wrap_dim(wrap_dim(dims[0], 1) + 1, 1)  # PyTorch counts the batch dimension, too, and raises
        return xp.roll(input, shifts, tuple(wrap_dim(d, n) + k for d in dims))
    flat = xp.reshape(input, (*batch.sizes, prod(input.shape[k:])))
    return xp.reshape(xp.roll(flat, shifts, (k,)), input.shape)


@linear(**_DATA_MOVEMENT)
def rot90(xp, input, *, k=1, dims=(0, 1)):
    """The input rotated by 90° `k` times in the plane of `dims`, from the first towards the second.

    >>> import flambeau as torch
    >>> torch.rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    return xp.rot90(input, k, dims)


rot90.vjp(input=lambda xp, g, k, dims: xp.rot90(g, k=-k, dims=dims))


@linear(expose=("torch", "method", "inplace"), exact_out=True, **_DATA_MOVEMENT)
def tril(xp, input, *, diagonal=0):
    """The elements on and below a diagonal, zeros above it.

    >>> import flambeau as torch
    >>> torch.tril(torch.ones(2, 2))
    tensor([[1., 0.],
            [1., 1.]])
    """
    return xp.tril(input, diagonal)


tril.vjp(input=lambda xp, g, diagonal: xp.tril(g, diagonal=diagonal))


@linear(expose=("torch", "method", "inplace"), exact_out=True, **_DATA_MOVEMENT)
def triu(xp, input, *, diagonal=0):
    """The elements on and above a diagonal, zeros below it.

    >>> import flambeau as torch
    >>> torch.triu(torch.ones(2, 2))
    tensor([[1., 1.],
            [0., 1.]])
    """
    return xp.triu(input, diagonal)


triu.vjp(input=lambda xp, g, diagonal: xp.triu(g, diagonal=diagonal))


def _triangle_vmap(of):
    def rule(xp, batch, input, diagonal=0):
        if input.ndim < batch.k + 2:
            raise RuntimeError(f"{of.name}: input tensor must have at least 2 dimensions")
        return getattr(xp, of.name)(input, diagonal)

    of.vmap(rule)


_triangle_vmap(tril)
_triangle_vmap(triu)


@linear(exact_out=True, **_DATA_MOVEMENT)
def diag_embed(xp, input, *, offset=0, dim1=-2, dim2=-1):
    """The last dimension as the diagonal of two new dimensions.

    >>> import flambeau as torch
    >>> torch.diag_embed(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    n = len(input.shape) + 1
    first, second = wrap_dim(dim1, n), wrap_dim(dim2, n)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    length = input.shape[-1] + abs(offset)
    size = list(input.shape[:-1])
    size.insert(min(first, second), length)
    size.insert(max(first, second), length)
    return xp.embed_diagonal(input, tuple(size), offset, first, second)


diag_embed.vjp(input=lambda xp, g, offset, dim1, dim2: xp.diagonal(g, offset=offset, dim1=dim1, dim2=dim2))


@diag_embed.vmap
def _diag_embed_vmap(xp, batch, input, offset=0, dim1=-2, dim2=-1):
    k, n = batch.k, input.ndim - batch.k + 1
    if n == 1:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got -2)")
    return xp.diag_embed(input, offset=offset, dim1=wrap_dim(dim1, n) + k, dim2=wrap_dim(dim2, n) + k)


@linear(name="constant_pad_nd", expose=("torch",), linear_in=(), **_DATA_MOVEMENT)
def constant_pad_nd(xp, input, *, pad, value=0):
    """The input padded with `value`.

    Args:
        pad: (before, after) per dimension, from the last one on; negative widths crop.

    >>> import flambeau as torch
    >>> torch.constant_pad_nd(torch.ones(2), (1, 2))
    tensor([0., 1., 1., 0., 0.])
    """
    return xp.constant_pad(input, pad, value)


@constant_pad_nd.vmap
def _pad_vmap(xp, batch, input, pad, value=0):
    n = input.ndim - batch.k
    if len(pad) > 2 * n:
        raise RuntimeError("Length of pad should be no more than twice the number of dimensions of the input. Pad "
                           f"length is {len(pad)} while the input has {n} dimensions.")
    return xp.constant_pad_nd(input, pad, value)


constant_pad_nd.vjp(input=lambda xp, g, pad: xp.constant_pad_nd(g, pad=tuple(-p for p in pad)))
constant_pad_nd.jvp(lambda xp, t_input, pad: xp.constant_pad_nd(t_input, pad=pad))


def _declare_padding(name: str, dims: int, mode: str) -> None:
    """Declare reflection or replication padding, and its gradient as an operator."""
    def forward(xp, input, *, padding):
        return xp.border_pad(input, padding, mode)

    forward.__doc__ = f"Padding of the last {dims} dimensions, mode {mode!r}."
    forward.__name__ = f"_{name}_pad{dims}d"
    node = f"{name.capitalize()}Pad{dims}DBackward0"
    pad = linear(forward, key=f"_{name}_pad{dims}d", name=f"{name}_pad{dims}d", node=node, expose=(), opmath=False,
                 batching_rule="trailing")

    def backward(xp, input, like, *, padding):
        return xp.border_pad_backward(input, tuple(like.shape), padding, mode)

    backward.__doc__ = f"The vjp of `{name}_pad{dims}d`."
    key = f"_{name}_pad{dims}d_backward"
    back = linear("input", key=key, name=key, node=node.replace("Backward0", "BackwardBackward0"), expose=(),
                  batching_rule="trailing")(backward)
    pad.vjp(input=lambda xp, g, input, padding: getattr(xp, key)(g, input, padding=padding))
    back.vjp(input=lambda xp, g, padding: getattr(xp, f"_{name}_pad{dims}d")(g, padding=padding),
             like=lambda xp, like: xp.zeros_like(like))


for _dims in (1, 2, 3):
    _declare_padding("reflection", _dims, "reflect")
    _declare_padding("replication", _dims, "edge")


@composite
def fliplr(xp, input):
    """The columns in reverse order.

    >>> import flambeau as torch
    >>> torch.fliplr(torch.tensor([[1, 2]]))
    tensor([[2, 1]])
    """
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return xp.flip(input, (1,))


@composite
def flipud(xp, input):
    """The rows in reverse order.

    >>> import flambeau as torch
    >>> torch.flipud(torch.arange(3))
    tensor([2, 1, 0])
    """
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return xp.flip(input, (0,))


@composite(expose=("torch",))
def hstack(xp, *tensors):
    """The tensors concatenated along dimension 1; vectors along dimension 0.

    >>> import flambeau as torch
    >>> torch.hstack([torch.zeros(1), torch.ones(1)])
    tensor([0., 1.])
    """
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    full = [xp.atleast_1d(x) for x in tensors]
    return xp.cat(full, 0 if full[0].ndim == 1 else 1)


@composite(aliases=("row_stack",), expose=("torch",))
def vstack(xp, *tensors):
    """The tensors concatenated along dimension 0, as matrices at least.

    >>> import flambeau as torch
    >>> torch.vstack([torch.zeros(2), torch.ones(2)])
    tensor([[0., 0.],
            [1., 1.]])
    """
    if not tensors:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return xp.cat([xp.atleast_2d(x) for x in tensors], 0)


@composite(expose=("torch",))
def dstack(xp, *tensors):
    """The tensors concatenated along dimension 2, with three dimensions at least.

    >>> import flambeau as torch
    >>> torch.dstack([torch.zeros(1), torch.ones(1)])
    tensor([[[0., 1.]]])
    """
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return xp.cat([xp.atleast_3d(x) for x in tensors], 2)


@composite(expose=("torch",))
def column_stack(xp, *tensors):
    """The tensors concatenated along dimension 1, vectors as columns.

    >>> import flambeau as torch
    >>> torch.column_stack([torch.zeros(2), torch.ones(2)])
    tensor([[0., 1.],
            [0., 1.]])
    """
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return xp.cat([x.reshape(x.numel(), 1) if x.ndim <= 1 else x for x in tensors], 1)
