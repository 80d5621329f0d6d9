from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau import dtypes
from flambeau.codegen.elementwise import elementwise
from flambeau.codegen.indexing import added_rows, indexing
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.dtypes import BFLOAT16
from flambeau.kernels import threads as limits
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec


def random(*shape, dtype="float32", seed=0):
    values = (np.random.default_rng(seed).standard_normal(shape) * 10).astype("float32")
    return dtypes.cast(values, np.dtype(dtype))


def places(size, *shape, seed=0, dtype="int64", low=0):
    return np.random.default_rng(seed).integers(low, size, shape).astype(dtype)


def take(out, x, index, dim, wrap=False):
    """The flag; the result is in `out`."""
    flag = np.full(2, 7, np.int64)
    operands = [out, flag, x, index]
    launch.run(indexing.take(*map(Spec.of, operands), dim, wrap), operands)
    return flag.tolist()


def put(out, source, index, dim, op="add", fill=True, wrap=False):
    """The flag; the result is in `out`."""
    flag = np.full(2, 7, np.int64)
    operands = [out, flag, source, index]
    launch.run(indexing.put(*map(Spec.of, operands), dim, op, fill, wrap), operands)
    return flag.tolist()


def expected_put(out, source, index, dim, op="add", fill=True):
    want = np.zeros(out.shape) if fill else dtypes.widen(out).astype("float64")
    index = np.broadcast_to(index, source.shape)
    for p in np.ndindex(*source.shape):
        q = [0 if extent == 1 and d != dim else i for d, (i, extent) in enumerate(zip(p, out.shape, strict=True))]
        q[dim] = index[p]
        value = dtypes.widen(source[p]).astype("float64")
        want[tuple(q)] = want[tuple(q)] + value if op == "add" else value
    return want


@pytest.mark.parametrize("shape", [(7, 5), (65, 128), (1000, 1), (30, 3000), (2000, 33)])
@pytest.mark.parametrize("count", [0, 1, 50, 3000])
@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_embedding_lookup(shape, count, kind):
    table, index = random(*shape), places(shape[0], count, dtype=kind)
    out = np.full((count, shape[1]), 7, np.float32)
    assert take(out, table, index[:, None], 0) == [0, 0]
    np.testing.assert_array_equal(out, table[index])


@pytest.mark.parametrize("shape", [(7, 5), (65, 128), (1000, 1), (30, 3000), (2000, 33)])
@pytest.mark.parametrize("count", [0, 1, 50, 700])
def test_embedding_gradient(shape, count):
    index, g = places(shape[0], count), random(count, shape[1])
    out = np.full(shape, 7, np.float32)
    assert put(out, g, index[:, None], 0) == [0, 0]
    want = np.zeros(shape)
    np.add.at(want, index, g.astype("float64"))
    np.testing.assert_allclose(out, want, rtol=1e-5, atol=1e-4)


def test_multidimensional_index():
    table, index = random(11, 6), places(11, 4, 9)[:, ::2]
    out = np.zeros((4, 5, 6), np.float32)
    take(out, table[None], index[:, :, None], 1)
    np.testing.assert_array_equal(out, table[index])
    back = np.zeros((1, 11, 6), np.float32)
    put(back, out, index[:, :, None], 1)
    np.testing.assert_allclose(back, expected_put(back, out, index[:, :, None], 1), rtol=1e-5)


