"""Repeated calls on a device: launches and graphs of earlier calls give what the functions themselves give."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.accelerated import calls, drawing
from flambeau._tensor.accelerated.recorded import call_table, draw_table, factory_table
from flambeau._tensor.overriding import entry_points
from tests._tensor.accelerated.repeated import RECORDS, differences
from tests.backends.cuda_devices.on_fake_cupy import cupy_devices

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")
F: Any = torch.nn.functional
#: the last of two devices; the only one of a machine with one GPU
LAST = "cuda:1"


@pytest.fixture(scope="module", autouse=True)
def cupy():
    global LAST
    with cupy_devices(2) as module:
        LAST = f"cuda:{torch.cuda.device_count() - 1}"
        yield module


def known(function: Any, name: str) -> list[type]:
    """The classes of what is recorded of a public function's calls."""
    table = next(each for each in entry_points._entries.values() if each.name == name)
    call = table.replacement.co_consts[-1] if callable(table.replacement.co_consts[-1]) else next(
        each for each in table.replacement.co_consts if callable(each))
    tables = call.__closure__[call.__code__.co_freevars.index("tables")].cell_contents
    return [each.__class__ for each in tables[0].__self__._known.values()]


@pytest.mark.parametrize("part", range(2))
def test_samples_of_records(part):
    assert differences(RECORDS[part::24][:10]) == []


def test_a_call_is_recorded_by_its_layouts():
    x, y = torch.rand(3, 4, device="cuda"), torch.rand(3, 4, device="cuda", requires_grad=True)
    for number in range(4):
        z = torch.mul(x + number, y)
        torch.testing.assert_close(z.detach().cpu(), (x.cpu() + number) * y.detach().cpu())
        assert z.grad_fn.name() == "MulBackward0"
        g, = torch.autograd.grad(z.sum(), y)
        torch.testing.assert_close(g.cpu(), x.cpu() + number)
    assert call_table.RecordedCall in known(torch.mul, "torch.mul")
    with torch.no_grad():
        assert torch.mul(x, y).grad_fn is None


def test_operands_in_one_memory():
    base = torch.rand(6, 4, device="cuda")
    for number in range(5):
        a, b = base[number % 2:3 + number % 2], base[3:]  # which overlap or not, at another distance
        torch.testing.assert_close((a * b).cpu(), a.cpu() * b.cpu())
        torch.testing.assert_close((a - a).cpu(), torch.zeros(3, 4))


def test_memory_that_is_not_aligned():
    base = torch.rand(65, device="cuda")
    for number in range(6):
        x = base[number % 2:number % 2 + 64]
        torch.testing.assert_close((x * 2).cpu(), x.cpu() * 2)


def test_views():
    x = torch.arange(24., device="cuda").view(2, 3, 4)
    here = x.cpu()
    for _ in range(4):
        for view in (lambda a: a[1, 2], lambda a: a[:, 1:], lambda a: a.mT, lambda a: a[0, 0, 0],
                     lambda a: a.reshape(6, 4), lambda a: a[..., None], lambda a: a.transpose(0, 2)[1],
                     lambda a: a.split(1)[1], lambda a: a.unbind(1)[2], lambda a: a.expand(5, 2, 3, 4)):
            y, expected = view(x), view(here)
            assert (y.shape, y.stride(), y.storage_offset()) == (
                expected.shape, expected.stride(), expected.storage_offset())
            assert y._base is x._base or y._base is x
            assert y.tolist() == expected.tolist()
    assert call_table.View in known(torch.Tensor.__getitem__, "torch.Tensor.__getitem__")


def test_lists_of_tensors():
    x, y = torch.rand(2, 3, device="cuda"), torch.rand(2, 3, device="cuda", requires_grad=True)
    for _ in range(4):
        for join in (lambda a, b: torch.cat([a, b]), lambda a, b: torch.stack((a, b), 1),
                     lambda a, b: torch.cat([b, b], 1), lambda a, b: torch.cat([a, a, b], dim=1)):
            joined, expected = join(x, y), join(x.cpu(), y.detach().cpu())
            torch.testing.assert_close(joined.detach().cpu(), expected)
            here = y.detach().cpu().requires_grad_()
            other = join(x.cpu(), here)
            torch.testing.assert_close(torch.autograd.grad((joined * joined).sum(), y)[0].cpu(),
                                       torch.autograd.grad((other * other).sum(), here)[0])
    assert call_table.RecordedCall in known(torch.cat, "torch.cat")


