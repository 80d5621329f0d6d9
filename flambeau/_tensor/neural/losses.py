"""Classification losses: `nll_loss`, `cross_entropy` (class indices or probabilities, label smoothing), `ctc_loss`."""

from __future__ import annotations

from math import prod
from operator import index
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.compiled import few_positions
from ...backends.compiled.thresholds import COPIES, SMALL_KERNELS
from ...engine.grad_mode import grad_mode, inference
from ...engine.nodes.node import next_number
from ...engine.nodes.op_node import OpNode
from ...engine.rules.inlined_rules import plan_of
from ...engine.rules.one_hot_gradients import OneHotGradient, accepts_one_hot, one_hot_matrix, still_accepts_one_hot
from ...engine.tensor_interface import layer
from ...modes import special
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..dispatch.gradient_edge import gradient_edge
from ..shape.reshaping import reshaped
from ..tensor import INFERENCE, Tensor, wrap

__all__ = ["cross_entropy", "ctc_loss", "nll_loss"]

_INTEGERS = (np.dtype(np.int64), np.dtype(np.uint8))
_NAN = float("nan")


def _check_classes(shape: tuple[int, ...], target: Tensor, weight: Tensor | None, dtype: Any) -> None:
    n, t = len(shape), target._array.shape
    if n == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {n})")
    if n != 1 and (not t or shape[0] != t[0]):
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({t[0] if t else 0}).")
    classes = shape[0] if n == 1 else shape[1]
    if n <= 2 and len(t) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if n > 2 and n != 4 and t[1:] != shape[2:]:
        raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(t)}")
    if target._array.dtype not in _INTEGERS:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {target.dtype.scalar_name}")
    if n == 1 and t not in ((), (1,)):
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {t[0]}")
    if weight is not None:
        if weight._array.shape != (classes,):
            raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but "
                               f"got weight tensor of shape: {list(weight._array.shape)}")
        if weight._array.dtype != dtype.numpy and dtype.is_floating_point:  # of others there is no kernel
            raise RuntimeError(f"expected scalar type {dtype.scalar_name} but found {weight.dtype.scalar_name}")
    if n == 4 and t[1:] != shape[2:]:
        if len(t) == 3:
            raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(t)}")
        raise RuntimeError(f"Expected target size {[shape[0], *shape[2:]]}, got {list(t)}")


def nll_loss(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
             ignore_index: int = -100) -> Tensor:
    """Minus the log-probability of each target: -weight[t] · input[t].

    Args:
        input: log-probabilities, (C), (N, C) or (N, C, ...).
        target: class indices, (), (N) or (N, ...); those equal to `ignore_index` are ignored.
        weight: (C) class weights; the mean divides by the sum of the weights of the targets.

    Raises:
        IndexError: a target is out of range.
        RuntimeError, ValueError: the shapes or dtypes do not match.

    >>> import flambeau as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-1., -2.]]), torch.tensor([1]))
    tensor(2.)
    """
    shape = input._array.shape
    if len(shape) == 2 and weight is None and not special[0]:
        result = _fast_nll(input, target, reduction, ignore_index)
        if result is not None:
            return result
    _check_classes(shape, target, weight, input.dtype)
    params = {"reduction": "mean" if reduction == "elementwise_mean" else reduction, "ignore_index": ignore_index}
    n = len(shape)
    if n <= 2:
        return apply(REGISTRY["_nll_loss"], [input, target, weight], params)
    op = REGISTRY["_nll_loss2d"]
    if n == 4:
        return apply(op, [input, target, weight], params)
    rest = prod(shape[2:])
    flat = reshaped(input, (shape[0], shape[1], 1, rest))
    loss = apply(op, [flat, reshaped(target, (shape[0], 1, rest)), weight], params)
    if reduction == "none":
        return reshaped(loss, (shape[0], *shape[2:]))
    return loss


