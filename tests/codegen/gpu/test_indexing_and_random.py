"""Scatters in both forms, and random numbers, on the emulator."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu import indexing, philox
from flambeau.codegen.gpu.emulation import emulator
from flambeau.codegen.gpu.emulation.race_detector import RaceError
from flambeau.codegen.gpu.kernel_ir import KernelBuilder
from flambeau.codegen.random import philox as cpu_philox
from flambeau.dtypes import BFLOAT16, to_bfloat16, widen
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec
from tests.codegen.gpu.assembling import assemble, kernels_of

RANDOM = np.random.default_rng(0)


def scatter(out, source, index, dim, **how):
    flag = np.full(2, -1)
    emulator.run_launches(indexing.put(*map(Spec.of, (out, flag, source, index)), dim, **how), [out, flag, source,
                                                                                               index])
    return flag


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_scatter_add(ordered, dtype):
    source, index = RANDOM.integers(-9, 9, (40, 6)).astype(dtype), RANDOM.integers(0, 5, (40, 6))
    out = np.full((5, 6), 7, dtype)
    assert not scatter(out, source, index, 0, ordered=ordered).any()
    expected = np.zeros((5, 6), dtype)
    np.add.at(expected, (index, np.arange(6)), source)
    np.testing.assert_array_equal(out, expected)


def test_of_several_writes_the_last_wins():
    source, index = np.arange(12.0).reshape(6, 2), np.array([[1], [0], [1], [2], [0], [1]])
    out = np.empty((4, 2))
    scatter(out, source, index, 0, op="set")
    np.testing.assert_array_equal(out, [[8, 9], [10, 11], [6, 7], [0, 0]])


def test_narrow_floats_are_added_in_order():
    source, index = to_bfloat16(np.float32([1, 2, 4, 8])), np.array([0, 1, 0, 0])
    out = np.empty(2, BFLOAT16)
    scatter(out, source, index, 0)
    np.testing.assert_array_equal(widen(out), [13, 2])
    with pytest.raises(TypeError, match="no atomic add"):
        scatter(out, source, index, 0, ordered=False)


def test_an_index_out_of_range_is_noted():
    x, index, out, flag = np.arange(5.0), np.array([3, 7, 0]), np.empty(3), np.zeros(2, np.int64)
    emulator.run_launches(indexing.take(*map(Spec.of, (out, flag, x, index)), 0), [out, flag, x, index])
    np.testing.assert_array_equal(out, [3, 0, 0])
    np.testing.assert_array_equal(flag, [1, 7])
    with pytest.raises(NotImplementedError, match="scatter with 'mul' has no GPU kernel"):
        indexing.put(*map(Spec.of, (out, flag, x, index)), 0, "mul")


def test_a_scatter_without_atomics_is_a_race():
    b = KernelBuilder("racy_scatter", 32)
    out, index = b.buffer("float32"), b.buffer("int64")
    where = b.load(index, b.thread)
    b.store(out, where, b.load(out, where) + 1.0)
    with pytest.raises(RaceError):
        emulator.run(b.kernel(), (1, 1, 1), [np.zeros(4, "f4"), np.zeros(32, np.int64)])


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_uniform_numbers_are_those_of_the_cpu(dtype):
    state, mine, other = np.array([123456789012345]), np.empty(1001, dtype), np.empty(1001, dtype)
    emulator.run_launches(philox.uniform(Spec.of(mine), Spec.of(state), 3), [mine, state])
    launch.run(cpu_philox.launches(Spec.of(other), Spec.of(state), 3), [other, state])
    np.testing.assert_array_equal(mine, other)


def test_dropout():
    x, state = np.ones(5000, "f2"), np.array([7])
    out, mask = np.empty(5000, "f2"), np.empty(5000, bool)
    launches = philox.dropout([Spec.of(out), Spec.of(mask)], Spec.of(x), Spec.of(state), 0.25, 0)
    emulator.run_launches(launches, [out, mask, x, state])
    assert abs(mask.mean() - 0.75) < 0.03
    np.testing.assert_array_equal(out, np.where(mask, np.float16(4 / 3), 0))
    with pytest.raises(ValueError, match=r"dropout probability has to be between 0 and 1, but got 1\.5"):
        philox.dropout([Spec.of(out)], Spec.of(x), Spec.of(state), 1.5, 0)


def test_all_of_them_are_assembled():
    x, index, flag, state = (Spec.dense((64, 8), np.dtype(kind)) for kind in ("f4", "i8", "i8", "i8"))
    flag, state = Spec.dense((2,), flag.dtype), Spec.dense((), state.dtype)
    assemble(kernels_of([*indexing.put(x, flag, x, index, 0, ordered=False), *indexing.put(x, flag, x, index, 0, "set"),
                         *indexing.take(x, flag, x, index, 1), *philox.uniform(x, state, 0),
                         *philox.dropout([x], x, state, 0.5, 1)]))


@pytest.mark.parametrize(("shape", "index_shape", "dim"), [
    ((9, 8), (20, 1), 0), ((6, 16), (6, 12), 1), ((6, 7), (5, 3), 0)])
def test_gathers_of_neighbours(shape, index_shape, dim):
    x, index = RANDOM.random(shape).astype("f4"), RANDOM.integers(0, shape[dim], index_shape)
    out = np.empty((index_shape[0], max(index_shape[1], 8 if index_shape[1] == 1 else 0)), "f4")
    part = x[:, :out.shape[1]] if dim == 0 else x[:out.shape[0]]
    launches = indexing.take(Spec.of(out), None, Spec.of(part), Spec.of(index), dim)
    emulator.run_launches(launches, [out, part, index])
    np.testing.assert_array_equal(out, np.take_along_axis(part, np.broadcast_to(index, out.shape), dim))
    assemble(kernels_of(launches))