def test_writes():
    x, y = torch.rand(4, 5, device="cuda"), torch.rand(4, 5, device="cuda")
    here = x.cpu()
    for number in range(5):
        for write in (lambda a, b: a.add_(b, alpha=2), lambda a, b: a.mul_(0.5), lambda a, b: a.add_(a),
                      lambda a, b: a.sub_(b[0]), lambda a, b: a[:, 1:].add_(a[:, :-1]), lambda a, b: a.fill_(1.5)):
            write(x, y)
            write(here, y.cpu())
            torch.testing.assert_close(x.cpu(), here)
            assert x._version == here._version, number
    assert call_table.InPlace in known(torch.Tensor.mul_, "torch.Tensor.mul_")
    leaf = torch.rand(3, device="cuda", requires_grad=True)
    for _ in range(4):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place"):
            leaf.mul_(2)
        with torch.no_grad():
            before, version = leaf.tolist(), leaf._version
            leaf.mul_(2)
            assert (leaf.tolist(), leaf._version) == ([2 * each for each in before], version + 1)


def test_factories():
    like = torch.rand(2, 3, device="cuda").t()
    for _ in range(4):
        assert torch.zeros(2, 3, device="cuda").tolist() == [[0, 0, 0], [0, 0, 0]]
        ones = torch.ones((2,), device=LAST, dtype=torch.int64, requires_grad=False)
        assert (ones.tolist(), ones.device, ones.dtype) == ([1, 1], torch.device(LAST), torch.int64)
        assert torch.ones_like(like).stride() == like.stride()
        leaf = torch.empty(3, device="cuda", requires_grad=True)
        assert leaf.requires_grad
        assert leaf.is_leaf
        assert torch.zeros(2).device.type == "cpu"
    with torch.device(LAST):
        assert torch.zeros(2, 3).device == torch.device(LAST)
    assert factory_table.FACTORIES


def test_gradients_in_memory_of_their_own_are_not_copied():
    model = torch.nn.Linear(4, 3, device="cuda")
    x = torch.rand(2, 4, device="cuda")
    for number in range(5):
        model.zero_grad()
        before = torch.cuda.memory_stats()["allocation.all.allocated"]
        model(x).sum().backward()
        assert torch.cuda.memory_stats()["allocation.all.allocated"] > before, number
    a, b = (torch.ones(3, device="cuda", requires_grad=True) for _ in range(2))
    for _ in range(5):
        a.grad = b.grad = None
        (a + b).sum().backward()
        a.grad.mul_(2)
        assert b.grad.tolist() == [1, 1, 1]
    assert calls.rules[0]._known


def test_a_rule_is_recorded_by_its_constants():
    x = torch.rand(3, 4, device="cuda", requires_grad=True)
    for number in (0, 1, 0, 1, 0, 1):
        g, = torch.autograd.grad(torch.softmax(x, number).pow(2).sum(), x)
        here = x.detach().cpu().requires_grad_()
        expected, = torch.autograd.grad(torch.softmax(here, number).pow(2).sum(), here)
        torch.testing.assert_close(g.cpu(), expected)


def test_values_that_are_read_are_not_recorded():
    x = torch.arange(6., device="cuda")
    for number in range(5):
        n = torch.tensor(number, device="cuda")
        assert torch.full((2,), n.item()).tolist() == [number] * 2
        assert x.narrow(0, int(n), 1).tolist() == [number]
        assert torch.repeat_interleave(x[:2], torch.tensor([number, 1], device="cuda")).shape == (number + 1,)


def test_random_numbers_are_drawn_anew():
    x = torch.ones(64, device="cuda")
    found = {tuple(F.dropout(x, 0.5).tolist()) for _ in range(5)}
    assert len(found) == 5


