"""Launch plans: layouts, aliasing, scalars, and the plan cache."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flambeau.backends.compiled.elementwise import ElementwiseKernel
from flambeau.backends.compiled.families.fused_reductions import ReductionKernel
from flambeau.backends.compiled.launching import MAX_PLANS, result_strides
from flambeau.codegen.scalar import scalar_ir as e
from flambeau.runtime.launch import Spec

F32, F64, I64 = (np.dtype(name) for name in ("f4", "f8", "i8"))
X, Y = e.variable(0, F32), e.variable(1, F32)


@st.composite
def operands(draw):
    """Two arrays that broadcast together, their dimensions in any order in memory, with steps and repeats."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 5]), max_size=4))
    arrays = []
    for seed in range(2):
        mine = [1 if draw(st.booleans()) and draw(st.booleans()) else extent for extent in shape]
        mine = mine[draw(st.integers(0, len(mine))):] if draw(st.booleans()) else mine
        order = draw(st.permutations(range(len(mine))))
        steps = [draw(st.sampled_from([1, 1, 2])) for _ in mine]
        x = np.asarray(np.random.default_rng(seed).random([mine[dim] * steps[dim] for dim in order], dtype=np.float32))
        x = x.transpose(np.argsort(order)) if order else x
        x = x[tuple(slice(None, None, step) for step in steps)]
        if draw(st.booleans()) and x.ndim and draw(st.booleans()):
            dim = draw(st.integers(0, x.ndim - 1))
            x = np.broadcast_to(x[tuple(slice(0, 1) if k == dim else slice(None) for k in range(x.ndim))], x.shape)
        arrays.append(np.asarray(x))
    return arrays


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable")
@settings(max_examples=150, deadline=None)
@given(operands())
def test_result_strides_equal_pytorchs(arrays):
    torch = pytest.importorskip("torch")
    x, y = arrays
    expected = torch.from_numpy(x) + torch.from_numpy(y)
    [found] = ElementwiseKernel([X + Y], [F32, F32])((x, y))
    assert (found.shape, found.dtype) == (expected.shape, F32)
    assert found.strides == tuple(s * found.itemsize for s in expected.stride())
    np.testing.assert_array_equal(found, expected.numpy())


def test_contiguous_result_strides_are_none():
    x = np.ones((3, 4), np.float32)
    assert result_strides((3, 4), [x, x[0]], F32) is None
    assert result_strides((3, 4), [x.T.copy().T], F32) == (4, 12)
    assert result_strides((0, 4), [np.ones((0, 4), np.float32).T.copy().T], F32) in (None, (4, 0), (4, 4), (16, 4))
    assert Spec.dense((3, 4), F32).strides == (16, 4)


def test_scalars_of_several_dtypes():
    x = np.arange(5, dtype=np.float32)
    wide = e.cast(X, F64) * e.variable(1, F64) + e.cast(e.variable(2, F32), F64)
    [found] = ElementwiseKernel([wide], [F32], [F64, F32])((x,), (0.1, 0.1))
    np.testing.assert_array_equal(found, x.astype("f8") * 0.1 + np.float64(np.float32(0.1)))
    n = e.variable(0, I64)
    [found] = ElementwiseKernel([n + e.variable(1, I64)], [I64], [I64])((np.arange(3),), (2**60,))
    assert found.tolist() == [2**60, 2**60 + 1, 2**60 + 2]
    [total] = ReductionKernel([("sum", X * e.variable(1, F32))], [F32], [F32])((x,), None, False, (0.5,))
    assert total == 5


def test_writing_into_operands():
    x, y = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
    runner = ElementwiseKernel([X + Y, X * Y], [F32, F32])
    runner.run_into([x, y], (x, y))
    assert x.tolist() == [1, 2, 3, 4, 5]
    assert y.tolist() == [0, 1, 2, 3, 4]


def test_functions_of_one_and_two_arrays():
    one, two = ElementwiseKernel([-X], [F32]).unary(), ElementwiseKernel([X - Y], [F32, F32]).binary()
    for shape in ((3,), (2, 3), ()):
        x = np.ones(shape, np.float32)
        for _ in range(2):  # planned, and as planned
            np.testing.assert_array_equal(one(x), -x)
            np.testing.assert_array_equal(two(x, np.full_like(x, 3)), x - 3)
    with pytest.raises(ValueError, match="broadcast"):
        two(np.ones(3, np.float32), np.ones(4, np.float32))


def test_other_types_than_arrays_raise():
    runner = ElementwiseKernel([X + Y], [F32, F32])
    x = np.ones((), np.float32)
    assert runner((x, x))[0] == 2
    for other in (np.float32(1), np.ma.masked_array(x), np.ones((), np.float32).view(np.recarray)):
        with pytest.raises(TypeError, match="a kernel takes arrays"):
            runner((x, other))
    with pytest.raises(TypeError, match="must be real number"):
        ElementwiseKernel([X * e.variable(1, F32)], [F32], [F32])((x,), ("2",))


def test_the_number_of_plans_is_limited():
    runner = ElementwiseKernel([-X], [F32])
    for n in range(MAX_PLANS + 3):
        assert runner((np.zeros(n, np.float32),))[0].shape == (n,)
    assert len(runner.plans.plans) <= MAX_PLANS


def test_reference_counts_of_results():
    import sys

    runner = ElementwiseKernel([X + Y], [F32, F32]).binary()
    x = np.ones(100, np.float32)
    runner(x, x)
    found = runner(x, x)
    alone = np.ones(1)
    assert sys.getrefcount(found) == sys.getrefcount(alone)
    before = sys.getrefcount(x)
    for _ in range(1000):
        runner(x, x)
    assert sys.getrefcount(x) == before
