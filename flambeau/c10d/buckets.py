"""Buckets: gradients, or parameters, of one dtype that a collective handles at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import multiply, ndarray

from .. import dtypes
from .._tensor.tensor import Tensor, wrap
from ..backends.sparse_array import SparseArray
from ..engine.grad_mode import no_grad
from ..runtime.futures import Future
from .memory import array_of
from .options import BroadcastOptions
from .process_group import ProcessGroup
from .work import end


class GradBucket:
    """Gradients that are averaged at once: what a communication hook gets.

    Args:
        index: the bucket's number; 0 is the first that is ready.
        last: whether it is the last of the pass.
        flat: its gradients, one after another.
        parameters: the parameters that they belong to.
        lengths: their numbers of elements.
    """

    def __init__(self, index: int, last: bool, flat: Tensor, parameters: Sequence[Tensor],
                 lengths: Sequence[int]) -> None:
        self._index, self._last, self._flat = index, last, flat
        self._parameters, self._lengths = list(parameters), list(lengths)

    def index(self) -> int:
        """The bucket's number."""
        return self._index

    def is_last(self) -> bool:
        """Whether it is the last bucket of the pass."""
        return self._last

    def buffer(self) -> Tensor:
        """All gradients, one after another, in a tensor of one dimension."""
        return self._flat

    def set_buffer(self, tensor: Tensor) -> None:
        """Replace the gradients.

        Args:
            tensor: as many elements.
        """
        self._flat = tensor

    def parameters(self) -> list[Tensor]:
        """The parameters."""
        return self._parameters

    def gradients(self) -> list[Tensor]:
        """The gradients, as views of the buffer."""
        starts = np.cumsum([0, *self._lengths])
        with no_grad():
            return [self._flat[int(starts[i]):int(starts[i]) + length].view(parameter.shape)
                    for i, (parameter, length) in enumerate(zip(self._parameters, self._lengths, strict=True))]


class Bucket:
    """Gradients of one dtype that are averaged at once; a sparse one is alone.

    Args:
        indices: the numbers of its parameters.
        parameters: all parameters.
        sparse: whether the gradient is sparse.
    """

    def __init__(self, indices: Sequence[int], parameters: Sequence[Tensor], sparse: bool) -> None:
        self.indices, self.sparse = list(indices), sparse
        members = [parameters[i] for i in indices]
        if any(each.dtype != members[0].dtype for each in members):
            raise RuntimeError("All parameters in a bucket must have the same dtype.")
        self.lengths = [each.numel() for each in members]
        offsets = np.cumsum([0, *self.lengths]).tolist()
        self.dtype = members[0]._array.dtype
        self.flat = wrap(np.zeros(0 if sparse else offsets[-1], self.dtype))
        self.parts = [] if sparse else [  # of each gradient
            self.flat._array[start:start + each.numel()].reshape(each._array.shape)
            for start, each in zip(offsets, members, strict=False)]
        self.divisor = 1  # what gradients are divided by as they are copied
        self.scale: np.ndarray | None = None  # what they are multiplied by, where NumPy can
        self.pending = len(self.indices)
        self.started = False
        self.future: Future[Any] | None = None
        self.sparse_gradient: Any = None

    def expect(self, divisor: int) -> None:
        """Begin a pass.

        Args:
            divisor: what gradients are divided by as they are copied.
        """
        self.pending, self.started = len(self.indices), False
        self.future = self.sparse_gradient = None
        if divisor != self.divisor:
            self.divisor = divisor
            multiplies = divisor != 1 and self.dtype.kind != "V" and self.dtype != dtypes.HALF
            self.scale = np.asarray(1 / divisor, self.parts[0].real.dtype) if multiplies and self.parts else None

    def copy_in(self, position: int, gradient: Any) -> None:
        """Copy a gradient to its place, divided.

        Args:
            position: its number in the bucket.
            gradient: a tensor; None stands for zeros.
        """
        if self.sparse:
            self.sparse_gradient = gradient
            return
        part, scale = self.parts[position], self.scale
        if gradient is None:
            part[...] = np.zeros((), part.dtype)
            return
        source = gradient._array
        if source.__class__ is not ndarray:
            source = array_of(gradient.to_dense() if isinstance(source, SparseArray) else gradient)
        if scale is not None:
            multiply(source, scale, part)
        elif self.divisor == 1:
            part[...] = source
        else:
            part[...] = dtypes.cast(dtypes.widen(source) * np.float32(1 / self.divisor), self.dtype)

    def copy_out(self, parameters: Sequence[Tensor], used: Sequence[int], views: bool) -> None:
        """Make the averages gradients.

        Args:
            parameters: all parameters.
            used: which of them any process has used; gradients of others stay as they are.
            views: whether gradients become views of the bucket.
        """
        for index, value in zip(self.indices, self.parts, strict=True):
            if not used[index]:
                continue
            parameter = parameters[index]
            gradient = parameter._grad
            if views:
                if gradient is None or gradient._array is not value:
                    parameter.grad = wrap(value)
            elif gradient is None or not isinstance(gradient._array, ndarray):
                parameter.grad = wrap(value.copy())
            else:
                gradient._array[...] = value
                gradient._bump_version()


