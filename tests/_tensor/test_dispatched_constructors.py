"""Constructors of tensors, and draws: the operators that a mode sees, and their results under fake tensors."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore")]

CALLS = {
    "Tensor of data": lambda m, x: m.Tensor([1, 2, 3]), "Tensor of sizes": lambda m, x: m.Tensor(2, 3),
    "Tensor of a size": lambda m, x: m.Tensor(m.Size([2])), "Tensor of nothing": lambda m, x: m.Tensor(),
    "LongTensor": lambda m, x: m.LongTensor([1, 2]), "BoolTensor": lambda m, x: m.BoolTensor([1, 0]),
    "FloatTensor of a tensor": lambda m, x: m.FloatTensor(x), "new of data": lambda m, x: x.new([1, 2]),
    "new of sizes": lambda m, x: x.new(2, 3), "new of a tensor": lambda m, x: x.new(x),
    "new_tensor": lambda m, x: x.new_tensor([1, 2]), "tensor": lambda m, x: m.tensor([1, 2]),
    "as_tensor": lambda m, x: m.as_tensor([1, 2]), "as_tensor, dtype": lambda m, x: m.as_tensor([1], dtype=m.float64),
    "as_tensor of a tensor": lambda m, x: m.as_tensor(x), "as_tensor of an array": lambda m, x: m.as_tensor(np.ones(3)),
    "from_numpy": lambda m, x: m.from_numpy(np.ones(3)), "asarray": lambda m, x: m.asarray([1, 2]),
    "asarray of an array": lambda m, x: m.asarray(np.ones(3)), "tril_indices": lambda m, x: m.tril_indices(3, 3),
    "triu_indices": lambda m, x: m.triu_indices(3, 2, 1),
    "empty_permuted": lambda m, x: m.empty_permuted((2, 3), (1, 0)),
    "bernoulli": lambda m, x: m.bernoulli(x), "bernoulli, p": lambda m, x: x.bernoulli(0.5),
    "multinomial": lambda m, x: x.multinomial(2), "poisson": lambda m, x: m.poisson(x),
    "Parameter": lambda m, x: m.nn.Parameter(m.Tensor(2)),
}


def operators(module, call):
    mode = importlib.import_module(f"{module.__name__}.utils._python_dispatch").TorchDispatchMode
    seen = []

    class Log(mode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), [tuple(x.shape) if isinstance(x, module.Tensor) else x for x in args],
                         {name: str(value).replace("flambeau.", "torch.") for name, value in (kwargs or {}).items()}))
            return func(*args, **(kwargs or {}))

    x = module.ones(2)
    with Log():
        call(module, x)
    return seen


@pytest.mark.parametrize("name", CALLS)
def test_operators_that_modes_see(name):
    assert operators(flambeau, CALLS[name]) == operators(torch, CALLS[name])


@pytest.mark.parametrize("name", CALLS)
def test_results_under_fake_tensors_are_fake(name):
    fake = importlib.import_module("flambeau._subclasses.fake_tensor")
    with fake.FakeTensorMode():
        assert isinstance(CALLS[name](flambeau, flambeau.ones(2)), fake.FakeTensor)
    assert not isinstance(CALLS[name](flambeau, flambeau.ones(2)), fake.FakeTensor)
