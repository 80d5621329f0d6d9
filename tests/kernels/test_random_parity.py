"""Every draw and the state after it, compared bit for bit with PyTorch."""

# ruff: noqa: B023  (`same` calls its two functions at once)

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable

import numpy as np
import pytest

from flambeau.dtypes import BFLOAT16
from flambeau.kernels import random
from flambeau.kernels.random import Engine
from flambeau.kernels.sorting import topk

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

DTYPES = {torch.float32: np.dtype("f4"), torch.float64: np.dtype("f8"), torch.float16: np.dtype("f2"),
          torch.bfloat16: BFLOAT16, torch.complex64: np.dtype("c8"), torch.complex128: np.dtype("c16"),
          torch.int64: np.dtype("i8"), torch.int32: np.dtype("i4"), torch.int16: np.dtype("i2"),
          torch.int8: np.dtype("i1"), torch.uint8: np.dtype("u1"), torch.bool: np.dtype("?"),
          torch.uint16: np.dtype("u2"), torch.uint32: np.dtype("u4"), torch.uint64: np.dtype("u8")}
REAL = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
COMPLEX = [torch.complex64, torch.complex128]
INTEGER = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]
SIZES = [0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 100, 624, 1000, 4097]

baseline = pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() == "DEFAULT",
                              reason="PyTorch's kernels without AVX2 round differently")


def array(tensor) -> np.ndarray:
    flat = tensor.clone(memory_format=torch.contiguous_format).reshape(-1)
    return flat.view(torch.uint8).numpy().view(DTYPES[tensor.dtype]).reshape(tensor.shape)


def same(theirs: Callable, ours: Callable, seed: int = 7) -> None:
    torch.manual_seed(seed)
    engine = Engine(seed)
    tensor, drawn = theirs(), ours(engine)
    assert drawn.dtype == DTYPES[tensor.dtype]
    expected = array(tensor).reshape(-1).view(np.uint8)
    wrong = np.flatnonzero(expected != np.ascontiguousarray(drawn).reshape(-1).view(np.uint8))
    assert wrong.size == 0, f"{wrong.size} bytes differ, first in element {wrong[0] // tensor.element_size()}"
    assert (torch.get_rng_state().numpy() == engine.get_state()).all(), "the generator is elsewhere"


def outcome(call: Callable) -> tuple[type, str] | None:
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None


@baseline
@pytest.mark.parametrize("dtype", REAL + COMPLEX, ids=str)
def test_uniform(dtype) -> None:
    for n, (low, high) in itertools.product(SIZES, ((0, 1), (-0.3, 1.9), (1.1, 1.2), (-0.03, 0.03), (0, 0))):
        same(lambda: torch.empty(n, dtype=dtype).uniform_(low, high),
             lambda e: random.uniform(e, n, DTYPES[dtype], low, high))


@baseline
@pytest.mark.parametrize("dtype", REAL + COMPLEX, ids=str)
def test_normal(dtype) -> None:
    parameters = ((0, 1), (0.3, 1.7), (0.3, 0), (0, 0.02), (-0.0, 1), (3, 2))
    for n, (mean, std) in itertools.product(SIZES, parameters):
        same(lambda: torch.empty(n, dtype=dtype).normal_(mean, std),
             lambda e: random.normal(e, n, DTYPES[dtype], mean, std))


@baseline
@pytest.mark.parametrize("dtype", REAL + COMPLEX, ids=str)
def test_normal_of_another_layout_and_in_sequence(dtype) -> None:
    kind = DTYPES[dtype]
    for n in SIZES[2:]:
        same(lambda: torch.empty(n, 2, dtype=dtype)[:, 0].normal_(0.3, 1.7),
             lambda e: random.normal(e, n, kind, 0.3, 1.7, contiguous=False))
        same(lambda: torch.cat([*(torch.randn(k, dtype=dtype) for k in (3, n, 5)), torch.rand(3, dtype=dtype)]),
             lambda e: np.concatenate([random.normal(e, k, kind) for k in (3, n, 5)]
                                      + [random.uniform(e, 3, kind)]))


