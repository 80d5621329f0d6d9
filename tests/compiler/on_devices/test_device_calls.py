"""Compiled functions on a device: programs of GPU kernels, on the emulator, give what the CPU gives."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import flambeau as torch
from benchmarks.gpt2 import training_step
from flambeau import codegen
from flambeau.codegen.gpu.launches import DeviceLaunch
from flambeau.compiler.errors import Unsupported
from flambeau.ir.gpu.library_products import ProductLaunch
from flambeau.nn import functional as F
from flambeau.trees import tree_flatten
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture(params=["fake", "cupy"])
def device(request):
    with torch.testing.fake_cuda() if request.param == "fake" else cupy_devices() as runtime:
        yield runtime


def programs(compiled: Any) -> int:
    return 0 if compiled._device_calls is None else compiled._device_calls.num_programs


def attention(q: Any, k: Any, v: Any) -> Any:
    return ((q @ k.transpose(-1, -2)) * 0.5).softmax(-1) @ v


FUNCTIONS: list[tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = [
    (lambda x, y: (x * y + 1).tanh() - y, ((3, 4), (4,))),
    (lambda x: x.sum(0) + x.mean(0), ((5, 6),)),
    (lambda x: F.softmax(x, -1) * F.log_softmax(x, -1), ((4, 7),)),
    (lambda x, w, b: F.layer_norm(x, (6,), w, b), ((3, 6), (6,), (6,))),
    (lambda x, w: F.gelu(x @ w), ((3, 4), (4, 5))),
    (lambda x: F.cross_entropy(x, torch.tensor([0, 2, 1], device=x.device)), ((3, 4),)),
    (attention, ((2, 3, 4), (2, 3, 4), (2, 3, 4))),
    (lambda x, w: F.conv2d(x, w), ((1, 2, 5, 5), (3, 2, 3, 3))),
    (lambda x: torch.cat([x.t(), x.t() * 2]).transpose(0, 1), ((3, 4),)),
]


@pytest.mark.parametrize("number", range(len(FUNCTIONS)))
def test_functions_with_gradients(number):
    with torch.testing.fake_cuda() if number % 3 else cupy_devices():
        check_gradients(*FUNCTIONS[number])


def check_gradients(function: Callable[..., Any], shapes: tuple[tuple[int, ...], ...]) -> None:
    compiled = torch.compile(function, fullgraph=True)
    for seed in range(3):
        torch.manual_seed(seed)
        here = [torch.randn(*shape, requires_grad=True) for shape in shapes]
        there = [x.detach().cuda().requires_grad_() for x in here]
        expected, result = function(*here), compiled(*there)
        torch.testing.assert_close(result.cpu(), expected, rtol=1e-4, atol=1e-5)
        assert result.stride() == expected.stride()
        g = torch.randn(expected.shape)
        for a, b in zip(torch.autograd.grad(expected, here, g), torch.autograd.grad(result, there, g.cuda()),
                        strict=True):
            torch.testing.assert_close(b.cpu(), a, rtol=1e-3, atol=1e-4)
    assert programs(compiled) == 1
    assert type(result.grad_fn).__name__ == "CompiledFunctionBackward"


def test_training_steps_are_one_program(device):
    torch.manual_seed(0)
    here = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))
    there = copy.deepcopy(here).cuda()
    x, y = torch.randn(4, 5), torch.tensor([0, 1, 2, 0])
    losses: list[list[float]] = []
    for model in (here, there):
        updates = torch.optim.AdamW(model.parameters(), lr=0.1)

        def step(x, y, model=model, updates=updates):
            updates.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            updates.step()
            return loss.detach()

        compiled = torch.compile(step)
        device = next(model.parameters()).device
        losses.append([compiled(x.to(device), y.to(device)).item() for _ in range(5)])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert programs(compiled) == 1
    for p, q in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(q.detach().cpu(), p.detach(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_products_are_the_librarys(device, dtype):
    def function(x, w, b):
        return F.relu(F.linear(x, w, b)), w @ w.t()

    torch.manual_seed(0)
    here = [torch.randn(*shape).to(dtype) for shape in ((4, 130), (6, 130), (6,))]
    compiled = torch.compile(function, fullgraph=True)
    for _ in range(3):
        found = compiled(*(x.cuda() for x in here))
    for a, b in zip(function(*here), found, strict=True):
        torch.testing.assert_close(b.cpu(), a, rtol=2e-2 if dtype is torch.bfloat16 else 1e-4,
                                   atol=1e-1 if dtype is torch.bfloat16 else 1e-4)
    entry, = next(iter(compiled._device_calls._signatures.values())).entries
    products = [each.launch for each in entry.program.device_program.launches
                if isinstance(each.launch, ProductLaunch)]
    assert sorted(bool(each.scratch) for each in products) == [False, True]


@pytest.mark.parametrize("shape", [(2, 5, 8), (1, 2, 5, 8)])
def test_products_with_a_softmax_between_them_are_attention(shape):
    with torch.testing.fake_cuda():
        torch.manual_seed(0)
        here = [torch.randn(*shape).to(torch.bfloat16) for _ in range(3)]
        for function, is_flash in ((attention, True), (lambda *x: (attention(*x), (x[0] @ x[1].mT).sum()), False)):
            compiled = torch.compile(function, fullgraph=True)
            for _ in range(3):
                result = compiled(*(x.cuda() for x in here))
            expected = function(*here)
            torch.testing.assert_close(tree_flatten(result)[0][0].cpu(), tree_flatten(expected)[0][0], rtol=3e-2,
                                       atol=3e-2)
            entry, = next(iter(compiled._device_calls._signatures.values())).entries
            launches = [each.launch for each in entry.program.device_program.launches]
            assert is_flash == any(each.kernel.family.startswith("attention") for each in launches
                                   if isinstance(each, DeviceLaunch))
            assert not is_flash or len(launches) <= 2


@pytest.mark.parametrize("causal", [False, True])
def test_narrow_products_and_attention(causal):
    def function(q, k, v, w, b):
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return F.linear(heads.transpose(1, 2).flatten(2), w, b)

    with torch.testing.fake_cuda():
        torch.manual_seed(0)
        shapes = ((1, 2, 5, 8), (1, 2, 5, 8), (1, 2, 5, 8), (4, 16), (4,))
        here = [torch.randn(*shape).to(torch.bfloat16).requires_grad_() for shape in shapes]
        there = [x.detach().cuda().requires_grad_() for x in here]
        compiled = torch.compile(function, fullgraph=True)
        expected = function(*here)
        g = torch.ones_like(expected)
        gradients = torch.autograd.grad(expected, here, g)
        for _ in range(3):
            result = compiled(*there)
            found = torch.autograd.grad(result, there, g.cuda())
        entry, = next(iter(compiled._device_calls._signatures.values())).entries
        launches = [each.launch for each in entry.program.device_program.launches]
        assert any(each.kernel.family.startswith("attention") for each in launches if isinstance(each, DeviceLaunch))
        torch.testing.assert_close(result.cpu(), expected, rtol=3e-2, atol=3e-2)
        for a, b in zip(gradients, found, strict=True):
            torch.testing.assert_close(b.cpu(), a, rtol=6e-2, atol=6e-2)
        launches = [each.launch for each in entry.backward.program.device_program.launches]
        assert [each.kernel.family for each in launches if isinstance(each, DeviceLaunch)
                and each.kernel.family.startswith("attention")] == ["attention_dq", "attention_dkv"]


def test_attentions_gradient_within_a_function():
    def function(q, k, v):
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        heads.square().sum().backward()
        return q.grad, k.grad, v.grad

    with cupy_devices():
        torch.manual_seed(0)
        here = [torch.randn(1, 2, 6, 8).to(torch.bfloat16).requires_grad_() for _ in range(3)]
        expected = function(*here)
        compiled = torch.compile(function, fullgraph=True)
        for _ in range(3):
            there = [x.detach().cuda().requires_grad_() for x in here]
            found = compiled(*there)
        for a, b in zip(expected, found, strict=True):
            torch.testing.assert_close(b.cpu(), a, rtol=6e-2, atol=6e-2)
        entry, = next(iter(compiled._device_calls._signatures.values())).entries
        assert sum(each.launch.kernel.family.startswith("attention") for each in entry.program.device_program.launches
                   if isinstance(each.launch, DeviceLaunch)) == 3


@pytest.mark.parametrize("on_cupy", [False, True])
def test_a_language_model_in_bfloat16_is_one_program(monkeypatch, on_cupy):
    losses, original = [], torch.compile
    for compiles in (False, True):
        with cupy_devices() if on_cupy else torch.testing.fake_cuda():
            made: list[Any] = []
            monkeypatch.setattr(torch, "compile", lambda f, made=made: made.append(
                original(f, fullgraph=True)) or made[0])
            run = training_step(torch, compiles, True, "cuda")
            losses.append([run().item() for _ in range(3)])
    assert losses[1] == pytest.approx(losses[0], rel=5e-3)
    assert losses[1][-1] < losses[1][0]
    assert programs(made[0]) == 1


def test_writes_views_and_branches(device):
    def function(x, y):
        x.mul_(2)
        z = x[1:] + y[1:]
        return (z if x.sum() > 0 else -z), z.t()

    compiled = torch.compile(function)
    for sign in (1, 1, 1, -1, -1, 1):
        here, other = sign * torch.arange(6.).reshape(3, 2), torch.ones(3, 2)
        there = here.cuda()
        expected, result = function(here, other), compiled(there, other.cuda())
        assert torch.equal(there.cpu(), here)
        for a, b in zip(expected, result, strict=True):
            assert torch.equal(a, b.cpu())
            assert a.stride() == b.stride()
    assert programs(compiled) >= 1


def test_call_stubs(device):
    compiled = torch.compile(lambda x, y, n: (x * y + n).relu_())
    base = torch.arange(9.)
    for _ in range(2):
        for x, y in ((base[:8], base[1:]), (base[1:], base[:8]), (base[1:].clone(), base[:8].clone())):
            for _ in range(4):
                assert torch.equal(compiled(x.cuda(), y.cuda(), 2).cpu(), x * y + 2)
                assert torch.equal(compiled(x, y, 2), x * y + 2)
        whole = base.cuda()
        for _ in range(4):
            assert torch.equal(compiled(whole[1:], whole[:8].clone(), 2).cpu(), base[1:] * base[:8] + 2)
    assert compiled._call_stub is not None


def test_arguments_that_share_memory(device):
    compiled = torch.compile(lambda x, y: x * 2 + y, fullgraph=True)
    base = torch.arange(8.)
    for _ in range(4):
        there = base.cuda()
        assert torch.equal(compiled(there[:6], there[2:]).cpu(), base[:6] * 2 + base[2:])
    entry, = next(iter(compiled._device_calls._signatures.values())).entries
    assert entry.has_run


def test_scalars_are_one_kernel():
    with cupy_devices():
        compiled = torch.compile(lambda x, y, z: (x.log(), y * 2, z.sin() + y), fullgraph=True)
        values = [torch.tensor(v) for v in (1.5, 2.5, 3.5)]
        for _ in range(4):
            found = compiled(*(x.cuda() for x in values))
        torch.testing.assert_close([x.cpu() for x in found], [values[0].log(), values[1] * 2,
                                                              values[2].sin() + values[1]])
        entry, = next(iter(compiled._device_calls._signatures.values())).entries
        assert len(entry.program.device_program.launches) == 1


def test_calls_without_kernels_run_eagerly(device):
    def function(x):
        return torch.linalg.svdvals(x.diag()) + 1

    compiled = torch.compile(function)
    x = torch.tensor([3., 1, 2], device="cuda")
    for _ in range(4):
        assert compiled(x).tolist() == pytest.approx([4, 3, 2])
    assert not programs(compiled) or compiled._device_calls.reasons
    strict = torch.compile(function, fullgraph=True)
    with pytest.raises(Unsupported, match="cannot be compiled as one graph"):
        for _ in range(3):
            strict(x)


def test_other_devices_and_shapes_are_other_programs():
    with torch.testing.fake_cuda(2):
        compiled = torch.compile(lambda x: x * 2 + 1)
        for device in ("cuda:0", "cuda:1", "cpu"):
            for size in (3, 5):
                for _ in range(3):
                    y = compiled(torch.ones(size, device=device))
                    assert y.device == torch.device(device)
                    assert y.tolist() == [3] * size
        assert programs(compiled) == 4


def test_kernels_are_profiled():
    with torch.testing.fake_cuda():
        compiled = torch.compile(lambda x: (x * 2 + 1).softmax(-1))
        x = torch.ones(4, 4, device="cuda")
        for _ in range(3):
            compiled(x)
        with torch.profiler.profile() as profile:
            compiled(x)
        assert any(each.key.startswith("compiled") or "softmax" in each.key or "<lambda>[" in each.key
                   for each in profile.key_averages())
