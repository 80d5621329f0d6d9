"""Large operands of 16 bits: programs between casts, and data movement without them."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.compiled.thresholds import pause_kernels, resume_kernels

F = torch.nn.functional
DTYPES = (torch.float16, torch.bfloat16)
#: half the distance of neighbours, relatively
ROUNDING = {torch.float16: 2.0 ** -11, torch.bfloat16: 2.0 ** -8}
SHAPE = (96, 80)

COMPUTED = {
    "softmax(0)": lambda x: x.softmax(0), "softmax(1)": lambda x: x.softmax(1),
    "log_softmax": lambda x: x.log_softmax(1),
    "logsumexp": lambda x: x.logsumexp(1), "layer_norm": lambda x: F.layer_norm(x, SHAPE[1:]),
    "layer_norm, weights": lambda x: F.layer_norm(x, SHAPE[1:], x[0], x[1]),
    "rms_norm": lambda x: F.rms_norm(x, SHAPE[1:], x[0]),
    "batch_norm": lambda x: F.batch_norm(x, None, None, x[0], x[1], training=True),
    "group_norm": lambda x: F.group_norm(x.view(4, 6, 4, 80), 3), "glu": lambda x: F.glu(x, 1),
    "mean": lambda x: x.mean(), "mean(0)": lambda x: x.mean(0), "mean(1)": lambda x: x.mean(1, keepdim=True),
    "sum": lambda x: x.sum(), "sum(0)": lambda x: x.sum(0), "sum(1)": lambda x: x.sum(1),
    "max": lambda x: x.max(), "min(1)": lambda x: x.min(1)[0], "max(0)": lambda x: x.max(0)[0],
    "var": lambda x: x.var(1), "std": lambda x: x.std(),
    "norm": lambda x: x.norm(), "norm(1)": lambda x: x.norm(dim=1), "amax": lambda x: x.amax(1),
    "amin": lambda x: x.amin(0),
    "gelu": F.gelu, "silu": F.silu, "tanh": lambda x: x.tanh(), "relu": lambda x: x.relu(), "square": lambda x: x * x,
    "mse_loss": lambda x: F.mse_loss(x, x.detach() * 0.5), "huber_loss": lambda x: F.huber_loss(x, x.detach() * 0.5),
    "binary_cross_entropy_with_logits": lambda x: F.binary_cross_entropy_with_logits(x, (x.detach() > 0).to(x.dtype)),
    "nll_loss": lambda x: F.nll_loss(x, torch.arange(96) % 80),
    "nll_loss, ignored": lambda x: F.nll_loss(x, torch.arange(96) % 80, ignore_index=3, reduction="sum"),
    "nll_loss, none": lambda x: F.nll_loss(x, torch.arange(96) % 80, ignore_index=3, reduction="none"),
    "cross_entropy": lambda x: F.cross_entropy(x, torch.arange(96) % 80),
    "index_add": lambda x: x.index_add(0, torch.arange(96) % 7, x * 0.5),
    "scatter_add": lambda x: x.scatter_add(1, torch.arange(96 * 80).view(96, 80) % 80, x),
    "sums of gradients": lambda x: x / (x.abs() + 1), "diff": lambda x: x.diff(), "floor": lambda x: x.floor(),
    "expand": lambda x: x[:1].expand(96, 80), "repeat": lambda x: x.repeat(2, 1),
    "reflecting": lambda x: F.pad(x[None], (1, 2), mode="reflect"),
}
MOVED = {
    "view": lambda x: x.view(-1), "reshape": lambda x: x.t().reshape(-1), "t": lambda x: x.t(),
    "unsqueeze": lambda x: x[:, None],
    "permute": lambda x: x.view(4, 24, 80).permute(2, 0, 1), "slice": lambda x: x[3:, ::2], "select": lambda x: x[:, 3],
    "diagonal": lambda x: x.diagonal(1), "chunk": lambda x: x.chunk(3, 1)[1], "unbind": lambda x: x.unbind(1)[2],
    "cat": lambda x: torch.cat([x, x[:5]]), "stack": lambda x: torch.stack([x[:, 1:], x[:, 1:]], 1),
    "flip": lambda x: x.flip(1),
    "roll": lambda x: x.roll(3, 1), "rot90": lambda x: x.rot90(), "tril": lambda x: x.tril(1),
    "triu": lambda x: x.triu(-2),
    "clone": lambda x: x.clone(), "pad": lambda x: F.pad(x, (1, 2, 3, 0), value=0.1),
    "diag_embed": lambda x: x[0].diag_embed(),
    "index_fill": lambda x: x.index_fill(0, torch.tensor([1, 5]), 0.3), "squeeze": lambda x: x[None].squeeze(0),
    "movedim": lambda x: x.view(4, 24, 80).movedim(0, 2), "narrow": lambda x: x.narrow(1, 2, 70),
    "sum": lambda x: x.sum(),
    "select_scatter": lambda x: x.select_scatter(x[0], 0, 4), "repeated": lambda x: x.tile(2, 3),
    "reflecting": lambda x: F.pad(x[None], (1, 2), mode="reflect"),
}


def numbers(dtype, grad=True):
    values = np.random.default_rng(3).standard_normal(SHAPE).astype(np.float32)
    return torch.from_numpy(values).to(dtype).requires_grad_(grad)


def result_and_gradient(function, dtype):
    x = numbers(dtype)
    result = function(x)
    weights = np.random.default_rng(4).standard_normal(tuple(result.shape)).astype(np.float32)
    result.backward(torch.from_numpy(np.asarray(weights)).to(dtype))
    assert result.dtype == x.grad.dtype == dtype
    assert x.grad.stride() == x.stride()
    return result.detach().float().numpy(), x.grad.float().numpy()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", COMPUTED)
def test_kernels_round_as_numpy_does(name, dtype):
    """The results differ by at most one rounding, since sums have another order."""
    torch.ones(200, 200).exp()  # kernels are loaded
    found = result_and_gradient(COMPUTED[name], dtype)
    pause_kernels()
    try:
        expected = result_and_gradient(COMPUTED[name], dtype)
    finally:
        resume_kernels()
    for ours, numpys in zip(found, expected, strict=True):
        size = np.abs(numpys).max()
        np.testing.assert_allclose(ours, numpys, rtol=2.1 * ROUNDING[dtype], atol=0.1 * ROUNDING[dtype] * size)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", MOVED)
def test_moved_elements_are_the_same(name, dtype):
    x, wide = numbers(dtype, False), numbers(dtype, False).float()
    moved = MOVED[name](x)
    if name != "sum":
        np.testing.assert_array_equal(moved.float().numpy(), MOVED[name](wide).to(dtype).float().numpy())
    x.requires_grad_(), wide.requires_grad_()
    moved = MOVED[name](x)
    g = torch.from_numpy(np.random.default_rng(4).standard_normal(tuple(moved.shape)).astype(np.float32)).to(dtype)
    moved.backward(g)
    MOVED[name](wide).backward(g.float())
    assert x.grad.dtype == dtype
    np.testing.assert_array_equal(x.grad.float().numpy(), wide.grad.to(dtype).float().numpy())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_repeated_calls_have_the_bits_of_the_first(dtype):
    x = numbers(dtype, False)
    for function in (lambda: x.softmax(1), lambda: x.mean(1), lambda: F.layer_norm(x, SHAPE[1:]), lambda: x.tril(),
                     lambda: F.nll_loss(x, torch.arange(96) % 80)):
        first = function()
        assert all(torch.equal(function(), first) for _ in range(60))


@pytest.mark.parametrize("value", [0, 1, -1.5, 0.1, float("nan"), float("inf"), -float("inf"), 3.38e38, 1e-40])
def test_fills_of_bfloat16_round_to_nearest(value):
    expected = torch.tensor([value]).bfloat16()
    for size in ((300, 300), (2,)):
        made = torch.full(size, value, dtype=torch.bfloat16)
        np.testing.assert_array_equal(made.float().numpy(), np.broadcast_to(expected.float().numpy(), made.shape))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int16, torch.int64, torch.float16, torch.float32,
                                   torch.float64, torch.complex64, torch.complex128], ids=str)
def test_large_fills_have_all_elements(dtype):
    for value in (0, 1, 3):
        expected = np.full((301, 211), value, dtype=str(dtype).split(".")[1])
        np.testing.assert_array_equal(torch.full((301, 211), value, dtype=dtype).numpy(), expected)
        assert torch.full_like(torch.empty(201, 301, dtype=dtype).t(), value).stride() == (1, 301)
    assert (torch.zeros_like(torch.empty(301, 211, dtype=dtype)).numpy() == 0).all()


def test_bfloat16_that_needs_no_rounding_has_the_bits_of_rounding():
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = torch.from_numpy(bits.view(np.int16).copy()).view(torch.bfloat16)
    y = x.flip(0)
    for function in (lambda x, y: -x, lambda x, y: x.abs(), torch.maximum, torch.minimum, lambda x, y: x.floor(),
                     lambda x, y: x.ceil(), lambda x, y: x.trunc(), lambda x, y: x.round(), lambda x, y: x.relu(),
                     lambda x, y: torch.where(x > y, x, -y), lambda x, y: x.clamp(-1.5, 0.3)):
        found, wide = function(x, y), function(x.float(), y.float())
        np.testing.assert_array_equal(found.float().numpy(), wide.bfloat16().float().numpy())
        assert found.dtype == torch.bfloat16


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_of_two_passes_are_added_and_rounded(dtype):
    x = numbers(dtype)
    first, second = (numbers(dtype, False).flip(k) for k in (0, 1))
    (x * first).backward(torch.ones_like(first))
    held = x.grad
    (x * second).backward(torch.ones_like(second))
    assert x.grad is held
    np.testing.assert_array_equal(held.float().numpy(), (first.float() + second.float()).to(dtype).float().numpy())


@pytest.mark.parametrize("shape", [(3, 70, 64, 80), (1, 40, 30, 50), (5, 8, 8, 8), (2, 256, 64, 100)], ids=str)
def test_products_of_batches_are_those_of_the_matrices(shape):
    b, m, k, n = shape
    draw = np.random.default_rng(5).standard_normal
    x, y = (torch.from_numpy(draw(size).astype(np.float32)).bfloat16() for size in ((b, m, k), (b, k, n)))
    for left, right in ((x, y), (x.transpose(1, 2).contiguous().transpose(1, 2), y), (
            x, y.transpose(1, 2).contiguous().transpose(1, 2)), (x[:, ::2], y[..., ::2])):
        found = left.detach().requires_grad_(), right.detach().requires_grad_()
        result = found[0] @ found[1]
        exact = left.double().numpy() @ right.double().numpy()
        np.testing.assert_allclose(result.detach().double().numpy(), exact, rtol=2.0 ** -7, atol=1e-2)
        g = torch.ones_like(result)
        result.backward(g)
        for x_, expected in zip(found, (g.double().numpy() @ right.double().numpy().swapaxes(1, 2),
                                        left.double().numpy().swapaxes(1, 2) @ g.double().numpy()), strict=True):
            np.testing.assert_allclose(x_.grad.double().numpy(), expected, rtol=2.0 ** -7, atol=1e-2)


def test_a_target_out_of_range_is_refused():
    for dtype in DTYPES:
        with pytest.raises(IndexError, match="Target 80 is out of bounds"):
            F.nll_loss(numbers(dtype, False), torch.full((96,), 80))


def test_views_of_gradients_become_gradients():
    """A large view of memory that nothing else refers to is not copied; what somebody holds is."""
    x = torch.ones(200, 200, requires_grad=True)
    (x.view(-1) * 2).view(-1, 2).sum().backward()
    assert (x.grad.numpy() == 2).all()
    x.grad = None
    g = torch.ones(40000)
    x.view(-1).backward(g)
    g.zero_()
    assert (x.grad.numpy() == 1).all()
    x.grad = None
    held = []
    y = x.view(-1)
    y.register_hook(lambda g: held.append(g))
    (y * 2).sum().backward()
    held[0].zero_()
    assert (x.grad.numpy() == 2).all()
    x.grad.add_(1).zero_()
    assert not x.grad.numpy().any()
