"""Elementwise operators of arrays that are not row-major: computed in the order of memory, by one kernel."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.accelerated import operator_programs
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture(scope="module")
def cupy():
    with cupy_devices() as module:
        yield module


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_one_kernel_computes_in_the_order_of_memory(cupy, dtype):
    torch.manual_seed(0)
    image = torch.randn(2, 3, 4, 5, dtype=dtype).contiguous(memory_format=torch.channels_last)
    matrix = torch.randn(4, 3, dtype=dtype).t()
    row = torch.randn(5, dtype=dtype)
    for function, args in (
            (lambda x: x * 2 + x, (image,)), (lambda x: torch.exp(x), (matrix,)), (torch.mul, (image, row)),
            (torch.add, (matrix, matrix.contiguous())), (lambda x: x.clone().mul_(x), (image,)),
            (lambda x: x.t().clone().t().add_(1), (matrix,)), (lambda x: torch.where(x == 0, x, 1), (image,)),
            (lambda x, y: x.clone().add_(y, alpha=2), (image, row)),
            (lambda x: x.to(torch.float16 if not x.is_complex() else torch.complex128), (image,))):
        operator_programs.clear()
        expected, found = function(*args), function(*(each.cuda() for each in args))
        assert found.stride() == expected.stride()
        torch.testing.assert_close(found.cpu(), expected)
        programs = [each.program.program for each in operator_programs._programs.values() if each is not None]
        assert [len(each.launches) for each in programs] == [1] * len(programs), args


def test_gradients_keep_the_order(cupy):
    x = torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last)
    grads = []
    for each in (x, x.cuda()):
        leaf = each.detach().requires_grad_()
        (torch.relu(leaf) * torch.tanh(leaf)).sum().backward()
        grads.append(leaf.grad)
    assert grads[0].stride() == grads[1].stride()
    torch.testing.assert_close(grads[1].cpu(), grads[0])
