"""Distributed tensors and fully sharded modules: parts of uneven sizes, bytes sent, memory."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.distributed.fsdp._fully_shard import _releasable_memory
from flambeau.distributed.placement_types import Partial, Replicate, Shard, _StridedShard
from flambeau.distributed.tensor._redistribute import steps
from flambeau.distributed.tensor._sharding import local_shape_and_offset, shard_range, strides_like

from .ranks import run, same


def test_operators_on_uneven_parts_are_those_of_one_process():
    alone, of_three = run("distributed_tensors", "flambeau", 1)[0], run("distributed_tensors", "flambeau", 3)
    names = [name for name in alone if ", " in name and not name.startswith("(")]
    assert len(names) > 150
    for report in of_three:
        assert not [name for name in names if not same(report[name], alone[name])]


def test_training_is_that_of_one_process():
    for report in run("sharded_training", "flambeau", 4):
        compared = {name: result for name, result in report.items() if name.startswith(("mlp, ", "cnn, ", "gpt, "))}
        assert len(compared) == 21
        assert not {name: result for name, result in compared.items() if result[1] is not True}


@pytest.mark.parametrize("size", [2, 4])
def test_bytes_are_those_of_the_theory(size):
    for report in run("sharding_bytes", "flambeau", size):
        share = report["whole"] * (size - 1) // size
        assert report["all_gather"] == report["reduce_scatter"] == share
        assert report["all_reduce"] == 2 * share
        assert report["all_to_all"] == share // size
        assert report["chunk"] == report["elementwise"] == report["column parallel product"] == 0
        assert report["norm"] == 0  # what is pending is reduced when it is used
        parameters = report["parameters"] * (size - 1) // size
        assert report["step with whole parameters"] == 2 * parameters  # gathered once, reduced once
        assert report["fully sharded step"] == 3 * parameters  # gathered for both passes
        if size == 4:
            assert report["step that keeps halves"] == (2 * parameters, report["parameters"] // 2)
            assert report["halves"] == ((Replicate(), Shard(0)), (2, 2), report["whole"] // 2, True)
            assert report["parts after a step that keeps halves"] == report["parameters"] // size
        assert report["accumulating step"] == 2 * parameters
        assert report["parts after a fully sharded step"] == report["parameters"] // size
        assert report["parts after a step with whole parameters"] == report["parameters"] // size
        assert report["released"] or not _releasable_memory._CAN_RELEASE


@pytest.mark.parametrize(("length", "parts"), [(8, 2), (5, 3), (2, 4), (0, 2), (7, 1)])
def test_parts_are_those_of_chunk(length, parts):
    import flambeau as torch

    cut = [len(each) for each in torch.arange(length).chunk(parts)] if length else []
    assert [shard_range(length, parts, i)[1] for i in range(parts)] == cut + [0] * (parts - len(cut))
    begins = [shard_range(length, parts, i)[0] for i in range(parts)]
    assert begins == sorted(begins)


def test_strided_shards_cut_last():
    placements = (_StridedShard(0, split_factor=2), Shard(0))
    found = [local_shape_and_offset((8,), (2, 2), (i, j), placements) for i in range(2) for j in range(2)]
    assert found == [((2,), (0,)), ((2,), (4,)), ((2,), (2,)), ((2,), (6,))]
    assert local_shape_and_offset((8, 3), (2,), None, (Shard(0),)) == ((0,), ())


@pytest.mark.parametrize(("source", "target", "expected"), [
    ((Shard(0),), (Shard(0),), []),
    ((Shard(0),), (Shard(1),), [(0, Shard(1))]),
    ((Shard(0), Shard(0)), (Replicate(), Shard(0)), [(1, Replicate()), (0, Replicate()), (1, Shard(0))]),
    ((Partial(), Shard(0)), (Replicate(), Shard(0)), [(0, Replicate())]),
    ((_StridedShard(0, split_factor=2), Shard(0)), (Replicate(), Replicate()), [(0, Replicate()), (1, Replicate())]),
])
def test_steps_of_a_redistribution(source, target, expected):
    assert steps(source, target) == expected


def test_strides_keep_the_order_of_dimensions():
    assert strides_like((1, 4), (4, 6)) == (1, 4)
    assert strides_like((6, 1), (4, 6)) == (6, 1)


def test_released_memory_keeps_its_addresses():
    memory = _releasable_memory.ReleasableMemory([((1000, 2), np.dtype(np.float32)), ((3,), np.dtype(np.float64))])
    first, second = memory.arrays
    first[...], second[...] = 1, 2
    view = first.T
    memory.release()
    assert not _releasable_memory._CAN_RELEASE or not view.any()
    second[...] = 3
    first[0, 1] = 5
    assert second.tolist() == [3.0, 3.0, 3.0]
    assert view[1, 0] == 5
    assert memory.nbytes == 8024


def test_batches_of_matrices_and_images_are_cut():
    for report in run("batched_tensors", "flambeau", 2):
        assert not [name for name, (found, expected, _) in report.items() if not same(found, expected)]
        cut = [name for name, (_, _, placement) in report.items() if name.endswith("first") and placement != "R"]
        assert len(cut) > 25