_nll = REGISTRY["_nll_loss"]
_nll_plan = plan_of(_nll, 1, 3)
_nll_rules = _nll_plan.run
#: the most elements of a gradient that is written element by element
_FEW = 16384
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
_LONG, _UNSIGNED = np.dtype(np.int64), np.dtype(np.uint64)


def _nll_rule(node: Any, g: Any) -> Any:
    """The rule of `nll_loss` without weights of (N, C): the gradient is a one-hot matrix."""
    a, target, weight = node.unpack(False)
    reduction, ignore_index = node.consts
    if weight is not None or a.ndim != 2 or a.__class__ is not np.ndarray or reduction == "none" or ignore_index >= 0:
        return _nll_rules(node, g)
    n, classes = a.shape
    if SMALL_KERNELS[0] and 0 < a.size <= _FEW and g.__class__ is np.float32:
        few = few_positions()
        source = np.empty(n, np.float32)
        source.fill(g / np.float32(-n if reduction == "mean" else -1))
        found = None if few is None or target.shape != (n,) else few.put_along(target, source, 1, a.shape, few.REPLACE)
        if found is not None:  # else some are ignored
            return found, None, None
    if not n or target.min() < 0:  # ignored ones, which the mean does not count
        return _nll_rules(node, g)
    positions = np.arange(0, n * classes, classes)
    positions += target
    divisor = -n if reduction == "mean" else -1
    return one_hot_matrix(positions, g / a.dtype.type(divisor), a.shape), None, None


_nll_plan.run = _nll_rule


def _fast_nll(input: Tensor, target: Tensor, reduction: str, ignore_index: int) -> Any:
    """The fast path of `nll_loss`, (N, C) with all targets in range, mean or sum; None for other calls."""
    a, t = input._array, target._array
    n, classes = a.shape
    if (t.ndim != 1 or t.shape[0] != n or not n or t.dtype is not _LONG or a.dtype not in _FLOATS
            or reduction not in ("mean", "sum") or ignore_index >= 0):
        return None
    if np.maximum.reduce(t.view(_UNSIGNED)) >= classes:  # negative ones are large as unsigned
        return None
    positions = np.arange(0, n * classes, classes)
    positions += t
    divisor = -n if reduction == "mean" else -1
    result: Any = wrap(np.asarray(np.add.reduce(a.reshape(-1).take(positions)) / a.dtype.type(divisor)))
    if input._requires_grad and grad_mode.get():
        node = OpNode()
        node.plan = _nll_plan
        node.extra = node.outputs = node.fix = node.versions = None
        node.edges = (gradient_edge(input), None, None)
        node.seq = next_number()  # after the edge: that of a stale view is a new node
        node.edge_outputs = (input._output_nr, 0, 0) if input._output_nr else None
        node.saved = (input, target, None)
        counters = [x._counter[0] if x._counter is not None else 0 for x in (input, target)]
        if any(counters):
            node.versions = (*counters, 0)
        node.consts = (reduction, ignore_index)
        one_hot = (a.size > COPIES[0] and a.flags.c_contiguous and not input._output_nr
                   and accepts_one_hot(node.edge0))

        def run(node: Any, g: Any) -> Any:
            a = node.unpack(False)[0]
            make = OneHotGradient if one_hot and still_accepts_one_hot(node.edge0) else one_hot_matrix
            return make(positions, g / a.dtype.type(divisor), a.shape), None, None

        node.run = run
        result._requires_grad = True
        result._node = node
    elif inference.get():
        result._inference, result._counter = True, INFERENCE
    return result


_SMOOTHING = "label_smoothing must be between 0.0 and 1.0. Got: {:g}"


def _div_scalar(x: Tensor, number: float) -> Tensor:
    return apply(REGISTRY["_div_scalar"], [x], {"other": number})


def _mul_scalar(x: Tensor, number: float) -> Tensor:
    return apply(REGISTRY["_mul_scalar"], [x], {"other": number})


