from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flambeau as torch
from flambeau import dtypes
from flambeau.codegen.rows import rows
from flambeau.codegen.rows import schedule as rows_schedule
from flambeau.codegen.rows import softmax as rows_softmax
from flambeau.codegen.rows.rows import Rows
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.codegen.scalar.reduction_ops import result_dtype
from flambeau.dtypes import BFLOAT16
from flambeau.kernels import threads as limits
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec

from . import evaluator


def random(*shape, dtype="float32", seed=0):
    return dtypes.cast(np.random.default_rng(seed).standard_normal(shape).astype("float32"), np.dtype(dtype))


def f32(count, first=0):
    return [e.variable(first + i, "float32") for i in range(count)]


def outputs(work, shape, inner, dtype=None):
    """Contiguous arrays for the results."""
    split = len(shape) - inner
    sums = (*work.column_sums, *work.totals, *work.row_totals)
    kinds = [x.dtype for x in (*work.elementwise, *work.per_row)] + [result_dtype("sum", x) for x in sums]
    shapes = ([shape] * len(work.elementwise) + [shape[:split]] * len(work.per_row)
              + [shape[split:]] * len(work.column_sums) + [()] * (len(work.totals) + len(work.row_totals)))
    return [np.full(each, 7).astype(kind) if kind != BFLOAT16 else np.zeros(each, kind)
            for each, kind in zip(shapes, kinds, strict=True)]


def run(work, inputs, inner, outs=None):
    shape = np.broadcast_shapes(*(x.shape for x in inputs))
    outs = outputs(work, shape, inner) if outs is None else outs
    launch.run(rows.launches(work, [Spec.of(x) for x in outs], [Spec.of(x) for x in inputs], inner), [*outs, *inputs])
    return outs


def check(work, inputs, inner, rtol=2e-6, atol=2e-6, outs=None):
    """Compare all results with NumPy's in float64; `atol` is a fraction of each one's largest.

    Sums of many numbers of size 1 may cancel: they are rounded to what lay in between.
    """
    got = run(work, inputs, inner, outs)
    size = int(np.prod(np.broadcast_shapes(*(x.shape for x in inputs))))
    for found, want in zip(got, evaluator.rows(work, inputs, inner), strict=True):
        assert found.shape == want.shape
        if found.dtype.kind in "biu":
            np.testing.assert_array_equal(found, want)
            continue
        scale = np.abs(want[np.isfinite(want)]).max(initial=0)
        between = 2e-7 * (size / found.size) ** 0.5 if 0 < found.size < size else 0.0
        np.testing.assert_allclose(evaluator.widen(found), want, rtol, atol * scale + between)
    return got


def softmax(first=0, count=1):
    x = e.variable(first, "float32")
    most, total = f32(2, count)
    return Rows(stages=((("max", x),), (("sum", e.exp(x - most)),)), elementwise=(e.exp(x - most) / total,),
                per_row=(most + e.log(total),))


def cross_entropy():
    """Log-softmax and its gradient against targets: x, positions, targets."""
    x, place, target = e.variable(0, "float32"), e.variable(1, "int64"), e.variable(2, "int64")
    most, picked, total = f32(3, 3)
    hot = e.eq(place, target)
    return Rows(stages=((("max", x), ("sum", e.select(hot, x, 0.0))), (("sum", e.exp(x - most)),)),
                elementwise=(e.exp(x - most - e.log(total)) - e.select(hot, e.constant(1.0, "float32"), 0.0),),
                row_totals=(most + e.log(total) - picked,))


def layer_norm():
    """Forward, and backward with column sums: x, weight, bias, gradient."""
    x, weight, bias, g = f32(4)
    mean, variance, one, other = f32(4, 4)
    inverse = e.rsqrt(variance + 1e-5)
    normal = (x - mean) * inverse
    return Rows(stages=((("mean", x),), (("mean", (x - mean) * (x - mean)),),
                        (("mean", g * weight), ("mean", g * weight * normal))),
                elementwise=(normal * weight + bias, (g * weight - one - normal * other) * inverse),
                per_row=(mean, inverse), column_sums=(g * normal, g))


