"""Shape signatures."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.ir.shapes.symbolic_shapes import shape_signature


def strided(shape, strides, dtype=np.float32):
    """An array whose strides are given in elements; it has no memory."""
    size = np.dtype(dtype).itemsize
    return np.lib.stride_tricks.as_strided(np.empty(1, dtype), shape, [s * size for s in strides])


CASES = {
    "matrix": [strided((5, 7), (7, 1))],
    "columns": [strided((5, 7), (1, 5))],
    "every other": [strided((5, 7), (14, 2))],
    "a part of rows": [strided((5, 7), (100, 1))],
    "heads": [strided((3, 4, 11, 32), (11 * 128, 32, 128, 1))],
    "heads of three": [strided((3, 4, 11, 32), (11 * 384, 32, 384, 1))],
    "repeated": [strided((5, 7), (0, 1))],
    "with ones": [strided((5, 1, 7), (7, 7, 1))],
    "square": [strided((7, 7), (7, 1))],
    "several": [strided((5, 7), (7, 1)), strided((7,), (1,)), strided((5, 1), (1, 1), np.float64)],
    "number": [strided((), ())],
}


@pytest.mark.parametrize("name", CASES)
def test_equal_extents_give_equal_signatures(name):
    arrays = CASES[name]
    like = shape_signature(arrays)
    for a, b in zip(arrays, like.arrays_of_extents(like.extents), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert all(n == 1 or s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_other_extents_give_the_same_symbolic_signature(name):
    like = shape_signature(CASES[name])
    other = shape_signature(like.arrays_of_extents([extent + 2 for extent in like.extents]))
    assert (other.key[0], other.extents) == (like.key[0], tuple(extent + 2 for extent in like.extents))


def test_other_layouts_give_other_signatures():
    keys = [shape_signature(arrays).key for arrays in CASES.values()]
    assert len(set(keys)) == len(keys)


def test_extents_can_be_fixed():
    like = shape_signature([strided((5, 7), (7, 1))], frozenset({7}))
    assert like.extents == (5,)
    assert like.arrays_of_extents([6])[0].shape == (6, 7)
    assert like.key != shape_signature([strided((5, 8), (8, 1))], frozenset({8})).key


def test_empty_arrays_have_no_symbolic_signature():
    assert shape_signature([strided((0, 7), (7, 1))]) is None
