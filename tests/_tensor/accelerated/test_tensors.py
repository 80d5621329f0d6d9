"""Tensors in a device's memory: factories, transfers, errors, views, writes and autograd."""

from __future__ import annotations

import copy
import io
import pickle
import warnings

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional


@pytest.fixture(scope="module", autouse=True)
def device():
    with torch.testing.fake_cuda(2) as runtime:
        yield runtime


def test_the_documents_cells():
    cuda0 = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    assert repr(cuda0) == "device(type='cuda', index=0)"
    expected = "tensor([1., 1., 1., 1., 1.], device='cuda:0')"
    assert repr(torch.ones(5, device=cuda0)) == expected
    assert repr(torch.ones(5, device=0)) == expected
    assert repr(torch.ones(5, device="cuda:0")) == expected
    x = torch.ones(5).to(cuda0)
    assert repr(x) == expected
    assert repr(x.to("cpu").device) == "device(type='cpu')"


def test_no_grad_saves_memory():
    def peak(enabled: bool) -> int:
        model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)]).cuda()
        x = torch.randn(512, 256, device="cuda")
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        with torch.set_grad_enabled(enabled):
            y = model(x)
        assert y.shape == (512, 256)
        return torch.cuda.max_memory_allocated() - before

    assert peak(False) <= 3 * 512 * 256 * 4
    assert peak(True) >= 6 * 512 * 256 * 4


@pytest.mark.parametrize("make", [
    lambda d: torch.zeros(2, 3, device=d), lambda d: torch.full((2,), 7, device=d), lambda d: torch.arange(4, device=d),
    lambda d: torch.linspace(0, 1, 3, device=d), lambda d: torch.eye(2, device=d),
    lambda d: torch.tensor([1, 2], device=d),
    lambda d: torch.as_tensor(np.ones(2), device=d), lambda d: torch.asarray([1.0], device=d),
    lambda d: torch.ones_like(torch.zeros(2, 3).t(), device=d), lambda d: torch.zeros(3).new_ones(2, device=d),
    lambda d: torch.scalar_tensor(2.0, device=d), lambda d: torch.tril_indices(3, 3, device=d),
    lambda d: torch.hann_window(4, device=d), lambda d: torch.ones(2, dtype=torch.bfloat16, device=d),
    lambda d: torch.empty(2, 3, device=d).fill_(1), lambda d: torch.ones(2, requires_grad=True, device=d),
])
def test_factories(make):
    made, plain = make("cuda:1"), make("cpu")
    assert made.device == torch.device("cuda", 1)
    assert (made.dtype, made.stride(), made.requires_grad) == (plain.dtype, plain.stride(), plain.requires_grad)
    assert made.tolist() == plain.tolist()


def test_default_devices():
    with torch.device("cuda:1"):
        assert torch.zeros(1).device.index == 1
        assert torch.nn.Linear(2, 2).weight.device.index == 1
        assert torch.zeros(1, device="cpu").is_cpu
        assert (torch.zeros(2) + torch.zeros(2)).is_cuda
    torch.set_default_device("cuda")
    try:
        assert torch.tensor([1.0]).is_cuda
        assert torch.rand(2).is_cuda
    finally:
        torch.set_default_device(None)
    with torch.cuda.device(1):
        assert torch.ones(1, device="cuda").device.index == 1
        assert torch.ones(1).cuda().device.index == 1
    assert torch.ones(1).cuda().device.index == 0
    with pytest.raises(torch.AcceleratorError, match="invalid device ordinal"):
        torch.ones(1, device="cuda:2")


def test_to():
    x = torch.arange(6.0).view(2, 3).t()
    y = x.to("cuda")
    assert y.stride() == x.stride()
    assert y.to("cuda:0") is y
    assert y.cuda() is y
    assert y.to(torch.float64).is_cuda
    assert y.to("cuda:1", torch.float16).cpu().dtype is torch.float16
    assert y.to(torch.zeros(1, dtype=torch.int32)).is_cpu
    assert torch.zeros(2).to(y).device == y.device
    assert y.cpu().tolist() == x.tolist()
    assert y.type() == "flambeau.cuda.FloatTensor"
    assert isinstance(y, torch.cuda.FloatTensor)
    assert y.get_device() == 0