SHAPES = [(1, 1), (1, 7), (4, 10), (128, 10), (37, 65), (5, 1000), (64, 64), (100, 3), (1000, 17), (300, 300),
          (2, 5000), (3, 40_000), (40, 2100), (1, 100_000), (20_000, 4), (17, 20_000)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_softmax(shape, turned):
    x = random(*shape[::-1]).T if turned else random(*shape)
    check(softmax(), [x], 1)
    outs = [np.zeros(shape[::-1], np.float32).T, np.zeros(shape[0], np.float32)]
    check(softmax(), [x], 1, outs=outs)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_cross_entropy_forward_and_backward(shape):
    target = np.random.default_rng(1).integers(0, shape[1], (shape[0], 1))
    check(cross_entropy(), [random(*shape), np.arange(shape[1]), target], 1)


@pytest.mark.parametrize("shape", [(129, 1024), (200, 1030), (130, 2048)])
def test_softmax_of_columns_whose_lines_displace_each_other(shape):
    x = random(*shape)
    exact = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(torch.from_numpy(x).softmax(0).numpy(), exact / exact.sum(0), rtol=2e-6)
    padded = np.zeros((shape[0], shape[1] + 16), np.float32)  # rows another distance apart: the same bits
    padded[:, :-16] = x
    np.testing.assert_array_equal(torch.from_numpy(padded)[:, :-16].softmax(0).numpy(),
                                  torch.from_numpy(x).softmax(0).numpy())


def test_exponentials_of_log_softmax_are_those_of_the_sum():
    x, most, total = f32(3)
    powers = (("max", x),), (("sum", e.exp(x - most)),)
    log_total = e.log(total)
    for logarithm in (x - most - log_total, x - (most + log_total), x - (log_total + most)):
        work = Rows(stages=powers, elementwise=(e.exp(logarithm),))
        loops = rows_schedule.schedule(rows_softmax.share_exponentials(work, 1), [False], [0], True).loops
        assert [node.op for node in e.topological_order(loops[-1].expressions)].count("exp") == 0
        check(work, [random(40, 300) * 30], 1)
        check(work, [random(40, 5)], 1)
    # an exponential that may overflow stays as it is
    other = Rows(stages=((("sum", e.exp(x)),),), elementwise=(e.exp(x - e.log(most)),))
    assert rows_softmax.share_exponentials(other, 1) is other


@pytest.mark.parametrize("shape", [*SHAPES, (12, 64, 128), (6, 5, 33)], ids=str)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
def test_layer_norm_forward_and_backward(shape, turned):
    x, g = (random(*shape, seed=i) for i in range(2))
    if turned:
        x, g = (np.ascontiguousarray(each.swapaxes(0, -1)).swapaxes(0, -1) for each in (x, g))
    atol = 2e-5 if shape[-1] > 8 else 1e-3  # gradients of few elements cancel almost entirely
    check(layer_norm(), [x + 3, random(shape[-1], seed=2), random(shape[-1], seed=3), g], 1, rtol=2e-5, atol=atol)


@pytest.mark.parametrize("shape", [(3, 8, 7, 7), (16, 24, 7, 9), (2, 5, 40, 50), (40, 3, 28, 28)], ids=str)
@pytest.mark.parametrize("last", [False, True], ids=["", "channels last"])
def test_batch_norm(shape, last):
    x = random(*shape)
    if last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    channels_first = x.transpose(1, 0, 2, 3)
    v = e.variable(0, "float32")
    weight, mean, square = f32(3, 1)
    work = Rows(stages=((("mean", v),), (("mean", (v - mean) * (v - mean)),)),
                elementwise=((v - mean) * e.rsqrt(square + 1e-5) * weight,), per_row=(mean, square))
    out = np.zeros(shape, np.float32).transpose(1, 0, 2, 3)
    outs = [out, *(np.zeros(shape[1], np.float32) for _ in range(2))]
    check(work, [channels_first, random(shape[1], 1, 1, 1, seed=1)], 3, rtol=1e-5, atol=1e-5, outs=outs)


@pytest.mark.parametrize("n", [1, 100, 4097, 1_000_003])
def test_full_reductions(n):
    [x] = f32(1)
    t, s = e.tanh(x), e.sigmoid(x)
    work = Rows(totals=(t * e.exp(x) + 2.0 * s - 1.0,), elementwise=(e.exp(x) * (1.0 - t * t + t) + s * (1.0 - s),))
    check(work, [random(n)], 0)


def test_full_reductions_of_a_strided_array():
    x, row = f32(2)
    work = Rows(totals=(x * row,), elementwise=(x + row,))
    check(work, [random(300, 80)[:, ::2], random(40, seed=1)], 1)
    check(work, [random(900, 700)[:, :300], random(300, seed=1)], 2)


@pytest.mark.parametrize("shape", [(7, 40), (4096, 6), (50, 300), (3, 70_000)])
def test_column_sums_alone(shape):
    x, g = f32(2)
    work = Rows(elementwise=(e.select(x > 0.0, g, 0.0),), column_sums=(e.select(x > 0.0, g, 0.0), x))
    check(work, [random(*shape), random(*shape, seed=1)], 1)


def test_per_row_results_alone():
    a, b = f32(2)
    work = Rows(per_row=(a + b,), row_totals=(a * b,))
    check(work, [random(50, 1), random(50, 1, seed=1)], 1)


@pytest.mark.parametrize("shape", [(50, 6), (30, 40), (5, 300), (2, 9000), (300, 3)])
def test_every_reduction(shape):
    x, i = e.variable(0, "float32"), e.variable(1, "int32")
    ops = [("sum", x), ("mean", x), ("prod", e.tanh(x) * 0.1 + 1.0), ("max", x), ("min", x), ("any", x > 2.0),
           ("all", x > -3.0), ("argmax", x), ("argmin", i), ("sum", i), ("max", i), ("min", i), ("max", x > 2.0)]
    made = [e.variable(2 + k, rows.term_dtype(op, node)) for k, (op, node) in enumerate(ops)]
    work = Rows(stages=(tuple(ops),), per_row=tuple(made))
    inputs = [random(*shape), np.random.default_rng(0).integers(-9, 9, shape).astype("int32")]
    check(work, inputs, 1, rtol=1e-5)
    check(work, [np.asfortranarray(each) for each in inputs], 1, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["float64", "float16", BFLOAT16], ids=str)
@pytest.mark.parametrize("shape", [(40, 6), (30, 100), (2, 8000)])
def test_other_floats(dtype, shape):
    x = e.variable(0, dtype)
    wide = e.to_opmath(x)
    kind = rows.term_dtype("max", x)
    most, total = (e.variable(1 + i, kind) for i in range(2))
    work = Rows(stages=((("max", x),), (("sum", e.exp(wide - most)),)),
                elementwise=(e.cast(e.exp(wide - most) / total, dtype),), per_row=(e.cast(most, dtype), total),
                column_sums=(x,), totals=(x,), row_totals=(most,))
    rtol = {"float64": 1e-12, "float16": 1e-3}.get(str(dtype), 8e-3)
    for inputs in ([random(*shape, dtype=dtype)], [random(*shape[::-1], dtype=dtype).T]):
        check(work, inputs, 1, rtol=rtol, atol=rtol)


def test_integers_and_bools_of_each_element():
    x, i = e.variable(0, "float32"), e.variable(1, "int64")
    most, where = e.variable(2, "float32"), e.variable(3, "int64")
    work = Rows(stages=((("max", x), ("argmax", x)),), elementwise=(e.eq(x, most), i - where),
                column_sums=(e.cast(x > 0.0, "int64"),), totals=(x > 0.0,))
    for shape in ((30, 40), (200, 5), (3, 9000)):
        check(work, [random(*shape), np.arange(shape[1])], 1)


@given(st.data())
@settings(max_examples=25, deadline=None)
def test_any_strides(data):
    full = data.draw(st.lists(st.sampled_from([1, 2, 3, 5, 17, 33]), min_size=1, max_size=4), label="shape")
    inner = data.draw(st.integers(0, len(full)), label="inner")
    arrays = []
    for seed in range(3):
        shape = [1 if data.draw(st.integers(0, 3)) == 0 else extent for extent in full]
        if seed == 0:
            shape = full
        order = data.draw(st.permutations(range(len(shape))))
        steps = [data.draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
        base = random(*(shape[dim] * abs(steps[dim]) for dim in order), seed=seed)
        arrays.append(base.transpose(np.argsort(order))[(*(slice(None, None, step) for step in steps), ...)])
    x, y, z = f32(3)
    most, total = f32(2, 3)
    work = Rows(stages=((("max", x * y),), (("sum", e.exp(x * y - most)),)),
                elementwise=(e.exp(x * y - most) / total + z,), per_row=(most,), column_sums=(x * z,),
                totals=(y + z,), row_totals=(most,))
    out = np.zeros(full[::-1], np.float32).T
    rest = outputs(work, tuple(full), inner)[1:]
    check(work, arrays, inner, rtol=2e-5, atol=2e-5, outs=[out, *rest])


def test_no_writes_outside_the_outputs():
    for shape in ((5, 33), (33, 5), (2, 4000)):
        memory = np.full((shape[0] + 2, shape[1] + 40), 7, np.float32)
        out = memory[1:-1, 20:20 + shape[1]]
        x = random(*shape)
        check(softmax(), [x], 1, outs=[out, np.zeros(shape[0], np.float32)])
        out[...] = 7
        assert (memory == 7).all()


@pytest.mark.parametrize("shape", [(40, 50), (50, 6), (4, 9000)])
def test_output_aliases_input(shape):
    assert rows.in_place(softmax(), 1) == (True,)
    assert rows.in_place(layer_norm(), 4) == (False, True)
    x = random(*shape)
    [want, most] = run(softmax(), [x], 1)
    run(softmax(), [x], 1, outs=[x, most])
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("shape", [(6, 40), (40, 6), (2, 9000)])
def test_infinities_and_nan(shape):
    x = random(*shape)
    x[0, :] = -np.inf
    x[1, 3], x[1, 4] = -np.inf, 1000
    if shape[0] > 2:
        x[2, 1], x[3, 2], x[3, 3] = np.nan, np.inf, -np.inf
    out, _ = run(softmax(), [x], 1)
    with np.errstate(invalid="ignore"):
        powers = np.exp(x.astype("float64") - x.max(1, keepdims=True))
        want = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(out, want, rtol=2e-6)


def test_empty_arrays():
    x = e.variable(0, "float32")
    total, average = f32(2, 1)
    work = Rows(stages=((("sum", x), ("mean", x)),), elementwise=(x - total,), per_row=(total, average),
                column_sums=(x,), totals=(x,), row_totals=(total,))
    _, sums, means, columns, everything, of_rows = run(work, [np.zeros((3, 0), np.float32)], 1)
    assert (sums == 0).all()
    assert not np.signbit(sums).any()
    assert np.isnan(means).all()
    assert columns.size == 0
    assert everything == of_rows == 0
    _, _, _, columns, everything, of_rows = run(work, [np.zeros((0, 5), np.float32)], 1)
    assert (columns == 0).all()
    assert everything == of_rows == 0
    with pytest.raises(ValueError, match="no elements"):
        run(softmax(), [np.zeros((3, 0), np.float32)], 1)
    nothing = Spec.dense((0, 3), e.FLOAT32)
    assert rows.launches(softmax(), [nothing, Spec.dense((0,), e.FLOAT32)], [nothing], 1) == []


@pytest.mark.parametrize("shape", [(4096, 300), (300, 4096), (5, 300_000), (100_000, 10)])
def test_results_do_not_depend_on_the_threads(shape, monkeypatch):
    x, g = (random(*shape, seed=i) for i in range(2))
    weight, bias = (random(shape[1], seed=i) for i in (2, 3))
    found = set()
    for count in (1, 2, 3):
        monkeypatch.setattr(limits, "_limit", count)
        for _ in range(2):
            found.add(b"".join(each.tobytes() for each in run(layer_norm(), [x, weight, bias, g], 1)))
    assert len(found) == 1


@pytest.mark.parametrize("shape", [(1 << 18, 4), (4, 1 << 18), (1 << 10, 1 << 10), (1 << 20, 1)])
def test_errors_grow_no_faster_than_numpys(shape):
    x = np.random.default_rng(1).random(shape).astype("float32")
    v, total = f32(2)
    work = Rows(stages=((("sum", v),),), per_row=(total,), column_sums=(v,), totals=(v,), row_totals=(total,))
    exact = x.astype("float64")
    got = run(work, [x], 1)
    for ours, want, numpys in zip(got, (exact.sum(1), exact.sum(0), exact.sum(), exact.sum()),
                                  (x.sum(1), np.ascontiguousarray(x.T).sum(1), x.sum(), x.sum()), strict=True):
        assert np.abs(ours - want).max() <= 2 * np.abs(numpys - want).max() + 1e-7 * np.abs(want).max()


def test_invalid_arguments_raise():
    x, most, total = f32(3)
    spec, row = Spec.dense((4, 5), e.FLOAT32), Spec.dense((4,), e.FLOAT32)
    with pytest.raises(ValueError, match="results into"):
        rows.launches(softmax(), [spec], [spec], 1)
    with pytest.raises(ValueError, match="for elements of shape"):
        rows.launches(Rows(elementwise=(x, x)), [spec, row], [spec], 1)
    with pytest.raises(ValueError, match="which should be"):
        rows.launches(softmax(), [spec, Spec.dense((5,), e.FLOAT32)], [spec], 1)
    with pytest.raises(TypeError, match="an output of bool"):
        rows.launches(softmax(), [spec, Spec.dense((4,), e.BOOL)], [spec], 1)
    with pytest.raises(ValueError, match="rows of 3 dimensions"):
        rows.launches(softmax(), [spec, row], [spec], 3)
    with pytest.raises(ValueError, match="of its own or of a later stage"):
        rows.launches(Rows(stages=((("max", x - most),),)), [], [spec], 1)
    with pytest.raises(ValueError, match="depends on a row"):
        rows.launches(Rows(per_row=(x,)), [row], [spec], 1)
    with pytest.raises(TypeError, match="x2"):
        rows.launches(Rows(stages=((("max", x),),), per_row=(total,)), [row], [spec], 1)
    with pytest.raises(TypeError, match="float64"):
        rows.launches(Rows(stages=((("max", x),),), per_row=(e.variable(1, "float64"),)), [row], [spec], 1)
    with pytest.raises(TypeError, match="unknown"):
        rows.launches(Rows(stages=((("median", x),),)), [], [spec], 1)


def test_expressions_of_any_depth():
    x, total = f32(2)
    deep = x
    for i in range(3000):
        deep = deep * 0.5 + x if i % 2 else deep + 0.25
    made = rows_schedule.schedule(Rows(stages=((("sum", deep),),), elementwise=(deep / total,)), [False], [0], True)
    assert len(made.buffers) == 1


def test_outputs_with_dimensions_of_extent_one():
    x = random(6, 70)
    outs = [np.zeros((6, 70), np.float32), np.zeros((6, 1), np.float32)]
    run(softmax(), [x], 1, outs)
    np.testing.assert_array_equal(outs[1][:, 0], run(softmax(), [x], 1)[1])


@pytest.mark.parametrize("width", ["128", "256"])
def test_narrower_vectors(width, tmp_path):
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.codegen import test_rows as t
for shape in ((130, 10), (3, 20_000)):
    for turned in (False, True):
        t.test_softmax(shape, turned)
    t.test_layer_norm_forward_and_backward(shape, False)
t.test_every_reduction((50, 6))
t.test_other_floats("float64", (30, 100))
t.test_other_floats("float16", (40, 6))
"""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    done = subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True, timeout=120,
                          env=os.environ | {"FLAMBEAU_JIT_WIDTH": width, "FLAMBEAU_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
