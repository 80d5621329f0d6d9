"""While a fake tensor lives backward runs on tensors; sparse leaves and gradients are the same then."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import pytest

pytestmark = [pytest.mark.parity,
              pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle"),
              pytest.mark.filterwarnings("ignore")]


def _linear(torch: Any) -> Any:
    weight = torch.tensor([[1.0, 0, 2], [0, 3, 0]]).to_sparse().requires_grad_()
    x = torch.tensor([1.0, 2, 3], requires_grad=True)
    torch.nn.functional.linear(x, weight).sum().backward()
    return x.grad, weight.grad


def _sum(torch: Any) -> Any:
    x = torch.eye(3).to_sparse_csr().requires_grad_()
    x.sum().backward()
    return x.grad


def _embedding(torch: Any) -> Any:
    layer = torch.nn.Embedding(4, 2, sparse=True)
    layer(torch.tensor([1, 2, 1])).sum().backward()
    first = layer.weight.grad.coalesce()
    layer.weight.sum().backward()
    return first, layer.weight.grad


def _embedding_bag(torch: Any) -> Any:
    layer = torch.nn.EmbeddingBag(4, 2, sparse=True, mode="sum")
    layer(torch.tensor([[1, 2, 1]])).sum().backward()
    return layer.weight.grad.coalesce()


def _numpy(torch: Any) -> Any:
    try:
        return torch.eye(2).to_sparse().numpy()
    except TypeError as error:
        return str(error)


def _layout(torch: Any) -> Any:
    x = torch.ones(2, 3).t().requires_grad_()
    with torch.autograd.enforce_grad_layout_policy(False):
        (x * torch.ones(3, 2)).sum().backward()
    return x.grad.stride()


def _outcome(library: str, program: Any) -> str:
    torch = importlib.import_module(library)
    mode = importlib.import_module(f"{library}._subclasses.fake_tensor").FakeTensorMode()
    with mode:
        keep = torch.ones(2)
    said = repr(program(torch)).replace(library, "torch")
    assert keep.shape == (2,)
    return said


@pytest.mark.parametrize("program", [_linear, _sum, _embedding, _embedding_bag, _numpy, _layout])
def test_results_are_those_of_pytorch(program):
    assert _outcome("flambeau", program) == _outcome("torch", program)