@baseline
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("n", [300_000])
def test_large(dtype, n: int) -> None:
    kind = DTYPES[dtype]
    same(lambda: torch.randn(n, dtype=dtype), lambda e: random.normal(e, n, kind))
    same(lambda: torch.empty(n, dtype=dtype).normal_(0.3, 1.7), lambda e: random.normal(e, n, kind, 0.3, 1.7))
    same(lambda: torch.empty(n, dtype=dtype).uniform_(-0.3, 1.9),
         lambda e: random.uniform(e, n, kind, -0.3, 1.9))


@baseline
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_extremes(dtype) -> None:
    kind = DTYPES[dtype]
    for low, high in ((-3e38, 0), (1e-40, 2e-40), (0, 1e-42), (-1e-38, 1e-38), (5, 5), (1, 1 + 2**-30)):
        same(lambda: torch.empty(500, dtype=dtype).uniform_(low, high),
             lambda e: random.uniform(e, 500, kind, low, high))
    inf = float("inf")
    for mean, std in ((1e30, 1e30), (1e-39, 1e-40), (0, 1e-42), (0, 3e38), (inf, 1), (0, inf), (1e8, 1e-3)):
        same(lambda: torch.empty(15, dtype=dtype).normal_(mean, std),
             lambda e: random.normal(e, 15, kind, mean, std))


@baseline
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_normal_around(dtype) -> None:
    mean, std = torch.randn(50).to(dtype), torch.rand(50).to(dtype)
    same(lambda: torch.normal(mean, std), lambda e: random.normal_around(e, array(mean), array(std)))
    same(lambda: torch.normal(mean, 0.3), lambda e: random.normal_around(e, array(mean), 0.3))
    same(lambda: torch.normal(0.4, std), lambda e: random.normal_around(e, 0.4, array(std)))
    same(lambda: torch.normal(mean[:, None], std[:5]),
         lambda e: random.normal_around(e, array(mean)[:, None], array(std)[:5]))


@baseline
@pytest.mark.parametrize("dtype", REAL, ids=str)
@pytest.mark.parametrize("n", [0, 1, 17, 1000, 100_000])
def test_by_inversion(dtype, n: int) -> None:
    kind = DTYPES[dtype]
    same(lambda: torch.empty(n, dtype=dtype).exponential_(1.3), lambda e: random.exponential(e, n, kind, 1.3))
    same(lambda: torch.empty(n, dtype=dtype).exponential_(), lambda e: random.exponential(e, n, kind))
    same(lambda: torch.empty(n, dtype=dtype).cauchy_(0.3, 1.7), lambda e: random.cauchy(e, n, kind, 0.3, 1.7))
    same(lambda: torch.empty(n, dtype=dtype).log_normal_(0.3, 1.7),
         lambda e: random.log_normal(e, n, kind, 0.3, 1.7))


@pytest.mark.parametrize("dtype", [*REAL, *INTEGER, torch.bool], ids=str)
@pytest.mark.parametrize("n", [0, 1, 5, 10_000])
def test_bernoulli_and_full_ranges(dtype, n: int) -> None:
    kind = DTYPES[dtype]
    same(lambda: torch.empty(n, dtype=dtype).random_(), lambda e: random.random(e, n, kind))
    same(lambda: torch.empty(n, dtype=dtype).random_(1, None), lambda e: random.random(e, n, kind, 1))
    for p in (0.0, 1e-3, 0.3, 0.5, 1.0):
        same(lambda: torch.empty(n, dtype=dtype).bernoulli_(p), lambda e: random.bernoulli(e, n, p, kind))
    for p in (0.3, 0.01, 1e-7, 1e-12, 0.999) if dtype != torch.bool else ():
        same(lambda: torch.empty(n, dtype=dtype).geometric_(p), lambda e: random.geometric(e, n, p, kind))
    chances = torch.linspace(0, 1, n)
    for p in REAL:
        same(lambda: torch.empty(n, dtype=dtype).bernoulli_(chances.to(p)),
             lambda e: random.bernoulli_each(e, array(chances.to(p)), kind))


