"""`torch.cuda` while there is a device, and that it is as before afterwards."""

from __future__ import annotations

import subprocess
import sys

import pytest

import flambeau as torch


def test_names_come_and_go():
    before = {name: getattr(torch.cuda, name) for name in torch.cuda.__all__}
    has_gpu = torch.cuda.is_available()
    with torch.testing.fake_cuda(2):
        assert torch.cuda.is_available()
        assert torch.cuda.device_count() == 2
        assert torch.backends.cuda.is_built()
        assert torch.accelerator.is_available()
        assert str(torch.accelerator.current_accelerator()) == "cuda"
        assert len(torch.cuda.default_generators) == 2
    assert before == {name: getattr(torch.cuda, name) for name in torch.cuda.__all__}
    assert torch.cuda.is_available() is torch.accelerator.is_available() is has_gpu
    if has_gpu:
        assert len(torch.cuda.default_generators) == torch.cuda.device_count()
        return
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.ones(1, device="cuda")


def test_devices():
    with torch.testing.fake_cuda(2, memory=1 << 28, processors=40):
        found = torch.cuda.get_device_properties("cuda:1")
        assert (found.total_memory, found.multi_processor_count) == (1 << 28, 40)
        assert torch.cuda.get_device_capability() == (8, 0)
        assert torch.cuda.get_arch_list() == ["sm_80"]
        assert torch.cuda.is_bf16_supported()
        with pytest.raises(AssertionError, match="Invalid device id"):
            torch.cuda.get_device_name(2)
        torch.cuda.set_device(1)
        assert torch.cuda.current_device() == 1
        assert torch.zeros(1, device="cuda").device.index == 1
        with torch.cuda.device(0):
            assert torch.cuda.current_device() == 0
        assert torch.cuda.can_device_access_peer(0, 1)


def test_memory():
    with torch.testing.fake_cuda():
        x = torch.ones(1000, 1000, device="cuda")
        assert torch.cuda.memory_allocated() == 4_000_256
        assert torch.cuda.memory_reserved() == 20 << 20
        y = x + x
        del y
        assert torch.cuda.max_memory_allocated() == 2 * 4_000_256
        torch.cuda.reset_peak_memory_stats()
        assert torch.cuda.max_memory_allocated() == 4_000_256
        del x
        torch.cuda.empty_cache()
        assert torch.cuda.memory_reserved() == 0
        assert torch.cuda.mem_get_info() == (1 << 30, 1 << 30)
        assert torch.cuda.memory_stats()["allocation.all.allocated"] == 2
        with pytest.raises(torch.OutOfMemoryError, match=r"CUDA out of memory\. Tried to allocate 4\.00 GiB"):
            torch.empty(1 << 30, device="cuda")


def test_streams():
    with torch.testing.fake_cuda():
        default = torch.cuda.default_stream()
        assert default == torch.cuda.current_stream()
        assert repr(default) == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"
        side = torch.cuda.Stream()
        with side:
            assert torch.cuda.current_stream() == side
        assert isinstance(side, torch.Stream)
        torch.cuda.set_stream(side)
        assert torch.cuda.current_stream() == side


def test_modules_that_are_imported_where_there_is_a_device():
    program = """if True:
        import flambeau as torch
        with torch.testing.fake_cuda():
            import flambeau.cuda.memory, flambeau.cuda.random
            x = torch.ones(1, device="cuda")
            assert torch.cuda.memory.memory_allocated() == 512
            assert torch.cuda.memory.mem_get_info()[0] > 0
            assert torch.cuda.random.get_rng_state().numel() == 16
        try:
            torch.cuda.random.get_rng_state()
        except (RuntimeError, AssertionError):
            print("refused")"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n", done.stderr