@pytest.mark.parametrize("shape", [(6, 5, 7), (3, 200, 4), (40, 3, 50), (9,), (5, 8)])
def test_along_a_dimension(shape):
    for dim in range(len(shape)):
        for count in (1, 3, 60):
            where = (*shape[:dim], count, *shape[dim + 1:])
            x, index = random(*shape), places(shape[dim], *where)
            out = np.zeros(where, np.float32)
            take(out, x, index, dim)
            np.testing.assert_array_equal(out, np.take_along_axis(x, index, dim))
            total = random(*shape, seed=1)
            want = expected_put(total, out, index, dim, fill=False)
            put(total, out, index, dim, fill=False)
            np.testing.assert_allclose(total, want, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_index_that_is_constant_along_a_dimension(dim):
    x = random(20, 30, 40)
    index = places(x.shape[dim], 13)
    spread = index.reshape([13 if d == dim else 1 for d in range(3)])
    out = np.zeros([13 if d == dim else n for d, n in enumerate(x.shape)], np.float32)
    take(out, x, spread, dim)
    np.testing.assert_array_equal(out, np.take(x, index, dim))
    back = np.zeros_like(x)
    put(back, out, spread, dim)
    np.testing.assert_allclose(back, expected_put(back, out, spread, dim), rtol=1e-5, atol=1e-4)


def test_scatter_keeps_the_last_element():
    for shape, dim in [((50, 6), 0), ((6, 50), 1), ((50, 300), 0), ((400,), 0)]:
        out, source = random(*shape, seed=1), random(*shape)
        index = places(5, *shape)
        want = expected_put(out, source, index, dim, "set", fill=False)
        put(out, source, index, dim, "set", fill=False)
        np.testing.assert_array_equal(out, want)


@st.composite
def views(draw):
    """A source, an indexed array and an index of any memory order and strides."""
    full = draw(st.lists(st.sampled_from([1, 2, 3, 5, 17]), min_size=1, max_size=4))
    dim = draw(st.integers(0, len(full) - 1))
    size = draw(st.sampled_from([1, 4, 19]))

    def view(base_of, shape):
        order = draw(st.permutations(range(len(shape))))
        steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
        base = base_of(*(shape[d] * abs(steps[d]) for d in order))
        return base.transpose(np.argsort(order))[(*(slice(None, None, step) for step in steps), ...)]

    repeated = [1 if d != dim and draw(st.integers(0, 4)) == 0 else size if d == dim else n
                for d, n in enumerate(full)]
    spread = [1 if draw(st.integers(0, 2)) == 0 else n for n in full]
    return (view(random, full), view(lambda *shape: random(*shape, seed=1), repeated),
            view(lambda *shape: places(size, *shape), spread), dim)


@given(views())
@settings(max_examples=60, deadline=None)
def test_any_strides(case):
    out, x, index, dim = case
    assert take(out, x, index, dim) == [0, 0]
    wide = np.broadcast_to(x, [x.shape[d] if d == dim else n for d, n in enumerate(out.shape)])
    np.testing.assert_array_equal(out, np.take_along_axis(wide, np.broadcast_to(index, out.shape), dim))
    want = expected_put(x, out, index, dim)
    assert put(x, out, index, dim) == [0, 0]
    np.testing.assert_allclose(x, want, rtol=1e-4, atol=1e-4)  # a thousand sums in one place, one after the other


@pytest.mark.parametrize("dtype", ["float64", "float16", BFLOAT16, "int64", "int32", "int16", "uint8", "bool"], ids=str)
def test_other_dtypes(dtype):
    whole = np.dtype(dtype).kind in "biu"
    x = places(2 if dtype == "bool" else 100, 20, 30, dtype=dtype) if whole else random(20, 30, dtype=dtype)
    index = places(20, 15)
    out = np.zeros((15, 30), x.dtype)
    take(out, x, index[:, None], 0)
    np.testing.assert_array_equal(out, x[index])
    out = np.zeros((20, 15), x.dtype)
    columns = places(30, 20, 15)
    take(out, x, columns, 1)
    np.testing.assert_array_equal(out, np.take_along_axis(x, columns, 1))
    if dtype == "bool":
        with pytest.raises(TypeError, match="bool arrays cannot be combined by add"):
            put(x, out, columns, 1)
        return
    distinct = np.argsort(random(20, 30), 1)[:, :15]
    back = np.zeros_like(x)
    put(back, out, distinct, 1)
    want = expected_put(back, out, distinct, 1)
    np.testing.assert_array_equal(dtypes.widen(back), want.astype(dtypes.widen(x).dtype))


@pytest.mark.parametrize("shape", [(6, 4), (6, 300), (3000, 5)])
def test_indices_out_of_range(shape):
    x, index = random(*shape), places(shape[0], 40)
    index[[17, 30]] = shape[0], -1
    out = np.full((40, shape[1]), 7, np.float32)
    assert take(out, x, index[:, None], 0) == [1, shape[0]]
    assert (out[[17, 30]] == 0).all()
    fine = np.delete(np.arange(40), [17, 30])
    np.testing.assert_array_equal(out[fine], x[index[fine]])
    back = np.zeros_like(x)
    assert put(back, random(40, shape[1]), index[:, None], 0) == [1, shape[0]]
    whole = np.ascontiguousarray(np.broadcast_to(index[:, None], out.shape))
    assert take(out, x, whole, 0) == [1, shape[0]]
    assert put(back, out, whole, 0) == [1, shape[0]]
    index[17] = -shape[0]
    assert take(out, x, index[:, None], 0) == [1, -shape[0]]
    assert take(out, x, index[:, None], 0, wrap=True) == [0, 0]
    np.testing.assert_array_equal(out, x[index])
    assert put(back, out, index[:, None], 0, wrap=True) == [0, 0]


def test_empty_arrays():
    table, none = random(5, 4), np.zeros((0, 1), np.int64)
    out = np.zeros((0, 4), np.float32)
    assert take(out, table, none, 0) == [0, 0]
    assert put(table, out, none, 0) == [0, 0]
    assert (table == 0).all()
    assert take(np.zeros((3, 0), np.float32), np.zeros((5, 0), np.float32), places(5, 3, 1), 0) == [0, 0]
    out = np.ones((3, 4), np.float32)
    assert take(out, np.zeros((0, 4), np.float32), np.zeros((3, 1), np.int64), 0) == [1, 0]
    assert (out == 0).all()


@pytest.mark.parametrize("shape", [(65, 128), (5000, 16), (50, 1), (300, 700)])
def test_results_do_not_depend_on_the_threads(shape, monkeypatch):
    index, g = places(shape[0], 20_000), random(20_000, shape[1])
    found = set()
    for count in (1, 2, 3):
        monkeypatch.setattr(limits, "_limit", count)
        out = np.zeros(shape, np.float32)
        put(out, g, index[:, None], 0)
        found.add(out.tobytes())
    assert len(found) == 1
    want = np.zeros(shape)
    np.add.at(want, index, g.astype("float64"))
    np.testing.assert_allclose(out, want, rtol=1e-4, atol=1e-2)


def test_parts_of_arrays_are_copied_by_elementwise_kernels():
    x, y = random(6, 4), random(6, 3, seed=1)
    out = np.zeros((6, 7), np.float32)
    for part, whole in ((x, out[:, :4]), (y, out[:, 4:])):
        launch.run(elementwise.launches([e.variable(0, "float32")], [Spec.of(whole)], [Spec.of(part)]), [whole, part])
    np.testing.assert_array_equal(out, np.concatenate([x, y], 1))


def test_mismatched_arguments_raise():
    out, flag, x, index = (Spec.dense(shape, np.dtype(dtype)) for shape, dtype in
                           [((3, 4), "f4"), ((2,), "i8"), ((5, 4), "f4"), ((3, 1), "i8")])
    with pytest.raises(IndexError, match="dimension 2"):
        indexing.take(out, flag, x, index, 2)
    with pytest.raises(ValueError, match="differ in rank"):
        indexing.take(out, flag, Spec.dense((5,), np.dtype("f4")), index, 0)
    with pytest.raises(ValueError, match="does not broadcast"):
        indexing.take(out, flag, Spec.dense((5, 3), np.dtype("f4")), index, 0)
    with pytest.raises(ValueError, match="does not broadcast"):
        indexing.put(x, flag, out, Spec.dense((2, 1), np.dtype("i8")), 0)
    with pytest.raises(TypeError, match="elements of"):
        indexing.take(out, flag, Spec.dense((5, 4), np.dtype("f8")), index, 0)
    with pytest.raises(TypeError, match="an index of dtype float32"):
        indexing.take(out, flag, x, Spec.dense((3, 1), np.dtype("f4")), 0)
    with pytest.raises(ValueError, match="a flag is"):
        indexing.take(out, index, x, index, 0)
    with pytest.raises(ValueError, match="op 'sub' is none of add, mul, maximum, minimum, set"):
        indexing.put(x, flag, out, index, 0, "sub")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
@pytest.mark.parametrize("op", ["mul", "maximum", "minimum"])
def test_other_combinations(op, dtype):
    ufunc = {"mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum}[op]
    identity = ufunc.identity if op == "mul" else {
        "f": (-np.inf, np.inf), "i": (np.iinfo("i8").min, np.iinfo("i8").max), "u": (0, 255)}[np.dtype(dtype).kind][
            op == "minimum"]
    source = (random(40, 6) / 5).astype(dtype) if np.dtype(dtype).kind == "f" else places(4, 40, 6, dtype=dtype)
    for index in (places(9, 40, 1), places(9, 40, 6)):  # rows, and elements, with an index each
        out = np.full((9, 6), 7, dtype)
        want = np.full_like(out, identity)
        assert put(out, source, index, 0, op) == [0, 0]
        rows = np.broadcast_to(index, source.shape)
        ufunc.at(want, (rows, np.arange(6)[None]), source)
        np.testing.assert_allclose(out, want, rtol=1e-5)


def test_extrema_propagate_nan():
    out, source = np.zeros(2, np.float32), np.float32([1, np.nan, 2])
    put(out, source, np.array([0, 0, 1]), 0, "maximum")
    np.testing.assert_array_equal(out, [np.nan, 2])


@pytest.mark.parametrize("width", ["128", "256"])
def test_narrower_vectors(width, tmp_path):
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.codegen import test_indexing as t
t.test_embedding_lookup((65, 128), 50, "int64")
t.test_embedding_gradient((65, 128), 50)
t.test_along_a_dimension((6, 5, 7))
t.test_indices_out_of_range((6, 300))
"""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True, timeout=120,
                          env=os.environ | {"FLAMBEAU_JIT_WIDTH": width, "FLAMBEAU_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("char", ["f", "d"])
@pytest.mark.parametrize("width", [1, 7, 8, 37])
def test_rows_are_added_one_after_the_other(char, width):
    rng = np.random.default_rng(0)
    for count in (1, 2, 100, 300):
        x, source = rng.standard_normal((9, width)).astype(char), rng.standard_normal((count, width)).astype(char)
        index = rng.integers(0, 9, count)
        for start in (None, x):
            expected = np.zeros_like(x) if start is None else x.copy()
            np.add.at(expected, index, source)
            add = added_rows.function(char, count, 9, width, start is None)
            arrays = () if start is None else (start,)
            result = np.full_like(x, np.nan)
            assert add(None, result, *arrays, index, source) is result
            assert result.tobytes() == expected.tobytes()
            for wrong in (-1, 9):
                assert add(None, result, *arrays, np.append(index[1:], wrong), source) is None
