"""Batch, layer, group and RMS normalization, and their gradients as operators.

The forward stores the statistics in the list `saved`, for first derivatives and running averages. Formulas that are
differentiated again recompute them from the input.
"""

from __future__ import annotations

from math import prod

from ..declare import composite, not_implemented, op

_UNSUPPORTED = not_implemented("batch_norm", "bool", "integer", "complex")


def _standardize(xp, input, dims, eps):
    """Return y = (x - mean) / √(var + eps) over dimensions, and 1 / √(var + eps)."""
    d = input - xp.mean(input, dims, True)
    rstd = xp.rsqrt(xp.mean(d * d, dims, True) + eps)
    return d * rstd, rstd


def _standardize_vjp(xp, g, y, rstd, dims):
    """Return the vjp of `_standardize` by its input, from its result `y`."""
    return rstd * (g - xp.mean(g, dims, True) - y * xp.mean(g * y, dims, True))


# ----- batch normalization -------------------------------------------------------


@op(node="NativeBatchNormBackward0", expose=(), unsupported_dtypes=_UNSUPPORTED,
    saved="eps input result1=saved[0] result2=saved[1] running_mean running_var training weight")
def _batch_norm(xp, input, weight=None, bias=None, *, running_mean, running_var, training, eps, saved):
    """(x - mean) / √(var + eps) · weight + bias by channel, with the batch's statistics or the running ones.

    Args:
        running_mean, running_var: arrays or None.
        saved: a list that receives mean and 1 / √(var + eps), and the variance in training.
    """
    return xp.batch_norm(input, weight, bias, running_mean, running_var, training, eps, saved)


@op(expose=(), batching_rule="trailing")
def _shift_and_scale(input, *, shift, factor):
    """(input - shift) · factor, with arrays that have no gradient."""
    return input * factor if shift is None else (input - shift) * factor


_shift_and_scale.vjp(input=lambda xp, g, factor: xp._shift_and_scale(g, shift=None, factor=factor))
_shift_and_scale.jvp(lambda xp, t_input, factor: xp._shift_and_scale(t_input, shift=None, factor=factor))


@composite(expose=())
def _batch_norm_backward(xp, g, input, weight=None, *, training, eps, saved, needs):
    """The gradients of input, weight and bias."""
    dims = (0, *range(2, len(input.shape)))
    across = (1, -1, *(1 for _ in dims[1:]))
    if training:
        y, rstd = _standardize(xp, input, dims, eps)
    else:
        factor = saved[1].reshape(across)
        y = xp._shift_and_scale(input, shift=saved[0].reshape(across), factor=factor)
    scaled = g if weight is None else g * xp.reshape(weight, across)
    by_input = None
    if needs[0]:
        by_input = (_standardize_vjp(xp, scaled, y, rstd, dims) if training
                    else xp._shift_and_scale(scaled, shift=None, factor=factor))
    return (by_input, xp.sum(g * y, dims) if needs[1] else None, xp.sum(g, dims) if needs[2] else None)


_batch_norm.joint_vjp(lambda xp, g, input, weight, training, eps, saved, needs: xp._batch_norm_backward(
    g, input, weight, training=training, eps=eps, saved=saved, needs=needs))


# ----- layer normalization ---------------------------------------------------------


@op(node="NativeLayerNormBackward0", expose=(),
    unsupported_dtypes=not_implemented("LayerNormKernelImpl", "bool", "integer", "complex"),
    saved="input normalized_shape weight")
def _layer_norm(xp, input, weight=None, bias=None, *, normalized_shape, eps, saved):
    """(x - mean) / √(var + eps) · weight + bias, over the dimensions of `normalized_shape`."""
    return xp.layer_norm(input, weight, bias, normalized_shape, eps, saved)


@composite(expose=())
def _layer_norm_backward(xp, g, input, weight=None, *, normalized_shape, eps, saved, needs):
    """The gradients of input, weight and bias."""
    rank = len(input.shape)
    first = rank - len(normalized_shape)
    last, rest = tuple(range(first, rank)), tuple(range(first))
    y, rstd = _standardize(xp, input, last, eps)
    by_input = None
    if needs[0]:
        by_input = _standardize_vjp(xp, g if weight is None else g * weight, y, rstd, last)
    by_weight = (xp.sum(g * y, rest) if rest else g * y) if needs[1] else None
    by_bias = (xp.sum(g, rest) if rest else g) if needs[2] else None
    return by_input, by_weight, by_bias


_layer_norm.joint_vjp(lambda xp, g, input, weight, normalized_shape, eps, saved, needs: xp._layer_norm_backward(
    g, input, weight, normalized_shape=normalized_shape, eps=eps, saved=saved, needs=needs))


