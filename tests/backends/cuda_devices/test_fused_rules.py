"""Derivative rules as programs: gradients are the CPU's, in few launches; rules that are recorded run on tensors."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.accelerated import fused_rules
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")
functional = torch.nn.functional

CASES = {
    "batch norm": (lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True), 3),
    "layer norm": (lambda x, w, b: functional.layer_norm(x, (6,), w, b), 6),
    "group norm": (lambda x, w, b: functional.group_norm(x, 1, w, b), 3),
    "gelu": (lambda x, w, b: functional.gelu(x), None),
    "gelu, tanh": (lambda x, w, b: functional.gelu(x, approximate="tanh"), None),
    "mish": (lambda x, w, b: functional.mish(x), None),
    "clamp": (lambda x, w, b: x.clamp(-0.5, 0.5), None),
    "pow": (lambda x, w, b: x ** 3, None),
    "addcmul": (lambda x, w, b: torch.addcmul(x, w, b, value=2), 6),
    "elu": (lambda x, w, b: functional.elu(x), None),
    "huber": (lambda x, w, b: functional.huber_loss(x, x.detach() + 1.5), None),
    "std": (lambda x, w, b: x.std(dim=1), None),
}


@pytest.fixture(scope="module")
def cupy():
    with cupy_devices(1) as module:
        yield module


def leaves(size, dtype):
    torch.manual_seed(0)
    made = [torch.randn(2, 3, 4, 6), *(torch.randn(size or 1) for _ in range(2))]
    return [x.to(dtype).requires_grad_() for x in made], [x.to(dtype).cuda().requires_grad_() for x in made]


def launched(cupy):
    return 0 if cupy.state is None else len(cupy.state.launched)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_gradients(cupy, name, dtype):
    function, size = CASES[name]
    here, there = leaves(size, dtype)
    y, z = function(*here), function(*there)
    torch.manual_seed(1)
    g = torch.randn(y.shape).to(dtype)
    before = launched(cupy)
    found = torch.autograd.grad(z, there, g.cuda(), allow_unused=True)
    assert launched(cupy) - before <= (3 if size is None else 8)
    for a, b in zip(torch.autograd.grad(y, here, g, allow_unused=True), found, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
            torch.testing.assert_close(b.cpu(), a, rtol=2e-2 if dtype is torch.bfloat16 else 1e-4,
                                       atol=5e-2 if dtype is torch.bfloat16 else 1e-5)


def test_repeated_rules_see_new_values(cupy):
    for seed in range(5):  # from the third on launches are replayed
        here, there = leaves(3, torch.float32)
        grads = []
        for x, w, b in (here, there):
            with torch.no_grad():
                x.mul_(seed + 1).add_(w.sum() * seed)
            y = functional.batch_norm(x, None, None, w, b, training=True)
            grads.append(torch.autograd.grad(y, (x, w, b), y.detach() ** 2))
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(b.cpu(), a, rtol=1e-3, atol=1e-4)


def test_some_gradients_only(cupy):
    here, there = leaves(3, torch.float64)
    for used in ((0,), (1, 2), (2,)):
        grads = []
        for x, w, b in (here, there):
            operands = [t if i in used else t.detach() for i, t in enumerate((x, w, b))]
            y = functional.batch_norm(operands[0], None, None, *operands[1:], training=True)
            grads.append(torch.autograd.grad((y ** 3).sum(), [operands[i] for i in used]))
        for a, b in zip(*grads, strict=True):
            torch.testing.assert_close(b.cpu(), a)


@pytest.mark.parametrize("name", ["batch norm", "layer norm", "gelu"])
def test_second_derivatives_are_recorded(cupy, name):
    function, size = CASES[name]
    here, there = leaves(size, torch.float64)
    results = []
    for values in (here, there):
        first = torch.autograd.grad((function(*values) ** 3).sum(), values[0], create_graph=True)[0]
        results.append(torch.autograd.grad((first ** 2).sum(), values[0])[0])
    torch.testing.assert_close(results[1].cpu(), results[0])


@pytest.mark.parametrize("expanded", [False, True])
def test_channels_last_is_kept(cupy, expanded):
    here, there = leaves(3, torch.float32)
    grads = []
    for x, w, b in (here, there):
        x = x.detach().to(memory_format=torch.channels_last).requires_grad_()
        y = functional.batch_norm(x, None, None, w, b, training=True)
        before = launched(cupy)
        grads.append(torch.autograd.grad(y.sum() if expanded else y, x, None if expanded else y.detach())[0])
        assert launched(cupy) - before <= 5
    assert grads[1].stride() == (72, 1, 18, 3)
    torch.testing.assert_close(grads[1].cpu(), grads[0], rtol=1e-4, atol=1e-5)


def test_hooks_are_called_once(cupy):
    _, (x, w, b) = leaves(3, torch.float32)
    calls = []

    def unpack(value):
        calls.append(value)
        return value

    with torch.autograd.graph.saved_tensors_hooks(lambda value: value, unpack):
        y = functional.batch_norm(x, None, None, w, b, training=True)
    y.sum().backward()
    assert len(calls) == 2
    assert "_batch_norm" in fused_rules.OPERATORS


def test_launches_are_recorded(cupy):
    _, (x, w, b) = leaves(3, torch.float64)
    for _ in range(3):
        functional.batch_norm(x, None, None, w, b, training=True).sum().backward()
    rules = [each for key, each in fused_rules._programs.items() if key[0] == "_batch_norm" and each is not None]
    assert any(each.launch is not None for each in rules)


@pytest.mark.parametrize("momentum", [0.1, None])
def test_running_averages_take_one_launch_each(cupy, momentum):
    here = torch.nn.BatchNorm1d(3, momentum=momentum)
    there = torch.nn.BatchNorm1d(3, momentum=momentum).cuda()
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(5, 3)
        here(x)
        y = x.cuda()
        before = launched(cupy)
        there(y)
        assert launched(cupy) - before <= 4 or seed < 3  # with the count and the result; earlier calls are observed
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        torch.testing.assert_close(getattr(there, name).cpu(), getattr(here, name))


@pytest.mark.parametrize("name", ["max_pool2d", "adaptive_max_pool2d"])
def test_recorded_rules_read_the_indices_of_each_call(cupy, name):
    for seed in range(5):
        torch.manual_seed(seed)
        x = torch.randn(2, 3, 6, 6, requires_grad=True)
        y = x.detach().cuda().requires_grad_()
        for each in (x, y):
            getattr(functional, name)(each, 2).pow(2).sum().backward()
        torch.testing.assert_close(y.grad.cpu(), x.grad)
