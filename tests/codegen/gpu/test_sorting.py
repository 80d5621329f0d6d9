"""Sorts, selections, ranks and what they write, on the emulator; `kernels.sorting` is the reference."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.gpu.emulation import emulator
from flambeau.codegen.gpu.sorting import block_sort, histogram, prefix, radix_sort, search, segments, sorting
from flambeau.dtypes import BFLOAT16, to_bfloat16
from flambeau.kernels.histogram import searchsorted
from flambeau.kernels.sorting import sort
from flambeau.runtime.launch import Spec
from tests.codegen.gpu.assembling import assemble, kernels_of

RANDOM = np.random.default_rng(0)
DTYPES = ("f4", "f8", "f2", "bfloat16", "i1", "u1", "i2", "i4", "i8", "?")


def elements(dtype, shape):
    """Elements with repetitions, NaN of both signs, both zeros, infinities, and the extreme integers."""
    if dtype == "bfloat16":
        return to_bfloat16(RANDOM.integers(-30, 30, shape).astype("f4"))
    kind = np.dtype(dtype)
    if kind.kind == "f":
        special = np.array([np.nan, -np.nan, 0.0, -0.0, np.inf, -np.inf, 1.0], kind)
        return np.where(RANDOM.random(shape) < 0.5, RANDOM.standard_normal(shape).astype(kind),
                        special[RANDOM.integers(0, 7, shape)])
    if kind.kind == "b":
        return RANDOM.integers(0, 2, shape).astype(bool)
    limits = np.iinfo(kind)
    return np.where(RANDOM.random(shape) < 0.5, kind.type(3),
                    RANDOM.integers(limits.min, limits.max, shape, dtype=kind, endpoint=True))


def check(x, descending, make, keep):
    order, values = np.empty((len(x), keep), np.int64), np.empty((len(x), keep), x.dtype)
    emulator.run_launches(make(*map(Spec.of, (order, values, x)), descending), [order, values, x])
    expected = sort(x, -1, descending, True)[1][:, :keep]
    np.testing.assert_array_equal(order, expected)
    bits = f"u{x.itemsize}"
    np.testing.assert_array_equal(values.view(bits), np.take_along_axis(x.view(bits), expected, -1))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_short_rows(dtype, descending):
    for shape in ((3, 1), (40, 33), (2, 200)):
        check(elements(dtype, shape), descending, sorting.sort, shape[1])


@pytest.mark.parametrize("dtype", ["f4", "i8", "bfloat16", "?"])
def test_radix_passes(dtype):
    check(elements(dtype, (2, 300)), False, radix_sort.launches, 300)


def test_several_tiles():
    check(elements("u1", (2, 5000)), True, sorting.sort, 5000)


def test_the_first_elements_of_pieces():
    check(elements("f4", (1, 9000)), True, sorting.select, 5)
    assert not sorting.can_select(9000, 2000)
    with pytest.raises(ValueError, match="2000 of rows of 9000 elements"):
        sorting.select(*(Spec.dense((1, n), np.dtype("f4")) for n in (2000, 2000, 9000)), True)


@pytest.mark.parametrize("shape", [(1,), (100,), (9000,), (4, 6, 8)])
def test_what_is_true(shape):
    mask, x, size = RANDOM.random(shape) < 0.3, RANDOM.random(shape).astype("f4"), int(np.prod(shape))
    sums, number = np.empty(prefix.tiles_of(size), np.int64), np.empty(1, np.int64)
    emulator.run_launches(prefix.count_true([Spec.of(sums), Spec.of(number)], Spec.of(mask)), [sums, number, mask])
    assert number[0] == mask.sum()
    rank, found = np.empty(shape, np.int64), np.empty(mask.sum(), "f4")
    emulator.run_launches(prefix.ranks(*map(Spec.of, (rank, mask, sums))), [rank, mask, sums])
    np.testing.assert_array_equal(rank.reshape(-1), np.cumsum(mask) - mask.reshape(-1))
    places = np.empty(len(shape) * mask.sum(), np.int64)
    if found.size:
        operands = [places, mask, sums, number]
        emulator.run_launches(prefix.places(*map(Spec.of, operands)), operands)
        operands = [found, x, mask, sums]
        emulator.run_launches(prefix.select_true(*map(Spec.of, operands)), operands)
    np.testing.assert_array_equal(places.reshape(len(shape), -1).T, np.argwhere(mask))
    np.testing.assert_array_equal(found, x[mask])
    with pytest.raises(TypeError, match="a mask of dtype int64"):
        prefix.ranks(*map(Spec.of, (rank, rank, sums)))


def test_lengths_of_runs():
    lengths, starts, number = np.empty(3, np.int64), np.array([0, 4, 5, 9, 9, 9, 9]), np.array([3])
    emulator.run_launches(prefix.run_lengths(*map(Spec.of, (lengths, starts, number))), [lengths, starts, number])
    assert lengths.tolist() == [4, 1, 2]


@pytest.mark.parametrize("right", [False, True])
def test_searches(right):
    edges, values = np.sort(elements("f4", (3, 50))), elements("f4", (3, 20))
    places = np.array([RANDOM.permutation(50) for _ in range(3)])
    mixed = np.empty_like(edges)
    np.put_along_axis(mixed, places, edges, -1)
    for given, sorter in ((edges, None), (mixed, places)):
        out, rest = np.empty((3, 20), np.int64), [] if sorter is None else [sorter]
        specs = [Spec.of(each) for each in (out, given, values)]
        emulator.run_launches(search.launches(*specs, Spec.of(sorter) if rest else None, right),
                              [out, given, values, *rest])
        np.testing.assert_array_equal(out, searchsorted(given, values, right, sorter))


def test_all_of_them_are_assembled():
    launches = []
    for dtype in (np.dtype("f4"), np.dtype("i8"), BFLOAT16):
        for n in (100, 5000):
            order, x = Spec.dense((2, n), np.dtype(np.int64)), Spec.dense((2, n), dtype)
            launches += sorting.sort(order, x, x, n == 100)[:5]
        few = [Spec.dense((2, 10), each) for each in (np.dtype(np.int64), dtype)]
        launches += block_sort.launches(*few, x, 10, True)[-1:]
    mask, rank = (Spec.dense((16, 16), np.dtype(kind)) for kind in (bool, np.int64))
    sums, number, flat = (Spec.dense((n,), rank.dtype) for n in (prefix.tiles_of(256), 1, 512))
    launches += [*prefix.count_true([sums, number], mask), *prefix.ranks(rank, mask, sums),
                 *prefix.places(flat, mask, sums, number), *prefix.select_true(flat, rank, mask, sums),
                 *prefix.run_lengths(number, number, number),
                 *search.launches(rank, rank, rank, rank, True)]
    assemble(kernels_of(launches))


@pytest.mark.parametrize("include", [False, True])
@pytest.mark.parametrize("op", ["mul", "maximum"])
def test_reductions_of_segments(op, include):
    initial, values = RANDOM.standard_normal(20), RANDOM.standard_normal(50)
    places = RANDOM.integers(-1, 20, 50)
    order = np.argsort(places, kind="stable")
    out, operands = np.empty(20), [initial, places[order], order, values]
    launches = segments.launches(Spec.of(out), *map(Spec.of, operands), op, include)
    emulator.run_launches(launches, [out, *operands])
    function = {"mul": np.multiply, "maximum": np.maximum}[op]
    for place in range(20):
        own = values[places == place]
        first = [initial[place]] if include or not own.size else []
        np.testing.assert_allclose(out[place], function.reduce([*first, *own]))
    assemble(kernels_of(launches))


def test_histograms():
    places, out = RANDOM.integers(-1, 300, 5000), np.empty(299, np.int64)
    launches = histogram.launches(Spec.of(out), Spec.of(places))
    emulator.run_launches(launches, [out, places])
    np.testing.assert_array_equal(out, np.bincount(places + 1, minlength=301)[1:300])
    assemble(kernels_of(launches))
    with pytest.raises(ValueError, match="a histogram of 10000 bins"):
        histogram.launches(Spec.dense((10000,), out.dtype), Spec.of(places))
