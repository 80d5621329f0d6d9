"""Connectionist temporal classification on arrays: the forward and backward recursions, batched over samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..compiled import label_paths


def _check(steps: int, targets: Any, inputs: Any, sizes: Any) -> None:
    """Check the lengths of inputs and targets, (N,) each.

    Raises:
        RuntimeError: a length is negative, or exceeds what there is.
    """
    for name, lengths in (("input_lengths", inputs), ("target_lengths", sizes)):
        if lengths.size and lengths.min() < 0:
            at = int(lengths.argmin())
            raise RuntimeError(f"Expected {name} to have value at least 0, but got value {lengths[at]} (while checking "
                               "arguments for ctc_loss_allocate_outputs)")
    if inputs.size and inputs.max() > steps:
        raise RuntimeError(f"Expected input_lengths to have value at most {steps}, but got value "
                           f"{inputs[inputs > steps][0]} (while checking arguments for ctc_loss_allocate_outputs)")
    if targets.ndim == 1 and targets.size != sizes.sum():
        raise RuntimeError(f"Expected tensor to have size {sizes.sum()} at dimension 0, but got size {targets.size} "
                           "for argument #2 'targets' (while checking arguments for ctc_loss_allocate_outputs)")
    if targets.ndim == 2 and targets.shape[1] < sizes.max(initial=0):
        raise RuntimeError(f"Expected tensor to have size at least {sizes.max()} at dimension 1, but got size "
                           f"{targets.shape[1]} for argument #2 'targets' (while checking arguments for "
                           "ctc_loss_allocate_outputs)")


def _labels(targets: Any, lengths: Any, blank: int) -> Any:
    """Return the targets with blanks between, before and after their labels, (N, 2 S + 1)."""
    n, longest = len(lengths), int(lengths.max(initial=0))
    result = np.full((n, 2 * longest + 1), blank, np.int64)
    if targets.ndim == 1:
        starts = np.cumsum(lengths) - lengths
        for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            result[i, 1:2 * length:2] = targets[start:start + length]
    else:
        is_label = np.arange(longest) < lengths[:, None]
        result[:, 1::2] = np.where(is_label, targets[:, :longest], blank)
    return result


def _skips(labels: Any, blank: int) -> Any:
    """Return whether each state can be entered from the state two before it."""
    result = np.zeros(labels.shape, bool)
    result[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    return result


def _shifted(x: Any, by: int) -> Any:
    """Shift states to the right; -inf enters."""
    out = np.full(x.shape, -np.inf, x.dtype)
    out[:, by:] = x[:, :x.shape[1] - by]
    return out


def _forward(emission: Any, skips: Any, input_lengths: Any, target_lengths: Any, is_state: Any) -> Any:
    """Return the logarithms of sums over paths up to each step and state, (T, N, 2 S + 1)."""
    steps = len(emission)
    alpha = label_paths(emission, skips, input_lengths, 2 * target_lengths + 1, False)
    if alpha is not None:
        return alpha
    alpha = np.full((max(steps, 1), *emission.shape[1:]), -np.inf, emission.dtype)
    if steps:
        alpha[0, :, :2] = emission[0, :, :2]
        alpha[0][~is_state] = -np.inf
        for t in range(1, steps):
            before = alpha[t - 1]
            total = np.logaddexp(before, _shifted(before, 1))
            total = np.logaddexp(total, np.where(skips, _shifted(before, 2), -np.inf))
            alpha[t] = np.where(is_state, total + emission[t], -np.inf)
    return alpha


def _ctc_loss(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int,
              saved: list[Any]) -> Any:
    steps, n, _ = log_probs.shape
    _check(steps, targets, input_lengths, target_lengths)
    labels = _labels(targets, target_lengths, blank)
    skips = _skips(labels, blank)
    states = labels.shape[1]
    rows = np.arange(n)
    emission = _emission(log_probs, labels)
    is_state = np.arange(states) < 2 * target_lengths[:, None] + 1
    alpha = _forward(emission, skips, input_lengths, target_lengths, is_state)
    has_input = input_lengths > 0
    end = alpha[np.maximum(input_lengths, 1) - 1, rows]
    final = end[rows, 2 * target_lengths]
    previous = np.where(target_lengths > 0, end[rows, np.maximum(2 * target_lengths - 1, 0)], -np.inf)
    log_likelihood = np.where(has_input, np.logaddexp(final, previous), np.where(target_lengths == 0, 0, -np.inf))
    saved[:] = (alpha, log_likelihood, labels, skips, is_state)
    return (-log_likelihood).astype(log_probs.dtype)


def _emission(log_probs: Any, labels: Any) -> Any:
    """Return the logarithms of the probabilities of each state, (T, N, 2 S + 1)."""
    return log_probs[:, np.arange(len(labels))[:, None], labels]


def _backward(emission: Any, skips: Any, input_lengths: Any, target_lengths: Any, is_state: Any) -> Any:
    """Return the logarithms of sums over paths from each step and state on, (T, N, 2 S + 1)."""
    found = label_paths(emission, skips, input_lengths, 2 * target_lengths + 1, True)
    if found is not None:
        return found
    steps, n, states = emission.shape
    rows = np.arange(n)
    reversed_skips = np.zeros(skips.shape, bool)
    reversed_skips[:, :-2] = skips[:, 2:]
    betas = np.empty(emission.shape, emission.dtype)
    beta = np.full((n, states), -np.inf, emission.dtype)
    for t in range(steps - 1, -1, -1):
        after = beta[:, ::-1]
        total = np.logaddexp(beta, _shifted(after, 1)[:, ::-1])
        total = np.logaddexp(total, np.where(reversed_skips, _shifted(after, 2)[:, ::-1], -np.inf))
        is_last = t == input_lengths - 1
        initial = np.full((n, states), -np.inf, emission.dtype)
        initial[rows, 2 * target_lengths] = 0
        initial[rows, np.maximum(2 * target_lengths - 1, 0)] = 0
        total = np.where(is_last[:, None], initial, total)
        beta = betas[t] = np.where(is_state & (t < input_lengths)[:, None], total + emission[t], -np.inf)
    return betas


def _ctc_loss_backward(g: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int,
                    zero_infinity: bool, saved: list[Any]) -> Any:
    alpha, log_likelihood, labels, skips, is_state = saved
    steps, n, classes = log_probs.shape
    if not steps:
        return np.zeros_like(log_probs)
    emission = _emission(log_probs, labels)
    beta = _backward(emission, skips, input_lengths, target_lengths, is_state)
    shares = np.exp(alpha + beta - 2 * emission - log_likelihood[:, None])
    shares[np.isneginf(alpha) | np.isneginf(beta)] = 0
    columns = (labels + classes * np.arange(n)[:, None]).reshape(-1) + classes * n * np.arange(steps)[:, None]
    weight = np.bincount(columns.reshape(-1), shares.reshape(-1), steps * n * classes)  # in double precision
    weight = weight.astype(log_probs.dtype, copy=False).reshape(steps, n, classes)
    probability = np.exp(log_probs)
    weight *= probability
    out = np.where((np.arange(steps)[:, None] < input_lengths)[..., None], probability - weight, 0)
    out = out.astype(log_probs.dtype, copy=False)
    out *= g[:, None]
    if zero_infinity:
        out[:, np.isneginf(log_likelihood)] = 0
    elif np.isneginf(log_likelihood).any():
        out[np.isneginf(log_likelihood) & (np.arange(steps)[:, None] < input_lengths)] = np.nan
    return out


PRIMITIVES = {"ctc_loss": _ctc_loss, "ctc_loss_backward": _ctc_loss_backward}
