"""Pipelines: what PyTorch's refuse, or do otherwise."""

from __future__ import annotations

import functools

import pytest

from .ranks import run


@functools.cache
def results():
    return run("own_pipelines", "flambeau", 2)


@pytest.mark.parametrize("rank", [0, 1])
def test_gradients_of_weights_that_come_later(rank):
    entries = results()[rank]
    assert entries["shared weights"] < 1e-6
    assert entries["data parallel"] < 1e-6


@pytest.mark.parametrize("rank", [0, 1])
def test_stages_whose_parameters_are_divided(rank):
    assert results()[rank]["fully sharded"] < 1e-6
    kind, text = results()[rank]["fully sharded, divided passes"]
    assert kind == "NotImplementedError"
    assert "use a schedule that does not divide them, such as ScheduleInterleaved1F1B" in text


def test_sizes_of_batches():
    assert results()[1]["sizes"] == [4, 8, 2]
    kind, text = results()[0]["uneven"]
    assert kind == "PipeliningMetadataError"
    assert text.startswith("Stage 0: activations for stage 1 of microbatch 1 are [float32[1, 2]], those of the step's "
                           "first microbatch [float32[2, 2]]: all must be alike.")


def test_buffers_and_results():
    assert results()[0]["buffers"] == [("int64", (), 2), None]
    assert results()[1]["buffers"] == [("int64", (), 2), False]


@pytest.mark.parametrize("rank", [0, 1])
def test_results_may_skip_stages(rank):
    keys, difference, gradients = results()[rank]["skips"]
    assert keys == ["b", "out"]
    assert difference < 1e-5
    assert gradients < 1e-4


def test_orders_from_files():
    own = [["0F0", "0F1", "0B0", "0B1"], ["1F0", "1F1", "1B0", "1B1"]]
    for rank, entries in enumerate(results()):
        assert entries["file"] == [[",".join(each) for each in own], own[rank]]
        kind, text = entries["file that never ends"]
        assert kind == "RuntimeError"
        assert text.startswith("The schedule never ends: rank 0 at 0B0, rank 1 at 1F1 wait")
        assert entries["stage in two processes"] == ("ValueError", "Stage 0 is assigned to both rank 1 and rank 0")


def test_errors():
    for entries in results():
        kind, text = entries["no target"]
        assert kind == "TypeError"
        assert "in the process of the last stage, `step` needs `target=`" in text
    kind, text = results()[0]["no tensor"]
    assert kind == "RuntimeError"
    assert "[Stage 0] failed to run forward" in text
    assert "args: (text)" in text
