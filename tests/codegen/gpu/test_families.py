"""Families of GPU kernels, emulated against NumPy, and assembled."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu import elementwise
from flambeau.codegen.gpu.emulation import emulator
from flambeau.codegen.gpu.rows import reduction, rows
from flambeau.codegen.rows.schedule import Rows
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.dtypes import BFLOAT16, to_bfloat16, widen
from flambeau.runtime.launch import Spec
from tests.codegen.gpu.assembling import assemble, kernels_of

RANDOM = np.random.default_rng(0)
made = []  # all launches of this module, which the last test assembles


def run(launches, outs, ins):
    made.extend(launches)
    emulator.run_launches(launches, [*outs, *ins])
    return outs[0] if len(outs) == 1 else outs


def specs(arrays):
    return [Spec.of(each) for each in arrays]


# ----- elementwise -----

@pytest.mark.parametrize("shapes", [[(1000,)], [(33, 64), (64,)], [(5, 1, 7), (4, 1)], [(3, 8, 128), (8, 1), ()], [()]])
def test_broadcasting(shapes):
    arrays = [RANDOM.standard_normal(shape).astype("f4") for shape in shapes]
    shape = np.broadcast_shapes(*shapes)
    total = sum((e.variable(i, "float32") for i in range(1, len(arrays))), e.variable(0, "float32") * 2)
    out = np.full(shape, np.nan, "f4")
    ins = [np.broadcast_to(each, shape) for each in arrays]
    run(elementwise.launches([total], [Spec.of(out)], specs(arrays)), [out], arrays)
    expected = ins[0] * np.float32(2)
    for each in ins[1:]:
        expected = expected + each
    np.testing.assert_array_equal(out, expected)


def test_permuted_and_reversed_and_sliced_operands():
    x, y = RANDOM.standard_normal((6, 40, 8)), RANDOM.standard_normal((40, 6, 17))
    a, b = x.transpose(1, 0, 2)[::-1], y[:, :, 1::2]
    out = np.zeros((40, 6, 9))[:, :, :8]
    run(elementwise.launches([e.variable(0, "float64") - e.variable(1, "float64")], [Spec.of(out)], specs([a, b])),
        [out], [a, b])
    np.testing.assert_array_equal(out, a - b)


def test_a_vector_access_needs_alignment():
    x = np.arange(65, dtype="f4")
    [one] = elementwise.launches([e.variable(0, "float32") + 1], [Spec.dense((64,), x.dtype)], [Spec.dense((64,),
                                                                                                          x.dtype)])
    assert one.unaligned is not None
    assert one.grid == (1, 1, 1)
    out = np.zeros(64, "f4")
    run([one], [out], [x[:64]])
    np.testing.assert_array_equal(out, x[:64] + 1)


def test_outputs_of_several_dtypes_and_narrow_floats():
    x = RANDOM.standard_normal((3, 24)).astype("f4")
    half, narrow = x.astype("f2"), to_bfloat16(x)
    a, b = e.variable(0, "float16"), e.variable(1, BFLOAT16)
    outs = [np.zeros((3, 24), "f2"), np.zeros((3, 24), BFLOAT16), np.zeros((3, 24), bool), np.zeros((3, 24), "i8")]
    nodes = [e.cast(a * b, "float16"), e.cast(e.exp(b), BFLOAT16), a < b, e.cast(a * 10, "int64")]
    run(elementwise.launches(nodes, specs(outs), specs([half, narrow])), outs, [half, narrow])
    wide = widen(narrow)
    np.testing.assert_array_equal(outs[0], (half.astype("f4") * wide).astype("f2"))
    np.testing.assert_allclose(widen(outs[1]), np.exp(wide), rtol=2**-7)
    np.testing.assert_array_equal(outs[2], half < wide)
    np.testing.assert_array_equal(outs[3], (half.astype("f4") * 10).astype("i8"))


# ----- reductions -----

@pytest.mark.parametrize("op", ["sum", "mean", "prod", "max", "min", "any", "all", "argmax", "argmin"])
@pytest.mark.parametrize(("shape", "axes"), [((37, 20), 1), ((37, 20), 0), ((5, 6, 7), (0, 2)), ((4, 700), 1),
                                             ((9,), 0), ((300, 24), 0)])
def test_reductions(op, shape, axes):
    x = RANDOM.integers(0, 2, shape).astype(bool) if op in ("any", "all") else RANDOM.uniform(0.5, 1.5, shape)
    if op.startswith("arg") and not isinstance(axes, int):
        axes = 1  # NumPy has no argmax over several axes
    expected = getattr(np, op)(x, axes)
    out = np.empty(expected.shape, expected.dtype)
    run(reduction.launches([(op, e.variable(0, x.dtype))], [Spec.of(out)], [Spec.of(x)], axes), [out], [x])
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_few_long_rows_are_divided_between_blocks():
    x = RANDOM.standard_normal((2, 50_000))
    outs = [np.empty(2), np.empty(2, "i8")]
    launches = reduction.launches([("sum", e.variable(0, "float64")), ("argmax", e.variable(0, "float64"))],
                                  specs(outs), [Spec.of(x)], 1)
    assert [each.kernel.family for each in launches] == ["reduce_pieces", "merge_pieces"]
    assert launches[0].grid[0] > 2
    run(launches, outs, [x])
    np.testing.assert_allclose(outs[0], x.sum(1), rtol=1e-12)
    np.testing.assert_array_equal(outs[1], x.argmax(1))


def test_elementwise_results_and_stages_of_few_long_rows():
    x = RANDOM.standard_normal((2, 40_000)).astype("f4")
    v, most, total = (e.variable(i, "float32") for i in range(3))
    softmax = Rows(stages=((("max", v),), (("sum", e.exp(v - most)),)), elementwise=(e.exp(v - most) / total,),
                   per_row=(most + e.log(total),))
    loss = Rows(stages=((("sum", v * v),),), elementwise=(v * 2,), per_row=(e.variable(1, "float32") / 3,))
    for operation, kernels, expected in (
            (softmax, 5, (softmax_of(x), x.max(1) + np.log(np.exp(x - x.max(1, keepdims=True)).sum(1)))),
            (loss, 2, (x * 2, (x * x).sum(1) / 3))):
        outs = [np.empty_like(x), np.empty(2, "f4")]
        launches = rows.launches(operation, specs(outs), [Spec.of(x)], 1)
        assert len(launches) == kernels
        assert max(each.grid[0] for each in launches) == 10
        run(launches, outs, [x])
        for a, b in zip(outs, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5)


def test_values_of_rows_that_loops_over_their_elements_read():
    x, scale = RANDOM.standard_normal((70, 20_000)).astype("f4"), RANDOM.uniform(1, 2, (70, 1)).astype("f4")
    v, factor, total = (e.variable(i, "float32") for i in range(3))
    operation = Rows(stages=((("sum", v * factor),),), elementwise=(v * factor - total,), per_row=(total * factor,))
    outs = [np.empty_like(x), np.empty(70, "f4")]
    run(rows.launches(operation, specs(outs), specs([x, scale]), 1), outs, [x, scale])
    sums = (x * scale).sum(1, keepdims=True)
    np.testing.assert_allclose(outs[0], x * scale - sums, atol=2e-3)
    np.testing.assert_allclose(outs[1], (sums * scale)[:, 0], atol=2e-3)


def test_nan_propagates_and_the_first_extremum_is_found():
    x = np.array([[1.0, np.nan, 3, np.nan], [2, 2, 1, 1]])
    outs = [np.empty(2), np.empty(2, "i8"), np.empty(2, "i8")]
    v = e.variable(0, "float64")
    run(reduction.launches([("max", v), ("argmax", v), ("argmin", v)], specs(outs), [Spec.of(x)], 1), outs, [x])
    np.testing.assert_array_equal(outs[0], [np.nan, 2])
    np.testing.assert_array_equal(outs[1], [1, 0])
    np.testing.assert_array_equal(outs[2], [1, 2])


# ----- rows -----

def softmax_of(x):
    shifted = np.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", [(7, 10), (300, 33), (3, 2000), (2, 20_000), (5, 1)])
def test_softmax(shape):
    x = RANDOM.standard_normal(shape)
    v, most, total = (e.variable(i, "float64") for i in range(3))
    made_of = Rows(((("max", v),), (("sum", e.exp(v - most)),)), (e.exp(v - most) / total,))
    out = np.empty(shape)
    run(rows.launches(made_of, [Spec.of(out)], [Spec.of(x)], 1), [out], [x])
    np.testing.assert_allclose(out, softmax_of(x), rtol=1e-12)


@pytest.mark.parametrize("shape", [(6, 12), (500, 40), (40, 600), (3, 17_000)])
def test_layer_norm_and_its_gradient(shape):
    """The statistics of the rows; sums over the columns for weight and bias; a total."""
    n = shape[1]
    x, g, w = RANDOM.standard_normal(shape), RANDOM.standard_normal(shape), RANDOM.standard_normal(n)
    xv, gv, wv, mean, variance, a, b = (e.variable(i, "float64") for i in range(7))
    scale = e.rsqrt(variance + 1e-5)
    normal = (xv - mean) * scale
    made_of = Rows(((("mean", xv),), (("mean", (xv - mean) * (xv - mean)),),
                    (("mean", gv * wv), ("mean", gv * wv * normal))),
                   ((gv * wv - a - normal * b) * scale,), (mean, scale), (gv * normal, gv), (gv * gv,), (mean,))
    outs = [np.empty(each) for each in (shape, shape[0], shape[0], n, n, (), ())]
    run(rows.launches(made_of, specs(outs), specs([x, g, w]), 1), outs, [x, g, w])
    m, v = x.mean(1, keepdims=True), x.var(1, keepdims=True)
    s = 1 / np.sqrt(v + 1e-5)
    h, gw = (x - m) * s, g * w
    expected = [(gw - gw.mean(1, keepdims=True) - h * (gw * h).mean(1, keepdims=True)) * s, m[:, 0], s[:, 0],
                (g * h).sum(0), g.sum(0), (g * g).sum(), m.sum()]
    for out, each in zip(outs, expected, strict=True):
        np.testing.assert_allclose(out, each, rtol=1e-9, atol=1e-9)


def test_results_that_do_not_depend_on_rows_are_flat():
    x = RANDOM.standard_normal((3, 5, 1000))
    v = e.variable(0, "float64")
    outs = [np.empty_like(x), np.empty(())]
    view = x.transpose(1, 0, 2)
    outs[0] = outs[0].transpose(1, 0, 2)
    launches = rows.launches(Rows(elementwise=(v * 2,), totals=(v * v,)), specs(outs), [Spec.of(view)], 0)
    run(launches, outs, [view])
    np.testing.assert_array_equal(outs[0], view * 2)
    np.testing.assert_allclose(outs[1], (x * x).sum())


def test_all_of_them_are_assembled():
    assert made
    assemble(kernels_of(made))
