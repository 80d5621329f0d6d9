"""Sums of sparse tensors by `allreduce`, and the layouts that it refuses."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import distributed as dist

from .test_process_groups import run_ranks


def sparse(rows, values, size):
    return torch.sparse_coo_tensor([rows], values, size, check_invariants=True)


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("dense", [(), (2,)])
def test_sum_of_sparse_tensors(size, dense):
    def body(group, rank):
        each = [sparse([*range(rank + 1)], torch.full((rank + 1, *dense), float(rank + n + 1)), (4, *dense))
                for n in range(2)]
        work = group.allreduce(each)
        work.wait()
        assert all(tensor.is_coalesced() for tensor in each)
        assert work.get_future().value() is not None
        return [tensor.to_dense().numpy() for tensor in each]

    expected = np.zeros((4, *dense), np.float32)
    for rank in range(size):
        for n in range(2):
            expected[:rank + 1] += rank + n + 1
    for results in run_ranks(size, body):
        for result in results:
            np.testing.assert_array_equal(result, expected)


def test_what_is_refused():
    group = dist.ProcessGroupGloo(dist.HashStore(), 0, 1)
    plain, short, long = torch.zeros(1), sparse([0], [1.], (2,)), sparse([0], [1.], (4,))
    with pytest.raises(RuntimeError, match="invalid tensor layout at index 1"):
        group.allreduce([plain, short])
    with pytest.raises(RuntimeError, match="invalid tensor size at index 0"):
        group.allreduce([short, long])
    options = dist.AllreduceOptions()
    options.reduceOp = dist.ReduceOp.MAX
    with pytest.raises(RuntimeError, match="unsupported reduction operation"):
        group.allreduce([short], options)
    with pytest.raises(RuntimeError, match="invalid tensor layout at index 1"):
        group.allreduce_coalesced([plain, short])
    with pytest.raises(RuntimeError, match="unsupported layout"):
        group.allreduce_coalesced([short, short])
    with pytest.raises(RuntimeError, match="invalid root tensor: 0"):
        group.broadcast([])
    root = dist.ReduceOptions()
    root.rootTensor = 1
    with pytest.raises(RuntimeError, match="invalid root tensor: 1"):
        group.reduce([plain], root)
