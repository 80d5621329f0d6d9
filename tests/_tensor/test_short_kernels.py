"""Kernels of few elements that known calls run: the bits, layouts and errors of what NumPy computes."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.fastpath.repeated_layouts import CALLS, PROOFS
from flambeau.backends.compiled import enable_kernels
from flambeau.runtime import object_layout
from tests._tensor.numpy_path import without_kernels

F = torch.nn.functional
MANY = CALLS + PROOFS + 20
pytestmark = pytest.mark.skipif(not (codegen.available() and object_layout.readable()), reason="no generated code")


@pytest.fixture(autouse=True)
def _kernels():
    enable_kernels()


def _random(*shape, seed=0, dtype=torch.float32):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape) * 4).to(dtype)


def _check(call, *shapes, dtype=torch.float32, times=MANY, special=()):
    """Compare results with those without kernels, and with those of tensors that are not the first ones."""
    for seed in range(times):
        inputs = [_random(*shape, seed=seed + i, dtype=dtype) for i, shape in enumerate(shapes)]
        if special and seed > times - 8:
            flat = inputs[0].view(-1)
            flat[seed % flat.numel()] = special[seed % len(special)]
        found, expected = call(*inputs), without_kernels(lambda inputs=inputs: call(*inputs))
        for x, y in zip(*[each if isinstance(each, tuple) else (each,) for each in (found, expected)], strict=True):
            assert (x.dtype, x.shape, x.stride(), x._version) == (y.dtype, y.shape, y.stride(), y._version)
            assert x.numpy().tobytes() == y.numpy().tobytes(), seed
            if x.numel():
                x.clone().mul_(x)


SPECIAL = (float("nan"), float("inf"), -0.0, 0.0, -float("inf"))
SCANS = {"cumsum(0)": lambda x: x.cumsum(0), "cumsum(1)": lambda x: x.cumsum(1), "cumsum(-1)": lambda x: x.cumsum(-1),
         "cumprod(1)": lambda x: x.cumprod(1), "cumprod(2)": lambda x: x.cumprod(2)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(4, 4, 4), (7, 3, 5), (1, 9, 1), (2, 64, 5)])
@pytest.mark.parametrize("name", SCANS)
def test_scans(name, shape, dtype):
    _check(SCANS[name], shape, dtype=dtype, special=SPECIAL)


RANKS = {"median": lambda x: tuple(x.median(1)), "kthvalue": lambda x: tuple(x.kthvalue(2, 1)),
         "keepdim": lambda x: tuple(x.median(-1, keepdim=True)), "rounded": lambda x: tuple(x.round().median(1)),
         "ties": lambda x: tuple(x.round().kthvalue(3, -1)), "last": lambda x: tuple(x.kthvalue(4, 1)[:1])}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(4, 4), (5, 7), (3, 16), (3, 17), (1, 5), (2, 70), (2, 129)])
@pytest.mark.parametrize("name", RANKS)
def test_ranks(name, shape, dtype):
    _check(RANKS[name], shape, dtype=dtype, special=SPECIAL)


def test_ranks_beside_pytorch():
    oracle = pytest.importorskip("torch")
    for seed in range(MANY):
        values = np.random.default_rng(seed).integers(-3, 3, (6, 9)).astype(np.float32)
        x, y = torch.from_numpy(values), oracle.from_numpy(values)
        for found, expected in ((x.median(1), y.median(1)), (x.kthvalue(4, 1), y.kthvalue(4, 1))):
            assert np.array_equal(found[0].numpy(), expected[0].numpy())
            assert np.array_equal(found[1].numpy(), expected[1].numpy())


REARRANGED = {
    "roll": lambda x: x.roll(3, 1), "roll of both": lambda x: x.roll((1, -2), (0, 1)), "flip": lambda x: x.flip(1),
    "flip(0)": lambda x: x.flip(0), "rot90": lambda x: x.rot90(), "repeat": lambda x: x.repeat(1, 2),
    "tile": lambda x: x.tile(2, 2), "tril": lambda x: x.tril(), "triu": lambda x: x.triu(1),
    "diag_embed": lambda x: x.diag_embed(), "F.pad": lambda x: F.pad(x, (1, 2, 0, 1)),
    "trace": lambda x: x.float().trace(),
    "reflect": lambda x: F.pad(x[None], (2, 1), mode="reflect"), "contiguous": lambda x: x.t().contiguous(),
    "permuted": lambda x: x.view(2, 2, -1).permute(2, 0, 1).contiguous(), "reshape": lambda x: x.t().reshape(-1),
    "pixel_shuffle": lambda x: F.pixel_shuffle(x.view(1, 4, 1, -1), 2), "every other": lambda x: x[:, ::2].reshape(-1)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bool, torch.float16])
@pytest.mark.parametrize("shape", [(4, 4), (4, 36), (64, 64)])
@pytest.mark.parametrize("name", REARRANGED)
def test_rearrangements(name, shape, dtype):
    _check(REARRANGED[name], shape, dtype=dtype, times=40)


REDUCTIONS = {
    "sum": lambda x: x.sum(), "sum(0)": lambda x: x.sum(0), "keepdim": lambda x: x.sum(1, keepdim=True),
    "mean": lambda x: x.float().mean((0, 1)), "mean of one": lambda x: x.double().mean(-1, keepdim=True),
    "mean of two": lambda x: x.float().view(2, 2, -1).mean((0, 2)), "mean of all": lambda x: x.float().mean()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int32, torch.bool, torch.uint8, torch.int8])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, dtype):
    _check(REDUCTIONS[name], (4, 12), dtype=dtype, special=SPECIAL if dtype is torch.float32 else ())


BROADCAST = {"row": lambda x, y: x * y[0], "column": lambda x, y: x - y[:, :1], "quotient": lambda x, y: x / y[:1],
             "outer": lambda x, y: x[:, :1] * y[0], "sum": lambda x, y: x[None] + y[:, None],
             "0-d": lambda x, y: x + y[0, 0],
             "integers": lambda x, y: x.long() * y[0].long()}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", BROADCAST)
def test_broadcast_operands(name, dtype):
    _check(BROADCAST[name], (4, 6), (4, 6), dtype=dtype, special=SPECIAL)
    _check(BROADCAST[name], (32, 48), (32, 48), dtype=dtype)


CONVOLUTIONS = {
    "conv2d": lambda x, w: F.conv2d(x, w, padding=1), "stride": lambda x, w: F.conv2d(x, w, stride=2, padding=(1, 0)),
    "dilation": lambda x, w: F.conv2d(x, w, padding=2, dilation=2), "bias": lambda x, w: F.conv2d(x, w, w[:, 0, 0, 0]),
    "transposed": lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1).contiguous(), stride=2),
    "output_padding": lambda x, w: F.conv_transpose2d(x, w.transpose(0, 1).contiguous(), w[:, 0, 0, 0], stride=3,
                                                      padding=1, output_padding=1),
    "unbatched": lambda x, w: F.conv2d(x[0], w), "conv1d": lambda x, w: F.conv1d(x[:, :, 0], w[:, :, 0], padding=1),
    "conv3d": lambda x, w: F.conv3d(x[:, :, None], w[:, :, None], padding=(0, 1, 1))}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(1, 1, 4, 4), (1, 3, 5, 6), (2, 2, 4, 5)])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name, shape, dtype):
    _check(CONVOLUTIONS[name], shape, (3, shape[1], 3, 3), dtype=dtype, times=40)


@pytest.mark.parametrize("shape", [(1, 4, 4, 4), (2, 4, 5, 4)])
def test_grouped_convolutions(shape):
    _check(lambda x, w: F.conv2d(x, w, padding=1, groups=4), shape, (8, 1, 3, 3), times=40)
    _check(lambda x, w: F.conv2d(x, w, groups=2), shape, (6, 2, 3, 3), times=40)
    _check(lambda x, w: F.conv_transpose2d(x, w, groups=2, stride=2), shape, (4, 3, 3, 3), times=40)


def test_rows_by_index():
    table = _random(9, 32)
    good = torch.tensor([3, 0, 8, 3])
    calls = [lambda i: table.index_select(0, i), lambda i: F.embedding(i, table), lambda i: table[i],
             lambda i: table.view(3, 3, 32).index_select(1, i % 3), lambda i: F.embedding(i.view(2, 2), table)]
    for call in calls:
        for _ in range(MANY):
            assert call(good).numpy().tobytes() == without_kernels(lambda call=call: call(good)).numpy().tobytes()
    for call in calls[:3]:
        with pytest.raises(IndexError):
            call(torch.tensor([0, 1, 9, 2]))
    for call in calls[:2]:
        with pytest.raises((IndexError, RuntimeError)):
            call(torch.tensor([0, -1, 0, 2]))
    assert torch.equal(table[torch.tensor([-1, 0, -9, 2])], table[[8, 0, 0, 2]])


def test_cosine_similarity():
    _check(lambda x, y: F.cosine_similarity(x, y), (4, 4), (4, 4))
    _check(lambda x, y: F.cosine_similarity(x, y, dim=0, eps=3.0), (8, 6), (8, 6))
    zero = torch.zeros(4, 4)
    for _ in range(MANY):
        assert F.cosine_similarity(zero, zero).tolist() == [0.0] * 4
    leaf = _random(4, 4).requires_grad_()
    assert F.cosine_similarity(leaf, zero + 1).grad_fn is not None


REDUCED = {"max": lambda x: x.max(), "min": lambda x: x.min(), "amax": lambda x: x.amax(), "trace": lambda x: x.trace(),
           "norm": lambda x: x.norm(), "norm of rows": lambda x: x.norm(dim=1),
           "keepdim": lambda x: x.norm(2, -1, True),
           "sums of magnitudes": lambda x: torch.linalg.vector_norm(x, 1, dim=1),
           "vector_norm": lambda x: torch.linalg.vector_norm(x), "count_nonzero": lambda x: x.round().count_nonzero(),
           "counted integers": lambda x: x.long().count_nonzero(), "counted mask": lambda x: (x > 1).count_nonzero(),
           "integers // 3": lambda x: x.long() // 3, "integers // -7": lambda x: torch.floor_divide(x.long(), -7),
           "addmm": lambda x: torch.addmm(x[0, :2], x, x.t()[:, :2])}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(4, 4), (1, 7), (9, 5), (11, 11), (5, 16), (3, 60)])
@pytest.mark.parametrize("name", REDUCED)
def test_reductions_in_one_call(name, shape, dtype):
    if name in ("addmm",):
        shape = (shape[0] + 1, shape[1])
    _check(REDUCED[name], shape, dtype=dtype, special=SPECIAL if "integers" not in name else ())


def test_extrema_of_zeros_and_errors_of_norms():
    for values in ([[0.0, -0.0], [-0.0, -1.0]], [[-0.0, 0.0], [-3.0, -1.0]]):
        x = torch.tensor(values)
        for _ in range(MANY):
            found = x.max()
        assert np.signbit(found.numpy()) == np.signbit(without_kernels(x.max).numpy())
    for _ in range(MANY):
        torch.ones(3, 3).norm()
    with pytest.raises(RuntimeError, match="floating point or complex"):
        torch.ones(3, 3, dtype=torch.int64).norm()
    x = torch.ones(3, 3, requires_grad=True)
    assert type(x.norm().grad_fn).__name__ == "LinalgVectorNormBackward0"


BY_KERNEL = {"sum": lambda x: x.sum(), "sum(0)": lambda x: x.sum(0), "sum(1)": lambda x: x.sum(1, keepdim=True),
             "sum of both": lambda x: x.sum((0, 1)), "mean": lambda x: x.mean(), "mean(0)": lambda x: x.mean(0),
             "mean(-1)": lambda x: x.mean(-1, keepdim=True), "amax": lambda x: x.amax(0),
             "amin": lambda x: x.amin((0, 1)),
             "max": lambda x: x.max(), "norm": lambda x: x.norm(), "norm of rows": lambda x: x.norm(dim=1),
             "magnitudes": lambda x: torch.linalg.vector_norm(x, 1, dim=0)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", BY_KERNEL)
def test_reductions_by_kernels(name, dtype):
    _check(BY_KERNEL[name], (50, 64), dtype=dtype, special=SPECIAL)
