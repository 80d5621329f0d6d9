"""`linear_cross_entropy`: cross entropy of a linear map, optionally chunk by chunk of the batch."""

from __future__ import annotations

import warnings
from math import prod
from typing import Any

from ..._tensor import Tensor, no_grad
from ..._tensor import functions as fn
from ..._tensor.custom_functions.function import Function
from ...dtypes import C_NAMES, bfloat16, float16, float32, int64
from .loss import cross_entropy

__all__ = ["linear_cross_entropy"]

_TWICE = ("linear_cross_entropy chunked backward called twice; retain_graph=True / double backward are not supported.")


def _chunked(input: Tensor, weights: Tensor, target: Tensor, bias: Tensor | None, class_weight: Tensor | None,
             settings: tuple[Any, ...], needs: tuple[bool, ...],
             grad_output: Tensor | None = None) -> tuple[Tensor, tuple[Tensor | None, ...]]:
    """The loss, and the gradients of input, weights and bias that are needed.

    Args:
        settings: reduction, ignored class, samples in a chunk, dtype of the accumulation.
        grad_output: the gradient of the loss, by default 1.
    """
    reduction, ignore_index, size, acc_dtype = settings
    samples = fn.where(target != ignore_index, 1.0, 0.0).to(acc_dtype)
    classes = fn.where(target != ignore_index, target, 0)
    if class_weight is not None:
        samples = samples * fn.index_select(class_weight.to(acc_dtype), 0, classes)
    total = samples.sum()
    factors = samples / total if reduction == "mean" else samples
    if grad_output is not None:
        factors = factors * grad_output.to(acc_dtype)
    w = weights.to(acc_dtype)
    of_weights = fn.zeros(w.shape, dtype=acc_dtype, device=w.device) if needs[1] else None
    of_bias = fn.zeros(w.shape[:1], dtype=acc_dtype, device=w.device) if needs[2] else None
    losses, of_input = [], []
    for start in range(0, input.shape[0], size):
        x = input[start:start + size].to(acc_dtype)
        label = classes[start:start + size].unsqueeze(1)
        log_prob = fn.linear(x, w, None if bias is None else bias.to(acc_dtype)).log_softmax(1)
        losses.append(-log_prob.gather(1, label).squeeze(1) * samples[start:start + size])
        if not any(needs):
            continue
        factor = factors[start:start + size].unsqueeze(1)
        grad = (log_prob.exp() * factor).scatter_add(1, label, -factor)
        if needs[0]:
            of_input.append(grad @ w)
        if of_weights is not None:
            of_weights += grad.t() @ x
        if of_bias is not None:
            of_bias += grad.sum(0)
    loss = fn.cat(losses) if losses else samples
    if reduction != "none":
        loss = loss.sum()
        loss = loss / total if reduction == "mean" else loss
    gradient = (fn.cat(of_input) if of_input else fn.zeros_like(input)) if needs[0] else None
    return loss.to(input.dtype), tuple(None if g is None else g.to(x.dtype) for g, x in (  # type: ignore[union-attr]
        (gradient, input), (of_weights, weights), (of_bias, bias)))


