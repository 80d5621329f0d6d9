from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as fb
from flambeau import dtypes
from flambeau.codegen.rows import reduction
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.dtypes import BFLOAT16
from flambeau.kernels import threads as limits

X, Y = e.variable(0, "float32"), e.variable(1, "float32")
F32 = ["float32"]


def random(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def near(got, want):
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    np.testing.assert_allclose(got.astype("float64"), want, rtol=2e-5, atol=2e-5)


SHAPES = [(), (1,), (7,), (100,), (4, 5), (3, 70), (70, 3), (33, 65), (1, 8), (5, 6, 7), (2, 40, 3, 9), (100, 1000),
          (1000, 100), (150_000,), (100_000, 3), (3, 100_000), (8, 16, 7, 7), (2, 1, 3, 1, 300)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("keepdims", [False, True])
def test_every_set_of_axes(shape, keepdims):
    x = random(*shape)
    wide = x.astype("float64")
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            for op in ("sum", "mean", "max", "min"):
                kernel = reduction.kernel(X, op, F32, axes, keepdims)
                got = kernel(x)
                assert got.dtype == np.float32
                near(got, getattr(wide, op)(axes, keepdims=keepdims))
    near(reduction.kernel(X, "sum", F32, None, keepdims)(x), wide.sum(keepdims=keepdims))


@st.composite
def views(draw):
    order = draw(st.permutations(range(draw(st.integers(1, 4)))))
    shape = [draw(st.sampled_from([1, 2, 3, 5, 16, 17, 40])) for _ in order]
    steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in order]
    x = random(*[extent * abs(step) for extent, step in zip(shape, steps, strict=True)], seed=draw(st.integers(0, 9)))
    x = x[tuple(slice(None, None, step) for step in steps)].transpose(order)
    if draw(st.booleans()):
        x = np.broadcast_to(x[..., :1], (*x.shape[:-1], draw(st.sampled_from([1, 4, 33]))))
    axes = draw(st.sets(st.sampled_from(range(-x.ndim, x.ndim)), min_size=1))
    return x, tuple(sorted({axis % x.ndim for axis in axes}))


@given(views())
@settings(max_examples=200, deadline=None)
def test_any_strides(case):
    x, axes = case
    wide = x.astype("float64")
    near(reduction.kernel(X * X - X, "sum", F32, axes)(x), (wide * wide - wide).sum(axes))
    near(reduction.kernel(X, "max", F32, axes)(x), x.max(axes))
    for axis in axes:
        np.testing.assert_array_equal(reduction.kernel(X, "argmax", F32, axis)(x), x.argmax(axis))
    np.testing.assert_array_equal(reduction.kernel(X, "argmin", F32)(x), x.argmin())


def test_expressions_of_several_arrays():
    x, m = random(300, 700), random(300, 1, seed=1)
    near(reduction.kernel(e.exp(X - Y), "sum", F32 * 2, 1)(x, m), np.exp(x.astype("float64") - m).sum(1))
    row = random(700, seed=2)
    near(reduction.kernel(X * Y, "sum", F32 * 2, 0)(x, row), (x.astype("float64") * row).sum(0))
    near(reduction.kernel(X * Y, "mean", F32 * 2)(row, m), (row * m.astype("float64")).mean())


def test_several_reductions_in_one_pass():
    x = random(16, 24, 7, 7)
    total, squares, most, place = reduction.several(
        [("sum", X), ("sum", X * X), ("max", X), ("argmax", X)], F32, 1)(x)
    near(total, x.astype("float64").sum(1))
    near(squares, (x.astype("float64") ** 2).sum(1))
    np.testing.assert_array_equal(most, x.max(1))
    np.testing.assert_array_equal(place, x.argmax(1))
    sums = reduction.several([("sum", X), ("sum", X * X)], F32, (0, 2, 3))(x)
    near(sums[0], x.astype("float64").sum((0, 2, 3)))
    near(sums[1], (x.astype("float64") ** 2).sum((0, 2, 3)))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64"])
def test_integers_add_up_as_int64(dtype):
    x = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, (50, 70)).astype(dtype)
    node = e.variable(0, dtype)
    for op, axis in itertools.product(("sum", "prod", "max", "min", "any", "all", "argmax", "argmin"), (0, 1, None)):
        got = reduction.kernel(node, op, [dtype], axis)(x)
        want = getattr(np, op)(x, axis, dtype="int64") if op in ("sum", "prod") else getattr(np, op)(x, axis)
        assert got.dtype == np.asarray(want).dtype, op
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", ["float64", "float16", BFLOAT16], ids=str)
def test_other_floats(dtype):
    x = dtypes.cast(random(200, 90), np.dtype(dtype))
    wide = dtypes.widen(x).astype("float64")
    for op, axis in itertools.product(("sum", "mean", "max"), (0, 1, None)):
        got = reduction.kernel(e.variable(0, dtype), op, [dtype], axis)(x)
        assert got.dtype == np.dtype(dtype)
        rtol, atol = (1e-12, 1e-12) if dtype == "float64" else (5e-3, 1e-3)
        np.testing.assert_allclose(dtypes.widen(got), getattr(wide, op)(axis), rtol=rtol, atol=atol)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_nan_and_infinities(axis):
    x = random(60, 80)
    x[3, 5] = x[3, 9] = x[59, 79] = np.nan
    x[10, 10], x[11, 10] = np.inf, -np.inf
    for op in ("max", "min", "argmax", "argmin"):
        np.testing.assert_array_equal(reduction.kernel(X, op, F32, axis)(x), getattr(x, op)(axis))
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.isnan(reduction.kernel(X, "sum", F32, axis)(x)), np.isnan(x.sum(axis)))
    low = np.full((60, 80), -np.inf, np.float32)
    np.testing.assert_array_equal(reduction.kernel(X, "max", F32, axis)(low), low.max(axis))
    np.testing.assert_array_equal(reduction.kernel(X, "argmax", F32, axis)(low), low.argmax(axis))
    x = np.ones((60, 80), np.float32)
    x[7, 7] = np.nan
    assert reduction.kernel(X, "any", F32)(x)
    assert reduction.kernel(X, "all", F32)(x)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", BFLOAT16], ids=str)
