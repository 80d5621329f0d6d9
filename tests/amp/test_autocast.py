"""Autocast compared with PyTorch: result dtypes and values of operators, the cache of casts, nesting, decorators."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flambeau
from flambeau.amp import state
from flambeau.modes import special

OPERATORS = """
torch.mm(f, f) | f @ f | f.matmul(f) | torch.addmm(f, f, f) | torch.bmm(f[None], f[None]) | torch.mv(f, f[0])
torch.baddbmm(f[None], f[None], f[None]) | torch.addbmm(f, f[None], f[None]) | torch.linalg.vecdot(f, f)
torch.einsum('ij,jk->ik', f, f) | torch.einsum('ij->ji', f) | torch.einsum('i,j->ij', f[0], f[0]) | torch.mm(f, b)
torch.inner(f, f) | torch.inner(f[0], f[0]) | torch.tensordot(f, f) | torch.tensordot(f, f, 1)
torch.tensordot(f[:1], f.T[:, :1], 1) | torch.tensordot(f[0], f[1], 0)
torch.tensordot(f, f, ([0], [1])) | torch.outer(f[0], f[0])
F.linear(f, f, f[0]) | F.linear(d, d) | F.conv1d(f[None], f[:, :, None])
F.conv2d(f[None, None], f[None, None, :2, :2])
F.conv_transpose1d(f[None], f[:, :, None]) | F.scaled_dot_product_attention(f[None], f[None], f[None])
F.prelu(f, f[0, :1]) | torch.linalg.multi_dot([f, f])
torch.cat([f, b]) | torch.cat([b, b]) | torch.cat([d, b]) | torch.stack([f, b]) | torch.hstack([f, b])
torch.index_copy(f, 0, torch.tensor([0]), b[:1])
F.softmax(b, 0) | F.layer_norm(b, (4,)) | F.cross_entropy(b, torch.tensor([0, 1, 2, 3])) | F.mse_loss(b, f)
F.l1_loss(b, b) | F.nll_loss(b, torch.tensor([0, 1, 2, 3])) | F.huber_loss(b, b) | F.kl_div(b, b, reduction='sum')
F.gaussian_nll_loss(b, b, b) | F.binary_cross_entropy_with_logits(b, b) | F.cosine_similarity(b, b)
torch.prod(b) | b.prod(0) | b.sum() | torch.trace(b) | torch.cdist(b, b) | torch.norm(b) | torch.quantile(b, 0.5)
torch.linalg.inv(torch.eye(4).bfloat16()) | torch.inverse(torch.eye(4).bfloat16()) | torch.linalg.svdvals(b)
torch.linalg.vector_norm(b) | torch.polar(b, b) | F.avg_pool2d(b[None], 1) | F.avg_pool3d(b[None, None], 1)
F.pad(b[None], (1, 1), mode='reflect') | F.pad(b[None], (1, 1)) | torch.mm(f, f, out=torch.empty(4, 4))
torch.nn.GRU(4, 4)(f)[0].dtype | torch.nn.LSTMCell(4, 4)(f)[0].dtype
torch.nn.MultiheadAttention(4, 2)(f, f, f)[0].dtype
""".replace("\n", " | ").strip(" |").split(" | ")


def evaluate(torch, expression, dtype="bfloat16"):
    data = np.linspace(0.1, 1.5, 16, dtype=np.float32).reshape(4, 4)
    f = torch.tensor(data.tolist())
    names = {"torch": torch, "F": torch.nn.functional, "f": f, "b": f.to(getattr(torch, dtype)), "d": f.double()}
    with torch.autocast("cpu", getattr(torch, dtype)):
        return eval(expression, names)


@pytest.mark.parity
@pytest.mark.parametrize("expression", OPERATORS)
def test_operators_agree(expression):
    torch = pytest.importorskip("torch")
    ours, theirs = evaluate(flambeau, expression), evaluate(torch, expression)
    if expression.endswith("dtype"):
        assert str(ours).split(".")[1] == str(theirs).split(".")[1]
        return
    assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
    if ours.is_complex():
        ours, theirs = ours.abs(), theirs.abs()
    assert np.allclose(ours.double().numpy(), theirs.double().numpy(), rtol=2e-2, atol=1e-2)


def test_float16_and_nesting():
    torch = flambeau
    x = torch.ones(2, 2)
    with torch.autocast("cpu", torch.float16):
        assert torch.mm(x, x).dtype is torch.float16
        with torch.autocast("cpu", enabled=False):
            assert torch.mm(x, x).dtype is torch.float32
            assert not torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", torch.bfloat16):
            assert torch.mm(x, x).dtype is torch.bfloat16
        assert torch.mm(x, x).dtype is torch.float16
    assert torch.mm(x, x).dtype is torch.float32
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16


def test_casts_of_parameters_are_cached_until_the_outermost_block_ends():
    torch = flambeau
    weight = torch.nn.Parameter(torch.ones(2, 2))
    x = torch.ones(2, 2)
    with torch.autocast("cpu"):
        with torch.autocast("cpu"):
            first = torch.mm(x, weight)
        second = torch.mm(x, weight)
        assert first.grad_fn.next_functions[1][0] is second.grad_fn.next_functions[1][0]
        with torch.no_grad():
            torch.clear_autocast_cache()
            torch.mm(x, weight)
        assert torch.mm(x, weight).requires_grad  # not the cast made without gradients
    with torch.autocast("cpu", cache_enabled=False):
        third, fourth = torch.mm(x, weight), torch.mm(x, weight)
        assert third.grad_fn.next_functions[1][0] is not fourth.grad_fn.next_functions[1][0]
    (first + second).sum().backward()
    assert weight.grad.dtype is torch.float32


def test_other_threads_are_not_affected():
    torch = flambeau
    seen = []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(torch.mm(torch.ones(1, 1), torch.ones(1, 1)).dtype))
        thread.start()
        thread.join()
    assert seen == [torch.float32]


def test_nothing_is_left_after_a_block():
    before = special[0]
    with pytest.raises(ZeroDivisionError), flambeau.autocast("cpu"):
        raise ZeroDivisionError
    assert special[0] == before
    assert not flambeau.is_autocast_enabled("cpu")


def test_operators_run_without_its_mark_and_errors_leave_the_mark():
    x = flambeau.randn(4, 4, requires_grad=True)
    with flambeau.autocast("cpu"):
        before = special[0]
        for call in (lambda: x @ flambeau.randn(5, 4), lambda: x + flambeau.randn(5, 4)):
            with pytest.raises(RuntimeError):
                call()
            assert special[0] == before == 1
        with state.excluded():
            assert special[0] == 0
            with flambeau.autocast("cpu", enabled=False):
                assert special[0] != 0
            with flambeau.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
                assert special[0] == 1
        assert special[0] == before
    assert special[0] == 0


def test_decorators():
    torch = flambeau

    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x @ y

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            assert not torch.is_autocast_enabled("cpu")
            return g @ y.T, x.T @ g

    x = torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu"):
        y = Product.apply(x, x)
        assert y.dtype is torch.float32
        y.sum().backward()
    assert x.grad.dtype is torch.bfloat16

    @torch.autocast("cpu")
    def product(x):
        return x @ x

    assert product(torch.ones(2, 2)).dtype is torch.bfloat16


def test_compiled_functions_follow_autocast():
    torch = flambeau
    product = torch.compile(lambda x: x @ x)
    x = torch.ones(2, 2)
    for _ in range(3):
        assert product(x).dtype is torch.float32
        with torch.autocast("cpu"):
            assert product(x).dtype is torch.bfloat16


@pytest.mark.parametrize(("call", "error", "text"), [
    (lambda torch: torch.autocast(3), ValueError, "Expected `device_type` of type `str`"),
    (lambda torch: torch.autocast("cpu")(3), TypeError, "requires a callable, but got int"),
    (lambda torch: torch.autocast("meta"), RuntimeError, "unsupported scalarType"),
    (lambda torch: torch.set_autocast_enabled("cpu", "a"), TypeError, r"enabled must be a bool \(got str\)"),
])
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(flambeau)


def test_unsupported_settings_warn_and_switch_autocast_off():
    torch = flambeau
    with pytest.warns(UserWarning, match="CUDA is not available"):
        assert not torch.autocast("cuda")._enabled
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        assert not torch.autocast("cpu", torch.float64)._enabled
    with pytest.warns(FutureWarning, match="torch.cpu.amp.autocast"), torch.cpu.amp.autocast():
        assert torch.is_autocast_enabled("cpu")


# ----- GradScaler -----

def train(torch, overflow_at):
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
    optimizer = torch.optim.SGD([weight], 0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
    history = []
    for step in range(6):
        optimizer.zero_grad()
        loss = (weight ** 2).sum() * (float("inf") if step == overflow_at else 1.0)
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        history.append((weight.tolist(), scaler.state_dict()))
    return history


@pytest.mark.parity
@pytest.mark.parametrize("overflow_at", [None, 2, 3])
def test_grad_scaler_agrees(overflow_at):
    torch = pytest.importorskip("torch")
    assert train(flambeau, overflow_at) == train(torch, overflow_at)


def test_grad_scaler_errors_and_state():
    torch = flambeau
    scaler = torch.amp.GradScaler("cpu")
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], 0.1)
    with pytest.raises(AssertionError, match="Attempted step but _scale is None"):
        scaler.step(optimizer)
    first, (second,) = scaler.scale([weight.sum(), (weight.sum(),)])
    assert first.item() == second.item() == 2.0**16
    first.backward()
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called since the last update"):
        scaler.step(optimizer)
    scaler.update(4.0)
    copy = torch.amp.GradScaler("cpu")
    copy.load_state_dict(scaler.state_dict())
    assert copy.get_scale() == 4.0
    with pytest.raises(ValueError, match="outputs must be a Tensor"):
        scaler.scale(3)
    with pytest.raises(RuntimeError, match="state dict is empty"):
        copy.load_state_dict({})
