"""Profiles of operators on the fake device have the time of its kernels."""

from __future__ import annotations

import warnings

import pytest

import flambeau as torch


@pytest.fixture(scope="module", autouse=True)
def device():
    with torch.testing.fake_cuda() as runtime:
        yield runtime


def test_device_time():
    x = torch.ones(8, 8, device="cuda")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as prof:
        (x @ x).exp_()
        torch.ones(2) + 1
    events = {event.key: event for event in prof.key_averages()}
    assert events["aten::mm"].self_device_time_total > 0
    assert events["aten::matmul"].self_device_time_total == 0
    assert events["aten::matmul"].device_time_total == events["aten::mm"].device_time_total
    assert events["aten::exp_"].device_time == events["aten::exp_"].device_time_total
    assert events["aten::exp_"].count == 1  # what the kernel computes with is no row
    assert events["aten::add"].device_time_total == 0
    table = prof.key_averages().table(sort_by="cuda_time_total")
    assert "Self CUDA %" in table
    assert "Self CUDA time total:" in table


def test_without_a_device_kernel_there_are_no_columns():
    with torch.autograd.profiler.profile(use_device="cuda") as prof:
        torch.ones(2) + 1
    assert "CUDA" not in prof.key_averages().table()


def test_activities_of_gpus():
    with warnings.catch_warnings(), torch.testing.fake_cuda():
        warnings.simplefilter("error")
        assert torch.profiler.ProfilerActivity.CUDA in torch.profiler.supported_activities()
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU,
                                                torch.profiler.ProfilerActivity.CUDA]) as found:
            torch.ones(3, device="cuda").exp()
    assert any(each.device_time_total for each in found.key_averages())
