"""Launches of elementwise and reduction kernels: layouts, threads, scratch memory, overhead."""

from __future__ import annotations

import os
import subprocess
import sys
import timeit

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau.codegen.elementwise import elementwise
from flambeau.codegen.rows import reduction
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.kernels import threads as limits
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec

X, Y = (e.variable(i, "float32") for i in range(2))


def random(*shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def specs(*arrays):
    return [Spec.of(each) for each in arrays]


def compute(expressions, outs, ins):
    launch.run(elementwise.launches(expressions, specs(*outs), specs(*ins)), [*outs, *ins])


def reduce(terms, outs, ins, axes=None):
    launch.run(reduction.launches(terms, specs(*outs), specs(*ins), axes), [*outs, *ins])


@st.composite
def views(draw, rank=None):
    """A view with any order of dimensions and any steps, and the shape it broadcasts to."""
    full = draw(st.lists(st.sampled_from([1, 2, 3, 5, 17, 33]), min_size=1, max_size=4))
    found = []
    for seed in range(2):
        shape = [1 if draw(st.integers(0, 3)) == 0 else extent for extent in full[draw(st.integers(0, len(full))):]]
        order = draw(st.permutations(range(len(shape))))
        steps = [draw(st.sampled_from([1, 1, 2, -1])) for _ in shape]
        base = random(*(shape[dim] * abs(steps[dim]) for dim in order), seed=seed)
        view = base.transpose(np.argsort(order)) if shape else base
        found.append(view[(*(slice(None, None, step) for step in steps), ...)])
    axes = tuple(sorted(draw(st.sets(st.integers(0, len(full) - 1), min_size=1))))
    return tuple(full), found, axes


@given(views())
@settings(max_examples=150, deadline=None)
def test_elementwise_over_any_strides(case):
    full, (x, y), _ = case
    out, other = np.zeros(full[::-1], np.float32).T, np.zeros((*full, 2), np.bool_)[..., 1]
    compute([X * Y + 1, X > Y], [out, other], [x, y])
    np.testing.assert_array_equal(out, np.broadcast_to(x * y + np.float32(1), full))
    np.testing.assert_array_equal(other, np.broadcast_to(x > y, full))


@given(views())
@settings(max_examples=150, deadline=None)
def test_reductions_over_any_strides(case):
    full, (x, y), axes = case
    x = np.broadcast_to(x, full)
    want = (x.astype("float64") * y).sum(axes)
    left = np.zeros(want.shape[::-1], np.float32).T
    most = np.zeros([1 if dim in axes else extent for dim, extent in enumerate(full)], np.float32)
    reduce([("sum", X * Y), ("max", X)], [left, most], [x, y], axes)
    assert (abs(left - want) <= 1e-6 * abs(x * y).sum(axes) + 1e-7).all()
    np.testing.assert_array_equal(most, x.max(axes, keepdims=True))


def test_an_output_over_its_input():
    x = random(1000, 30)
    want = x * 2
    compute([X * 2], [x], [x])
    np.testing.assert_array_equal(x, want)


def test_constants_without_inputs():
    out = np.zeros((7, 30), np.float16)[:, ::2]
    compute([e.cast(e.constant(1.5, "float32"), "float16")], [out], [])
    assert (out == 1.5).all()


@pytest.mark.parametrize("shape", [(3_000_000,), (100_000, 7), (7, 100_000)])
def test_long_reductions_by_any_number_of_threads(shape, monkeypatch):
    x = random(*shape)
    for axis in range(len(shape)):
        found = set()
        for count in (1, 2, 5):
            monkeypatch.setattr(limits, "_limit", count)
            out = np.zeros([n for dim, n in enumerate(shape) if dim != axis], np.float32)
            reduce([("sum", X)], [out], [x], axis)
            found.add(out.tobytes())
        assert len(found) == 1
        np.testing.assert_allclose(out, x.sum(axis, dtype="float64"), rtol=1e-5, atol=1e-3)


def test_argmax_and_argmin():
    x = random(50, 60)
    out = np.zeros(50, np.int64)
    reduce([("argmax", X)], [out], [x], 1)
    np.testing.assert_array_equal(out, x.argmax(1))


def test_of_no_elements():
    x = np.zeros((3, 0), np.float32)
    sums, means, every = np.full(3, 7, np.float32), np.full(3, 7, np.float32), np.zeros(3, np.bool_)
    reduce([("sum", X), ("mean", X), ("all", X)], [sums, means, every], [x], 1)
    assert (sums == 0).all()
    assert np.isnan(means).all()
    assert every.all()
    assert elementwise.launches([X], specs(x), specs(x)) == []
    assert reduction.launches([("max", X)], specs(np.zeros(0, np.float32)), specs(x), 0) == []
    with pytest.raises(ValueError, match="no elements"):
        reduction.launches([("max", X)], specs(sums), specs(x), 1)


def test_mismatched_shapes_and_dtypes():
    x, y = Spec.dense((3, 4), e.FLOAT32), Spec.dense((4,), e.FLOAT32)
    with pytest.raises(ValueError, match="does not broadcast"):
        elementwise.launches([X], [y], [x])
    with pytest.raises(ValueError, match="shapes"):
        elementwise.launches([X, X], [y, x], [y])
    with pytest.raises(ValueError, match="outputs into"):
        elementwise.launches([X], [y, y], [y])
    with pytest.raises(TypeError, match="bool for a result of float32"):
        elementwise.launches([X], [Spec.dense((4,), e.BOOL)], [y])
    with pytest.raises(TypeError, match="bool for a result of float32"):
        reduction.launches([("sum", X)], [Spec.dense((3,), e.BOOL)], [x], 1)
    for shape in ((4,), (3, 4), (1, 3), (3, 1, 1), ()):
        with pytest.raises(ValueError, match="a result of shape"):
            reduction.launches([("sum", X)], [Spec.dense(shape, e.FLOAT32)], [x], 1)


@pytest.mark.parametrize("width", ["128", "256"])
def test_narrower_vectors(width, tmp_path):
    code = """
import numpy as np
from flambeau.codegen.elementwise import elementwise
from flambeau.runtime import launch
from flambeau.codegen.rows import reduction
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.runtime.launch import Spec
x = np.random.default_rng(0).standard_normal((301, 67)).astype("f4")
X = e.variable(0, "float32")
out, sums, columns = np.zeros_like(x), np.zeros(301, "f4"), np.zeros(67, "f4")
launch.run(elementwise.launches([X * 2], [Spec.of(out)], [Spec.of(x)]), [out, x])
launch.run(reduction.launches([("sum", X)], [Spec.of(sums)], [Spec.of(x)], 1), [sums, x])
launch.run(reduction.launches([("sum", X)], [Spec.of(columns)], [Spec.of(x)], 0), [columns, x])
assert (out == x * 2).all()
np.testing.assert_allclose(sums, x.sum(1), atol=1e-4)
np.testing.assert_allclose(columns, x.sum(0), atol=1e-4)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
                          env=os.environ | {"FLAMBEAU_JIT_WIDTH": width, "FLAMBEAU_CACHE_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr


def test_the_overhead_of_a_list_of_launches():
    x, row = Spec.dense((64, 32, 100), e.FLOAT32), Spec.dense((100,), e.FLOAT32)
    for make in (lambda: elementwise.launches([X + Y], [x], [x, row]),
                 lambda: reduction.launches([("sum", X)], [row], [x], (0, 1))):
        assert min(timeit.repeat(make, number=100, repeat=5)) / 100 < 500e-6  # 20 to 40 us on a quiet machine
