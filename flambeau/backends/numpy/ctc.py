"""Connectionist temporal classification: sums over alignments, forwards and backwards in time, all samples at once."""

from __future__ import annotations

from typing import Any

import numpy as np


def _labels(targets: Any, lengths: Any, blank: int) -> Any:
    """Each target with blanks between, before and after: (N, 2 S + 1)."""
    n, longest = len(lengths), int(lengths.max(initial=0))
    found = np.full((n, 2 * longest + 1), blank, np.int64)
    if targets.ndim == 1:
        starts = np.cumsum(lengths) - lengths
        for i, (start, length) in enumerate(zip(starts, lengths, strict=True)):
            found[i, 1:2 * length:2] = targets[start:start + length]
    else:
        place = np.arange(longest) < lengths[:, None]
        found[:, 1::2] = np.where(place, targets[:, :longest], blank)
    return found


def _skips(labels: Any, blank: int) -> Any:
    """Whether a state may be entered from the one but last."""
    found = np.zeros(labels.shape, bool)
    found[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    return found


def _shifted(x: Any, by: int) -> Any:
    out = np.full(x.shape, -np.inf, x.dtype)
    out[:, by:] = x[:, :x.shape[1] - by]
    return out


def _align(log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, saved: list[Any]) -> Any:
    steps, n, _ = log_probs.shape
    labels = _labels(targets, target_lengths, blank)
    skips = _skips(labels, blank)
    states = labels.shape[1]
    rows = np.arange(n)
    emitted = np.take_along_axis(log_probs, np.broadcast_to(labels, (steps, *labels.shape)), 2)
    within = np.arange(states) < 2 * target_lengths[:, None] + 1
    alpha = np.full((max(steps, 1), n, states), -np.inf, log_probs.dtype)
    last = np.full(n, -np.inf, log_probs.dtype)
    if steps:
        alpha[0, :, :2] = emitted[0, :, :2]
        alpha[0][~within] = -np.inf
        for t in range(1, steps):
            before = alpha[t - 1]
            total = np.logaddexp(before, _shifted(before, 1))
            total = np.logaddexp(total, np.where(skips, _shifted(before, 2), -np.inf))
            alpha[t] = np.where(within, total + emitted[t], -np.inf)
    for_some = input_lengths > 0
    end = alpha[np.maximum(input_lengths, 1) - 1, rows]
    final = end[rows, 2 * target_lengths]
    previous = np.where(target_lengths > 0, end[rows, np.maximum(2 * target_lengths - 1, 0)], -np.inf)
    last = np.where(for_some, np.logaddexp(final, previous), np.where(target_lengths == 0, 0, -np.inf))
    saved[:] = (alpha, last, labels, skips, within)
    return (-last).astype(log_probs.dtype)


def _align_backward(g: Any, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int,
                    zero_infinity: bool, saved: list[Any]) -> Any:
    alpha, last, labels, skips, within = saved
    steps, n, classes = log_probs.shape
    states = labels.shape[1]
    out = np.zeros_like(log_probs)
    if not steps:
        return out
    rows = np.arange(n)
    emitted = np.take_along_axis(log_probs, np.broadcast_to(labels, (steps, *labels.shape)), 2)
    reversed_skips = np.zeros(skips.shape, bool)
    reversed_skips[:, :-2] = skips[:, 2:]
    beta = np.full((n, states), -np.inf, log_probs.dtype)
    for t in range(steps - 1, -1, -1):
        after = beta[:, ::-1]
        total = np.logaddexp(beta, _shifted(after, 1)[:, ::-1])
        total = np.logaddexp(total, np.where(reversed_skips, _shifted(after, 2)[:, ::-1], -np.inf))
        begins = t == input_lengths - 1
        first = np.full((n, states), -np.inf, log_probs.dtype)
        first[rows, 2 * target_lengths] = 0
        first[rows, np.maximum(2 * target_lengths - 1, 0)] = 0
        total = np.where(begins[:, None], first, total)
        beta = np.where(within & (t < input_lengths)[:, None], total + emitted[t], -np.inf)
        weight = np.zeros((n, classes), log_probs.dtype)
        shares = np.exp(alpha[t] + beta - 2 * emitted[t] - last[:, None])
        np.add.at(weight, (rows[:, None], labels), np.where(np.isneginf(alpha[t]) | np.isneginf(beta), 0, shares))
        probability = np.exp(log_probs[t])
        out[t] = np.where((t < input_lengths)[:, None], probability - weight * probability, 0)
    out *= g[:, None]
    if zero_infinity:
        out[:, np.isneginf(last)] = 0
    elif np.isneginf(last).any():
        out[:, np.isneginf(last)] = np.nan
    return out


PRIMITIVES = {"align": _align, "align_backward": _align_backward}