def compute_bucket_assignment_by_size(tensors: Sequence[Tensor], bucket_size_limits: Sequence[int],
                                      expect_sparse_gradient: Sequence[bool] = (),
                                      tensor_indices: Sequence[int] = ()) -> tuple[list[list[int]], list[int]]:
    """Divide tensors into buckets of one dtype each, in their order.

    Args:
        tensors: the tensors.
        bucket_size_limits: bytes of the first bucket of a dtype, of the second, ...; the last value holds for the
        others. expect_sparse_gradient: which tensors get a bucket of their own.
        tensor_indices: the numbers of the tensors; their positions if empty.

    Returns:
        The numbers in each bucket, and the limit that each bucket had.
    """
    buckets: list[list[int]] = []
    limits: list[int] = []
    open_buckets: dict[Any, tuple[list[int], int, int]] = {}
    for position, tensor in enumerate(tensors):
        number = tensor_indices[position] if tensor_indices else position
        if expect_sparse_gradient and expect_sparse_gradient[number]:
            buckets.append([number])
            limits.append(0)
            continue
        members, size, which = open_buckets.get(tensor.dtype, ([], 0, 0))
        limit = bucket_size_limits[min(which, len(bucket_size_limits) - 1)]
        members, size = [*members, number], size + tensor.numel() * tensor.element_size()
        if size >= limit:
            buckets.append(members)
            limits.append(limit)
            members, size, which = [], 0, which + 1
        open_buckets[tensor.dtype] = members, size, which
    for members, _, which in open_buckets.values():
        if members:
            buckets.append(members)
            limits.append(bucket_size_limits[min(which, len(bucket_size_limits) - 1)])
    if not tensor_indices:
        order = sorted(range(len(buckets)), key=lambda i: min(buckets[i]))
        buckets, limits = [buckets[i] for i in order], [limits[i] for i in order]
    return buckets, limits


def broadcast_coalesced(process_group: ProcessGroup, tensors: Sequence[Tensor], buffer_size: int = 250 << 20,
                        src: int = 0) -> None:
    """Copy tensors from one process to all, in buffers of one dtype."""
    with no_grad():
        buckets, _ = compute_bucket_assignment_by_size(tensors, [buffer_size])
        for bucket in buckets:
            flat = wrap(np.concatenate([np.ascontiguousarray(tensors[i].detach()._array).reshape(-1) for i in bucket]))
            options = BroadcastOptions()
            options.rootRank, options.asyncOp = src, False
            end(process_group.broadcast([flat], options))
            if process_group.rank() != src:
                start = 0
                for i in bucket:
                    count = tensors[i].numel()
                    tensors[i].detach().copy_(flat[start:start + count].view(tensors[i].shape))
                    start += count


__all__ = ["Bucket", "GradBucket", "broadcast_coalesced", "compute_bucket_assignment_by_size"]
