"""Batching rules of the negative log-likelihood losses: the vmap batch is merged into the samples.

Shapes: vmap batch (h), samples (n), classes (c), positions (*d). The loss of one sample has
no n: its input is (c), its target () or (1).
"""

from __future__ import annotations

from math import prod


def _shape(batch, i, x):
    """Return the shape of input `i` without the vmap batch dimensions."""
    return tuple(x.shape[batch.k:] if batch.on[i] else x.shape)


def _as_rows(xp, batch, i, x, shape):
    x = x if batch.on[i] else batch.expand_levels(x)
    return xp.reshape(x, (batch.count * shape[0], *shape[1:]))


def _target_weights(xp, batch, target, weight, weight_on, ignore_index):
    """Return the weight of each target (h · n, *d): that of its class, or 1; 0 where it is ignored."""
    is_counted = xp.ne(target, ignore_index)
    if weight is None:
        return is_counted
    index = xp.where(is_counted, target, 0)
    if weight_on:
        rows = xp.reshape(index, (batch.count, prod(index.shape) // max(batch.count, 1)))
        weights = xp.gather(xp.reshape(weight.detach(), (batch.count, weight.shape[-1])), 1, rows)
    else:
        weights = xp.index_select(weight.detach(), 0, xp.reshape(index, (-1,)))
    return xp.where(is_counted, xp.reshape(weights, index.shape), 0)


def nll_loss_vmap(name):
    """Return the batching rule of the loss `name` of (input, target, weight)."""
    def rule(xp, batch, input, target, weight=None, *, reduction="mean", ignore_index=-100):
        shape, target_shape = _shape(batch, 0, input), _shape(batch, 1, target)
        weight_on = weight is not None and batch.on[2]
        rows = _as_rows(xp, batch, 0, input, shape if len(shape) > 1 else (1, *shape))
        targets = _as_rows(xp, batch, 1, target, target_shape or (1,)).long()
        loss = getattr(xp, name)(rows, targets, None if weight_on else weight, reduction="none",
                                 ignore_index=ignore_index)
        target_weights = None
        if weight_on or reduction == "mean":
            target_weights = _target_weights(xp, batch, targets, weight, weight_on, ignore_index)
        if weight_on:
            loss = loss * target_weights
        size = (*batch.sizes, *target_shape)
        loss = xp.reshape(loss, size)
        dims = tuple(range(batch.k, len(size)))
        if reduction == "none":
            return loss
        total = xp.sum(loss, dims) if dims else loss
        if reduction == "sum":
            return total
        target_weights = xp.reshape(target_weights, size)
        return total / (xp.sum(target_weights, dims) if dims else target_weights)

    return rule


def nll_loss_backward_vmap(xp, batch, grad_output, input, target, weight=None, *, reduction, ignore_index):
    """Compute the gradient of these losses on a vmap batch."""
    shape, target_shape = _shape(batch, 1, input), _shape(batch, 2, target)
    weight_on = weight is not None and batch.on[3]
    rows = _as_rows(xp, batch, 1, input, shape if len(shape) > 1 else (1, *shape))
    targets = _as_rows(xp, batch, 2, target, target_shape or (1,)).long()
    target_weights = None
    if weight_on or reduction == "mean":
        target_weights = _target_weights(xp, batch, targets, weight, weight_on, ignore_index)
    size = (*batch.sizes, *target_shape)
    g = grad_output if batch.on[0] else batch.expand_levels(grad_output)
    if reduction != "none":
        if reduction == "mean":
            dims = tuple(range(batch.k, len(size)))
            weights = xp.reshape(target_weights, size)
            g = g / (xp.sum(weights, dims) if dims else weights)
        g = xp.expand(xp.reshape(g, (*batch.sizes, *(1 for _ in target_shape))), size)
    g = xp.reshape(g, targets.shape)
    if weight_on:
        g = g * target_weights
    result = xp._nll_loss_backward(g, rows, targets, None if weight_on else weight, reduction="none",
                                  ignore_index=ignore_index)
    return xp.reshape(result, (*batch.sizes, *shape))
