"""Matrix products: any shapes, strides, batches and epilogues, against the product in float64."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau.codegen.matmul import dot, matmul
from flambeau.codegen.matmul import plan as matmul_plan
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.kernels import threads as limits
from flambeau.runtime import launch, target
from flambeau.runtime.launch import Spec
from flambeau.runtime.repeated_launches import RepeatedLaunches

EXTENTS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 49, 65, 100, 130]
UNIT = {"float32": 2.0**-24, "float64": 2.0**-53}


def random(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def product(a, b, out=None):
    shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-2], b.shape[-1])
    c = np.full(shape, 7, a.dtype) if out is None else out
    launch.run(matmul.launches([Spec.of(c)], Spec.of(a), Spec.of(b)), [c, a, b])
    return c


def close(c, a, b):
    """Within the error bound of blocked summation: a few ulp of the sum of magnitudes."""
    wide, other = a.astype(np.float64), b.astype(np.float64)
    depth = a.shape[-1]
    # the float64 reference has errors of the same size
    factor = min(depth, 40) + 4 if c.dtype == np.float32 else min(depth, 80) + 8
    bound = factor * UNIT[c.dtype.name] * (abs(wide) @ abs(other))
    assert c.dtype == a.dtype
    np.testing.assert_array_less(abs(c - wide @ other), bound + 1e-300)


def array_with_layout(shape, dtype, order, steps, seed):
    """An array of this shape with this memory order of its dimensions and these steps."""
    base = random(*[shape[dim] * abs(steps[dim]) for dim in order], dtype=dtype, seed=seed)
    view = base.transpose(np.argsort(order))
    return view[tuple(slice(None, None, step) for step in steps)]


@st.composite
def operands(draw):
    dtype = draw(st.sampled_from(["float32", "float64"]))
    batch = draw(st.lists(st.sampled_from([1, 2, 3]), max_size=2))
    m, n, k = (draw(st.sampled_from(EXTENTS)) for _ in range(3))
    k = draw(st.sampled_from([k, 0, 300, 513])) if m * n < 5000 else k
    made = []
    for i, (rows, columns) in enumerate(((m, k), (k, n), (m, n))):
        lead = batch[draw(st.integers(0, len(batch))):] if i < 2 else batch
        lead = [1 if i < 2 and draw(st.integers(0, 2)) == 0 else extent for extent in lead]
        shape = (*lead, rows, columns)
        usual = draw(st.booleans())
        order = range(len(shape)) if usual else draw(st.permutations(range(len(shape))))
        steps = [1 if usual else draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in shape]
        made.append(array_with_layout(shape, dtype, list(order), steps, i))
    a, b, c = made
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a, b, c[(0,) * (len(batch) - len(lead))] if c.shape[:-2] == tuple(batch) and lead == tuple(
        batch[len(batch) - len(lead):]) else np.empty((*lead, m, n), dtype)


@given(operands())
@settings(max_examples=120, deadline=None)
def test_any_shapes_and_strides(arrays):
    a, b, c = arrays
    close(product(a, b, c), a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k"), [
    (32, 128, 128), (16, 16, 8), (128, 256, 784), (10, 256, 128), (200, 65, 300), (1, 700, 1000), (700, 1, 1000),
    (1, 1, 10_000), (16, 16, 9000), (600, 1, 1), (300, 200, 1100), (5, 64, 784), (40, 70, 2000), (520, 300, 64),
    (1100, 280, 300), (257, 1000, 301), (30, 3, 5), (9, 900, 3)])
@pytest.mark.parametrize("turned", ["nn", "nt", "tn", "tt"])
def test_larger_products(dtype, m, n, k, turned):
    a = random(m, k, dtype=dtype) if turned[0] == "n" else random(k, m, dtype=dtype).T
    b = random(k, n, dtype=dtype, seed=1) if turned[1] == "n" else random(n, k, dtype=dtype, seed=1).T
    room = np.full((m + 2, n + 9), 7, dtype)
    inside = room[1:-1, 4:-5]
    close(product(a, b, inside), a, b)
    inside[...] = 7
    assert (room == 7).all()  # nothing outside the result was written


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("m", "n", "k"), [(1024, 200, 64), (1031, 197, 67), (771, 333, 301), (1001, 77, 300)])
@pytest.mark.parametrize("columns", ["rows", "columns"])
def test_packing_of_a_left_operand_with_contiguous_columns(dtype, m, n, k, columns):
    a, b = random(k, m, dtype=dtype).T, random(k, n, dtype=dtype, seed=1)
    b = b if columns == "rows" else np.asfortranarray(b)
    made = matmul.launches([Spec.dense((m, n), b.dtype)], Spec.of(a), Spec.of(b))
    assert made[-1].words[matmul_plan.Plan.LEFT] >= 0
    close(product(a, b), a, b)
    bias, out = random(n, dtype=dtype, seed=2), np.empty((m, n), dtype)
    with_epilogue(a, b, [bias], (e.variable(0, dtype) + e.variable(1, dtype),), [out])
    close(out - bias, a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 8, 37, 77, 100, 124, 128, 132, 136, 149, 163, 200])
def test_a_right_operand_that_several_threads_pack(dtype, n, monkeypatch):
    for count in (1, 2, 5):
        monkeypatch.setattr(limits, "_limit", count)
        matmul._launches.cache_clear()
        a, b = random(1003, 196, dtype=dtype), random(n, 196, dtype=dtype, seed=1).T
        close(product(a, b), a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [2, 15, 17, 50])
@pytest.mark.parametrize("k", [3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 270])
def test_packing_of_a_right_operand_with_contiguous_columns(dtype, n, k):
    wide = random(n, k + 3, dtype=dtype, seed=1)
    for m in (3, 40):
        a, b = random(m, k, dtype=dtype), wide[:, 1:-2].T
        close(product(a, b), a, b)


@pytest.mark.parametrize("rows", [*range(1, 10), 11, 16, 17])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_large_right_operand_and_few_rows(dtype, rows):
    a, b = random(rows, 1001, dtype=dtype), random(601, 1001, dtype=dtype, seed=1).T
    assert b.nbytes > dot.FAR_BYTES
    close(product(a, b), a, b)
    few = np.ascontiguousarray(b[:, 64:130].T).T
    np.testing.assert_array_equal(product(a, b)[:, 64:130], product(a, few))


@pytest.mark.parametrize("batches", [((48,), (48,)), ((4, 3), (3,)), ((5,), ()), ((), (5,)), ((2, 1, 3), (4, 1))])
def test_batches(batches):
    a, b = (random(*batch, *matrix, seed=i) for i, (batch, matrix) in enumerate(
        zip(batches, ((64, 32), (32, 64)), strict=True)))
    close(product(a, b), a, b)
    a, b = np.swapaxes(np.swapaxes(a, -1, -2).copy(), -1, -2), np.swapaxes(np.swapaxes(b, -1, -2).copy(), -1, -2)
    close(product(a, b), a, b)


def test_repeated_elements():
    a, b = np.broadcast_to(random(1, 40), (30, 40)), np.broadcast_to(random(40, 1, seed=1), (40, 50))
    close(product(a, b), a, b)
    close(product(np.broadcast_to(np.float32(2), (3, 30, 40)), b), np.broadcast_to(np.float32(2), (3, 30, 40)), b)


@pytest.mark.parametrize("shapes", [((0, 5), (5, 3)), ((3, 5), (5, 0)), ((0, 3, 5), (5, 3)), ((3, 0), (0, 4)),
                                    ((2, 3, 0), (2, 0, 4)), ((0, 0), (0, 0))])
def test_empty_products(shapes):
    a, b = (np.empty(shape, np.float32) for shape in shapes)
    np.testing.assert_array_equal(product(a, b), a @ b)


def test_infinities_and_nan():
    a, b = random(20, 300), random(300, 40, seed=1)
    a[3, 299], a[4, 7], b[5, 39], a[6, 0] = np.inf, np.nan, -np.inf, np.inf
    for x, y in ((a, b), (a, b.T.copy().T), (a.T.copy().T, b)):
        with np.errstate(invalid="ignore"):
            want = x.astype("f8") @ y.astype("f8")
        got = product(x, y)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        np.testing.assert_array_equal(got[np.isinf(want)], want[np.isinf(want)])
    few = np.zeros((1, 300), np.float32)
    few[0, 290] = 1
    np.testing.assert_array_equal(product(few, b.T.copy().T)[0, :39], b[290, :39])
    b[0] = np.inf  # what the last vector of K repeats is not added twice
    np.testing.assert_array_equal(product(np.ones((1, 300), np.float32), b.T.copy().T)[0, :39], np.inf)


def with_epilogue(a, b, extras, epilogue, outputs):
    launch.run(matmul.launches([Spec.of(c) for c in outputs], Spec.of(a), Spec.of(b), [Spec.of(x) for x in extras],
                               epilogue), [*outputs, a, b, *extras])


SHAPES = [(5, 3, 4), (64, 128, 100), (17, 65, 40), (33, 16, 700), (16, 16, 5000), (3, 50, 400), (100, 1, 90),
          (12, 300, 0), (40, 48, 1500)]


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bias_and_activation(m, n, k, dtype):
    a, b, row, column, residual = (random(*shape, dtype=dtype, seed=i) for i, shape in enumerate(
        ((m, k), (k, n), (n,), (m, 1), (m, n))))
    p, x, y, z = (e.variable(i, dtype) for i in range(4))
    before = p + x + y
    after = e.maximum(before, 0) + z
    found = [np.full((m, n), 7, dtype) for _ in range(2)]
    with_epilogue(a, b, [row, column, residual], (before, after), found)
    want = a.astype("f8") @ b.astype("f8") + row + column
    allowed = 100 * UNIT[dtype] * (abs(a).astype("f8") @ abs(b).astype("f8") + abs(row) + abs(column) + 4)
    assert (abs(found[0] - want) <= allowed).all()
    assert (abs(found[1] - (np.maximum(want, 0) + residual)) <= allowed + 4 * UNIT[dtype] * abs(residual)).all()


@pytest.mark.parametrize(("m", "n", "k"), SHAPES)
def test_accumulation_into_the_output(m, n, k):
    a, b, c = random(m, k), random(k, n, seed=1), random(m, n, seed=2)
    want = c.astype("f8") + a.astype("f8") @ b.astype("f8")
    with_epilogue(a, b, [c], (e.variable(0, "float32") + e.variable(1, "float32"),), [c])
    np.testing.assert_allclose(c, want, rtol=1e-4, atol=1e-5 * max(1, k) ** 0.5)


def test_extras_of_other_dtypes_and_strides():
    a, b = random(3, 30, 40), random(3, 40, 50, seed=1)
    mask, scale = random(3, 30, 50, seed=2) > 0, random(50, 30, dtype="float64", seed=3).T
    p = e.variable(0, "float32")
    kept = e.select(e.variable(1, "bool"), p, 0)
    result, wide, positive = np.empty((3, 30, 50), "f4"), np.empty((3, 50, 30), "f8"), np.empty((3, 30, 50), bool)
    with_epilogue(a, b, [mask, scale], (kept, e.cast(p, "float64") * e.variable(2, "float64"), p > 0),
             [result, wide.transpose(0, 2, 1), positive])
    want = a.astype("f8") @ b.astype("f8")
    np.testing.assert_allclose(result, np.where(mask, want, 0), atol=1e-4)
    np.testing.assert_allclose(wide.transpose(0, 2, 1), want * scale, atol=1e-4)
    np.testing.assert_array_equal(positive[abs(want) > 1e-4], (want > 0)[abs(want) > 1e-4])


def test_strided_outputs():
    a, b = random(30, 40), random(40, 50, seed=1)
    for make in (lambda: np.empty((50, 30), "f4").T, lambda: np.empty((30, 100), "f4")[:, ::2],
                 lambda: np.empty((30, 50), "f4")[::-1, ::-1], lambda: np.empty((100, 60), "f4").T[::2, ::2],
                 lambda: np.empty((1, 50), "f4")):
        c = make()
        close(product(a[:len(c)], b, c), a[:len(c)], b)


def test_an_expensive_epilogue_of_a_transposed_product():
    a, b, bias = random(70, 90), random(90, 60, seed=1), random(60, seed=2)
    x = e.variable(0, "float32") + e.variable(1, "float32")
    out = np.empty((60, 70), np.float32).T
    with_epilogue(a, b, [bias], (e.tanh(x) * e.sigmoid(x),), [out])
    want = a.astype("f8") @ b.astype("f8") + bias
    np.testing.assert_allclose(out, np.tanh(want) / (1 + np.exp(-want)), atol=2e-5)


def test_any_number_of_threads_gives_the_same(monkeypatch):
    for m, n, k in ((300, 200, 700), (16, 16, 20_000), (1, 3000, 2000), (40, 1000, 60)):
        a, b, bias = random(m, k), random(k, n, seed=1), random(n, seed=2)
        epilogue = (e.exp(e.variable(0, "float32") * 0.01) + e.variable(1, "float32"),)
        found = []
        for count in (1, 2, 3, 7):
            monkeypatch.setattr(limits, "_limit", count)
            matmul._launches.cache_clear()
            out = np.empty((m, n), np.float32)
            with_epilogue(a, b, [bias], epilogue, [out])
            found.append((product(a, b), product(a, b.T.copy().T), out))
        for other in found[1:]:
            for x, y in zip(found[0], other, strict=True):
                np.testing.assert_array_equal(x, y)


def test_plans_do_not_depend_on_sizes_that_code_must_know():
    from flambeau.runtime import compilation

    product(random(30, 40), random(40, 50))
    product(random(1, 400), random(50, 400).T)
    count = len(compilation._loaded)
    for m, n, k in ((1, 5, 9), (64, 64, 64), (33, 1, 100), (100, 100, 600)):
        product(random(m, k), random(k, n))
        product(random(k, m).T, random(n, k).T)
    assert len(compilation._loaded) <= count + 1  # and the epilogue that stores sums along K


@pytest.mark.parametrize(("case", "error"), [
    (lambda f: f([(3, 5)], (3, 4), (4, 6)), "output of shape"), (lambda f: f([(3, 5)], (3, 4), (5, 5)), "matrices"),
    (lambda f: f([(3, 5)], (4,), (4, 5)), "matrices"), (lambda f: f([(3, 5)] * 2, (3, 4), (4, 5)), "one output"),
    (lambda f: f([(2, 3, 5)], (2, 3, 4), (3, 4, 5)), "broadcast")])
def test_mismatched_shapes(case, error):
    def make(outputs, a, b):
        specs = [Spec.dense(shape, np.dtype(np.float32)) for shape in (*outputs, a, b)]
        return matmul.launches(specs[:-2], *specs[-2:])

    with pytest.raises(ValueError, match=error):
        case(make)


def test_other_invalid_arguments():
    a, b, c = (Spec.of(random(4, 4)) for _ in range(3))
    p = e.variable(0, "float32")
    with pytest.raises(TypeError, match="float64"):
        matmul.launches([c], a, Spec.of(random(4, 4, dtype="float64")))
    with pytest.raises(TypeError, match="int32"):
        whole = Spec.of(np.ones((4, 4), np.int32))
        matmul.launches([whole], whole, whole)
    with pytest.raises(TypeError, match="output"):
        matmul.launches([Spec.of(np.ones((4, 4)))], a, b)
    with pytest.raises(TypeError, match="extras"):
        matmul.launches([c], a, b, [], (p + e.variable(1, "float32"),))
    with pytest.raises(ValueError, match="2 expressions"):
        matmul.launches([c], a, b, [], (p, p + 1))
    with pytest.raises(ValueError, match="extra of shape"):
        matmul.launches([c], a, b, [Spec.of(random(5, 4, 4))], (p + e.variable(1, "float32"),))
    with pytest.raises(ValueError, match="share memory"):
        matmul.launches([Spec.of(np.broadcast_to(np.float32(1), (4, 4)))], a, b)


def test_the_error_is_that_of_blocked_summation():
    """The RMS error, compared with that of NumPy's BLAS."""
    a, b = random(64, 4000), random(4000, 64, seed=1)
    want = a.astype("f8") @ b.astype("f8")
    this = target.host()
    # without fma, products are rounded, too
    roundings = 1.2 if "+fma" in this.features or this.triple.startswith(("aarch64", "arm64")) else 2
    for x, y in ((a, b), (a[:2], b.T.copy().T)):
        error = np.sqrt(np.mean((product(x, y) - want[:len(x)]) ** 2))
        assert error < roundings * np.sqrt(np.mean(((x @ y) - want[:len(x)]) ** 2)) + 1e-7


PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from test_matmul import *
for dtype in ("float32", "float64"):
    for m, n, k in ((1, 1, 1), (3, 5, 7), (16, 48, 64), (33, 65, 300), (130, 17, 33), (2, 90, 500), (16, 16, 5000)):
        for x in (random(m, k, dtype=dtype), random(k, m, dtype=dtype).T):
            for y in (random(k, n, dtype=dtype, seed=1), random(n, k, dtype=dtype, seed=1).T):
                close(product(x, y), x, y)
                close(product(x, y, np.empty((n, m), dtype).T), x, y)
    test_bias_and_activation(17, 65, 300, dtype)
    test_larger_products(dtype, 40, 70, 600, "nn")
test_accumulation_into_the_output(33, 16, 700)
test_infinities_and_nan()
print("fine")
"""


@pytest.mark.parametrize("width", ["128", "256"])
def test_narrower_vectors(width, tmp_path):
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(folder=os.path.dirname(__file__))],
                          capture_output=True, text=True, timeout=120,
                          env=os.environ | {"FLAMBEAU_CACHE_DIR": str(tmp_path), "FLAMBEAU_JIT_WIDTH": width})
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("n", [1024, 1008, 1000, 512, 340, 272, 200])
@pytest.mark.parametrize("m", [64, 256, 320])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_columns_are_shared_between_several_threads(m, n, count, monkeypatch):
    monkeypatch.setattr(limits, "_limit", count)
    matmul._launches.cache_clear()
    a, b = random(m, 300), random(300, n, seed=1)
    words = matmul.launches([Spec.dense((m, n), b.dtype)], Spec.of(a), Spec.of(b))[-1].words
    plan = matmul_plan.Plan
    assert words[plan.ITEMS] == words[plan.COLUMN_REGIONS] * words[plan.ROW_REGIONS]
    assert 1 <= words[plan.COLUMN_REGIONS] <= words[plan.ALL_VECTORS]
    close(product(a, b), a, b)
    matmul._launches.cache_clear()


@pytest.mark.parametrize(("n", "k", "lies"), [(128, 128, True), (200, 300, True), (1000, 1000, True),
                                              (256, 128, False), (1024, 100, False), (1500, 1500, False)])
def test_avx512_reads_a_small_right_operand_in_place(n, k, lies):
    a, b = random(96, k), random(k, n, seed=1)
    # the first launch reads B: it is the only one, or packs B for the product
    words = matmul.launches([Spec.dense((96, n), b.dtype)], Spec.of(a), Spec.of(b))[0].words
    whole_lines = target.host().vector_bits == 512
    assert (words[matmul_plan.Plan.LAYOUT] == matmul_plan.RightLayout.IN_PLACE) == (lies and whole_lines)
    close(product(a, b), a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m", [1, 2, 5, 16, 33])
@pytest.mark.parametrize(("k", "n"), [(256, 96), (70, 513), (300, 64), (1024, 40), (33, 1)])
@pytest.mark.parametrize("transposed", [False, True])
def test_many_products_with_a_matrix_that_is_packed_once(dtype, m, k, n, transposed):
    b = random(n, k, dtype=dtype, seed=1).T if transposed else random(k, n, dtype=dtype, seed=1)
    steps = 5
    left, results = random(steps, m, k, dtype=dtype), np.zeros((steps, m, n), dtype)
    found = matmul.launches([Spec.of(results[0])], Spec.of(left[0]), Spec.of(b), constant=(False, True), repeated=True)
    memory, scratch = launch.allocate_aligned(max(each.scratch for each in found))
    pointers = [(base, 0) for base in range(4)]
    strides = [results.strides[0], left.strides[0], 0, 0]
    addresses = [results.ctypes.data, left.ctypes.data, b.ctypes.data, scratch]
    for packs, count in ((True, 1), (False, steps)):
        launches = [(each, pointers) for each in found if (each.preparation is not None) is packs]
        RepeatedLaunches(launches, strides).run(addresses, count)
    for x, result in zip(left, results, strict=True):
        close(result, x, b)
    del memory
