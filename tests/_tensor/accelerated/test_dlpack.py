"""DLPack of a device's memory: shared in both directions, and freed when both sides are done."""

from __future__ import annotations

import gc

import pytest

import flambeau as torch
from flambeau import codegen
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices


@pytest.fixture(params=["fake", "cupy"], autouse=True)
def device(request):
    if request.param == "cupy" and not codegen.available():
        pytest.skip("llvmlite is not installed, or FLAMBEAU_JIT is 0")
    with torch.testing.fake_cuda() if request.param == "fake" else cupy_devices() as runtime:
        yield runtime


class Foreign:
    """An array of another library: what has the protocol's methods."""

    def __init__(self, x: torch.Tensor) -> None:
        self.x = x

    def __dlpack__(self, stream=None, **protocol):
        assert stream == 1
        return self.x.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.x.__dlpack_device__()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.complex64])
def test_memory_is_shared(dtype):
    x = torch.arange(6, device="cuda").reshape(2, 3).to(dtype)
    assert x.__dlpack_device__() == (2, 0)
    for source in (x, x.t(), x[:, 1:]):
        y = torch.from_dlpack(Foreign(source))
        assert (y.shape, y.dtype, y.stride(), y.device) == (source.shape, source.dtype, source.stride(), source.device)
        assert y.data_ptr() == source.data_ptr()
        assert torch.equal(y.cpu(), source.cpu())
        y.zero_()
        assert not source.cpu().to(torch.complex64).abs().sum()


def test_memory_lives_as_long_as_either_side():
    x = torch.full((500,), 3.0, device="cuda")
    before = torch.cuda.memory_allocated()
    capsule = x.__dlpack__()
    del x
    gc.collect()
    assert torch.cuda.memory_allocated() == before
    y = torch.from_dlpack(capsule)
    with pytest.raises(RuntimeError, match="can be consumed only once"):
        torch.from_dlpack(capsule)
    del capsule
    assert (y + 1).tolist() == [4] * 500
    del y
    gc.collect()
    assert torch.cuda.memory_allocated() < before
    unused = torch.ones(500, device="cuda").__dlpack__()
    del unused
    gc.collect()
    assert torch.cuda.memory_allocated() < before


def test_refusals():
    x = torch.ones(2, device="cuda", requires_grad=True)
    with pytest.raises(BufferError, match="require gradient"):
        x.__dlpack__()
    with pytest.raises(BufferError, match="cannot export memory of cuda:0"):
        x.detach().__dlpack__(dl_device=(1, 0))
    assert torch.from_dlpack(torch.ones(2)).tolist() == [1, 1]
