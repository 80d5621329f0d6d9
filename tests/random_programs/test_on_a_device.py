"""Generated programs on the fake device: they do what they do on the CPU."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import flambeau
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

from . import observation, on_a_device
from .comparison import compare
from .differential import libraries
from .execution import run
from .generation import written

pytestmark = [
    pytest.mark.parity,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle"),
    pytest.mark.usefixtures("every_warning"),
]

_of_cpu = observation.array_of


def _array_of(x: Any) -> Any:
    return _of_cpu(x.detach().cpu() if x.is_cuda else x)


@pytest.mark.parametrize("seed", [0, 8, 27, 46, 48, 54, 235, 271])
def test_program(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = libraries()
    program, _ = written(seed, there)
    on_cpu = run(program, here)
    monkeypatch.setattr(observation, "array_of", _array_of)
    with flambeau.testing.fake_cuda(), on_a_device.same_numbers():
        flambeau.set_default_device("cuda")
        try:
            on_device = run(program, here)
        finally:
            flambeau.set_default_device(None)
    assert compare(on_device, on_cpu) is None


@pytest.mark.parametrize("seed", [1, 2])
def test_program_on_the_runtime_with_cupy(seed: int) -> None:
    with cupy_devices():
        assert on_a_device.Check()(seed, shorten=False) is None