def test_streams_and_devices():
    stream = torch.cuda.Stream()
    for device in ("cuda:0", LAST):
        x = torch.ones(4, device=device)
        for _ in range(4):
            assert (x + 1).device == x.device
    x = torch.ones(4, device="cuda")
    for _ in range(4):
        with torch.cuda.stream(stream):
            y = x * 3
        assert y.tolist() == [3] * 4


def test_inference_mode():
    x = torch.rand(4, 6, device="cuda")
    here = x.cpu()
    for _ in range(4):
        with torch.inference_mode():
            made = [x.exp(), x.t(), x.exp().view(3, 8), torch.zeros(3, device="cuda"), torch.softmax(x, 1),
                    *x.exp().split(2), x.exp().mul_(2), torch.nn.functional.layer_norm(x, (6,)), x.max(1)[0]]
            expected = [here.exp(), here.t(), here.exp().view(3, 8), torch.zeros(3), torch.softmax(here, 1),
                        *here.exp().split(2), here.exp().mul_(2), torch.nn.functional.layer_norm(here, (6,)),
                        here.max(1)[0]]
        for a, b in zip(made, expected, strict=True):
            assert (a.is_inference(), a._base is None) == (b.is_inference(), b._base is None)
            torch.testing.assert_close(a.cpu(), b)
        w = torch.rand(4, 6, device="cuda", requires_grad=True)
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            w * made[0]
        (w + made[0]).sum().backward()


def test_modes_take_the_functions_themselves():
    x = torch.ones(4, device="cuda")
    for _ in range(3):
        x.exp()
    with torch.inference_mode():
        assert x.exp().is_inference()
    value, tangent = torch.func.jvp(torch.exp, (x,), (x,))
    torch.testing.assert_close(value, tangent)
    assert torch.func.vmap(torch.exp)(torch.ones(2, 4, device="cuda")).shape == (2, 4)


def test_views_are_recorded():
    x = torch.arange(24., device="cuda").view(2, 3, 4).requires_grad_()
    here = x.detach().cpu().requires_grad_()
    for _ in range(4):
        for view in (lambda a: a.view(6, 4), lambda a: a.transpose(0, 1), lambda a: a[1, 2], lambda a: a.split(2, 2)[1],
                     lambda a: a.unbind(1)[2], lambda a: a[:, 1:].reshape(2, 8), lambda a: a.expand(2, 2, 3, 4)[1]):
            y, expected = view(x), view(here)
            assert y.grad_fn.name() == expected.grad_fn.name()
            assert (y.output_nr, y._is_view()) == (expected.output_nr, expected._is_view())
            g, = torch.autograd.grad((y * y).sum(), x)
            torch.testing.assert_close(g.cpu(), torch.autograd.grad((expected * expected).sum(), here)[0])
        base, base_here = x * 1, here * 1
        base.view(6, 4)[1].mul_(3)
        base_here.view(6, 4)[1].mul_(3)
        assert base.grad_fn.name() == base_here.grad_fn.name()
        torch.testing.assert_close(base.detach().cpu(), base_here.detach())
    assert call_table.RecordedCall in known(torch.Tensor.view, "torch.Tensor.view")


@pytest.mark.parametrize("name", ["rand", "randn", "randint", "normal_", "uniform_", "dropout", "module"])
def test_random_numbers_enter_launch_stubs(name, monkeypatch):
    x, y = torch.ones(4, 8, device="cuda", requires_grad=True), torch.empty(5, 6, device="cuda")
    weight, module = torch.nn.Parameter(torch.empty(3, 3, device="cuda")), torch.nn.Dropout(0.3)

    def uniform() -> torch.Tensor:
        with torch.no_grad():
            return weight.uniform_(-1, 1)

    draw = {"rand": lambda: torch.rand(3, 4, device="cuda"), "uniform_": uniform, "normal_": lambda: y.normal_(1, 2),
            "randn": lambda: torch.randn((2, 3), device="cuda", dtype=torch.float64, requires_grad=True),
            "randint": lambda: torch.randint(0, 10, (5,), device="cuda"), "module": lambda: module(x),
            "dropout": lambda: torch.nn.functional.dropout(x, 0.25)}[name]

    def drawn() -> tuple[list, int, bool, bool]:
        result = draw()
        return result.tolist(), torch.cuda.default_generators[0].get_offset(), result.requires_grad, (
            result.grad_fn is not None)

    torch.cuda.manual_seed(-7)
    with monkeypatch.context() as context:
        context.setattr(draw_table, "may_draw", lambda: False)
        expected = [drawn() for _ in range(5)]
    torch.cuda.manual_seed(-7)
    found = [drawn() for _ in range(3)]
    with monkeypatch.context() as context:
        context.setattr(drawing, "taken", None)
        found += [drawn() for _ in range(2)]
    assert found == expected
    if name in ("dropout", "module"):
        out = draw()
        out.sum().backward()
        assert torch.equal(x.grad, out.detach())
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = draw()
    torch.cuda.manual_seed(9)
    graph.replay()
    replayed = captured.tolist()
    torch.cuda.manual_seed(9)
    assert draw().tolist() == replayed


