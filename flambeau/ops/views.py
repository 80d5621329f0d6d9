"""Views: the same memory under another shape."""

from __future__ import annotations

from .declare import composite, linear, view


@view(name="view", node="ViewBackward0", expose=("method",), spread="size")
def view_(xp, input, *, size):
    """The same elements under another shape, in the same memory."""
    return xp.view(input, size)


view_.vjp(input=lambda xp, g, input_shape: xp.reshape(g, input_shape))


@linear(name="_unsafe_view", node="UnsafeViewBackward0", expose=())
def _unsafe_view(xp, input, *, size):
    """`view` of a fresh copy, which nobody else can see: not tracked as a view."""
    return xp.view(input, size)


_unsafe_view.vjp(input=lambda xp, g, input_shape: xp.reshape(g, input_shape))


@linear(expose=("torch", "method"))
def clone(xp, input, *, memory_format=None):
    """A copy, through which gradients flow.

    >>> import flambeau as torch
    >>> torch.clone(torch.ones(2))
    tensor([1., 1.])
    """
    return xp.clone(input, memory_format)


clone.vjp(input=lambda g: g)


@view(expose=("torch", "method"))
def t(xp, input):
    """The transpose of a matrix; a vector as it is.

    >>> import flambeau as torch
    >>> torch.t(torch.ones(2, 3)).shape
    flambeau.Size([3, 2])
    """
    return xp.t(input)


t.node = "TBackward0"
t.vjp(input=lambda xp, g: xp.t(g))


@view
def transpose(xp, input, *, dim0, dim1):
    """Two dimensions swapped.

    >>> import flambeau as torch
    >>> torch.transpose(torch.ones(2, 3), 0, 1).shape
    flambeau.Size([3, 2])
    """
    return xp.transpose(input, dim0, dim1)


transpose.vjp(input=lambda xp, g, dim0, dim1: xp.transpose(g, dim0, dim1))


@view(spread="size", expose=("method",))
def expand(xp, input, *, size, implicit=False):
    """Dimensions of size 1 stretched, without copying. -1 keeps a size."""
    return xp.expand(input, size)


expand.vjp(input=lambda xp, g, input_shape: xp.sum_to_size(g, input_shape))


@view(expose=("torch", "method"), spread="size")
def broadcast_to(xp, input, *, size):
    """`expand` to a whole shape.

    >>> import flambeau as torch
    >>> torch.broadcast_to(torch.ones(1), (2, 3)).shape
    flambeau.Size([2, 3])
    """
    return xp.expand(input, size)


broadcast_to.node = "ExpandBackward0"
broadcast_to.vjp(input=lambda xp, g, input_shape: xp.sum_to_size(g, input_shape))


@composite(spread="shape")
def reshape(xp, input, *, shape):
    """The same elements under another shape: a view where possible, else a copy.

    >>> import flambeau as torch
    >>> torch.reshape(torch.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """
    return xp.reshaped(input, shape)


@composite(expose=("method",))
def view_as(input, other):
    """`view` under the other's shape."""
    return input.view(other.shape)
