"""The emulator: results, and the faults that it must find."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu.emulation import emulator
from flambeau.codegen.gpu.emulation.race_detector import OutOfBoundsError, RaceError
from flambeau.codegen.gpu.kernel_ir import KernelBuilder
from flambeau.codegen.scalar import scalar_ir as e


def block_sum(threads=128, barrier=True):
    """Each block sums its part of x by a tree in shared memory."""
    b = KernelBuilder("block_sum", threads)
    x, y, n = b.buffer("float64"), b.buffer("float64"), b.scalar("int32")
    part = b.shared("float64", threads)
    total = b.local(e.constant(0.0, "float64"))
    with b.loop(b.block * threads + b.thread, n, 4 * threads) as i:
        b.set(total, b.get(total) + b.load(x, i))
    b.store(part, b.thread, b.get(total))
    width = threads // 2
    while width:
        if barrier:
            b.barrier()
        with b.when(b.thread < width):
            b.store(part, b.thread, b.load(part, b.thread) + b.load(part, b.thread + width))
        width //= 2
    with b.when(e.eq(b.thread, 0)):
        b.store(y, b.block, b.load(part, 0))
    return b.kernel()


def test_blocks_sum_their_parts():
    x, y = np.random.default_rng(0).standard_normal(1000), np.empty(4)
    emulator.run(block_sum(), (4, 1, 1), [x, y, 1000])
    np.testing.assert_allclose(y, [x[np.arange(1000) // 128 % 4 == i].sum() for i in range(4)])


def test_a_missing_barrier_is_a_race():
    x, y = np.zeros(1000), np.empty(4)
    with pytest.raises(RaceError, match=r"a race at element \d+ of shared0: threads \d+ and \d+ of block 0, with"):
        emulator.run(block_sum(barrier=False), (4, 1, 1), [x, y, 1000])
    emulator.run(block_sum(barrier=False), (4, 1, 1), [x, y, 1000], check=False)


def test_two_blocks_that_write_one_element_race():
    b = KernelBuilder("racy", 32)
    x = b.buffer("int32")
    b.store(x, b.thread, b.block)
    with pytest.raises(RaceError, match=r"global0: blocks 0 and 1; order them by"):
        emulator.run(b.kernel(), (2, 1, 1), [np.zeros(32, np.int32)])


def test_a_block_that_reads_what_another_writes_races_across_groups_of_blocks():
    b = KernelBuilder("neighbours", 1024)
    x = b.buffer("int32")
    i = b.block * 1024 + b.thread
    value = b.load(x, i + 1024, i < 39 * 1024)
    b.store(x, i, value)
    with pytest.raises(RaceError, match="blocks"):
        emulator.run(b.kernel(), (40, 1, 1), [np.zeros(40 * 1024, np.int32)])


def test_atomics_do_not_race_but_a_plain_read_beside_them_does():
    def counted(reads):
        b = KernelBuilder("count", 32)
        x, y = b.buffer("int32"), b.buffer("int32")
        b.atomic("add", x, e.constant(0, "int32"), b.thread * 0 + 1)
        if reads:
            b.store(y, b.block * 32 + b.thread, b.load(x, 0))
        return b.kernel()

    x, y = np.zeros(1, np.int32), np.zeros(128, np.int32)
    emulator.run(counted(False), (4, 1, 1), [x, y])
    assert x[0] == 128
    with pytest.raises(RaceError):
        emulator.run(counted(True), (4, 1, 1), [x, y])


@pytest.mark.parametrize("shift", [1, -1])
def test_an_access_out_of_bounds_is_found(shift):
    b = KernelBuilder("shifted", 32)
    x, y = b.buffer("float32"), b.buffer("float32")
    i = b.block * 32 + b.thread
    b.store(y, i, b.load(x, i + shift))
    with pytest.raises(OutOfBoundsError, match=f"element {64 if shift > 0 else -1} of global0, which has 64"):
        emulator.run(b.kernel(), (2, 1, 1), [np.zeros(64, "f4"), np.zeros(64, "f4")])


def test_a_barrier_in_a_divergent_branch_is_found():
    b = KernelBuilder("divergent", 64)
    with b.when(b.thread < 32):
        b.barrier()
    with pytest.raises(RaceError, match="a barrier that some threads of a block do not reach"):
        emulator.run(b.kernel(), (1, 1, 1), [])


def test_a_shuffle_in_a_divergent_warp_is_found():
    b = KernelBuilder("divergent", 32)
    with b.when(b.thread < 5):
        b.shuffle_xor(b.thread, 1)
    with pytest.raises(RaceError, match="a shuffle that some threads of a warp do not reach"):
        emulator.run(b.kernel(), (1, 1, 1), [])


def test_tables_of_addresses():
    b = KernelBuilder("gather", 32)
    table, out = b.buffer("int64"), b.buffer("float32")
    source = b.indirect(table, b.block, "float32")
    b.store(out, b.block * 32 + b.thread, b.load(source, b.thread, b.thread < 7), b.thread < 7)
    arrays = [np.full(7, k, "f4") for k in range(3)]
    y = np.full(96, -1, "f4")
    emulator.run(b.kernel(), (3, 1, 1), [emulator.Table(arrays), y])
    assert (y.reshape(3, 32)[:, :7] == np.arange(3)[:, None]).all()
    assert (y.reshape(3, 32)[:, 7:] == -1).all()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32", "float64"])
def test_shuffles_and_vectors_of_every_width(dtype):
    b = KernelBuilder("exchange", 32)
    x, y = b.buffer(dtype), b.buffer(dtype)
    values = b.load_vector(x, b.thread * 2, 2)
    b.store_vector(y, b.thread * 2, [b.shuffle_xor(each, 3) for each in values])
    a = (np.arange(64) % 5 % 2 if dtype == "bool" else np.arange(64)).astype(dtype)
    out = np.zeros_like(a)
    emulator.run(b.kernel(), (1, 1, 1), [a, out])
    assert (out.reshape(32, 2) == a.reshape(32, 2)[np.arange(32) ^ 3]).all()
