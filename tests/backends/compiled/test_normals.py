"""The Box-Muller kernel gives the NumPy implementation's bits for every uniform."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends import compiled
from flambeau.kernels.random import accelerated, boxmuller

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture
def by_kernel():
    from flambeau.backends.compiled.families import normals

    if normals._kernel() is None:
        pytest.skip("this processor rounds sums of products twice")
    return normals.box_muller


def by_numpy(data, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(accelerated, "NORMALS", [])
        found = data.copy()
        boxmuller.box_muller(found)
    return found


def test_every_uniform_is_a_radius_and_an_angle(by_kernel, monkeypatch):
    every = np.arange(1 << 24, dtype=np.uint32)
    other = (every * np.uint32(0x9E3779B1)) & np.uint32((1 << 24) - 1)  # each once, too
    assert len(np.unique(other)) == len(every)
    for part in range(16):
        chosen = slice(part << 20, (part + 1) << 20)
        data = np.empty((1 << 17, 2, 8), np.float32)
        data[:, 0] = (every[chosen] * np.float32(2.0**-24)).reshape(-1, 8)
        data[:, 1] = (other[chosen] * np.float32(2.0**-24)).reshape(-1, 8)
        data = data.reshape(-1)
        expected = by_numpy(data, monkeypatch)
        assert by_kernel(data)
        assert data.tobytes() == expected.tobytes()


@pytest.mark.parametrize("blocks", [1, 2, 3, 15, 16, 17, 33])
def test_few_blocks(by_kernel, monkeypatch, blocks):
    data = np.random.default_rng(blocks).integers(0, 1 << 24, 16 * blocks).astype(np.float32) * np.float32(2.0**-24)
    expected = by_numpy(data, monkeypatch)
    assert by_kernel(data)
    assert data.tobytes() == expected.tobytes()


def test_few_samples_use_numpy_until_many_were_drawn(monkeypatch):
    monkeypatch.setattr(compiled, "_loaded", {})
    monkeypatch.setattr(compiled, "NORMALS", [255])
    assert not compiled.fill_normal(np.zeros(16, np.float32))
    if compiled.fill_normal(np.zeros(256, np.float32)):
        assert compiled.fill_normal(np.zeros(16, np.float32))


@pytest.mark.parametrize("size", [16, 17, 250, 4096, 70001])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.complex64])
def test_streams_are_the_same(monkeypatch, size, dtype):
    torch.manual_seed(5)
    found = torch.randn(size, dtype=dtype), torch.empty(size, dtype=dtype).normal_(1.5, 0.25), torch.rand(3)
    torch.manual_seed(5)
    with monkeypatch.context() as patch:
        patch.setattr(accelerated, "NORMALS", [])
        expected = torch.randn(size, dtype=dtype), torch.empty(size, dtype=dtype).normal_(1.5, 0.25), torch.rand(3)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
