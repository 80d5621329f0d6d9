"""Reductions of the segments of a dimension, and hashes."""

from __future__ import annotations

from ..declare import not_implemented, op


@op(key="_segment_reduce", name="segment_reduce", node="SegmentReduceBackward0", expose=(), opmath=False,
    nondifferentiable_inputs=("lengths",), holomorphic=False,
    unsupported_dtypes=not_implemented("_segment_reduce_cpu", "bool", "integer", "complex"))
def _segment_reduce(xp, data, lengths, *, reduce, axis, initial):
    """The reduction of each of the segments of dimension `axis`, of the given lengths (..., s)."""
    return xp.segment_reduce(data, lengths, reduce, axis, initial)


_segment_reduce.vjp(data=lambda xp, g, data, lengths, out, reduce, axis, initial: xp._segment_reduce_backward(
    g, data, lengths, out, reduce=reduce, axis=axis, initial=initial))


def _segment_jvp(xp, t_data, data, lengths, out, reduce, axis, initial):
    slopes = xp._segment_reduce_backward(xp.ones_like(out), data, lengths, out, reduce=reduce, axis=axis,
                                         initial=initial)
    return xp._segment_reduce(slopes * t_data, lengths, reduce="sum", axis=axis, initial=None)


_segment_reduce.jvp(_segment_jvp)


def _expanded(batch, *inputs):
    return [x if on else batch.expand_levels(x) for x, on in zip(inputs, batch.on, strict=True)]


_segment_reduce.vmap(lambda xp, batch, data, lengths, *, reduce, axis, initial: xp._segment_reduce(
    *_expanded(batch, data, lengths), reduce=reduce, axis=axis + batch.k, initial=initial))


@op(differentiable=False, expose=(), opmath=False)
def _segment_reduce_backward(xp, g, data, lengths, out, *, reduce, axis, initial):
    """The gradient of `segment_reduce`."""
    return xp.segment_reduce_backward(g, data, lengths, out, reduce, axis, initial)


_segment_reduce_backward.vmap(
    lambda xp, batch, g, data, lengths, out, *, reduce, axis, initial: xp._segment_reduce_backward(
        *_expanded(batch, g, data, lengths, out), reduce=reduce, axis=axis + batch.k, initial=initial))


@op(differentiable=False, opmath=False, batching_rule="reduce", key="_hash_tensor", name="hash_tensor", expose=(),
    unsupported_dtypes=not_implemented("xor_sum_cpu", "complex"))
def _hash_tensor(xp, input, *, dim=None, keepdim=False):
    """The exclusive or of the bits of all elements, as 64-bit integers or float64."""
    return xp.hash_bits(input, dim, keepdim)
