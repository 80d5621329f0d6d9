"""Pooling on devices, of narrow dtypes and in both memory formats: the CPU's results, without kernels of the host."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.accelerated import host_copies
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")
functional = torch.nn.functional

POOLS = {
    "max": lambda x: functional.max_pool2d(x, 3, 2, 1),
    "max, dilated": lambda x: functional.max_pool2d(x, 2, 1, dilation=2),
    "adaptive max": lambda x: functional.adaptive_max_pool2d(x, (3, 2)),
    "average": lambda x: functional.avg_pool2d(x, 2),
    "adaptive average": lambda x: functional.adaptive_avg_pool2d(x, 3),
}


@pytest.fixture(scope="module")
def cupy():
    with cupy_devices(1, ptx=True) as module:
        yield module


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("name", POOLS)
def test_results_and_gradients(cupy, name, dtype, last):
    torch.manual_seed(0)
    x = torch.randn(2, 3, 7, 6).to(dtype)
    if last:
        x = x.to(memory_format=torch.channels_last)
    host_copies.computed.clear()
    here, there = x.clone().requires_grad_(), x.cuda().requires_grad_()
    y, z = POOLS[name](here), POOLS[name](there)
    assert (y.dtype, y.stride()) == (z.dtype, z.stride())
    exact = {"rtol": 0, "atol": 0} if "max" in name else {"rtol": 1e-2, "atol": 1e-2}
    torch.testing.assert_close(z.detach().cpu(), y.detach(), **exact)
    y.backward(y.detach())
    z.backward(z.detach())
    torch.testing.assert_close(there.grad.cpu(), here.grad, rtol=2e-2, atol=2e-2)
    assert not host_copies.computed
