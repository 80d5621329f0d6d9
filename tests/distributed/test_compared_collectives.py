"""TORCH_DISTRIBUTED_DEBUG=DETAIL: collectives are compared between the processes before they run."""

from __future__ import annotations

from datetime import timedelta

import flambeau as torch
from flambeau.c10d.fingerprints import fingerprint, mismatch

from .test_process_groups import run_ranks

dist = torch.distributed


def make(store, rank, size, timeout):
    group = dist.ProcessGroupGloo(dist.PrefixStore("plain", store), rank, size, timeout)
    return dist._create_process_group_wrapper(group, "own", store, rank, size, timeout)


def test_dimensions_that_differ_are_named():
    """PyTorch's text has the length of the other process's fingerprint as its operation."""

    def body(group, rank):
        group.allreduce([torch.ones(2, 3) if rank else torch.ones(2)]).wait()

    errors = run_ranks(2, body, make=make)
    own, other = (fingerprint(0, "ALLREDUCE", [torch.ones(shape)]) for shape in (2, (2, 3)))
    assert [str(each) for each in errors] == [mismatch(0, own, 1, other), mismatch(1, other, 0, own)]
    assert "Tensor Tensor shapes: 2vs 2 3" in str(errors[0])


def test_missing_process_is_named():
    def body(group, rank):
        if rank != 1:
            group.allreduce([torch.ones(2)]).wait()

    errors = run_ranks(3, body, make=make, timeout=timedelta(seconds=1))
    assert "collective: CollectiveFingerPrint(SequenceNumber=0, OpType=ALLREDUCE, TensorShape=[2]" in str(errors[0])
    assert "Ranks 1 failed to pass monitoredBarrier in 1000 ms" in str(errors[0])
    assert errors[1] is None
    assert "Please check rank 0 logs for faulty rank" in str(errors[2])


def test_collectives_compute_and_only_they_are_counted():
    def body(group, rank):
        x = torch.full((3,), float(rank + 1))
        group.allreduce([x]).wait()
        group.barrier().wait()
        group.shutdown()
        return x.tolist(), group._get_sequence_number_for_group(), group.bytes_sent > 0

    assert run_ranks(2, body, make=make) == [([3.0] * 3, 2, True)] * 2


def test_groups_of_programs_are_compared_only_on_request():
    def backends():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        try:
            return type(dist.group.WORLD._get_backend("cpu")).__name__
        finally:
            dist.destroy_process_group()

    assert backends() == "ProcessGroupGloo"
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    try:
        assert backends() == "_ProcessGroupWrapper"
    finally:
        dist.set_debug_level_from_env()
