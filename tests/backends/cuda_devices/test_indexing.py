"""Indices on devices: kernels assert their range, and the host does not wait for them; writes keep the last source."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._tensor.accelerated import host_copies
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

F = torch.nn.functional


@pytest.fixture
def cupy():
    host_copies.computed.clear()
    with cupy_devices() as found:
        yield found


WRONG = {
    "getitem": lambda x, i: x[i], "getitem of two": lambda x, i: x[i * 0, i],
    "gather": lambda x, i: x.gather(1, i[None]),
    "index_select": lambda x, i: x.index_select(0, i), "take": lambda x, i: x.take(i + 9),
    "embedding": lambda x, i: F.embedding(i, x), "index_add": lambda x, i: x.index_add(0, i, x[:2]),
    "index_put": lambda x, i: x.index_put((i,), x[0]), "scatter": lambda x, i: x.scatter(1, i[None], 1.0),
    "nll_loss": lambda x, i: F.nll_loss(x[:2], i), "index_fill": lambda x, i: x.index_fill(0, i, 1.0),
    "masked_scatter": lambda x, i: x.masked_scatter(x > 0, x[0]),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_index_is_an_assertion_that_the_next_synchronization_meets(cupy, name):
    x, index = torch.ones(4, 3).cuda(), torch.tensor([0, 7]).cuda()
    WRONG[name](x, index)
    assert not host_copies.computed
    with pytest.raises(torch.AcceleratorError, match="CUDA error: device-side assert triggered"):
        torch.cuda.synchronize()
    with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
        x.cpu()


def test_launch_blocking_finds_a_wrong_index_at_once(monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    with cupy_devices():
        x, index = torch.ones(4, 3).cuda(), torch.tensor([-5]).cuda()
        assert x[index + 1].shape == (1, 3)
        with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
            x[index]


def test_of_several_writes_to_a_place_the_last_one_stays(cupy):
    x, index, values = torch.zeros(4), torch.tensor([1, -1, 1, 3]), torch.arange(1.0, 5)
    for write in (lambda x, i, v: x.index_put((i,), v), lambda x, i, v: x.put(i, v),
                  lambda x, i, v: x.index_copy(0, i % 4, v), lambda x, i, v: x.scatter(0, i % 4, v)):
        assert torch.equal(write(*(each.cuda() for each in (x, index, values))).cpu(), write(x, index, values))
    assert not host_copies.computed


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.int8, torch.int64, torch.float64])
def test_sums_at_indices(cupy, dtype):
    x, index, values = torch.zeros(5, 2, dtype=dtype), torch.tensor([4, 0, 4]), torch.arange(6).view(3, 2).to(dtype)
    here = x.index_put((index,), values, accumulate=True)
    there = x.cuda().index_put((index.cuda(),), values.cuda(), accumulate=True)
    assert torch.equal(there.cpu(), here)
    torch.testing.assert_close(x.cuda().index_add(0, index.cuda(), values.cuda()).cpu(), here)
    assert not host_copies.computed


def test_an_index_of_a_dimension_without_elements_is_the_hosts_error(cupy):
    x = torch.empty(10, 0, device="cuda")
    assert x[[1, 2]].shape == (2, 0)
    with pytest.raises(IndexError, match="index is out of bounds for dimension with size 0"):
        x[:, torch.tensor([0, 1], device="cuda")]
    torch.cuda.synchronize()


def test_counts_of_elements_are_all_that_the_host_reads(cupy):
    x, few = torch.randn(7, 5), torch.tensor([3, 1, 3, 3, 0])
    for function, given in ((lambda x: x.nonzero(), x > 0), (lambda x: x[x > 0], x), (lambda x: x[x[:, 0] > 0], x),
                            (lambda x: x.unique(return_inverse=True, return_counts=True), few), (torch.bincount, few),
                            (lambda x: torch.unique_consecutive(x, return_counts=True), few),
                            (lambda x: torch.bincount(x, x * 0.5, 9), few)):
        here, there = function(given), function(given.cuda())
        for a, b in zip(*([each] if isinstance(each, torch.Tensor) else each for each in (here, there)), strict=True):
            assert a.stride() == b.stride()
            torch.testing.assert_close(b.cpu(), a)
    assert not host_copies.computed


def test_indices_along_a_dimension_are_on_the_device(cupy):
    x, index = torch.ones(2, 3), torch.zeros(2, 1, dtype=torch.int64)
    with pytest.raises(RuntimeError, match=r"Expected tensor to have cuda:0 Device, but got tensor with cpu Device "
                                           r"\(while checking arguments for torch.take_along_dim\(\):\)"):
        torch.take_along_dim(x.cuda(), index, 1)


def test_deterministic_sums_have_the_order_of_the_cpu(cupy):
    x, index, values = torch.zeros(3, 4), torch.randint(0, 3, (200,)), torch.randn(200, 4)
    torch.use_deterministic_algorithms(True)
    try:
        there = x.cuda().index_add(0, index.cuda(), values.cuda())
        assert torch.equal(there.cpu(), x.index_add(0, index, values))
        with pytest.raises(RuntimeError, match="put_ does not have a deterministic implementation"):
            x.cuda().put_(index.cuda(), values[:, 0].cuda())
    finally:
        torch.use_deterministic_algorithms(False)
    x.cuda().put_(index.cuda(), values[:, 0].cuda())
