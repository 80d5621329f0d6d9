"""Mixed precision on the fake device."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._tensor.accelerated import host_copies

F = torch.nn.functional


@pytest.fixture(scope="module", autouse=True)
def device():
    with torch.testing.fake_cuda() as runtime:
        yield runtime


def test_dtypes():
    x, w = (torch.randn(4, 4, device="cuda") for _ in range(2))
    with torch.autocast("cuda"):
        h = x @ w
        assert h.dtype is torch.float16
        for function in (lambda: F.linear(x, w), lambda: torch.bmm(x[None], w[None]),
                         lambda: F.conv1d(x[None], w[:, :, None]), lambda: h + h, lambda: h.relu()):
            assert function().dtype is torch.float16
        for function in (lambda: F.softmax(h, -1), lambda: h.sum(), lambda: F.layer_norm(h, (4,)), lambda: h.exp(),
                         lambda: F.cross_entropy(h, torch.arange(4, device="cuda")), lambda: h.pow(2), lambda: h + x,
                         lambda: torch.cat([h, x])):
            assert function().dtype is torch.float32
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32  # of the CPU
        with pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(h.sigmoid(), h.sigmoid())
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (x @ w).dtype is torch.bfloat16
    with torch.autocast("cpu"):
        assert (x @ w).dtype is torch.float32
    assert (x @ w).dtype is torch.float32


def test_scaled_steps():
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 2).cuda()
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler("cuda")
    before = model.weight.detach().clone()
    with torch.autocast("cuda"):
        loss = model(torch.randn(3, 4, device="cuda") / 4).square().mean()  # scaled, it fits into float16
    scaler.scale(loss).backward()
    assert scaler._scale.is_cuda
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0 ** 16
    assert not torch.equal(before, model.weight)
    model.weight.grad.fill_(float("inf"))
    before = model.weight.detach().clone()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0 ** 15
    assert torch.equal(before, model.weight)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize("element", [1.0, float("inf"), float("-inf"), float("nan")])
def test_gradients_are_unscaled_and_checked_on_the_device(dtype, element):
    first = torch.ones(3, 2, dtype=dtype)
    first[1, 1] = element
    grads = [each.cuda() for each in (first, torch.full((2,), 6.0, dtype=dtype), torch.ones(0, dtype=dtype))]
    found, scale = torch.zeros((), device="cuda"), torch.tensor(1 / 3, device="cuda")
    before = dict(host_copies.computed)
    torch._amp_foreach_non_finite_check_and_unscale_(grads, found, scale)
    assert host_copies.computed == before
    assert found.item() == (element != 1.0)
    assert grads[1].tolist() == (torch.full((2,), 6.0, dtype=dtype) * scale.item()).tolist()
