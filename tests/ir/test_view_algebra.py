"""View arithmetic against NumPy's strides."""

from __future__ import annotations

import itertools
from math import prod

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

from flambeau.ir.graph import view_algebra as algebra

EXTENTS = st.sampled_from([1, 1, 2, 3, 4, 5, 6])
SHAPES = st.lists(EXTENTS, max_size=4).map(tuple)


def factors(draw, extent):
    """A shape of as many elements, of up to three dimensions that are not 1, with ones in between."""
    found = []
    left = extent
    while left > 1 and len(found) < 3:
        divisors = [d for d in range(2, left + 1) if left % d == 0]
        found.append(draw(st.sampled_from(divisors)))
        left //= found[-1]
    if left > 1:
        found.append(left)
    return found


@st.composite
def views(draw):
    """A view, and the array that it is of: any order of dimensions, any steps, dimensions repeated and cut."""
    shape = draw(SHAPES)
    base = np.arange(prod(shape)).reshape(shape)
    view = base.transpose(draw(st.permutations(range(base.ndim))))
    key = []
    for extent in view.shape:
        first = draw(st.integers(0, extent - 1)) if draw(st.booleans()) else 0
        key.append(slice(first, None, draw(st.sampled_from([1, 1, 1, 2]))))
    view = view[tuple(key)]
    for d in range(view.ndim):
        if view.shape[d] == 1 and draw(st.integers(0, 3)) == 0:
            view = np.broadcast_to(view, (*view.shape[:d], draw(st.integers(2, 3)), *view.shape[d + 1:]))
    return view


def steps(view):
    return tuple(s // view.itemsize for s in view.strides)


def shown(view, shape, strides):
    return as_strided(view, shape, [s * view.itemsize for s in strides])


@given(SHAPES)
def test_dense_strides_equal_those_of_a_new_array(shape):
    assert algebra.dense_strides(shape) == steps(np.empty(shape, np.int64))
    assert algebra.is_dense(shape, algebra.dense_strides(shape))


@settings(max_examples=300)
@given(views())
def test_is_dense(view):
    first = view.reshape(-1)[0]
    follows = np.array_equal(view.reshape(-1), np.arange(first, first + view.size))
    assert algebra.is_dense(view.shape, steps(view)) == follows


@settings(max_examples=600)
@given(st.data(), views())
def test_reshaped_selects_the_same_elements(data, view):
    wanted = factors(data.draw, view.size)
    for _ in range(data.draw(st.integers(0, 2))):
        wanted.insert(data.draw(st.integers(0, len(wanted))), 1)
    found = algebra.reshape_strides(view.shape, steps(view), wanted)
    expected = view.reshape(wanted)
    possible = view.size == 1 or np.shares_memory(expected, view)
    if found is None:
        assert not possible
    else:
        assert possible
        assert np.array_equal(shown(view, wanted, found), expected)


@settings(max_examples=300)
@given(st.data(), views())
def test_reshaped_to_its_own_shape_and_back(data, view):
    assert np.array_equal(shown(view, view.shape, algebra.reshape_strides(view.shape, steps(view), view.shape)), view)
    longer = (*view.shape[:1], 1, *view.shape[1:])
    assert np.array_equal(shown(view, longer, algebra.reshape_strides(view.shape, steps(view), longer)),
                          view.reshape(longer))


def test_reshaped_empty():
    assert algebra.reshape_strides((0, 3), (3, 1), (3, 0, 2)) == (0, 2, 1)


@settings(max_examples=400)
@given(st.data(), views())
def test_split_of_dimensions(data, view):
    fine = []
    for extent in view.shape:
        fine += factors(data.draw, extent)
        if data.draw(st.integers(0, 4)) == 0:
            fine.append(1)
    if data.draw(st.booleans()):
        fine.insert(0, 1)
    found = algebra.split_strides(view.shape, steps(view), fine)
    assert len(found) == len(fine)
    assert np.array_equal(shown(view, fine, found), view.reshape(fine))


@settings(max_examples=400)
@given(st.data())
def test_refined_splits_at_exactly_the_common_boundaries(data):
    size = data.draw(st.sampled_from([1, 2, 4, 6, 8, 12, 16, 24, 36, 60]))
    shapes = [factors(data.draw, size) for _ in range(data.draw(st.integers(1, 3)))]
    found = algebra.common_refinement(*shapes)
    cuts = {int(np.prod(shape[d:])) for shape in shapes for d in range(len(shape))} | {1}
    ordered = sorted(cuts)
    nested = all(b % a == 0 for a, b in itertools.pairwise(ordered))
    assert (found is not None) == nested
    if found is not None:
        assert prod(found) == size
        assert {prod(found[d:]) for d in range(len(found))} | {1} == cuts
        for shape in shapes:
            dense = algebra.dense_strides(shape)
            assert algebra.is_dense(found, algebra.split_strides(shape, dense, found))