@pytest.mark.parametrize(("function", "text"), [
    (lambda c, g: g + c, "found at least two devices, cuda:0 and cpu!"),
    (lambda c, g: c * g, "found at least two devices, cuda:0 and cpu!"),
    (lambda c, g: g.add_(c), "found at least two devices, cuda:0 and cpu!"),
    (lambda c, g: c.add_(g), "found at least two devices, cuda:0 and cpu!"),
    (lambda c, g: g + g.to("cuda:1"), "found at least two devices, cuda:0 and cuda:1!"),
    (lambda c, g: torch.mm(g, c), "got mat2 is on cpu, different from other tensors on cuda:0 (when checking argument"),
    (lambda c, g: torch.mm(g, c), "in method wrapper_CUDA_mm)"),
    (lambda c, g: torch.mm(c, g), "got mat2 is on cuda:0, different from other tensors on cpu (when checking argument"),
    (lambda c, g: torch.cat([g, c]), "got tensors is on cpu, different from other tensors on cuda:0"),
    (lambda c, g: torch.equal(g, c), "found at least two devices"),
    (lambda c, g: F.linear(g, c, c[0]), "got mat1 is on cuda:0, different from other tensors on cpu"),
    (lambda c, g: F.linear(g, c, c[0]), "in method wrapper_CUDA_addmm)"),
])
def test_mixed_devices(function, text):
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device") as caught:
        function(torch.ones(3, 3), torch.ones(3, 3, device="cuda"))
    assert text in str(caught.value)


def test_numbers_of_the_cpu_beside_a_device():
    g, number = torch.ones(3, device="cuda"), torch.tensor(2.0, requires_grad=True)
    y = g * number
    assert y.is_cuda
    y.sum().backward()
    assert number.grad.is_cpu
    assert number.grad.item() == 3
    assert (number.detach() - g).tolist() == [1] * 3
    assert g[torch.tensor([0, 2])].is_cuda  # indices may be anywhere
    assert torch.where(g > 0, g, torch.tensor(0.0)).is_cuda
    g[torch.tensor(1)] = 5
    g[0] = torch.tensor(7.0)
    assert g.tolist() == [7, 5, 1]


def test_reads():
    x = torch.tensor([1.5, 2.5], device="cuda")
    assert (x[0].item(), x.tolist(), float(x[1]), int(x[1]), bool(x[0]), f"{x[0]:.2f}") == (
        1.5, [1.5, 2.5], 2.5, 2, True, "1.50")
    for read in (lambda: x.numpy(), lambda: np.asarray(x)):
        with pytest.raises(TypeError, match=r"can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu\(\) to "
                                            r"copy the tensor to host memory first."):
            read()
    assert x.numpy(force=True).tolist() == [1.5, 2.5]
    assert torch.equal(x, x.clone())
    assert 1.5 in x
    assert repr(x[:0]) == "tensor([], device='cuda:0')"
    assert repr(torch.ones(2, device="cuda:1", dtype=torch.float64)) == (
        "tensor([1., 1.], device='cuda:1', dtype=flambeau.float64)")


def test_views_and_writes():
    x = torch.arange(12.0, device="cuda").view(3, 4)
    y = x[1:, ::2]
    assert y._base is x._base
    assert (y.stride(), y.storage_offset(), y.data_ptr() - x.data_ptr()) == ((4, 2), 4, 16)
    y.zero_()
    x[0] = torch.tensor([9.0, 9, 9, 9])
    x.t()[3].fill_(-1)
    assert x.tolist() == [[9, 9, 9, -1], [0, 5, 0, -1], [0, 9, 0, -1]]
    assert x[x > 5].tolist() == [9, 9, 9, 9]
    x[x > 5] = 1
    assert x._version == y._version
    assert torch.masked_select(x, x == 1).numel() == 4
    assert x.nonzero().is_cuda
    assert x.as_strided((2,), (4,), 5).tolist() == [5, 9 - 8]
    out = torch.empty(0, device="cuda")
    assert torch.add(x, x, out=out) is out
    assert out.shape == (3, 4)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        torch.ones(2, device="cuda", requires_grad=True).add_(1)


def test_writes_between_devices():
    x, y = torch.zeros(3), torch.ones(3, device="cuda")
    assert x.copy_(y) is x
    assert x.tolist() == [1, 1, 1]
    y[1:] = torch.tensor([4.0, 5.0])
    x[:2] = y[1:]
    assert x.tolist() == [4, 5, 1]
    z = torch.zeros(3, device="cuda:1", dtype=torch.float64).copy_(y)
    assert z.tolist() == [1, 4, 5]


