"""Sums of sparse tensors over processes: each gets the indices and values of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._tensor.sparse.constructors import sparse_coo_tensor
from .._tensor.tensor import Tensor, wrap
from ..engine.grad_mode import no_grad
from . import algorithms
from .process_group import ProcessGroup
from .transport.transport import Deadline, Transport


def all_reduce_sparse(net: Transport, tag: int, tensors: Sequence[Any], deadline: Deadline) -> None:
    """Replace sparse tensors of one shape by their sum and that of all processes' tensors, coalesced."""
    with no_grad():
        total = tensors[0]
        for other in tensors[1:]:
            total = total + other
        total = total.detach().coalesce()
        indices, values = total.indices()._array, total.values()._array
        sparse_dims, dense_shape = indices.shape[0], values.shape[1:]
        counts = _of_all(net, tag, np.array([values.shape[0]], np.int64), [1] * net.size, deadline)
        numbers = [int(each[0]) for each in counts]
        rows = _of_all(net, tag, np.ascontiguousarray(indices.T).reshape(-1), [n * sparse_dims for n in numbers],
                       deadline)
        width = int(np.prod(dense_shape))
        elements = _of_all(net, tag, np.ascontiguousarray(values).reshape(-1), [n * width for n in numbers], deadline)
        all_indices = np.ascontiguousarray(np.concatenate(rows).reshape(-1, sparse_dims).T)
        all_values = np.concatenate(elements).reshape(-1, *dense_shape)
        result = sparse_coo_tensor(wrap(all_indices), wrap(all_values), total.shape, check_invariants=False).coalesce()
        for tensor in tensors:
            tensor.copy_(result)  # a write to an alias would not reach it


def _of_all(net: Transport, tag: int, own: np.ndarray, sizes: Sequence[int], deadline: Deadline) -> list[np.ndarray]:
    chunks = [own if rank == net.rank else np.empty(size, own.dtype) for rank, size in enumerate(sizes)]
    algorithms.all_gather(net, tag, chunks, deadline)
    return chunks


def sum_sparse(group: ProcessGroup, tensor: Any) -> Tensor:
    """The sum of sparse tensors over all processes.

    Args:
        group: the processes.
        tensor: a sparse tensor, of the same shape in all.
    """
    own = tensor.coalesce()
    indices, values = own.indices(), own.values()
    counts = [wrap(np.zeros(1, np.int64)) for _ in range(group.size())]
    group.allgather([counts], [wrap(np.array([values.shape[0]], np.int64))]).wait()
    longest = max(int(each.item()) for each in counts)

    def gathered(rows: Any) -> list[Any]:
        padded = wrap(np.zeros((longest, *rows.shape[1:]), rows._array.dtype))
        padded._array[:rows.shape[0]] = rows._array
        received = [wrap(np.zeros_like(padded._array)) for _ in counts]
        group.allgather([received], [padded]).wait()
        return [each._array[:int(count.item())] for each, count in zip(received, counts, strict=True)]

    all_indices = np.concatenate(gathered(wrap(np.ascontiguousarray(indices._array.T))))
    all_values = np.concatenate(gathered(values.contiguous()))
    out: Tensor = sparse_coo_tensor(wrap(np.ascontiguousarray(all_indices.T)), wrap(all_values),
                                    tensor.shape).coalesce()
    return out


__all__ = ["all_reduce_sparse", "sum_sparse"]
