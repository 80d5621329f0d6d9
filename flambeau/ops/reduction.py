"""Reductions: many elements to one, along some dimensions."""

from __future__ import annotations

from .declare import linear


def restored(xp, g, dim, shape):
    """`g`, reduced without keepdim, with size 1 again in the dimensions it lost."""
    from ..shapes import wrap_dims

    axes = wrap_dims(dim, len(shape))
    return xp.reshape(g, tuple(1 if i in axes else s for i, s in enumerate(shape)))


@linear(dtype_converts=True)
def sum(xp, input, *, dim=None, keepdim=False, dtype=None):
    """The sum of the elements over the dimensions `dim` (all if None).

    >>> import flambeau as torch
    >>> torch.sum(torch.ones(2, 3), dim=0)
    tensor([2., 2., 2.])
    """
    return xp.sum(input, dim, keepdim)


sum.node = "SumBackward1"
sum.vjp(input=lambda xp, g, input_shape, dim, keepdim: xp.broadcast_to(
    g if keepdim else restored(xp, g, dim, input_shape), input_shape))


@linear(name="sum", key="_sum_all", node="SumBackward0", expose=())
def sum_all(xp, input):
    """The sum of all elements."""
    return xp.sum(input)


sum_all.vjp(input=lambda xp, g, input_shape: xp.broadcast_to(g, input_shape))


@linear(dtype_converts=True)
def mean(xp, input, *, dim=None, keepdim=False, dtype=None):
    """The mean of the elements over the dimensions `dim` (all if None).

    >>> import flambeau as torch
    >>> torch.mean(torch.tensor([[1., 2.], [3., 6.]]), dim=1)
    tensor([1.5000, 4.5000])
    """
    return xp.mean(input, dim, keepdim)


def _mean_vjp(xp, g, input_shape, dim, keepdim):
    from math import prod

    from ..shapes import wrap_dims

    count = prod(input_shape[a] for a in wrap_dims(dim, len(input_shape)))
    full = xp.broadcast_to(g if keepdim else restored(xp, g, dim, input_shape), input_shape)
    return full / count


mean.node = "MeanBackward1"
mean.vjp(input=_mean_vjp)


@linear(name="mean", key="_mean_all", node="MeanBackward0", expose=())
def mean_all(xp, input):
    """The mean of all elements."""
    return xp.mean(input)


mean_all.vjp(input=lambda xp, g, input_shape: _mean_vjp(xp, g, input_shape, None, False))