def test_gradients_go_back_to_their_devices():
    x = torch.ones(2, 2, requires_grad=True)
    y = x.cuda()
    assert y.grad_fn.name() == "ToCopyBackward0"
    z = (y.to("cuda:1", torch.float64) * 2).cpu()
    z.sum().backward()
    assert (x.grad.device.type, x.grad.dtype, x.grad.tolist()) == ("cpu", torch.float32, [[2, 2], [2, 2]])
    w = torch.ones(2, device="cuda", requires_grad=True)
    first, = torch.autograd.grad((w.cpu() ** 3).sum(), w, create_graph=True)
    second, = torch.autograd.grad(first.sum(), w)
    assert first.is_cuda
    assert second.tolist() == [6, 6]
    (w * 2 + w).sum().backward()
    w.sum().backward()
    assert w.grad.tolist() == [4, 4]
    a, b = (torch.ones(2, device="cuda", requires_grad=True) for _ in range(2))
    (a + b).sum().backward()
    a.grad.add_(1)
    assert b.grad.tolist() == [1, 1]


def test_functions_and_hooks():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x ** 3

        @staticmethod
        def backward(ctx, g):
            x, = ctx.saved_tensors
            assert torch.zeros(1).is_cpu  # the user's code is where the user says
            return 3 * x * x * g

    x = torch.tensor([2.0], device="cuda", requires_grad=True)
    y = Cube.apply(x)
    seen = []
    y.register_hook(lambda g: seen.append((g.device.type, torch.ones(1).device.type)))
    y.backward()
    assert x.grad.tolist() == [12]
    assert seen == [("cuda", "cpu")]
    assert torch.func.vmap(lambda t: t.sin().sum())(torch.zeros(2, 3, device="cuda")).tolist() == [0, 0]
    assert torch.func.grad(lambda t: (t * t).sum())(x.detach()).tolist() == [4]
    primal, tangent = torch.func.jvp(torch.exp, (torch.zeros(2, device="cuda"),), (torch.ones(2, device="cuda"),))
    assert primal.is_cuda
    assert tangent.tolist() == [1, 1]


def test_files_and_copies():
    saved = {"x": torch.arange(6, device="cuda:1").view(2, 3).t(), "p": torch.nn.Linear(3, 2).cuda().state_dict()}
    file = io.BytesIO()
    torch.save(saved, file)

    def load(where=None):
        file.seek(0)
        return torch.load(file, map_location=where)

    again = load()
    assert (str(again["x"].device), again["x"].stride()) == ("cuda:1", (1, 3))
    assert again["x"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert torch.equal(again["p"]["weight"], saved["p"]["weight"])
    assert load("cpu")["p"]["weight"].is_cpu
    assert str(load({"cuda:1": "cuda:0"})["x"].device) == "cuda:0"
    assert str(load(torch.device("cuda:1"))["p"]["bias"].device) == "cuda:1"
    assert load(lambda storage, location: storage)["x"].is_cpu
    with pytest.raises(RuntimeError, match=r"deserialize object on CUDA device 5 but torch.cuda.device_count\(\) is 2. "
                                           r"Please use torch.load with map_location"):
        load("cuda:5")
    assert pickle.loads(pickle.dumps(saved["x"])).device.index == 1
    model = torch.nn.Linear(3, 2).cuda()
    model(torch.ones(1, 3, device="cuda")).sum().backward()
    twin = copy.deepcopy(model)
    assert torch.equal(twin.weight, model.weight)
    assert torch.equal(copy.deepcopy(model.weight.grad), model.weight.grad)
    assert twin.weight.data_ptr() != model.weight.data_ptr()
    storage = torch.arange(3, dtype=torch.uint8, device="cuda").untyped_storage()
    assert (str(storage.device), storage.tolist(), storage.cpu().tolist(), storage[1]) == (
        "cuda:0", [0, 1, 2], [0, 1, 2], 1)
    x = torch.zeros(4, device="cuda").set_(torch.ones(2, device="cuda"))
    assert x.tolist() == [1, 1]
    assert x.resize_(1).tolist() == [1]


def test_pinned_memory():
    x = torch.arange(4.0).pin_memory()
    assert x.is_pinned()
    assert x[1:].is_pinned()
    assert not torch.ones(1).is_pinned()
    assert x.to("cuda", non_blocking=True).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="only dense CPU tensors can be pinned"):
        torch.ones(1, device="cuda").pin_memory()


