"""The memory of traces: a tracer keeps no array longer than the function does."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen, nn
from flambeau.compiler.tracing.tracer import Tracer


def test_traces_retain_no_dropped_arrays():
    gone = []

    def step(x):
        y = x * 2
        seen = weakref.ref(y._array)
        z = y + 1
        del y
        gone.append(seen() is None)
        return z

    x = torch.ones(100)
    with torch.no_grad(), Tracer() as tracer:
        tracer.bind_arguments([x])
        step(x)
    assert gone == [True]
    assert tracer.failure is None


def test_reused_memory_is_not_mistaken_for_the_old_array():
    def steps(x):
        total = torch.zeros_like(x)
        for i in range(40):
            part = x * i
            part += total
            total = part - x.flip(0)
            if i % 3 == 0:
                part.mul_(2)
                total = total + part
            del part
        return total

    x = torch.arange(12.).reshape(3, 4)
    compiled = torch.compile(steps)
    with torch.no_grad():
        found = [compiled(x + i) for i in range(5)]
        assert all(torch.equal(each, steps(x + i)) for i, each in enumerate(found))


def test_traces_are_freed_without_the_garbage_collector():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters())
    grads = []

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    x = torch.randn(4, 8)
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            step(x)
            grads.append(weakref.ref(model[0].weight.grad._array))
        assert [each() is None for each in grads[:2]] == [True] * 2  # the others were replayed
    finally:
        gc.enable()


def test_compiled_programs_release_memory_of_their_traces():
    from flambeau import codegen
    from flambeau.backends.compiled.allocator import allocator

    if not codegen.available() or allocator() is None:
        return
    step = torch.compile(lambda x: ((x @ x).tanh() @ x).sum(0))
    x = torch.randn(200, 200)
    for _ in range(2):
        step(x)
    assert allocator().memory().idle == 0


def training(inputs, outputs):
    """A layer, and a compiled step that trains it, twice captured."""
    layer = nn.Linear(inputs, outputs)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.01)

    @torch.compile
    def step(x):
        optimizer.zero_grad()
        loss = layer(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    x = torch.randn(8, inputs)
    for _ in range(4):
        step(x)
    return layer, step, x


@pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")
def test_gradients_reuse_the_memory_of_those_they_replace():
    layer, step, x = training(256, 128)
    before = weakref.ref(layer.weight.grad._array)
    old = weakref.ref(layer.weight.grad)
    step(x)
    assert before() is layer.weight.grad._array
    assert old() is None


@pytest.mark.parametrize("hold", [lambda g: g, lambda g: g.detach(), lambda g: g[3:], lambda g: g.numpy(),
                                  lambda g: g.numpy()[2:], lambda g: memoryview(g.numpy()), lambda g: g._array],
                         ids=["tensor", "detached", "view", "array", "getitem", "buffer", "own"])
def test_referenced_gradients_are_not_overwritten(hold):
    layer, step, x = training(256, 128)
    held = hold(layer.weight.grad)
    before = np.array(held)
    step(x)
    assert np.array_equal(np.array(held), before)
    assert not np.array_equal(layer.weight.grad[-1].numpy(), before[-1])


def test_gradients_survive_a_failed_data_guard():
    layer = nn.Linear(256, 128)
    found = []

    @torch.compile
    def step(x):
        if x.sum() > 0:
            layer.zero_grad()
            layer(x).square().mean().backward()
            return None
        return layer.weight.grad.clone()

    x = torch.rand(8, 256) + 1
    for i in range(5):
        step(x + i)
        found.append(layer.weight.grad.clone())
    assert torch.equal(step(-x), found[-1])
    assert torch.equal(layer.weight.grad, found[-1])


def test_values_computed_before_a_data_guard_use_other_memory():
    w = torch.zeros(128, 256, requires_grad=True)

    @torch.compile
    def step(x):
        y = x.exp()
        if y.sum() < 1e5:
            w.grad = None
            (w * y).sum().backward()
            w.grad = y
            return None
        return w.grad.clone()

    x = torch.rand(128, 256)
    for _ in range(5):
        step(x)
        x = x - 0.01
    found = w.grad.clone()
    assert torch.equal(step(x + 5), found)
    assert torch.equal(w.grad, found)


def test_gradients_that_are_read_are_not_overwritten():
    layer = nn.Linear(256, 128)

    @torch.compile
    def step(x):
        old = layer.weight.grad
        layer.weight.grad = None
        layer(x).square().mean().backward()
        return None if old is None else (layer.weight.grad - old).abs().sum()

    x = torch.rand(8, 256)
    for i in range(6):
        before = layer.weight.grad
        found = step(x + i)
        if before is not None:
            torch.testing.assert_close(found, (layer.weight.grad - before).abs().sum())
            del before


@pytest.mark.parametrize("given", [lambda step, x: step([x]), lambda step, x: step(x=x)], ids=["list", "keyword"])
def test_gradients_are_reused_without_the_fast_path(given):
    layer = nn.Linear(256, 128)

    @torch.compile
    def step(x):
        layer.zero_grad()
        loss = layer(x[0] if isinstance(x, list) else x).square().mean()
        loss.backward()
        return loss

    x = torch.randn(8, 256)
    for _ in range(4):
        given(step, x)
    expected = layer.weight.grad.clone()
    given(step, 2 * x)
    given(step, x)
    torch.testing.assert_close(layer.weight.grad, expected)
