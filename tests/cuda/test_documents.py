"""What notebooks that present autograd print where there is a GPU."""

from __future__ import annotations

import pytest

import flambeau as torch
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

ONES = "tensor([1., 1., 1., 1., 1.], device='cuda:0')"


@pytest.fixture(autouse=True)
def devices():
    with cupy_devices():
        yield


def test_the_usual_choice_of_a_device():
    cuda0 = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    assert repr(cuda0) == "device(type='cuda', index=0)"
    assert repr(torch.ones(5, device=cuda0)) == ONES
    assert repr(torch.ones(5, device=0)) == ONES
    assert repr(torch.ones(5, device="cuda:0")) == ONES
    x = torch.ones(5).to(cuda0)
    assert repr(x) == ONES
    assert repr(x.to("cpu").device) == "device(type='cpu')"


def test_a_model_and_its_memory_with_and_without_a_graph():
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256)).cuda()
    x = torch.ones(256, 256).cuda()
    model(x)  # the first product takes a workspace, as PyTorch's does
    used = []
    for recording in (torch.no_grad(), torch.enable_grad()):
        with recording:
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
            y = model(x)
            used.append(torch.cuda.memory_allocated() - before)
            del y
    assert used[0] == 256 * 256 * 4
    assert used[1] > used[0]