def test_random_numbers():
    torch.manual_seed(0)
    assert torch.rand(4, device="cuda").cpu().numpy() == pytest.approx([0.3990, 0.5167, 0.0249, 0.9401], abs=1e-4)
    torch.cuda.manual_seed(42)
    drawn = torch.empty(4, device="cuda").normal_().cpu().numpy()
    assert drawn == pytest.approx([0.1940, 2.1614, -0.1721, 0.8491], abs=1e-4)
    generator = torch.Generator("cuda:1").manual_seed(42)
    drawn = torch.randn(2, generator=generator, device="cuda:1").cpu().numpy()
    assert drawn == pytest.approx([0.1940, 2.1614], abs=1e-4)
    assert generator.get_offset() == 4
    state = generator.get_state()
    assert state.tolist() == [42, *[0] * 7, 4, *[0] * 7]
    first = torch.randint(0, 10, (5,), generator=generator, device="cuda:1")
    assert torch.equal(first, torch.randint(0, 10, (5,), generator=generator.set_state(state), device="cuda:1"))
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        torch.rand(2, generator=torch.Generator(), device="cuda")
    with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
        torch.rand(2, generator=generator)
    kept = torch.cuda.get_rng_state()
    x = torch.rand_like(torch.empty(3, 2, device="cuda").t())
    torch.cuda.set_rng_state(kept)
    assert torch.equal(torch.rand_like(x), x)
    p = torch.full((1000,), 0.25, device="cuda")
    assert abs(torch.bernoulli(p).mean().item() - 0.25) < 0.06
    assert torch.multinomial(torch.tensor([0.0, 1.0], device="cuda"), 1).tolist() == [1]
    assert sorted(torch.randperm(5, device="cuda").tolist()) == [0, 1, 2, 3, 4]


def test_dropout():
    x = torch.ones(4, 256, device="cuda", requires_grad=True)
    torch.manual_seed(0)
    y = F.dropout(x, 0.5)
    assert y.grad_fn.name() == "NativeDropoutBackward0"
    assert set(y.unique().tolist()) == {0, 2}
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())
    torch.manual_seed(0)
    assert torch.equal(F.dropout(x, 0.5), y)


def test_training():
    def losses(where: str) -> list[float]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3), torch.nn.GELU(),
                                    torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.LayerNorm(27),
                                    torch.nn.Linear(27, 4))
        x, t = torch.randn(8, 1, 8, 8), torch.arange(8) % 4
        model, x, t = model.to(where), x.to(where), t.to(where)
        found = []
        for make in (torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
            optimizer = make(model.parameters(), lr=0.01)
            for _ in range(2):
                optimizer.zero_grad()
                loss = F.cross_entropy(model(x), t)
                loss.backward()
                torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                found.append(loss.item())
        assert all(each.device.type == where for each in model.parameters())
        return found

    assert losses("cuda") == pytest.approx(losses("cpu"), rel=1e-4)


def test_recurrent_layers_and_attention():
    for module, shape in ((torch.nn.LSTM(3, 4), (2, 1, 3)), (torch.nn.GRU(3, 4), (2, 1, 3)),
                          (torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), (3, 1, 8))):
        x = torch.randn(shape)
        y, z = (m(x.to(m.parameters().__next__().device)) for m in (module, copy.deepcopy(module).cuda()))
        y, z = (each[0] if isinstance(each, tuple) else each for each in (y, z))
        torch.testing.assert_close(z.cpu(), y)
        z.sum().backward()


def test_warnings_of_absence_are_gone():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.autocast("cuda").device == "cuda"
        assert torch.amp.GradScaler("cuda").is_enabled()


def test_the_host_keeps_its_generator():
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    torch.rand(3, device="cuda")
    assert torch.equal(torch.rand(3), expected)


def test_sparse_tensors_stay_on_the_host():
    kept = torch.ones(1, device="cuda")
    x = torch.eye(2).to_sparse()
    assert (x + x).to_dense().tolist() == [[2, 0], [0, 2]]
    with pytest.raises(NotImplementedError, match="sparse tensors are on the CPU only"):
        x.cuda()
    assert kept.is_cuda


def test_compiled_functions_run_eagerly():
    weight = torch.ones(3, device="cuda", requires_grad=True)
    function = torch.compile(lambda x: (x * weight).sin().sum())
    for i in range(4):
        x = torch.full((3,), float(i), device="cuda")
        assert function(x).item() == pytest.approx((x * weight).sin().sum().item())
    function(x).backward()
    assert weight.grad.is_cuda


def test_gamma_and_dirichlet_draws():
    a = torch.tensor([0.5, 2.0, 3.0], device="cuda", requires_grad=True)
    torch.manual_seed(1)
    first = torch._standard_gamma(a)
    torch.manual_seed(1)
    assert torch.equal(torch._standard_gamma(a).detach().cpu(), first.detach().cpu())
    first.sum().backward()
    assert first.is_cuda
    assert a.grad.is_cuda
    x = torch.distributions.Dirichlet(a.detach()).sample()
    assert x.is_cuda
    assert x.sum().item() == pytest.approx(1)
