"""Losses of classes under `vmap`: the samples of all elements are the rows of one batch.

Shapes: elements of the vmap batch (h), samples (n), classes (c), positions (*d). A loss of one sample has
no n: its input is (c), its target () or (1).
"""

from __future__ import annotations

from math import prod


def _shape(batch, i, x):
    """The shape that input number `i` shows."""
    return tuple(x.shape[batch.k:] if batch.on[i] else x.shape)


def _as_rows(xp, batch, i, x, shape):
    x = x if batch.on[i] else batch.full(x)
    return xp.reshape(x, (batch.count * shape[0], *shape[1:]))


def _target_weights(xp, batch, target, weight, weight_on, ignore_index):
    """What each target (h · n, *d) counts: the weight of its class, or one; 0 if it is ignored."""
    saved = xp.ne(target, ignore_index)
    if weight is None:
        return saved
    index = xp.where(saved, target, 0)
    if weight_on:
        elementwise_loss_vmap = xp.reshape(index, (batch.count, prod(index.shape) // max(batch.count, 1)))
        named = xp.gather(xp.reshape(weight.detach(), (batch.count, weight.shape[-1])), 1, elementwise_loss_vmap)
    else:
        named = xp.index_select(weight.detach(), 0, xp.reshape(index, (-1,)))
    return xp.where(saved, xp.reshape(named, index.shape), 0)


def class_loss_vmap(name):
    """The batching rule of the loss `name` of (input, target, weight)."""
    def rule(xp, batch, input, target, weight=None, *, reduction="mean", ignore_index=-100):
        shape, wanted = _shape(batch, 0, input), _shape(batch, 1, target)
        weight_on = weight is not None and batch.on[2]
        rows = _as_rows(xp, batch, 0, input, shape if len(shape) > 1 else (1, *shape))
        named = _as_rows(xp, batch, 1, target, wanted or (1,)).long()
        loss = getattr(xp, name)(rows, named, None if weight_on else weight, reduction="none",
                                 ignore_index=ignore_index)
        counted = None
        if weight_on or reduction == "mean":
            counted = _target_weights(xp, batch, named, weight, weight_on, ignore_index)
        if weight_on:
            loss = loss * counted
        size = (*batch.sizes, *wanted)
        loss = xp.reshape(loss, size)
        dims = tuple(range(batch.k, len(size)))
        if reduction == "none":
            return loss
        total = xp.sum(loss, dims) if dims else loss
        if reduction == "sum":
            return total
        counted = xp.reshape(counted, size)
        return total / (xp.sum(counted, dims) if dims else counted)

    return rule


def class_loss_gradient_vmap(xp, batch, grad_output, input, target, weight=None, *, reduction, ignore_index):
    """The batching rule of the transpose of these losses."""
    shape, wanted = _shape(batch, 1, input), _shape(batch, 2, target)
    weight_on = weight is not None and batch.on[3]
    rows = _as_rows(xp, batch, 1, input, shape if len(shape) > 1 else (1, *shape))
    named = _as_rows(xp, batch, 2, target, wanted or (1,)).long()
    counted = None
    if weight_on or reduction == "mean":
        counted = _target_weights(xp, batch, named, weight, weight_on, ignore_index)
    size = (*batch.sizes, *wanted)
    g = grad_output if batch.on[0] else batch.full(grad_output)
    if reduction != "none":
        if reduction == "mean":
            dims = tuple(range(batch.k, len(size)))
            weights = xp.reshape(counted, size)
            g = g / (xp.sum(weights, dims) if dims else weights)
        g = xp.expand(xp.reshape(g, (*batch.sizes, *(1 for _ in wanted))), size)
    g = xp.reshape(g, named.shape)
    if weight_on:
        g = g * counted
    found = xp._nll_loss_backward(g, rows, named, None if weight_on else weight, reduction="none",
                                  ignore_index=ignore_index)
    return xp.reshape(found, (*batch.sizes, *shape))
