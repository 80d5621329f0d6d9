"""Recorded calls under autocast: arguments are cast, and what is then called is what other calls have recorded."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.accelerated.recorded import call_table
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")
F: Any = torch.nn.functional
CallTable = call_table.CallTable


@pytest.fixture(scope="module", autouse=True)
def cupy():
    with cupy_devices() as module:
        yield module


@pytest.fixture
def by_tables(monkeypatch):
    """The names of public functions whose results their tables gave."""
    names: list[str] = []

    def call(table: CallTable, *args: Any, **kwargs: Any) -> Any:
        result = original(table, *args, **kwargs)
        if result is not NotImplemented:
            names.append(table.name)
        return result

    original = CallTable.call
    monkeypatch.setattr(CallTable, "call", call)
    call_table.forget()  # tables that are there have the method itself
    return names


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
                               ).cuda()


def losses(dtype: Any, steps: int = 5) -> list[Any]:
    """The losses, dtypes and gradients of a few steps."""
    m = model()
    optimizer, scaler = torch.optim.SGD(m.parameters(), 0.1), torch.amp.GradScaler("cuda", 8.0)
    found: list[Any] = []
    for step in range(steps):
        x = (torch.arange(48, device="cuda").view(6, 8) % 7 - step) / 4
        with torch.autocast("cuda", dtype=dtype):
            h = m(x)
            weights = h.softmax(-1) + h
            loss = F.cross_entropy(h, torch.arange(6, device="cuda") % 4) + weights.square().mean()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        found += [loss.item(), h.dtype, weights.dtype, h.grad_fn.name(), m[0].weight.tolist()]
    return found


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_training_is_that_of_the_functions_themselves(dtype, by_tables, monkeypatch):
    found = losses(dtype)
    for name in ("linear", "gelu", "layer_norm", "cross_entropy"):
        assert len([each for each in by_tables if each.removeprefix("torch._C._nn.").rpartition(".")[2] == name]) >= 3
    with monkeypatch.context() as patch:
        patch.setattr(CallTable, "call", lambda *args: NotImplemented)
        call_table.forget()
        expected = losses(dtype)
    assert found == expected


def test_calls_are_recorded_after_autocast_was_on(by_tables):
    with torch.autocast("cpu"):
        torch.ones(2, 2) @ torch.ones(2, 2)
    x, w = torch.rand(4, 8, device="cuda"), torch.rand(8, 8, device="cuda")
    for _ in range(4):
        assert (x @ w).dtype is torch.float32
        with torch.autocast("cuda"):
            assert (x @ w).dtype is torch.float16
            with torch.autocast("cuda", enabled=False):
                assert (x @ w).dtype is torch.float32
            assert torch.zeros(3, device="cuda").dtype is torch.float32
    assert by_tables.count("torch.Tensor.__matmul__") >= 6


def test_functions_of_several_operators_are_cast_within():
    """The arguments of a composite function are not; those of the products in it are."""
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True, device="cuda")
    x = torch.rand(2, 5, 8, device="cuda")
    results = []
    for enabled in (True, True, True, True, False, True):
        with torch.autocast("cuda", enabled=enabled):
            results.append(layer(x, x, x, need_weights=False)[0])
    assert [each.dtype for each in results] == [torch.float16] * 4 + [torch.float32, torch.float16]
    for each in results[1:4]:
        assert torch.equal(each, results[0])


def test_what_is_unsafe_is_refused_each_time():
    h = torch.rand(3, device="cuda")
    for _ in range(4):
        F.binary_cross_entropy(h, h)
        with torch.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
            F.binary_cross_entropy(h, h)