class _Reduced(Function):
    """Sum or mean: the gradients are computed in the forward pass."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weights: Tensor, target: Tensor, bias: Tensor | None, *rest: Any) -> Tensor:
        class_weight, *settings, ctx.keep = rest
        needs = tuple(ctx.needs_input_grad[i] for i in (0, 1, 3))
        loss, ctx.gradients = _chunked(input, weights, target, bias, class_weight, tuple(settings), needs)
        return loss

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.gradients
        if gradients is None:
            raise RuntimeError(_TWICE)
        if not ctx.keep:
            ctx.gradients = None
        scaled = [None if g is None else g * grad_output for g in gradients]
        return (scaled[0], scaled[1], None, scaled[2], *(None,) * 6)


class _PerSample(Function):
    """Without reduction: backward computes the logits again."""

    @staticmethod
    def forward(ctx: Any, input: Tensor, weights: Tensor, target: Tensor, bias: Tensor | None,
                class_weight: Tensor | None, *rest: Any) -> Tensor:
        ctx.save_for_backward(input, weights, target, bias, class_weight)
        ctx.rest = rest
        return _chunked(input, weights, target, bias, class_weight, ("none", *rest), (False,) * 3)[0]

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor | None, ...]:
        needs = tuple(ctx.needs_input_grad[i] for i in (0, 1, 3))
        with no_grad():
            input, weights, target, bias, class_weight = ctx.saved_tensors
            gradients = _chunked(input, weights, target, bias, class_weight, ("none", *ctx.rest), needs, grad_output)[1]
        return (gradients[0], gradients[1], None, gradients[2], *(None,) * 4)


# the nodes have the names of PyTorch's
_NODE = "GeneratedBackwardFor_torch_nn__linear_cross_entropy_batch_chunked"
_REDUCED: Any = type(f"{_NODE}_default", (_Reduced,), {})
_PER_SAMPLE: Any = type(f"{_NODE}_no_reduction_default", (_PerSample,), {})


def linear_cross_entropy(input: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Any = None) -> Tensor:
    """Cross entropy of the logits input · linear_weightᵀ + linear_bias.

    Args:
        input: (N, E) or (E,).
        linear_weight: (C, E), or (C, d₁, ..., E) for a loss at several positions.
        target: classes (N, d₁, ...), int64, or probabilities (N, C, d₁, ...).
        linear_bias: (C, d₁, ...), or None.
        weight: (C,), factor of each class.
        reduction: "none", "mean" or "sum".
        ignore_index: a class that does not count; None for -100.
        label_smoothing: share of the uniform distribution in the targets.
        options: `LinearCrossEntropyOptions`, to compute chunk by chunk of the batch; None for all at once.

    Returns:
        The loss, a scalar or (N, d₁, ...).

    Raises:
        RuntimeError: shapes do not match.

    >>> import flambeau as torch
    >>> torch.nn.functional.linear_cross_entropy(torch.eye(2), torch.eye(2), torch.tensor([0, 1]))
    tensor(0.3133)
    """
    if input.dim() not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.dim()}")
    if linear_weight.dim() < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}")
    classes, *positions, in_features = linear_weight.shape
    if input.shape[-1] != in_features:
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), got "
                           f"{input.shape[-1]} and {in_features}, respectively")
    if linear_bias is not None and tuple(linear_bias.shape) != (classes, *positions):
        raise RuntimeError(f"expected linear_bias shape {(classes, *positions)}, got {tuple(linear_bias.shape)}")
    if positions and input.dim() == 1:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires "
                           f"batched input, (N, {in_features}), got unbatched input with shape {tuple(input.shape)}")
    logits_shape = (*input.shape[:-1], classes, *positions)
    if tuple(target.shape) == logits_shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignored = -100 if ignore_index is None else ignore_index
    if options is not None:
        if not positions and reduction in ("mean", "sum", "none") and label_smoothing == 0 and target.dtype == int64:
            return _by_chunks(input, linear_weight, target, linear_bias, weight, reduction, ignored, options)
        shape = None if linear_bias is None else tuple(linear_bias.shape)
        warnings.warn("linear_cross_entropy: ``options`` ignored; chunked path needs reduction in {'mean','sum','none'}"
                      ", label_smoothing == 0, target.dtype == int64, out_features == (). Got "
                      f"reduction={reduction!r}, label_smoothing={label_smoothing}, target.dtype={target.dtype}, "
                      f"out_features={tuple(positions)}, tracing=False, linear_bias.shape={shape}.", stacklevel=2)
    if positions:
        linear_weight = linear_weight.reshape(classes * prod(positions), in_features)
        linear_bias = None if linear_bias is None else linear_bias.reshape(-1)
    logits = fn.linear(input, linear_weight, linear_bias).reshape(logits_shape)
    return cross_entropy(logits, target, weight=weight, reduction=reduction, ignore_index=ignored,
                         label_smoothing=label_smoothing)


def _by_chunks(input: Tensor, weights: Tensor, target: Tensor, bias: Tensor | None, class_weight: Tensor | None,
               reduction: str, ignore_index: int, options: Any) -> Tensor:
    is_batched = input.dim() == 2
    if not is_batched:
        input, target = input.unsqueeze(0), target.unsqueeze(0)
    options = options._adjust(input.shape[0], input.shape[1], weights.shape[0], input.dtype, input.device)
    if options.acc_dtype != input.dtype and not (input.dtype in (float16, bfloat16) and options.acc_dtype == float32):
        raise RuntimeError("linear_cross_entropy supports float32 acc_dtype with float16/bfloat16 inputs, but got "
                           f"{options.acc_dtype} acc_dtype and {input.dtype} inputs.")
    if input.dtype != weights.dtype:
        raise RuntimeError("expected m1 and m2 to have the same dtype, but got: "
                           f"{C_NAMES[input.dtype.name]} != {C_NAMES[weights.dtype.name]}")
    common = (input, weights, target, bias, class_weight)
    size, dtype = options.batch_chunk_size, options.acc_dtype
    if reduction == "none":
        result: Tensor = _PER_SAMPLE.apply(*common, ignore_index, size, dtype)
    else:
        result = _REDUCED.apply(*common, reduction, ignore_index, size, dtype, options.allow_retain_graph)
    return result if is_batched else result.squeeze(0)
