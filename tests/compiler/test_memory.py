"""What a capture keeps: no array longer than the function itself does."""

from __future__ import annotations

import gc
import weakref

import flambeau as torch
from flambeau import nn
from flambeau.compiler.capture import Capture


def test_a_capture_keeps_no_array_that_the_function_drops():
    gone = []

    def step(x):
        y = x * 2
        seen = weakref.ref(y._array)
        z = y + 1
        del y
        gone.append(seen() is None)
        return z

    x = torch.ones(100)
    with torch.no_grad(), Capture() as capture:
        capture.begin([x])
        step(x)
    assert gone == [True]
    assert capture.failed is None


def test_memory_that_is_used_again_is_not_what_it_was():
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


def test_nothing_of_a_capture_waits_for_the_garbage_collector():
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


def test_a_program_leaves_no_idle_memory_of_its_captures():
    from flambeau import jit
    from flambeau.backends.compiled.allocator import allocator

    if not jit.available() or allocator() is None:
        return
    step = torch.compile(lambda x: ((x @ x).tanh() @ x).sum(0))
    x = torch.randn(200, 200)
    for _ in range(2):
        step(x)
    assert allocator().memory().idle == 0
