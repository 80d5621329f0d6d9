"""Masks and flat positions: elements selected, filled and written where a mask is true, or at flat positions.

A mask or an index is an input without a derivative formula: it has no gradient and its node has no edge for it.
"""

from __future__ import annotations

from ...shapes import broadcast_shapes
from ..declare import linear, op
from .indexing import DATA_MOVEMENT, INDEX_OPTIONS

_MASK = {**DATA_MOVEMENT, "nondifferentiable_inputs": ("mask",)}

# ----- masks -------------------------------------------------------------------------------


@op(name="masked_fill", key="_masked_fill_scalar", expose=(), saved="mask", **_MASK)
def masked_fill_scalar(xp, input, mask, *, value):
    """The input with a scalar where the mask is true."""
    return xp.masked_fill(input, mask, value)


masked_fill_scalar.vjp(input=lambda xp, g, mask, input_shape: xp.sum_to_size(
    xp._masked_fill_scalar(g, mask=mask, value=0), input_shape))
masked_fill_scalar.jvp(lambda xp, mask, t_input: xp._masked_fill_scalar(t_input, mask=mask, value=0))


@op(scalar_inputs=("value",), node="MaskedFillBackward1", expose=("torch", "method", "inplace"), saved="mask", **_MASK)
def masked_fill(xp, input, mask, value):
    """The input with `value`, a scalar or a 0-d tensor, where the mask is true.

    >>> import flambeau as torch
    >>> torch.masked_fill(torch.zeros(2), torch.tensor([True, False]), 1.)
    tensor([1., 0.])
    """
    return xp.masked_fill(input, mask, value)


masked_fill.scalar_overload("value", masked_fill_scalar)
masked_fill.vjp(
    input=lambda xp, g, mask, input_shape: xp.sum_to_size(xp._masked_fill_scalar(g, mask=mask, value=0), input_shape),
    value=lambda xp, g, mask: xp.sum(xp.where(mask, g, xp.zeros_like(g))))
masked_fill.jvp(lambda xp, input, mask, value, t_input, t_value: xp.masked_fill(
    xp.zeros_like(input) if t_input is None else t_input, mask,
    xp.zeros_like(value) if t_value is None else t_value))


@linear("input", disjoint_out=True, exact_out="masked_select(): self and result must have the same scalar type",
        saved="mask self", **_MASK)
def masked_select(xp, input, mask):
    """The elements where the mask is true, as a vector.

    >>> import flambeau as torch
    >>> torch.masked_select(torch.tensor([1, 2]), torch.tensor([False, True]))
    tensor([2])
    """
    return xp.masked_select(input, mask)


# inputs are saved as PyTorch does, which compares their versions
masked_select.vjp(input=lambda xp, g, input, mask, input_shape: xp._masked_select_backward(
    g, mask=mask, size=input_shape))


@linear("input", name="_masked_select_backward", expose=(), **_MASK)
def _masked_select_backward(xp, input, mask, *, size):
    """The vjp of `masked_select`: elements written where the mask is true, zeros elsewhere, summed to `size`."""
    shape = broadcast_shapes(size, mask.shape)
    return xp.sum_to_size(xp.masked_scatter(xp.zeros(shape, dtype=input.dtype), mask, input), size)


_masked_select_backward.vjp(input=lambda xp, g, mask: xp.masked_select(g, mask))


def _check_masked_scatter(input, mask, source):
    broadcast_shapes(mask.shape, input.shape)
    if input.dtype is not source.dtype:
        raise RuntimeError("masked_scatter: expected self and source to have same dtypes but got"
                           f"{input.dtype.scalar_name} and {source.dtype.scalar_name}")


@op(expose=("torch", "method", "inplace"), saved="mask source_sym_sizes", check=_check_masked_scatter, **_MASK)
def masked_scatter(xp, input, mask, source):
    """The input with the first elements of `source`, in order, where the mask is true.

    >>> import flambeau as torch
    >>> torch.masked_scatter(torch.zeros(3), torch.tensor([True, False, True]), torch.tensor([5., 6.]))
    tensor([5., 0., 6.])
    """
    return xp.masked_scatter(input, mask, source)


masked_scatter.vjp(
    input=lambda xp, g, mask, input_shape: xp.sum_to_size(xp._masked_fill_scalar(g, mask=mask, value=0), input_shape),
    source=lambda xp, g, mask, source_shape: xp._masked_scatter_backward(g, mask=mask, size=source_shape))
masked_scatter.jvp(lambda xp, input, mask, source, t_input, t_source: xp.masked_scatter(
    xp.zeros_like(input) if t_input is None else t_input, mask,
    xp.zeros_like(source) if t_source is None else t_source))


@linear("input", name="_masked_scatter_backward", expose=(), **_MASK)
def _masked_scatter_backward(xp, input, mask, *, size):
    """The vjp of `masked_scatter` by its source: the masked elements first, then zeros, in shape `size`."""
    return xp.masked_scatter_gradient(input, mask, size)


_masked_scatter_backward.vjp(input=lambda xp, g, mask, input_shape: xp.masked_scatter(
    xp.zeros(input_shape, dtype=g.dtype), mask, g))


# ----- positions in the flattened tensor ---------------------------------------------------


@linear("input", disjoint_out=True, exact_out="take(): self and out expected to have the same dtype, but got "
        "self.dtype = {result} and out.dtype = {out}", saved="index self", **INDEX_OPTIONS)
def take(xp, input, index):
    """The elements at positions in the flattened input.

    >>> import flambeau as torch
    >>> torch.take(torch.tensor([[4, 5], [6, 7]]), torch.tensor([0, 3]))
    tensor([4, 7])
    """
    return xp.take(input, index)


take.vjp(input=lambda xp, g, input, index, input_shape:
         xp.put(xp.zeros(input_shape, dtype=g.dtype), index, g, accumulate=True))


@op(expose=("torch", "method", "inplace"), **INDEX_OPTIONS)
def put(xp, input, index, source, *, accumulate=False):
    """The input with `source` at positions in the flattened input.

    Args:
        accumulate: whether to add the source instead of replacing elements.

    >>> import flambeau as torch
    >>> torch.put(torch.zeros(3), torch.tensor([1]), torch.ones(1))
    tensor([0., 1., 0.])
    """
    return xp.put(input, index, source, accumulate)


def _put_vjp(xp, g, index, source, source_shape, accumulate, needs):  # the source is saved for its version
    g_input = g_source = None
    if needs[0]:
        g_input = g if accumulate else xp.put(g, index, xp.zeros(tuple(index.shape), dtype=g.dtype))
    if needs[2]:
        g_source = xp.reshape(xp.take(g, index), source_shape)
    return g_input, None, g_source


put.joint_vjp(_put_vjp)
put.jvp(lambda xp, input, index, source, t_input, t_source, accumulate: xp.put(
    xp.zeros_like(input) if t_input is None else t_input, index,
    xp.zeros_like(source) if t_source is None else t_source, accumulate=accumulate))


# ----- nonzero ------------------------------------------------------------------


@op(name="nonzero", key="_nonzero", expose=(), differentiable=False, opmath=False)
def nonzero(xp, input):
    """The indices of the nonzero elements, one row each."""
    return xp.nonzero(input)


@op(differentiable=False, opmath=False)
def argwhere(xp, input):
    """The indices of the nonzero elements, one row each.

    >>> import flambeau as torch
    >>> torch.argwhere(torch.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    return xp.nonzero(input)
