"""Top k and sorting kernels against NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch


def same(both):
    for a, b in zip(*both, strict=True):
        assert (a.dtype, a.shape, a.stride()) == (b.dtype, b.shape, b.stride())
        np.testing.assert_array_equal(b.double().numpy(), a.double().numpy())


def check(impls, x, ks=(1, 2, 5, 64)):
    for dim in range(x.ndim):
        for k in ks:
            if k > x.shape[dim]:
                continue
            for largest in (True, False):
                same(impls.both(lambda k=k, d=dim, g=largest: tuple(torch.topk(x, k, d, g))))


def layouts_of(shape, dtype):
    """Row-major arrays; with several dimensions also transposed ones and ones with gaps."""
    x = torch.tensor(np.random.default_rng(0).standard_normal(shape) * 1000).to(dtype)
    return (x, x.transpose(0, -1), x[..., ::2]) if len(shape) > 1 else (x,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(1,), (300,), (5, 70), (70, 5), (3, 40, 33), (0, 5), (64, 129)], ids=str)
def test_topk(impls, dtype, shape):
    x, *others = layouts_of(shape, dtype)
    for each in (x, *others, x[:1].expand(x.shape)):
        check(impls, each)


@pytest.mark.parametrize("kinds", [1, 2, 5, 40, 300])
def test_topk_with_ties(impls, kinds):
    random = np.random.default_rng(1)
    for shape in ((20, 300), (20, 17), (3, 900)):
        check(impls, torch.tensor(random.integers(0, kinds, shape)).float(), (1, 3, 8))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_nan_infinities_and_zeros(impls, dtype):
    x = torch.tensor(np.random.default_rng(2).standard_normal((12, 90))).to(dtype)
    x[0, 3] = math.nan
    x[1, 3] = x[1, 50] = math.nan
    x[2] = math.nan
    x[3, :88] = math.nan
    x[4, 7], x[4, 8] = math.inf, -math.inf
    x[5, 7] = x[5, 60] = math.inf
    x[6] = -math.inf
    x[7] = 0.0
    x[8, ::2], x[8, 1::2] = 0.0, -0.0
    x[9] = torch.arange(90)
    x[10] = -torch.arange(90)
    x[11] = -0.0
    check(impls, x, (1, 2, 3, 50))
    check(impls, -x, (1, 2, 3, 50))


def test_many_rows_in_several_threads(impls):
    check(impls, torch.tensor(np.random.default_rng(3).standard_normal((700, 300))).float(), (5,))


def check_order(impls, x):
    for dim in range(x.ndim):
        for descending in (False, True):
            for stable in (False, True):
                same(impls.both(lambda d=dim, b=descending, s=stable: tuple(torch.sort(x, dim=d, descending=b,
                                                                                      stable=s))))
                same(impls.both(lambda d=dim, b=descending, s=stable: (torch.argsort(x, dim=d, descending=b,
                                                                                    stable=s),)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("shape", [(1,), (5000,), (5, 170), (170, 5), (3, 40, 133), (0, 5), (200, 129)], ids=str)
def test_sort(impls, dtype, shape):
    x, *others = layouts_of(shape, dtype)
    for each in (x, *others):
        check_order(impls, each)
    if shape[0] < 100:
        check_order(impls, x[:1].expand(x.shape))


@pytest.mark.parametrize("kinds", [1, 2, 40, 300])
def test_sort_with_ties(impls, kinds):
    random = np.random.default_rng(1)
    for shape in ((4, 300), (4, 64), (50, 16), (3, 17)):
        check_order(impls, torch.tensor(random.integers(0, kinds, shape)).float())


@pytest.mark.parametrize("n", [1, 2, 7, 16, 31, 32, 33, 255, 256, 257])
def test_sort_of_many_row_lengths(impls, n):
    random = np.random.default_rng(3)
    check_order(impls, torch.tensor(random.standard_normal((9, n)).round(1)).float())


@pytest.mark.parametrize("shape", [(5, 170), (170, 5), (3, 40, 20)], ids=str)
def test_results_have_the_memory_order_of_the_input(impls, shape):
    x = torch.tensor(np.random.default_rng(4).standard_normal(shape)).float()
    for each in (x, x.transpose(0, -1)):
        for dim in range(x.ndim):
            for way in (impls.numpy, impls.kernels):
                values, order = way(lambda x=each, d=dim: torch.sort(x, d))
                argsort = way(lambda x=each, d=dim: x.argsort(d))
                assert values.stride() == order.stride() == argsort.stride() == each.stride()


def test_sort_of_nan_infinities_and_zeros(impls):
    x = torch.tensor(np.random.default_rng(2).standard_normal((8, 150))).float()
    x[0, 3] = math.nan
    x[1, 3:9] = math.nan
    x[2] = math.nan
    x[3, 7], x[3, 8] = math.inf, -math.inf
    x[4, ::2], x[4, 1::2] = 0.0, -0.0
    x[5, 7:20] = -math.inf
    x[6] = torch.arange(150)
    check_order(impls, x)
    check_order(impls, -x)


# ----- introsort, which decides the order of equal elements -----

def median_of_three_killer(n: int) -> np.ndarray:
    """A sequence of even length that medians of three split off two elements at a time."""
    half = n // 2
    keys = np.zeros(n, np.int64)
    odd = np.arange(1, half + 1, 2)
    keys[odd - 1] = odd
    keys[odd[odd < half]] = half + odd[odd < half]
    keys[half + np.arange(1, half + 1) - 1] = 2 * np.arange(1, half + 1)
    return keys


@pytest.mark.parametrize("kind", ["random", "few", "sorted", "reversed", "equal", "killer"])
@pytest.mark.parametrize("n", [17, 100, 3000])
def test_introsort_by_the_kernel_is_that_of_python(kind: str, n: int) -> None:
    from flambeau.backends.compiled.families import sorting
    from flambeau.kernels import ties

    keys = np.random.default_rng(n).integers(0, 4 if kind == "few" else n // 2, n)
    keys = {"random": keys, "few": keys, "sorted": np.sort(keys), "reversed": np.sort(keys)[::-1].copy(),
            "equal": keys * 0, "killer": median_of_three_killer(n & ~1)}[kind]
    segment = ties.Segment(keys)
    ties._introsort(segment, 0, len(keys))
    assert sorting.partition in ties.PARTITIONS
    np.testing.assert_array_equal(ties.sorted_places(keys), segment.places)
    assert ties.last_of_run(keys, int(keys[0])) == segment.places[np.flatnonzero(segment.keys == keys[0])[-1]]


def test_too_many_segments_are_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    from flambeau.backends.compiled.families import sorting
    from flambeau.kernels import ties

    keys = median_of_three_killer(3000)
    wanted = ties.sorted_places(keys)
    monkeypatch.setattr(sorting, "_MOST_LEFT", 0)
    np.testing.assert_array_equal(ties.sorted_places(keys), wanted)


@pytest.mark.parity
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("descending", [False, True])
def test_ties_of_long_rows_are_pytorchs(dtype: str, descending: bool) -> None:
    pytorch = pytest.importorskip("torch")
    x = np.random.default_rng(3).integers(0, 700, (2, 5000)).astype(dtype)
    wanted = pytorch.sort(pytorch.from_numpy(x), descending=descending)
    for found, other in zip(torch.sort(torch.from_numpy(x), descending=descending), wanted, strict=True):
        np.testing.assert_array_equal(found.numpy(), other.numpy())
