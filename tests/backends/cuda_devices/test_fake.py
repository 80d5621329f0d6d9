"""The fake device: streams that wait, or race; errors that wait for a synchronization."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.backends.cuda_devices.errors import StreamRaceError


@pytest.fixture(autouse=True)
def device():
    with torch.testing.fake_cuda(2) as runtime:
        yield runtime


def test_a_stream_must_wait_for_another():
    x, side = torch.ones(4, device="cuda"), torch.cuda.Stream()
    with torch.cuda.stream(side), pytest.raises(StreamRaceError, match="reads memory that stream 0 wrote"):
        x + 1
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        y = x + 1
    with pytest.raises(StreamRaceError):
        y.mul_(2)
    torch.cuda.current_stream().wait_stream(side)
    assert y.mul_(2).tolist() == [4] * 4


def test_writes_wait_for_reads():
    x, side = torch.ones(4, device="cuda"), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        y = x + 1
    with pytest.raises(StreamRaceError, match=r"writes memory that stream \d+ reads"):
        x.zero_()
    event = side.record_event()
    event.synchronize()
    x.zero_()
    torch.cuda.current_stream().wait_event(event)
    assert (x + y).tolist() == [2] * 4


def test_record_stream():
    side = torch.cuda.Stream()
    for records in (False, True):
        x = torch.ones(4, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            x + 1
        if records:
            x.record_stream(side)
        del x
        if records:
            torch.ones(4, device="cuda")
        else:
            with pytest.raises(StreamRaceError, match="record_stream"):
                torch.ones(4, device="cuda")
            torch.cuda.synchronize()


def test_events():
    first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    assert first.query()
    with pytest.raises(ValueError, match="must be recorded"):
        first.elapsed_time(last)
    first.record()
    torch.ones(10, device="cuda") + 1
    last.record()
    assert not last.query()
    assert last.query()  # time passes
    assert first.elapsed_time(last) > 0
    with pytest.raises(ValueError, match="enable_timing=True"):
        torch.cuda.Event().elapsed_time(last)
    side = torch.cuda.Stream()
    assert side.query()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.ones(3, device="cuda")
    assert not side.query()
    side.synchronize()
    assert side.query()


def test_errors_wait_for_a_synchronization(device):
    loss = torch.nn.functional.cross_entropy(torch.zeros(2, 3, device="cuda"), torch.tensor([0, 9], device="cuda"))
    assert loss.shape == ()  # nothing is known yet
    with pytest.raises(torch.AcceleratorError, match="CUDA error: device-side assert triggered\nCUDA kernel errors "
                                                     "might be asynchronously reported"):
        loss.item()
    with pytest.raises(torch.AcceleratorError):  # for good
        torch.ones(1, device="cuda")
    assert torch.ones(1, device="cuda:1").item() == 1


def test_blocking_launches(monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with pytest.raises(torch.AcceleratorError):
        torch.ones(3, device="cuda")[torch.tensor([7], device="cuda")]


def test_errors_of_shapes_are_raised_at_once():
    with pytest.raises(RuntimeError, match="must match the size"):
        torch.ones(3, device="cuda") + torch.ones(4, device="cuda")
    torch.cuda.synchronize()


def test_launches_between_devices_are_ordered():
    x = torch.ones(3, device="cuda:0") * 2
    y = x.to("cuda:1")
    assert (y + 1).tolist() == [3] * 3
    assert x.add_(1).tolist() == [3] * 3
