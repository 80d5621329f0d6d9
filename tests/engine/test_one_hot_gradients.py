"""One-hot gradients equal the matrices that they replace, also for hooks, captures and higher orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.neural import losses
from flambeau.engine.rules import one_hot_gradients

pytestmark = pytest.mark.skipif(not codegen.available(), reason="there are no kernels")
nll = torch.nn.functional.nll_loss

N, C = 130, 1100


def given(dtype: Any = torch.float64) -> tuple[Any, Any]:
    torch.manual_seed(2)
    return torch.randn(N, C, dtype=dtype).requires_grad_(), torch.randint(0, C, (N,))


def compared(program: Callable[[], list[Any]], monkeypatch: pytest.MonkeyPatch, close: float = 1e-13) -> int:
    """What a program gives, with and without; how often such a gradient went all its way."""
    count = 0
    whole = one_hot_gradients.scaled_negative_exp

    def counted(*args: Any) -> Any:
        nonlocal count
        count += 1
        return whole(*args)

    with monkeypatch.context() as patch:
        patch.setattr(one_hot_gradients, "scaled_negative_exp", counted)
        found = program()
    with monkeypatch.context() as patch:
        patch.setattr(losses, "accepts_one_hot", lambda node: False)
        expected = program()
    for mine, other in zip(found, expected, strict=True):
        assert mine.stride() == other.stride()
        assert mine.dtype is other.dtype
        np.testing.assert_allclose(mine.detach().numpy(), other.detach().numpy(), rtol=close, atol=close)
    return count


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("dim", [1, -1])
def test_losses(dtype: Any, reduction: str, dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> list[Any]:
        x, y = given(dtype)
        (nll(x.log_softmax(dim), y, reduction=reduction) * 3).backward()
        return [x.grad]

    assert compared(program, monkeypatch, 1e-7 if dtype is torch.float32 else 1e-13) == 1


def test_cross_entropy(monkeypatch: pytest.MonkeyPatch) -> None:
    def program() -> list[Any]:
        x, y = given()
        loss = torch.nn.functional.cross_entropy(x * 2, y)
        loss.backward(retain_graph=True)
        loss.backward()
        return [x.grad, loss]

    assert compared(program, monkeypatch) == 2


@pytest.mark.parametrize("sign", [1, -1])
def test_zeros_have_no_sign(sign: int) -> None:
    x, y = given(torch.float32)
    x = (x.detach() - 1e4 * (torch.arange(C) == 5)).requires_grad_()
    (nll(x.log_softmax(1), y) * sign).backward()
    zeros = x.grad[y != 5, 5].numpy()
    assert not zeros.any()
    assert not np.signbit(zeros).any()


def more_of_it(x: Any, y: Any) -> list[Any]:
    logs = x.log_softmax(1)
    (nll(logs, y) + (logs * logs).mean() + nll(logs, (y + 1) % C, reduction="sum")).backward()
    return [x.grad]


def twice(x: Any, y: Any) -> list[Any]:
    logs = x.log_softmax(1)
    (nll(logs, y) + nll(logs, (y * 7) % C)).backward()
    return [x.grad]


def hook(x: Any, y: Any) -> list[Any]:
    logs, seen = x.log_softmax(1), []
    loss = nll(logs, y)
    logs.register_hook(lambda g: seen.append(g) or g * 2)
    loss.backward()
    return [x.grad, *seen]


def retained(x: Any, y: Any) -> list[Any]:
    logs = x.log_softmax(1)
    logs.retain_grad()
    nll(logs, y).backward()
    return [x.grad, logs.grad]


def a_target(x: Any, y: Any) -> list[Any]:
    logs = x.log_softmax(1)
    loss = nll(logs, y)
    return [*torch.autograd.grad(loss, [logs, x], retain_graph=True), *torch.autograd.grad(loss, x)]


def higher(x: Any, y: Any) -> list[Any]:
    g, = torch.autograd.grad(nll(x.log_softmax(1), y), x, create_graph=True)
    g.square().sum().backward()
    return [g, x.grad]


def a_leaf(x: Any, y: Any) -> list[Any]:
    nll(x, y).backward()
    return [x.grad]


def others(x: Any, y: Any) -> list[Any]:
    nll(x.softmax(1).log(), y).backward()
    first = x.grad.clone()
    nll(x.log_softmax(0), y).backward()
    nll(x.log_softmax(1)[:, :C // 2], y % (C // 2)).backward()
    return [first, x.grad]


@pytest.mark.parametrize(("each", "count"), [
    (more_of_it, 0), (twice, 0), (hook, 0), (retained, 0), (a_target, None), (higher, 0), (a_leaf, 0), (others, 0)])
def test_observers_see_dense_gradients(each: Any, count: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(lambda: each(*given()), monkeypatch)
    assert count is None or found == count


def test_unsupported_cases() -> None:
    x, y = given()
    logs = x.log_softmax(1)
    loss = nll(logs, y)
    loss.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()
    logs = x.log_softmax(1)
    loss = nll(logs, y)
    with torch.no_grad():
        logs.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
