"""The first call with an object of a class that is no tensor's and has a `__torch_function__`: its handler is asked."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau._tensor.overriding import entry_points


class Foreign:
    """What PyTorch's documentation calls duck typing: a class of its own that overrides functions."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, args, kwargs or {}


CALLS = {
    "sum": lambda x: torch.sum(x), "sum of a dimension": lambda x: torch.sum(x, -1),
    "mean": lambda x: torch.mean(x, dim=0), "max": lambda x: torch.max(x), "std": lambda x: torch.std(x),
    "argmax": lambda x: torch.argmax(x), "all": lambda x: torch.all(x), "sort": lambda x: torch.sort(x),
    "cumsum": lambda x: torch.cumsum(x, 0), "softmax": lambda x: torch.softmax(x, -1),
    "add": lambda x: torch.add(x, 1), "sub": lambda x: torch.sub(x, 1), "pow": lambda x: torch.pow(x, 2),
    "matmul": lambda x: torch.matmul(torch.ones(2), x), "where": lambda x: torch.where(x, x, x),
    "clamp": lambda x: torch.clamp(x, 0), "cat": lambda x: torch.cat([x, x]), "stack": lambda x: torch.stack([x]),
    "equal": lambda x: torch.equal(x, x), "allclose": lambda x: torch.allclose(x, torch.ones(1)),
    "svd": lambda x: torch.linalg.svd(x), "cholesky": lambda x: torch.linalg.cholesky(x),
    "inverse": lambda x: torch.linalg.inv(x), "solve": lambda x: torch.linalg.solve(x, torch.ones(2)),
    "norm": lambda x: torch.linalg.norm(x), "chunk": lambda x: torch.chunk(x, 2),
    "linear": lambda x: torch.nn.functional.linear(torch.ones(1, 1), x), "relu": lambda x: torch.relu(x),
    "exp": lambda x: torch.exp(x), "special": lambda x: torch.special.logsumexp(x, 0),
    "add of a tensor": lambda x: torch.ones(2).add(x), "clamp of a tensor": lambda x: torch.ones(2).clamp(x),
}


@pytest.fixture
def without_handlers():
    """No handler is in use, as before the first call with an object of the class."""
    entry_points.forget_foreign(Foreign)
    entry_points.uninstall()
    yield
    entry_points.forget_foreign(Foreign)
    entry_points.uninstall()


@pytest.mark.usefixtures("without_handlers")
@pytest.mark.parametrize("name", CALLS)
def test_the_first_call_asks_the_handler_as_later_ones_do(name):
    x = Foreign()
    first = CALLS[name](x)
    assert isinstance(first, tuple)
    assert first[0] is CALLS[name](x)[0]
    assert any(each is x or (isinstance(each, list) and each[0] is x) for each in (*first[1], *first[2].values()))


@pytest.mark.usefixtures("without_handlers")
def test_arguments_reach_the_handler_as_they_were_passed():
    x = Foreign()
    assert torch.sum(x, -1)[1:] == ((x, -1), {})
    entry_points.forget_foreign(Foreign)
    entry_points.uninstall()
    assert torch.mean(x, dim=-1, keepdim=True)[1:] == ((x,), {"dim": -1, "keepdim": True})


@pytest.mark.usefixtures("without_handlers")
def test_an_error_stands_while_handlers_are_disabled():
    for function in (torch.sum, torch.add, torch.svd, torch.cat):
        with torch._C.DisableTorchFunctionSubclass(), pytest.raises(TypeError):
            function(*([Foreign()], 0)[:1] if function is torch.cat else (Foreign(), 1)[:1 + (function is torch.add)])