@pytest.mark.parametrize("shape", [(2, 64), (700, 67), (2000, 300), (3, 70_000), (5, 6, 90), (1, 128)])
def test_extrema_and_products_of_columns(dtype, shape):
    x = dtypes.cast(random(*shape), np.dtype(dtype))
    x[shape[0] // 2, ..., 1] = dtypes.cast(np.float32([np.nan]), np.dtype(dtype))[0]
    node, wide = e.variable(0, dtype), dtypes.widen(x)
    got = reduction.several([("max", node), ("min", node), ("sum", node)], [dtype], 0)(x)
    np.testing.assert_array_equal(dtypes.widen(got[0]), wide.max(0))
    np.testing.assert_array_equal(dtypes.widen(got[1]), wide.min(0))
    assert np.isnan(dtypes.widen(got[2])[..., 1]).all()
    if shape[0] < 10:
        got = reduction.kernel(node, "prod", [dtype], 0)(x)
        rtol = 1e-2 if np.dtype(dtype).itemsize == 2 else 1e-5
        np.testing.assert_allclose(dtypes.widen(got), wide.prod(0), rtol=rtol, atol=1e-4)


@pytest.mark.parametrize("shape", [(40, 6, 100), (40, 6, 1500), (40, 70, 1100), (5, 4, 6, 70), (20, 3, 4, 5, 64)])
def test_independent_groups(shape):
    x = random(*shape)
    for axes in ((1,), (1, 2), (0, 2)) if len(shape) > 3 else ((1,), (0, 1)):
        near(reduction.kernel(X, "sum", F32, axes)(x), x.astype("float64").sum(axes))
        np.testing.assert_array_equal(reduction.kernel(X, "max", F32, axes)(x), x.max(axes))


def test_argmax_returns_the_first_of_equal_elements():
    x = np.random.default_rng(0).integers(0, 3, (400, 300)).astype("float32")
    for axis in (0, 1, None):
        np.testing.assert_array_equal(reduction.kernel(X, "argmax", F32, axis)(x), x.argmax(axis))
        np.testing.assert_array_equal(reduction.kernel(X, "argmax", F32, axis)(x.T), x.T.argmax(axis))


def test_empty_arrays():
    x = np.empty((3, 0, 2), np.float32)
    for op, want in [("sum", 0), ("prod", 1), ("mean", np.nan), ("any", False), ("all", True)]:
        np.testing.assert_array_equal(reduction.kernel(X, op, F32, 1)(x), np.full((3, 2), want))
    for op in ("max", "min", "argmax"):
        with pytest.raises(ValueError, match="no elements"):
            reduction.kernel(X, op, F32, 1)(x)
    assert reduction.kernel(X, "max", F32, 0)(x).shape == (0, 2)
    assert reduction.kernel(X, "sum", F32, (0, 2))(x).shape == (0,)


def test_no_axes():
    x = random(4, 5)
    np.testing.assert_array_equal(reduction.kernel(X * 2, "sum", F32, ())(x), x * 2)


@pytest.mark.parametrize("shape", [(1 << 20,), (1, 1 << 20), (1 << 20, 1), (4096, 256), (256, 4096)])
def test_errors_grow_no_faster_than_numpys(shape):
    x = np.random.default_rng(1).random(shape).astype("float32")
    for axis in range(len(shape)):
        exact = x.astype("float64").sum(axis)
        ours = np.abs(reduction.kernel(X, "sum", F32, axis)(x) - exact).max()
        line = np.ascontiguousarray(np.moveaxis(x, axis, -1))  # where NumPy sums pairwise
        assert ours <= 2 * np.abs(line.sum(-1) - exact).max() + 1e-7 * np.abs(exact).max()


@pytest.mark.parametrize("shape", [(2_000_000,), (3000, 700), (5, 400_000), (400_000, 5), (30, 40, 300)])
def test_results_do_not_depend_on_the_threads(shape, monkeypatch):
    x = random(*shape)
    for axis in (None, *range(len(shape))):
        kernel = reduction.kernel(X, "sum", F32, axis)
        found = set()
        for count in (1, 2, 3, 4):
            monkeypatch.setattr(limits, "_limit", count)
            found |= {kernel(x).tobytes() for _ in range(4)}
        assert len(found) == 1


def test_out_argument():
    x, out = random(30, 40), np.empty(30, np.float32)
    assert reduction.kernel(X, "sum", F32, 1)(x, out=out) is out
    near(out, x.astype("float64").sum(1))
    with pytest.raises(ValueError, match="out"):
        reduction.kernel(X, "sum", F32, 0)(x, out=out)


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_argmax_over_several_axes_is_row_major(axes):
    x = random(4, 5, 19)
    for a in (x, x.transpose(1, 2, 0), x[:, ::2]):
        kept = [dim for dim in range(3) if dim not in axes]
        rows = a.transpose(*kept, *axes).reshape(*(a.shape[dim] for dim in kept), -1)
        for op in ("argmax", "argmin"):
            np.testing.assert_array_equal(reduction.kernel(X, op, F32, axes)(a), getattr(rows, op)(-1))


def test_invalid_arguments_raise():
    with pytest.raises(TypeError, match="unknown"):
        reduction.kernel(X, "median", F32)
    with pytest.raises(TypeError, match="mean of int32"):
        reduction.kernel(e.variable(0, "int32"), "mean", ["int32"])
    with pytest.raises(IndexError):
        reduction.kernel(X, "sum", F32, 2)(random(3, 4))
    with pytest.raises(TypeError, match="float64"):
        reduction.kernel(X, "sum", F32)(np.zeros(3))


@pytest.mark.parametrize("shape", [(3000,), (64, 33, 17), (2, 1500)])
def test_sums_of_bfloat16_have_the_bits_of_widened_ones(shape):
    x = fb.tensor(np.random.default_rng(0).standard_normal(shape).astype(np.float32)).bfloat16()
    for each in (x, x[..., ::2], x.transpose(0, -1)):
        dims = itertools.product(range(-x.ndim, x.ndim), (False, True))
        for options in ({}, *({"dim": dim, "keepdim": keepdim} for dim, keepdim in dims)):
            found, expected = each.sum(**options), each.float().sum(**options).bfloat16()
            assert found.shape == expected.shape
            np.testing.assert_array_equal(found._array, expected._array)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.sum(5)
