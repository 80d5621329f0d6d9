"""PowerSGD: gradients of matrices as products of two narrow ones (https://arxiv.org/abs/1905.13727).

A matrix M (n x m) is approximated by P Qᵀ with r columns: P = M Q, averaged and orthogonalized; Q = Mᵀ P, averaged.
What the approximation leaves is added to the next gradient.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np

from ...._tensor import functions as _functions
from ...._tensor.creation.generators import Generator
from ...._tensor.creation.random import randn
from ....c10d.buckets import GradBucket
from ....c10d.process_group import ProcessGroup
from ....c10d.world import default_group
from ....engine.grad_mode import no_grad
from ....linalg import qr
from ....runtime.futures import Future
from .default_hooks import _allreduce_fut

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

functions: Any = _functions


class PowerSGDState:
    """What PowerSGD keeps from step to step.

    Args:
        process_group: the processes; all if None.
        matrix_approximation_rank: columns of P and Q.
        start_powerSGD_iter: steps that average gradients as they are, before.
        min_compression_rate: a matrix is compressed if (n + m) r times this is less than n m.
        use_error_feedback: whether what an approximation leaves is added to the next gradient.
        warm_start: whether a step begins with the last Q.
        orthogonalization_epsilon: added to norms; 0 orthogonalizes by a QR decomposition.
        random_seed: of the first Q.
        compression_stats_logging_frequency: without effect.
        batch_tensors_with_same_shape: whether matrices of one shape are multiplied together.

    Raises:
        ValueError: error feedback or a warm start from the first step on (PyTorch's text).
    """

    def __init__(self, process_group: ProcessGroup | None, matrix_approximation_rank: int = 1,
                 start_powerSGD_iter: int = 1000, min_compression_rate: float = 2, use_error_feedback: bool = True,
                 warm_start: bool = True, orthogonalization_epsilon: float = 0, random_seed: int = 0,
                 compression_stats_logging_frequency: int = 10_000,
                 batch_tensors_with_same_shape: bool = False) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError("Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, "
                             "because "
                             "PowerSGD can only be applied after the first two iterations in DDP.")
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Any] = {}
        self.p_memory_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, Any] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.next_stats_report = 0
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.process_group = default_group()
        self.__dict__.update(state)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step with its last bucket.

        Args:
            bucket: a bucket.
        """
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self) -> tuple[float, int, int]:
        """The rate of compression, and the numbers of elements before and after it."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after > 0 else 0, before, after


def _orthogonalize(matrices: Any, epsilon: float = 0) -> None:
    """Make the columns of a batch of matrices orthonormal, in place."""
    if epsilon == 0 and matrices.dtype.itemsize > 2:
        matrices.copy_(qr(matrices)[0])
        return
    for i in range(matrices.shape[2]):
        column = matrices[:, :, i:i + 1]
        if epsilon == 0:
            norm = column.norm(dim=1, keepdim=True)
            column.copy_(column / norm if bool((norm > 0).all()) else column * 0)
        else:
            column.div_(column.norm(dim=1, keepdim=True) + epsilon)
        if i + 1 < matrices.shape[2]:
            rest = matrices[:, :, i + 1:]
            rest.sub_((column * rest).sum(1, keepdim=True) * column)


def _summed(group: ProcessGroup, tensor: Any) -> Any:
    group.allreduce([tensor]).wait()
    return tensor


def _completed(tensor: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(tensor)
    return future


def _with_error(state: PowerSGDState, index: int, flat: Any) -> Any:
    """Add what the last approximation left; a copy of the sum."""
    if not state.use_error_feedback:
        return None
    if index in state.error_dict:
        flat.add_(state.error_dict[index])
    return flat.detach().clone()


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """Average gradients of matrices by PowerSGD, others as they are.

    Args:
        state: what it keeps.
        bucket: the gradients.
    """
    group = default_group() if state.process_group is None else state.process_group
    flat = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(group, flat)
    index = bucket.index()
    with no_grad():
        before = _with_error(state, index, flat)
        groups: dict[Any, list[Any]] = defaultdict(list)
        plain = []
        for tensor in bucket.gradients():
            matrix = tensor.view(tensor.shape[0], -1)
            n, m = matrix.shape
            rank = min(n, m, state.matrix_approximation_rank)
            state.total_numel_before_compression += n * m
            if (n + m) * rank * state.min_compression_rate < n * m:
                groups[tuple(matrix.shape)].append(matrix)
                state.total_numel_after_compression += (n + m) * rank
            else:
                plain.append(tensor)
                state.total_numel_after_compression += n * m
        batches = [(functions.stack(members), members) for members in groups.values()] if (
            state.batch_tensors_with_same_shape) else [
            (each.unsqueeze(0), [each]) for members in groups.values() for each in members]
        if plain:
            together = functions.cat([each.reshape(-1) for each in plain])
            _summed(group, together).div_(group.size())
            start = 0
            for each in plain:
                each.copy_(together[start:start + each.numel()].view(each.shape))
                start += each.numel()
        ps, qs = _factors(state, index, flat, [each for each, _ in batches])
        for (batch, _), p, q in zip(batches, ps, qs, strict=True):
            p.copy_(functions.bmm(batch, q))
        _summed(group, state.p_memory_dict[index])  # orthogonalized next: their scale is of no matter
        for (batch, _), p, q in zip(batches, ps, qs, strict=True):
            _orthogonalize(p, state.orthogonalization_epsilon)
            q.copy_(functions.bmm(batch.transpose(1, 2), p))
        _summed(group, state.q_memory_dict[index]).div_(group.size())
        for (_, members), p, q in zip(batches, ps, qs, strict=True):
            product = functions.bmm(p, q.transpose(1, 2))
            for i, each in enumerate(members):
                each.copy_(product[i])
        if before is not None:
            state.error_dict[index] = before - flat
        if not state.warm_start:
            state.p_memory_dict.clear()
            state.q_memory_dict.clear()
        state.maybe_increase_iter(bucket)
    return _completed(flat)


def _factors(state: PowerSGDState, index: int, flat: Any, batches: list[Any]) -> tuple[list[Any], list[Any]]:
    """P and Q of each batch of matrices, views of one tensor each; Q is orthonormal."""
    sizes = [(each.shape[0], *each.shape[1:], min(*each.shape[1:],
                                                  state.matrix_approximation_rank)) for each in batches]
    random = not state.warm_start or index not in state.p_memory_dict
    if random:
        state.p_memory_dict[index] = flat.new_zeros(sum(b * n * r for b, n, _, r in sizes))
        state.q_memory_dict[index] = flat.new_zeros(sum(b * m * r for b, _, m, r in sizes))
    ps, qs, p_start, q_start = [], [], 0, 0
    for b, n, m, r in sizes:
        ps.append(state.p_memory_dict[index][p_start:p_start + b * n * r].view(b, n, r))
        qs.append(state.q_memory_dict[index][q_start:q_start + b * m * r].view(b, m, r))
        p_start, q_start = p_start + b * n * r, q_start + b * m * r
    generator = Generator().manual_seed(state.rng.randint(1_000_000_000)) if random else None
    for q in qs:
        if generator is not None:
            q.copy_(randn(*q.shape, dtype=flat.dtype, generator=generator))
        _orthogonalize(q, state.orthogonalization_epsilon)
    return ps, qs


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Any]:
    """Average gradients by PowerSGD, all of a bucket as one square matrix.

    Args:
        state: what it keeps.
        bucket: the gradients.
    """
    group = default_group() if state.process_group is None else state.process_group
    flat = bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return _allreduce_fut(group, flat)
    index, length = bucket.index(), flat.shape[0]
    side = int(np.ceil(np.sqrt(length)))
    with no_grad():
        padded = functions.cat([flat, flat.new_zeros(side * side - length)])
        state.total_numel_before_compression += side * side
        state.total_numel_after_compression += 2 * side * min(side, state.matrix_approximation_rank)
        before = _with_error(state, index, padded)
        matrix = padded.view(1, side, side)
        ps, qs = _factors(state, index, flat, [matrix])
        p, q = ps[0], qs[0]
        p.copy_(functions.bmm(matrix, q))
        _summed(group, state.p_memory_dict[index])
        _orthogonalize(p, 0)
        q.copy_(functions.bmm(matrix.transpose(1, 2), p))
        _summed(group, state.q_memory_dict[index]).div_(group.size())
        matrix.copy_(functions.bmm(p, q.transpose(1, 2)))
        if before is not None:
            state.error_dict[index] = before - padded
        if not state.warm_start:
            state.p_memory_dict.clear()
            state.q_memory_dict.clear()
        state.maybe_increase_iter(bucket)
    flat.copy_(padded[:length])
    return _completed(flat)
