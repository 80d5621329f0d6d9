"""Copies, casts and fills."""

from __future__ import annotations

from ..declare import linear, op

_COPY_OPTIONS = {"opmath": False, "holomorphic": False, "batching_rule": "trailing"}


@linear(expose=("torch", "method"), moves_gradients=True, **_COPY_OPTIONS)
def clone(xp, input, *, memory_format=None):
    """A copy of the input, differentiable.

    Args:
        memory_format: the copy's layout; that of the input if None.

    >>> import flambeau as torch
    >>> torch.clone(torch.ones(2))
    tensor([1., 1.])
    """
    return xp.clone(input, memory_format)


@clone.vmap
def _clone_vmap(xp, batch, input, memory_format=None):
    if memory_format is not None and memory_format.name not in ("preserve_format", "contiguous_format"):
        name = "".join(part.capitalize() for part in memory_format.name.split("_"))
        raise RuntimeError("NYI: Tensor.clone(memory_format) inside vmap is only supported with memory_format "
                           f"torch.preserve_format or torch.contiguous_format (got {name})")
    return xp.clone(input, memory_format=memory_format)


clone.vjp(input=lambda g: g)


@linear(name="_to_copy", node="ToCopyBackward0", expose=(), **_COPY_OPTIONS)
def _to_copy(xp, input, *, dtype, memory_format=None):
    """A copy in another dtype; the engine casts the gradient back."""
    cast = xp.to(input, dtype)
    return xp.clone(input, memory_format) if cast is input else xp.contiguous(cast, memory_format) if (
        memory_format is not None and memory_format.name != "preserve_format") else cast


@_to_copy.vmap
def _to_copy_vmap(xp, batch, input, dtype, memory_format=None):
    if memory_format is None or memory_format.name in ("preserve_format", "contiguous_format"):
        return xp._to_copy(input, dtype=dtype, memory_format=memory_format)
    shape = input.shape[batch.k:]
    result = xp._to_copy(xp.reshape(input, (batch.count * shape[0], *shape[1:])) if shape else input, dtype=dtype,
                        memory_format=memory_format)
    return result.view(input.shape)


_to_copy.vjp(input=lambda g: g)


@linear(name="_to_copy", key="_to_meta", node="ToCopyBackward0", expose=(), **_COPY_OPTIONS)
def to_meta(xp, input, *, dtype, memory_format=None):
    """`_to_copy` of what becomes a meta tensor, whose gradient has no elements for the input's."""
    return xp._to_copy(input, dtype=dtype, memory_format=memory_format)


def _refuse_gradient_without_data(g):
    raise NotImplementedError("Cannot copy out of meta tensor; no data!")


to_meta.vjp(input=_refuse_gradient_without_data)


@op(name="copy", key="_copy", node="CopyBackwards", expose=(), **_COPY_OPTIONS)
def copy(xp, input, src):
    """The result of `input.copy_(src)`: src cast to the input's dtype and broadcast to its shape."""
    return xp.broadcast_to(xp.to(src, input.dtype), input.shape)


copy.vjp(input=lambda xp, g: xp.zeros_like(g),
         src=lambda xp, g, src_shape: xp.sum_to_size(g, src_shape))
copy.jvp(lambda xp, input, t_input, t_src: xp.zeros_like(input) if t_src is None else
         xp.broadcast_to(t_src, input.shape))


@op(name="fill", key="_fill_scalar", expose=(), **_COPY_OPTIONS)
def fill_scalar(xp, input, *, value):
    """A tensor of the input's shape filled with a scalar."""
    return xp.full_like(input, value)


fill_scalar.vjp(input=lambda xp, g: xp.zeros_like(g))
fill_scalar.jvp(lambda xp, t_input: xp.zeros_like(t_input))


@op(name="fill", key="_fill_tensor", node="FillBackward1", expose=(), **_COPY_OPTIONS)
def fill_tensor(xp, input, value):
    """A tensor of the input's shape filled with a 0-d tensor's value."""
    return xp.full_like(input, value)


def _fill_vmap(xp, batch, input, value):
    value = xp.to(value, input.dtype)
    if batch.on[1]:
        value = xp.reshape(value, (*batch.sizes, *(1,) * ((input.ndim - batch.k) if batch.on[0] else input.ndim)))
    return xp.clone(xp.broadcast_to(value, input.shape if batch.on[0] else (*batch.sizes, *input.shape)))


fill_tensor.vmap(_fill_vmap)
fill_tensor.vjp(input=lambda xp, g: xp.zeros_like(g),
                value=lambda xp, g: xp.sum(g))
fill_tensor.jvp(lambda xp, input, t_value: xp.zeros_like(input) if t_value is None else
                xp.broadcast_to(t_value, input.shape))


@op(name="fill", key="_fill_scalar_", node="FillBackward2", expose=(), **_COPY_OPTIONS)
def fill_scalar_in_place(xp, input, *, value):
    """`fill_` with a scalar."""
    return xp.full_like(input, value)


fill_scalar_in_place.vjp(input=lambda xp, g: xp.zeros_like(g))
fill_scalar_in_place.jvp(lambda xp, t_input: xp.zeros_like(t_input))


@op(name="fill", key="_fill_tensor_", node="FillBackward3", expose=(), **_COPY_OPTIONS)
def fill_tensor_in_place(xp, input, value):
    """`fill_` with a 0-d tensor."""
    return xp.full_like(input, value)


fill_tensor_in_place.vmap(_fill_vmap)
fill_tensor_in_place.vjp(input=lambda xp, g: xp.zeros_like(g),
                         value=lambda xp, g: xp.sum(g))
fill_tensor_in_place.jvp(lambda xp, input, t_value: xp.zeros_like(input) if t_value is None else
                         xp.broadcast_to(t_value, input.shape))


@op(name="zero", key="_zero", expose=(), **_COPY_OPTIONS)
def zero(xp, input):
    """Zeros in the input's shape."""
    return xp.zeros_like(input)


zero.vjp(input=lambda xp, g: xp.zeros_like(g))
zero.jvp(lambda xp, t_input: xp.zeros_like(t_input))