def _layer_norm_vmap(xp, batch, input, weight=None, bias=None, *, normalized_shape, eps, saved):
    options = {"normalized_shape": normalized_shape, "eps": eps, "saved": saved}
    if not (batch.on[1] or batch.on[2]):
        return xp._layer_norm(input, weight, bias, **options)
    out = xp._layer_norm(input, None, None, **options)
    ndim = len(input.shape) - batch.k * batch.on[0]
    if weight is not None:
        out = out * batch.padded(1, weight, ndim)
    if bias is not None:
        out = out + batch.padded(2, bias, ndim)
    return out


_layer_norm.vmap(_layer_norm_vmap)


@op(expose=(), differentiable=False)
def _rms_norm(xp, input, weight=None, *, normalized_shape, eps):
    """x / √(mean(x²) + eps) · weight, over the dimensions of `normalized_shape`; without gradient."""
    dims = tuple(range(-len(normalized_shape), 0))
    out = input * xp.rsqrt(xp.mean(input * input, dims, True) + eps)
    return out if weight is None else out * weight


# ----- group normalization --------------------------------------------------


@op(node="NativeGroupNormBackward0", expose=(),
    unsupported_dtypes=not_implemented("GroupNormKernelImpl", "bool", "integer", "complex"),
    saved="eps group input weight")
def _group_norm(xp, input, weight=None, bias=None, *, group, eps, saved):
    """(x - mean) / √(var + eps) by sample and group of channels, · weight + bias by channel."""
    return xp.group_norm(input, weight, bias, group, eps, saved)


@composite(expose=())
def _group_norm_backward(xp, g, input, weight=None, *, group, eps, saved, needs):
    """The gradients of input, weight and bias."""
    shape = input.shape
    n, c = shape[0], shape[1]
    length = prod(shape[2:])
    by_group, by_channel = (n, group, c // group * length), (n, c, length)
    y, rstd = _standardize(xp, xp.reshape(input, by_group), (2,), eps)
    flat = xp.reshape(g, by_channel)
    by_input = None
    if needs[0]:
        scaled = flat if weight is None else flat * xp.reshape(weight, (1, c, 1))
        by_input = xp.reshape(_standardize_vjp(xp, xp.reshape(scaled, by_group), y, rstd, (2,)), shape)
    by_weight = xp.sum(flat * xp.reshape(y, by_channel), (0, 2)) if needs[1] else None
    return by_input, by_weight, xp.sum(flat, (0, 2)) if needs[2] else None


_group_norm.joint_vjp(lambda xp, g, input, weight, group, eps, saved, needs: xp._group_norm_backward(
    g, input, weight, group=group, eps=eps, saved=saved, needs=needs))


def _group_norm_vmap(xp, batch, input, weight=None, bias=None, *, group, eps, saved):
    """Merge the batch dimensions into the samples, unless weight or bias are batched."""
    k = batch.k
    options = {"group": group, "eps": eps, "saved": saved}
    merged = not (batch.on[1] or batch.on[2])
    x = input
    if batch.on[0]:
        x = xp.reshape(input, (prod(input.shape[:k + 1]), *input.shape[k + 1:]))
    out = xp._group_norm(x, weight if merged else None, bias if merged else None, **options)
    out = xp.reshape(out, input.shape)
    if merged:
        return out
    spatial = (1,) * (len(input.shape) - k * batch.on[0] - 2)
    if weight is not None:
        out = out * xp.reshape(weight, (*weight.shape[:-1], 1, weight.shape[-1], *spatial))
    if bias is not None:
        out = out + xp.reshape(bias, (*bias.shape[:-1], 1, bias.shape[-1], *spatial))
    return out


_group_norm.vmap(_group_norm_vmap)


# ----- weight normalization ------------------------------------------------------


def _other_dims(v, dim):
    return tuple(i for i in range(len(v.shape)) if i != dim)


@op(node="WeightNormInterfaceBackward0", expose=())
def _weight_norm_interface(xp, direction, magnitude, *, dim):
    """magnitude · direction / ‖direction‖, with norms over all dimensions except the first or the last."""
    norms = xp.sqrt(xp.sum(direction * direction, _other_dims(direction, dim), True))
    return direction * (magnitude / norms)


def _weight_norm_vjp_direction(xp, g, direction, magnitude, dim):
    dims = _other_dims(direction, dim)
    squares = xp.sum(direction * direction, dims, True)
    return magnitude / xp.sqrt(squares) * (g - direction * (xp.sum(g * direction, dims, True) / squares))


def _weight_norm_vjp_magnitude(xp, g, direction, dim):
    dims = _other_dims(direction, dim)
    return xp.sum(g * direction, dims, True) / xp.sqrt(xp.sum(direction * direction, dims, True))


_weight_norm_interface.vjp(direction=_weight_norm_vjp_direction, magnitude=_weight_norm_vjp_magnitude)
