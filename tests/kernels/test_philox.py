"""PyTorch's generator on GPUs: known words, and numbers that GPUs are known to print."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.kernels.philox import PhiloxEngine, philox

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
A100 = 108 * 8


def engine(seed: int, blocks: int = A100) -> PhiloxEngine:
    return PhiloxEngine(blocks).seed(seed)


@pytest.mark.parametrize(("counter", "key", "words"), [  # Random123's known answers
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    ((0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
     (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1)),
])
def test_known_words(counter, key, words):
    assert tuple(int(word) for word in philox(counter, key)) == words


def test_numbers_that_gpus_print():
    uniform = engine(0)
    assert uniform.uniform(10, F32).round(4).tolist() == pytest.approx(
        [0.3990, 0.5167, 0.0249, 0.9401, 0.9459, 0.7967, 0.4150, 0.8203, 0.2290, 0.9096], abs=1e-6)
    assert uniform.uniform(10, F32).round(4).tolist() == pytest.approx(
        [0.9722, 0.7910, 0.4690, 0.3300, 0.3345, 0.3783, 0.7640, 0.6405, 0.1103, 0.3594], abs=1e-6)
    assert engine(42).normal(4, F32).round(4).tolist() == pytest.approx([0.1940, 2.1614, -0.1721, 0.8491], abs=1e-6)


def test_several_rounds_of_a_thread():
    """github.com/pytorch/pytorch/issues/158398 prints `randn(1, 64, 2048)` of seed 42."""
    rows = engine(42).normal(64 * 2048, F32).reshape(64, 2048)
    assert rows[0, -3:].round(4).tolist() == pytest.approx([1.4540, -2.7733, -0.8932], abs=1e-6)
    assert rows[2, :3].round(4).tolist() == pytest.approx([1.1346, -0.6329, -0.9147], abs=1e-6)


def test_offsets():
    small = engine(0)
    small.uniform(1, F32)
    assert small.offset == 4
    small.uniform(A100 * 256 * 4, F32)
    assert small.offset == 8
    small.uniform(A100 * 256 * 4 + 1, F32)
    assert small.offset == 16
    few = engine(0, blocks=1)  # one block: elements 0, 256, 512, 768 are one thread's four words
    wide = few.uniform(1024, F32).reshape(4, 256)
    words = PhiloxEngine(1).seed(0).words(np.arange(256), 0, 0)
    assert np.array_equal(wide, np.stack([w.astype(np.uint32).astype(F32) * np.float32(2 ** -32)
                                          + np.float32(2 ** -33) for w in words]))
    assert np.array_equal(few.seed(0).uniform(5, F32), wide[0, :5])


def test_distributions():
    n = 20_000
    assert abs(engine(1).uniform(n, F64, -1, 3).mean() - 1) < 0.03
    z = engine(1).normal(n, F64, 2, 3)
    assert abs(z.mean() - 2) < 0.06
    assert abs(z.std() - 3) < 0.06
    assert abs(engine(1).exponential(n, F32, 2.0).mean() - 0.5) < 0.02
    assert abs(engine(1).bernoulli(n, 0.3, F32).mean() - 0.3) < 0.02
    assert abs(engine(1).geometric(n, 0.25, F32).mean() - 4) < 0.15
    assert abs(np.median(engine(1).cauchy(n, F32, 1.0)) - 1) < 0.05
    values = engine(1).randint(n, -3, 7, np.dtype(np.int64))
    assert set(values.tolist()) == set(range(-3, 7))
    assert engine(1).random(n, np.dtype(np.int64), 0, 2 ** 40).max() > 2 ** 39
    kept = engine(1).dropout(n, 0.75, 4)
    assert abs(kept.mean() - 0.75) < 0.02


@pytest.mark.parametrize("n", [0, 1, 2, 10, 1000])
def test_randperm_permutes(n):
    assert sorted(engine(3).randperm(n, np.dtype(np.int64)).tolist()) == list(range(n))


def test_equal_keys_are_shuffled():
    order = np.arange(6)
    engine(3)._shuffle_equal(np.array([1, 1, 1, 1, 2, 3]), order)
    assert sorted(order[:4].tolist()) == [0, 1, 2, 3]
    assert order[4:].tolist() == [4, 5]


def test_multinomial():
    weights = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 0.0]], np.float32)
    drawn = engine(2).multinomial(np.repeat(weights, 500, 0), 1)
    assert (drawn[500:] == 0).all()
    assert abs((drawn[:500] == 2).mean() - 0.75) < 0.08
    assert sorted(engine(2).multinomial(np.ones(5, np.float32), 5).tolist()) == [0, 1, 2, 3, 4]
    many = engine(2).multinomial(weights[0], 2000, True)
    assert abs((many == 2).mean() - 0.75) < 0.04