def cross_entropy(input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean",
                  ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """nll_loss(log_softmax(input), target), or the cross entropy with the probabilities `target`.

    Args:
        input: logits, (C), (N, C) or (N, C, ...).
        target: class indices, as in `nll_loss`, or probabilities of the shape of `input`.
        label_smoothing: the fraction of each target that is distributed evenly over all classes.

    >>> import flambeau as torch
    >>> torch.nn.functional.cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    reduction = "mean" if reduction == "elementwise_mean" else reduction
    if isinstance(label_smoothing, np.generic):  # a number, whose dtype does not count
        label_smoothing = label_smoothing.item()
    if input._array.ndim == 0:
        if target._array.ndim:
            raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
        if not target.is_floating_point():
            raise RuntimeError("Expected floating point type for target with class probabilities, got "
                               f"{target.dtype.scalar_name}")
        raise IndexError("Dimension specified as 1 but tensor has no dimensions")
    shape = input._array.shape
    dim = 0 if len(shape) == 1 else 1
    probabilities = target._array.shape == shape
    if probabilities:
        if target._array.dtype.kind not in "fV":
            raise RuntimeError("Expected floating point type for target with class probabilities, got "
                               + target.dtype.scalar_name)
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        if weight is not None and weight._array.shape != (shape[dim],):
            raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all {shape[dim]} classes or "
                               f"no classes but got weight tensor of shape: {list(weight._array.shape)}")
    if label_smoothing <= 0:  # PyTorch does not look at negative ones
        label_smoothing = 0.0
    elif not label_smoothing <= 1 and not probabilities:
        raise RuntimeError(_SMOOTHING.format(label_smoothing))
    logs = layer.functions.log_softmax(input, dim)
    if probabilities:
        if not label_smoothing <= 1:
            raise RuntimeError(_SMOOTHING.format(label_smoothing))
        return _with_probabilities(logs, target, weight, reduction, dim, label_smoothing)
    loss = nll_loss(logs, target, weight, reduction, ignore_index)
    if label_smoothing == 0:
        return loss
    return _smooth_labels(logs, loss, target, weight, reduction, ignore_index, dim, label_smoothing)


def _with_probabilities(logs: Tensor, target: Tensor, weight: Tensor | None, reduction: str, dim: int,
                        label_smoothing: float) -> Tensor:
    fn = layer.functions
    shape = logs._array.shape
    if label_smoothing > 0:
        per_class = label_smoothing / shape[dim] if shape[dim] else _NAN
        target = apply(REGISTRY["_add_scalar"], [_mul_scalar(target, 1 - label_smoothing)], {"other": per_class})
    product = logs * target
    if weight is not None:
        product = product * reshaped(weight, [-1 if i == dim else 1 for i in range(len(shape))])
    if reduction == "none":
        return -fn.sum(product, dim)
    total = -fn.sum(product)
    if reduction == "sum":
        return total
    count = prod(shape) // max(shape[dim], 1)
    return _div_scalar(total, count) if count else total * float("nan")


def _smooth_labels(logs: Tensor, loss: Tensor, target: Tensor, weight: Tensor | None, reduction: str, ignore_index: int,
                   dim: int, label_smoothing: float) -> Tensor:
    fn = layer.functions
    shape = logs._array.shape
    if weight is not None:
        weighted = logs * reshaped(weight, [-1 if i == dim else 1 for i in range(len(shape))])
        smooth = -fn.sum(weighted, dim)
    else:
        smooth = -fn.sum(logs, dim)
    ignored = fn.eq(target, ignore_index)
    smooth = fn.masked_fill(smooth, ignored, 0.0)
    if reduction == "mean":
        total = fn.sum(smooth)
        if weight is not None:
            kept = fn.masked_fill(target, ignored, 0)
            target_weights = reshaped(fn.index_select(weight, 0, fn.flatten(kept)), kept._array.shape)
            smooth = total / fn.sum(fn.masked_fill(target_weights, ignored, 0.0))
        else:
            counted = fn.sum(fn.logical_not(ignored))
            smooth = total / counted
    elif reduction == "sum":
        smooth = fn.sum(smooth)
    per_class = label_smoothing / shape[dim] if shape[dim] else _NAN
    return _mul_scalar(loss, 1 - label_smoothing) + _mul_scalar(smooth, per_class)


# ----- ctc_loss --------------------------------------------------------------------------


def _lengths(value: Any) -> Tensor:
    """Lengths, one for each sample, as int64."""
    if not isinstance(value, Tensor):
        value = layer.functions.tensor(value, dtype=dtypes.int64)
    elif value._array.dtype.kind not in "iu":
        raise RuntimeError("input_lengths must be integral")
    value = _copied(value)
    return value if value._array.ndim else value.unsqueeze(0)


def _copied(x: Tensor) -> Tensor:
    """A copy as int64: the tensor may be overwritten before backward."""
    if not special[0] and x._array.__class__ is np.ndarray and x._array.dtype.kind in "iu":
        return wrap(x._array.astype(np.int64))
    return x.to(dtypes.int64, copy=True)


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
             reduction: int = 0, zero_infinity: bool = False) -> Tensor:
    """`nn.functional.ctc_loss`, with the reduction as a number: 0 "none", 1 "mean", 2 "sum".

    Args:
        log_probs: (T, N, C) or (T, C), from a log_softmax.
        targets: (N, S), or concatenated, (sum of target_lengths).
        input_lengths, target_lengths: (N) each, or () for one sample.
        blank: the index of the blank class.
        reduction: 1 divides by the targets' lengths first.
        zero_infinity: set infinite losses and their gradients to 0.

    Raises:
        RuntimeError: invalid lengths or classes.

    >>> import flambeau as torch
    >>> logs = torch.zeros(2, 1, 2).log_softmax(2)
    >>> torch.ctc_loss(logs, torch.tensor([[1]]), (2,), (1,), reduction=2)
    tensor(0.2877)
    """
    if special[0]:
        from ..dispatch.batched_tensor import is_batched, vmap_levels
        from ..dispatch.batching_rules import fallback_loop, warn_fallback

        arguments = [log_probs, targets, input_lengths, target_lengths]
        if is_batched(*arguments):
            warn_fallback("ctc_loss")
            return fallback_loop(lambda x, t, i, n: ctc_loss(x, t, i, n, blank, reduction, zero_infinity), arguments,
                                 vmap_levels(arguments))
    if isinstance(input_lengths, Tensor) != isinstance(target_lengths, Tensor):
        raise TypeError("lengths are two tensors or two tuples")  # the guard names the signatures
    blank, reduction = index(blank), index(reduction)
    fn = layer.functions
    x, single = log_probs, log_probs._array.ndim == 2
    inputs, sizes = _lengths(input_lengths), _lengths(target_lengths)
    t = _copied(targets)
    if single:
        x = fn.unsqueeze(x, 1)
        t = t if t._array.ndim == 2 else fn.unsqueeze(t, 0)
    n, classes = x._array.shape[1:]
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    for name, lengths in (("input_lengths", inputs), ("target_lengths", sizes)):
        if len(lengths._array) != n:
            raise RuntimeError(f"{name} must be of size batch_size")
    loss = apply(REGISTRY["_ctc_loss"], [x], {
        "targets": t._array, "input_lengths": inputs._array, "target_lengths": sizes._array, "blank": blank,
        "zero_infinity": bool(zero_infinity), "saved": []})
    if zero_infinity:
        loss = fn.where(fn.eq(loss, float("inf")), 0.0, loss)
    if reduction == 1:
        divisors = fn.clamp(sizes, 1).to(loss.dtype)
        return fn.mean(loss / (fn.empty_like(divisors, device=x.device) if x.is_meta else divisors))
    if reduction == 2:
        return fn.sum(loss)
    return fn.squeeze(loss, 0) if single else loss
