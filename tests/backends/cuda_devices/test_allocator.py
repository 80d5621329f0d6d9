"""The caching allocator: sizes, reuse, splitting and merging, statistics, and a full device."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from flambeau.backends.cuda_devices.errors import OutOfMemoryError
from flambeau.backends.cuda_devices.fake import FakeRuntime

MIB = 1 << 20


@pytest.fixture
def runtime() -> FakeRuntime:
    return FakeRuntime(memory=64 * MIB)


def used(runtime: FakeRuntime, name: str) -> int:
    return runtime.allocators[0].read(name)


def test_sizes_of_blocks_and_segments(runtime):
    small = runtime.allocate(0, 1)
    assert (used(runtime, "allocated_bytes.all.current"), used(runtime, "reserved_bytes.all.current")) == (512, 2 * MIB)
    large = runtime.allocate(0, 2 * MIB)
    assert used(runtime, "reserved_bytes.large_pool.current") == 20 * MIB
    own = runtime.allocate(0, 19 * MIB + 1)
    assert used(runtime, "reserved_bytes.large_pool.current") == 40 * MIB
    assert used(runtime, "requested_bytes.all.current") == 1 + 2 * MIB + 19 * MIB + 1
    assert used(runtime, "segment.all.current") == 3
    del small, large, own
    assert used(runtime, "allocated_bytes.all.current") == 0
    assert used(runtime, "allocated_bytes.all.peak") == 512 + 2 * MIB + 20 * MIB  # less than 1 MiB is not split off
    assert used(runtime, "reserved_bytes.all.current") == 42 * MIB
    runtime.allocators[0].empty_cache()
    assert used(runtime, "reserved_bytes.all.current") == 0
    assert runtime.memory_info(0) == (64 * MIB, 64 * MIB)


def test_freed_blocks_are_used_again_and_merged(runtime):
    blocks = [runtime.allocate(0, 1024) for _ in range(3)]
    offsets = [each.offset for each in blocks]
    assert offsets == [0, 1024, 2048]
    del blocks[1]
    assert runtime.allocate(0, 1000).offset == 1024
    del blocks[:]
    assert runtime.allocate(0, MIB).offset == 0
    assert used(runtime, "segment.all.current") == 1
    assert used(runtime, "inactive_split.all.current") == 0


def test_streams_have_their_own_blocks(runtime):
    runtime.allocate(0, 512)
    runtime.set_stream(0, runtime.new_stream(0, 0))
    runtime.allocate(0, 512)
    assert used(runtime, "segment.all.current") == 2


def test_a_full_device(runtime):
    kept = runtime.allocate(0, 40 * MIB)
    cached = runtime.allocate(0, 16 * MIB)
    del cached
    assert runtime.allocate(0, 20 * MIB).nbytes == 20 * MIB  # after the cache is emptied
    assert used(runtime, "allocated_bytes.all.current") == kept.nbytes
    with pytest.raises(OutOfMemoryError, match=r"CUDA out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total "
                                               r"capacity of 64.00 MiB of which 24.00 MiB is free."):
        runtime.allocate(0, 30 * MIB)
    assert runtime.allocators[0].statistics()["num_ooms"] == 1
    assert runtime.allocators[0].statistics()["num_alloc_retries"] == 2
    runtime.allocators[0].fraction = 0.5
    with pytest.raises(OutOfMemoryError, match=r"32\.00 MiB allowed"):
        runtime.allocate(0, 8 * MIB)


def test_random_sizes(runtime):
    random, live = np.random.default_rng(0), []
    for _ in range(300):
        if live and random.random() < 0.5:
            live.pop(random.integers(len(live)))
        else:
            live.append(runtime.allocate(0, int(random.integers(1, 1 << int(random.integers(1, 18))))))
        spans = sorted((id(each.segment), each.offset, each.offset + each.nbytes) for each in live)
        assert all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(spans))
    blocks = [block for each in runtime.allocators[0].snapshot() for block in each["blocks"]]
    assert sum(b["requested_size"] for b in blocks) == sum(each.nbytes for each in live) == used(
        runtime, "requested_bytes.all.current")
    live.clear()
    runtime.allocators[0].empty_cache()
    assert runtime.memory_info(0)[0] == 64 * MIB


@pytest.mark.parity
def test_statistics_make_pytorch_s_table(monkeypatch):
    torch = pytest.importorskip("torch")
    import flambeau

    with flambeau.testing.fake_cuda():
        tensors = [flambeau.ones(n, device="cuda") for n in (10, 1000, 10 ** 6, 2 * 10 ** 5, 10 ** 7)]
        del tensors[1:3]
        stats = flambeau.cuda.memory_stats()
        monkeypatch.setattr(torch.cuda.memory, "memory_stats", lambda device=None: stats)
        monkeypatch.setattr(torch.cuda.memory, "_get_device_index", lambda device, optional=False: 0)
        for abbreviated in (True, False):
            assert torch.cuda.memory_summary(0, abbreviated) == flambeau.cuda.memory_summary(0, abbreviated)
