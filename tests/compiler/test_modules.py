"""Compiled modules: hooks of the wrapper, `Module.compile`, attributes and state dicts."""

from __future__ import annotations

import copy
import pickle

import pytest

import flambeau as torch
from flambeau import codegen, nn
from tests.compiler.eager_comparison import numbers, programs, same

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


class Scaled(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.scale = scale

    def forward(self, x):
        return self.linear(x) * self.scale


def model(scale=2.0):
    torch.manual_seed(0)
    return Scaled(scale)


def test_hooks_of_the_compiled_module_itself():
    made = torch.compile(model())
    seen = []
    handles = [made.register_forward_pre_hook(lambda module, args: (args[0] * 2,)),
               made.register_forward_hook(lambda module, args, result: (seen.append(module), result + 1)[1])]
    for i in range(4):
        x = numbers(4, 3, seed=i)
        same(made(x), made._orig_mod(x * 2) + 1)
    assert len(seen) == 4
    assert all(each is made for each in seen)
    for handle in handles:
        handle.remove()
    same(made(x), made._orig_mod(x))


def test_module_compile():
    first, second, eager = model(2.0), model(5.0), model(2.0)
    first.compile()
    second.compile(fullgraph=True)
    for i in range(5):
        x = numbers(4, 3, seed=i)
        same(first(x), eager(x))
        same(second(x), eager(x) * 2.5)
    assert programs(first._compiled_call_impl) == programs(second._compiled_call_impl) == 1
    first.scale = eager.scale = 3.0
    for m in (first, eager):
        m.register_forward_hook(lambda module, args, result: result.exp())
    for _ in range(4):
        same(first(x), eager(x))


def test_training_with_module_compile():
    made, eager = model(), model()
    made.compile()
    both = [(m, torch.optim.SGD(m.parameters(), lr=0.1)) for m in (made, eager)]
    for i in range(5):
        for m, optimizer in both:
            optimizer.zero_grad()
            m(numbers(4, 3, seed=i)).square().mean().backward()
            optimizer.step()
    same([*made.parameters()], [*eager.parameters()])


@pytest.mark.parametrize("copied", [copy.deepcopy, copy.copy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_not_compiled(copied):
    made = model()
    made.compile()
    x = numbers(4, 3)
    made(x)
    again = copied(made)
    assert not hasattr(again, "_compiled_call_impl")
    same(again(x), made(x))
    assert list(made.state_dict()) == ["linear.weight", "linear.bias"]


def test_length_of_a_compiled_module():
    assert len(torch.compile(nn.Sequential(nn.Tanh(), nn.Tanh()))) == 2
    with pytest.raises(TypeError, match="Scaled does not support len"):
        len(torch.compile(model()))


def test_invalid_arguments():
    with pytest.raises(AssertionError, match="A callable function is expected, but <class 'int'> is provided"):
        torch.compile(3)
    with pytest.raises(RuntimeError, match="Unrecognized mode=quick, should be one of: default, lite"):
        torch.compile(model(), mode="quick")


def test_classes():
    """A compiled class is itself; calls of its instances are compiled."""
    @torch.compile
    class Scale(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return (x * self.weight).sin()

    @torch.compile
    class Add:
        def __call__(self, x):
            return x.exp() + 1

    class Negative(Scale):
        def forward(self, x):
            return -super().forward(x)

    for cls, expected in ((Scale, lambda x: x.sin()), (Negative, lambda x: -x.sin()), (Add, lambda x: x.exp() + 1)):
        instance = cls()
        for i in range(4):
            same(instance(numbers(2, seed=i)).detach(), expected(numbers(2, seed=i)))
    assert isinstance(Negative(), Scale)
    assert programs(Scale.__dict__["forward"]) == 2
    assert programs(Add.__dict__["__call__"]) == 1
