"""Pooling kernels and their gradients, compared with NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from flambeau.codegen.pooling import pooling
from flambeau.codegen.pooling.plan import transposed
from flambeau.kernels import pooling as reference
from flambeau.kernels import threads as limits
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec

# channels, spatial, kernel, stride, padding, dilation, ceil_mode
CASES: dict[str, tuple[Any, ...]] = {
    "2x2": (70, (24, 24), (2, 2), (2, 2), (0, 0), (1, 1), False),
    "3x3, stride 2, padded": (17, (15, 14), (3, 3), (2, 2), (1, 1), (1, 1), False),
    "overlapping": (3, (9, 31), (3, 4), (1, 1), (1, 2), (1, 1), False),
    "last windows partial": (16, (10, 11), (3, 3), (2, 3), (0, 1), (1, 1), True),
    "dilated": (5, (12, 13), (3, 2), (2, 1), (1, 1), (2, 3), False),
    "gaps": (20, (11, 9), (2, 1), (3, 2), (0, 0), (1, 1), False),
    "one channel": (1, (8, 40), (2, 3), (2, 3), (0, 0), (1, 1), False),
    "1d": (33, (300,), (5,), (4,), (2,), (1,), True),
    "3d": (18, (6, 7, 5), (2, 3, 2), (2, 1, 2), (1, 1, 0), (1, 1, 2), False),
    "planes": (40, (7, 7), (7, 7), (7, 7), (0, 0), (1, 1), False),
    "wide rows": (3, (6, 75), (2, 3), (1, 2), (1, 1), (1, 1), False),
    "wide overlapping rows": (2, (5, 70), (4, 3), (1, 1), (2, 1), (1, 1), False),
    "rows of volumes": (3, (5, 6, 40), (3, 2, 4), (1, 2, 2), (1, 0, 2), (2, 1, 1), True),
}


def laid_out(x: np.ndarray, last: bool) -> np.ndarray:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1) if last else np.ascontiguousarray(x)


def windows(name: str, count: tuple[int, ...], padded: bool = True, dilated: bool = True) -> list[pooling.Windows]:
    _, spatial, kernel, stride, padding, dilation, _ = CASES[name]
    steps = dilation if dilated else (1,) * len(spatial)
    return [pooling.regular(*each, padded) for each in zip(spatial, count, kernel, stride, padding, steps,
                                                           strict=True)]


def run(launches: list[Any], *arrays: np.ndarray) -> None:
    launch.run(launches, arrays)


def check_max(name: str, dtype: str, last: bool) -> None:
    channels, spatial, kernel, stride, padding, dilation, ceil_mode = CASES[name]
    rng = np.random.default_rng(0)
    x = np.round(rng.standard_normal((2, channels, *spatial)).astype(dtype) * 2)  # some are equal
    x.reshape(-1)[rng.integers(0, x.size, 4)] = np.nan
    x.reshape(-1)[:spatial[-1] * 2] = -np.inf
    wanted, places = reference.max_pool(x, kernel, stride, padding, dilation, ceil_mode)
    x = laid_out(x, last)
    values, indices = (laid_out(np.full(wanted.shape, -7, kind), last) for kind in (dtype, "i8"))
    how = windows(name, wanted.shape[2:])
    run(pooling.max_pool([Spec.of(values), Spec.of(indices)], Spec.of(x), how), values, indices, x)
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(indices, places)
    alone = laid_out(np.zeros_like(wanted), last)
    run(pooling.max_pool([Spec.of(alone)], Spec.of(x), how), alone, x)
    np.testing.assert_array_equal(alone, wanted)
    gy = laid_out(rng.standard_normal(wanted.shape).astype(dtype), last)
    gx = laid_out(np.full(x.shape, 7, dtype), last)
    run(pooling.max_pool_gradient([Spec.of(gx)], Spec.of(gy), Spec.of(indices)), gx, gy, indices)
    back = reference.max_pool_backward(np.ascontiguousarray(gy), places, spatial)
    np.testing.assert_allclose(gx, back, rtol=0, atol=1e-5)


def check_avg(name: str, dtype: str, last: bool, padded: bool = True, divisor: int | None = None) -> None:
    channels, spatial, kernel, stride, padding, _, ceil_mode = CASES[name]
    rng = np.random.default_rng(1)
    x = rng.standard_normal((2, channels, *spatial)).astype(dtype)
    wanted = reference.avg_pool(x.astype("f8"), kernel, stride, padding, ceil_mode, padded, divisor)
    how = windows(name, wanted.shape[2:], padded, dilated=False)
    x, y = laid_out(x, last), laid_out(np.full(wanted.shape, 7, dtype), last)
    run(pooling.avg_pool([Spec.of(y)], Spec.of(x), how, divisor or 0), y, x)
    tolerance = 1e-6 if dtype == "float32" else 1e-14
    np.testing.assert_allclose(y, wanted, rtol=0, atol=tolerance)
    gy, gx = laid_out(rng.standard_normal(wanted.shape).astype(dtype), last), laid_out(np.full(x.shape, 7, dtype), last)
    run(pooling.avg_pool_gradient([Spec.of(gx)], Spec.of(gy), how, divisor or 0), gx, gy)
    back = reference.avg_pool_backward(np.ascontiguousarray(gy, "f8"), spatial, kernel, stride, padding, padded,
                                       divisor)
    np.testing.assert_allclose(gx, back, rtol=0, atol=tolerance)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_max_pool(name, last):
    check_max(name, "float32", last)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_avg_pool(name, last):
    check_avg(name, "float32", last)
    check_avg(name, "float32", last, padded=False)
    check_avg(name, "float32", last, divisor=3)


@pytest.mark.parametrize("name", ["3x3, stride 2, padded", "3d"])
def test_float64(name):
    for last in (False, True):
        check_max(name, "float64", last)
        check_avg(name, "float64", last)


@pytest.mark.parametrize("last", [False, True])
def test_small_blocks(last, monkeypatch):
    """Images divided along every dimension."""
    monkeypatch.setattr(pooling, "BLOCK_BYTES", 1 << 10)
    monkeypatch.setattr(pooling, "GRAIN", 1)
    pooling.clear_cache()
    for name in ("3x3, stride 2, padded", "1d", "3d"):
        check_max(name, "float32", last)
        check_avg(name, "float32", last)
    pooling.clear_cache()


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(("length", "count"), [((7, 7), (1, 1)), ((10, 13), (3, 5)), ((5, 4), (7, 4)), ((30,), (4,))])
def test_adaptive_pooling(length, count, last):
    x = np.random.default_rng(2).standard_normal((2, 21, *length)).astype("f4")
    how = [pooling.adaptive(*each) for each in zip(length, count, strict=True)]
    wanted = reference.adaptive_avg_pool(x.astype("f8"), count)
    best, places = reference.adaptive_max_pool(x, count)
    source = laid_out(x, last)
    y, values, indices = (laid_out(np.zeros(wanted.shape, kind), last) for kind in ("f4", "f4", "i8"))
    run(pooling.avg_pool([Spec.of(y)], Spec.of(source), how), y, source)
    np.testing.assert_allclose(y, wanted, rtol=0, atol=1e-6)
    run(pooling.max_pool([Spec.of(values), Spec.of(indices)], Spec.of(source), how), values, indices, source)
    np.testing.assert_array_equal(values, best)
    np.testing.assert_array_equal(indices, places)
    gx = laid_out(np.full(x.shape, 7, "f4"), last)
    run(pooling.avg_pool_gradient([Spec.of(gx)], Spec.of(y), how), gx, y)
    np.testing.assert_allclose(gx, reference.adaptive_avg_pool_backward(wanted, length), rtol=0, atol=1e-6)


def test_any_layout():
    name = "3x3, stride 2, padded"
    channels, spatial, kernel, stride, padding, dilation, ceil_mode = CASES[name]
    big = np.random.default_rng(3).standard_normal((4, 2 * channels, *(2 * extent for extent in spatial)))
    x = big.astype("f4")[::2, ::2, ::2, 1::2].transpose(0, 1, 3, 2).swapaxes(2, 3)
    wanted, places = reference.max_pool(np.ascontiguousarray(x), kernel, stride, padding, dilation, ceil_mode)
    values = np.zeros((*wanted.shape, 2), "f4")[..., 0]
    indices = np.zeros(wanted.shape[::-1], "i8").T
    how = windows(name, wanted.shape[2:])
    run(pooling.max_pool([Spec.of(values), Spec.of(indices)], Spec.of(x), how), values, indices, x)
    np.testing.assert_array_equal(values, wanted)
    np.testing.assert_array_equal(indices, places)


def test_results_do_not_depend_on_threads(monkeypatch):
    rng = np.random.default_rng(4)
    x = rng.standard_normal((3, 64, 40, 40)).astype("f4")
    how = [pooling.regular(40, 20, 3, 2, 1)] * 2
    found = []
    for count in (1, 2, 5):
        monkeypatch.setattr(limits, "_limit", count)
        pooling.clear_cache()
        y, values, indices, gx = (np.zeros((3, 64, 20, 20), kind) for kind in ("f4", "f4", "i8", "f4"))
        gx = np.zeros_like(x)
        run(pooling.avg_pool([Spec.of(y)], Spec.of(x), how), y, x)
        run(pooling.max_pool([Spec.of(values), Spec.of(indices)], Spec.of(x), how), values, indices, x)
        run(pooling.max_pool_gradient([Spec.of(gx)], Spec.of(y), Spec.of(indices)), gx, y, indices)
        found.append([each.tobytes() for each in (y, values, indices, gx)])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("width", ["128", "256"])
def test_narrower_vectors(width):
    code = "\n".join([
        "import sys", f"sys.path.insert(0, {os.path.dirname(__file__)!r})",
        "from test_pooling import check_avg, check_max",
        "for last in (False, True):",
        "    check_max('last windows partial', 'float32', last)",
        "    check_avg('3x3, stride 2, padded', 'float32', last)", "print('fine')"])
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True,
                          env=os.environ | {"FLAMBEAU_JIT_WIDTH": width})
    assert done.stdout == "fine\n", done.stderr


def test_mismatched_arguments_raise():
    x, y = Spec.dense((2, 3, 8), np.dtype("f4")), Spec.dense((2, 3, 4), np.dtype("f4"))
    how = [pooling.regular(8, 4, 2, 2, 0)]
    with pytest.raises(TypeError, match="float32 or float64"):
        pooling.avg_pool([y._replace(dtype=np.dtype("f8"))], x, how)
    with pytest.raises(TypeError, match="indices of float32"):
        pooling.max_pool([y, y], x, how)
    with pytest.raises(ValueError, match="one to three spatial dimensions"):
        pooling.avg_pool([y], x, [pooling.regular(8, 3, 2, 2, 0)])
    with pytest.raises(ValueError, match="extend past"):
        pooling.avg_pool([y], x, [pooling.regular(9, 4, 3, 2, 0)])
    with pytest.raises(ValueError, match="dilated windows"):
        pooling.avg_pool_gradient([x], y, [pooling.regular(8, 4, 2, 2, 1, 2)])
    with pytest.raises(ValueError, match="uniform stride"):
        pooling.max_pool_gradient([Spec((2, 3, 8, 8), (3 * 128, 128, 64, 4), np.dtype("f4"))],
                                  Spec.dense((2, 3, 4, 4), np.dtype("f4")), Spec.dense((2, 3, 4, 4), np.dtype("i8")))


def test_windows_transposed():
    """The windows of an element are those that contain it."""
    for how in (pooling.regular(11, 4, 2, 3, 1), pooling.regular(9, 9, 3, 1, 1), pooling.adaptive(7, 5)):
        length = 11 if len(how.starts) == 4 else 9 if len(how.starts) == 9 else 7
        inverse = transposed(how, length)
        for element in range(length):
            holding = [i for i, (s, n) in enumerate(zip(how.starts, how.counts, strict=True)) if s <= element < s + n]
            start, count = inverse.starts[element], inverse.counts[element]
            assert list(range(start, start + count)) == holding