def test_dropout_mask() -> None:
    x = torch.ones(1000)
    same(lambda: torch.nn.functional.dropout(x, 0.3),
         lambda e: random.bernoulli(e, 1000, 1 - 0.3, np.dtype("f4")) / np.float32(1 - 0.3))


@pytest.mark.parametrize("dtype", [*REAL, *INTEGER, *UNSIGNED, torch.bool], ids=str)
def test_randint(dtype) -> None:
    kind = DTYPES[dtype]
    bounds = [(0, 2), (0, 1), (3, 100), (-100, 100), (-2**15, 2**15), (0, 2**28 - 1), (0, 2**28),
              (0, 2**31 - 1), (-2**31, 2**31 - 1), (-2**40, 2**50), (-2**63, 2**63 - 1), (0, 2049),
              (-65503, 65504), (5, 70000), (1, 2**32), (0, 2**63 - 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of ranges a floating dtype cannot hold exactly
        for (low, high), n in itertools.product(bounds, (0, 1, 17, 1000)):
            refusal = outcome(lambda: torch.empty(1, dtype=dtype).random_(low, high))
            if refusal is not None:
                assert outcome(lambda: random.randint(Engine(1), n, low, high, kind)) == refusal
            else:
                same(lambda: torch.empty(n, dtype=dtype).random_(low, high),
                     lambda e: random.randint(e, n, low, high, kind))
        if dtype in (torch.int64, torch.float32, torch.float64, torch.bfloat16):
            same(lambda: torch.empty(999, dtype=dtype).random_(-2**63, None),
                 lambda e: random.random(e, 999, kind, -2**63))


def test_inexact_range_warns_as_pytorch_does() -> None:
    with pytest.warns(UserWarning, match="to - 1 is out of bounds") as theirs:
        torch.empty(3, dtype=torch.float16).random_(0, 3000)
    with pytest.warns(UserWarning, match="to - 1 is out of bounds") as ours:
        random.randint(Engine(0), 3, 0, 3000, np.dtype("f2"))
    assert str(theirs[0].message).startswith(str(ours[0].message))


@pytest.mark.parametrize("dtype", REAL + INTEGER, ids=str)
def test_randperm(dtype) -> None:
    for n in (0, 1, 2, 3, 10, 100, 127):
        same(lambda: torch.randperm(n, dtype=dtype), lambda e: random.randperm(e, n, DTYPES[dtype]))


@pytest.mark.parametrize("n", [999, 1000, 1001, 1002, 5000, 60_000, 300_000])
def test_long_randperm(n: int) -> None:
    for seed in range(3):
        same(lambda: torch.randperm(n), lambda e: random.randperm(e, n), seed)


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_multinomial(dtype) -> None:
    one = torch.rand(100, generator=torch.Generator().manual_seed(1)).to(dtype)
    rows = torch.rand(5, 40, generator=torch.Generator().manual_seed(2)).to(dtype)
    rows[:, 3] = 0
    many = torch.rand(3000, generator=torch.Generator().manual_seed(3)).to(dtype)
    many[::2] = 0
    for weights in (one, rows, many):
        for n in (1, 2, 5, 30, 40):
            same(lambda: torch.multinomial(weights, n), lambda e: random.multinomial(e, array(weights), n))
        for n in (1, 2, 1000):
            same(lambda: torch.multinomial(weights, n, True),
                 lambda e: random.multinomial(e, array(weights), n, True))
    same(lambda: torch.multinomial(many, 3000), lambda e: random.multinomial(e, array(many), 3000))


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf"), 0.0])
def test_rows_before_one_that_has_no_distribution_are_drawn(bad: float) -> None:
    import flambeau

    weights = np.random.default_rng(0).random((4, 5)).astype(np.float32)
    weights[2, slice(None) if bad == 0 else 3] = bad
    seen = []
    for lib in (flambeau, torch):
        lib.manual_seed(5)
        with pytest.raises(RuntimeError) as info:
            lib.multinomial(lib.tensor(weights), 3, True)
        seen.append((str(info.value), lib.rand(2).tolist()))
    assert seen[0] == seen[1]


def test_topk_of_a_row_has_pytorchs_ties() -> None:
    for seed in range(150):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(100, 3000)) if seed % 5 == 0 else int(rng.integers(1, 400))
        k = int(rng.integers(1, n // 64 + 2)) if seed % 5 == 0 else int(rng.integers(1, n + 1))
        row = rng.integers(0, int(rng.integers(1, 30)), n).astype(np.float32)
        if seed % 7 == 0:
            row[rng.random(n) < 0.1] = np.nan
        if seed % 11 == 0:
            row[rng.random(n) < 0.1] = np.inf
        assert torch.topk(torch.from_numpy(row), k)[1].tolist() == topk(row, k)[1].tolist()


@pytest.mark.parametrize("dtype", REAL, ids=str)
def test_poisson(dtype) -> None:
    means = (0.0, 0.1, 1.0, 4.0, 9.9, 10.0, 12.0, 50.0, 1000.0)
    rates = torch.cat([torch.full((200,), r) for r in means]).to(dtype)
    same(lambda: torch.poisson(rates), lambda e: random.poisson(e, array(rates)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_binomial(dtype) -> None:
    for count in (0.0, 1.0, 5.0, 20.0, 100.0, 1e4, 1e8):
        chances = (0.0, 0.01, 0.1, 0.3, 0.5, 0.7, 0.99, 1.0)
        prob = torch.cat([torch.full((100,), p) for p in chances]).to(dtype)
        trials = torch.full_like(prob, count)
        same(lambda: torch.binomial(trials, prob), lambda e: random.binomial(e, array(trials), array(prob)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_gamma_and_dirichlet(dtype) -> None:
    alpha = torch.cat([torch.full((300,), a) for a in (0.0, 1e-3, 0.1, 0.5, 1.0, 1.3, 10.0, 1e5)]).to(dtype)
    same(lambda: torch._standard_gamma(alpha), lambda e: random.standard_gamma(e, array(alpha)))
    for shape in ((7,), (200, 5), (20, 50), (3, 2, 700)):
        alpha = (torch.rand(*shape, generator=torch.Generator().manual_seed(2)) * 3).to(dtype)
        same(lambda: torch._sample_dirichlet(alpha), lambda e: random.dirichlet(e, array(alpha)))


def test_memory_order() -> None:
    for shape in ((3, 4), (2, 3, 4), (2, 3, 4, 5), (1, 3, 1, 4), (2, 1, 3)):
        for axes, step in itertools.product(itertools.permutations(range(len(shape))), (1, 2)):
            every = tuple(slice(None, None, step) for _ in shape)
            tensor = torch.zeros([s * step for s in shape])[every].permute(axes)
            out = np.zeros([s * step for s in shape], np.float32)[every].transpose(axes)
            torch.manual_seed(3)
            random.place(random.uniform(Engine(3), out.size, out.dtype), out)
            assert (tensor.uniform_().numpy() == out).all()


def test_states_are_interchangeable() -> None:
    torch.manual_seed(11)
    torch.randn(3, dtype=torch.float64)
    torch.rand(700)
    engine = Engine()
    engine.set_state(torch.get_rng_state().numpy())
    assert (engine.get_state() == torch.get_rng_state().numpy()).all()
    assert random.normal(engine, 5, np.dtype("f4")).tolist() == torch.randn(5).tolist()
    engine.draw(624 * 3 - 10)
    torch.set_rng_state(torch.from_numpy(engine.get_state()))
    assert random.normal(engine, 50, np.dtype("f8")).tolist() == torch.randn(50, dtype=torch.float64).tolist()


def test_all_seeds() -> None:
    for seed in (0, -1, 2**63, 2**64 - 1, -2**63, 123456789012):
        same(lambda: torch.rand(1000), lambda e: random.uniform(e, 1000, np.dtype("f4")), seed)
        assert torch.initial_seed() == Engine(seed).initial_seed
