"""Philox against the known answers of its authors, and against a plain implementation."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.codegen.random import philox
from flambeau.runtime import launch
from flambeau.runtime.launch import Spec

MASK = 0xFFFFFFFF


def block(counter: list[int], key: list[int]) -> list[int]:
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [second >> 32 ^ counter[1] ^ key[0], second & MASK, first >> 32 ^ counter[3] ^ key[1], first & MASK]
        key = [key[0] + 0x9E3779B9 & MASK, key[1] + 0xBB67AE85 & MASK]
    return counter


def draw(count: int, dtype: str, state: int, number: int) -> np.ndarray:
    out, memory = np.full(count + 1, -1, dtype), np.array(state, np.int64)
    launch.run(philox.launches(Spec.of(out[:count]), Spec.of(memory), number), [out[:count], memory])
    assert out[count] == -1
    return out[:count]


def test_known_answers():
    assert block([0] * 4, [0] * 2) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert block([MASK] * 4, [MASK] * 2) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]


@pytest.mark.parametrize(("count", "state", "number"), [(1, 0, 0), (10, 5, 3), (8200, -7, 1), (3, 1 << 40, 7)])
def test_single_precision(count, state, number):
    key = [state & MASK, state >> 32 & MASK]
    words = [word for i in range(-(-count // 4)) for word in block([i, 0, number, 0], key)]
    expected = (np.array(words[:count], np.uint64) >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)
    np.testing.assert_array_equal(draw(count, "f4", state, number), expected)


def test_double_precision():
    words = [word for i in range(3) for word in block([i, 0, 2, 0], [9, 0])]
    expected = [((high << 32 | low) >> 11) * 2.0**-53 for high, low in zip(words[::2], words[1::2], strict=True)]
    np.testing.assert_array_equal(draw(5, "f8", 9, 2), expected[:5])


def test_other_dtypes_are_refused():
    with pytest.raises(TypeError, match="uniform numbers are float32 or float64"):
        philox.launches(Spec.dense((2,), np.dtype("f2")), Spec.dense((), np.dtype("i8")), 0)