def test_settings_that_launches_depend_on():
    x = torch.rand(64, 64, device="cuda")
    n = torch.arange(4, device="cuda")
    try:
        for precision, tf32 in (("highest", False), ("high", True), ("highest", False)):
            torch.set_float32_matmul_precision(precision)
            assert torch.backends.cuda.matmul.allow_tf32 is tf32
            for dtype in (torch.float32, torch.float64):
                torch.set_default_dtype(dtype)
                for _ in range(3):
                    assert (n / 2).dtype == dtype
                    x @ x
        torch.backends.cuda.matmul.allow_tf32 = True
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_default_dtype(torch.float32)
        torch.backends.cuda.matmul.allow_tf32 = False


def test_hooks_of_saved_tensors_and_anomaly_mode():
    x = torch.rand(3, 4, device="cuda", requires_grad=True)
    for _ in range(3):
        (x * x).log().sum().backward()
    packed: list[Any] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t) or t, lambda t: t):
        (x * x).exp().sum().backward()
    assert len(packed) == 3
    zeros = torch.zeros(3, device="cuda", requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        (x * x).log().sum().backward()
        loss = (zeros.log() * 0).sum()
        with pytest.warns(UserWarning, match="Error detected in LogBackward0"), pytest.raises(
                RuntimeError, match="Function 'LogBackward0' returned nan values in its 0th output"):
            loss.backward()


def test_memory_does_not_grow():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.LayerNorm(16)).cuda()
    optimizer, x = torch.optim.AdamW(model.parameters()), torch.rand(5, 8, device="cuda")
    found = set()
    for number in range(12):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
        if number > 7:
            found.add((torch.cuda.memory_allocated(), torch.cuda.memory_reserved()))
    assert len(found) == 1


@pytest.mark.parametrize("layer", ["RNN", "LSTM", "GRU"])
def test_recurrent_layers(layer):
    module = getattr(torch.nn, layer)(3, 5, batch_first=True)
    device_module = getattr(torch.nn, layer)(3, 5, batch_first=True).cuda()
    device_module.load_state_dict(module.state_dict())
    for _ in range(5):
        x = torch.rand(2, 4, 3)
        for each, given in ((module, x), (device_module, x.cuda())):
            each.zero_grad()
            each(given)[0].pow(2).sum().backward()
        for p, q in zip(module.parameters(), device_module.parameters(), strict=True):
            torch.testing.assert_close(q.grad.cpu(), p.grad)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(dtype, causal, cupy):
    for number in range(4):
        x = torch.rand(2, 6, 48).to(dtype)
        results = []
        for given in (x.double(), x.cuda()):
            leaf = given.detach().requires_grad_()
            q, k, v = (each.view(2, 6, 2, 8).transpose(1, 2) for each in leaf.split(16, -1))
            out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
            results.append((out, *torch.autograd.grad(out.double().pow(2).sum(), leaf)))
        assert results[1][0].grad_fn.name() == results[0][0].grad_fn.name()
        tolerance = 1e-5 if dtype is torch.float32 else 2e-2
        for a, b in zip(*results, strict=True):
            torch.testing.assert_close(b.detach().cpu().double(), a.detach(), rtol=tolerance, atol=tolerance)
        if cupy.state is not None and dtype is not torch.float32 and number:
            assert "attention" in {each[0] for each in cupy.state.launched[-60:]}
