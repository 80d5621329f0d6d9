"""Random words and permutations by kernels: NumPy's numbers, and the same state afterwards."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends import compiled
from flambeau.kernels.random import accelerated, discrete, engine, permutation
from flambeau.kernels.random.engine import Engine

pytestmark = pytest.mark.skipif(not codegen.available(), reason="llvmlite is not installed, or FLAMBEAU_JIT is 0")


@pytest.fixture
def words():
    from flambeau.backends.compiled.families import random_words as words

    assert words._has_known_layout()
    return words


@pytest.mark.parametrize("skipped", [0, 1, 7, 300, 616, 623, 624, 625, 2000])
@pytest.mark.parametrize("count", [1, 7, 8, 9, 227, 396, 623, 624, 625, 1248, 5000])
def test_words_and_state_equal_numpys(words, monkeypatch, skipped, count):
    one, other = Engine(skipped + 7 * count), Engine(skipped + 7 * count)
    for each in (one, other):
        each.skip(skipped)
    monkeypatch.setattr(accelerated, "WORDS", [])
    monkeypatch.setattr(engine, "_SMALL_DRAW", 0)
    expected = other.draw(count)
    monkeypatch.setattr(accelerated, "WORDS", [words.draw])
    assert np.array_equal(one.draw(count), expected)
    assert np.array_equal(one.get_state(), other.get_state())
    assert one.random() == other.random()


def test_other_bit_generators_use_numpy(words, monkeypatch):
    monkeypatch.setattr(words, "_has_known_layout", lambda: False)
    assert words.draw(Engine(0)._ready(), 5000) is None


def test_few_words_use_numpy_until_many_were_drawn(monkeypatch):
    monkeypatch.setattr(compiled, "_loaded", {})
    monkeypatch.setattr(compiled, "RANDOM_WORDS", [1023])
    generator = Engine(0)._ready()
    assert compiled.random_words(generator, 1023) is None
    assert len(compiled.random_words(generator, 1024)) == 1024
    assert len(compiled.random_words(generator, 5)) == 5


@pytest.mark.parametrize("n", [2, 3, 17, 1000, 1025, 40000])
def test_shuffles_equal_numpys(words, monkeypatch, n):
    drawn = Engine(n).draw(n - 1)
    monkeypatch.setattr(accelerated, "SHUFFLES", [])
    expected = permutation.randperm(Engine(n), n)
    assert np.array_equal(words.shuffled_indices(drawn), expected)


@pytest.mark.parametrize("p", [0.0, 2.0**-53, 2.0**-22, 2.0**-21, 0.1, 0.5, 1 - 2.0**-21, 1 - 2.0**-53, 1.0])
def test_bernoulli_compares_all_bits(p):
    words = Engine(3).draw64(200_000) & np.uint64((1 << 53) - 1)
    expected = words < np.uint64(math.ceil(p * 2.0**53))
    assert np.array_equal(discrete.bernoulli(Engine(3), 200_000, p, np.dtype(bool)), expected)


def test_the_second_word_breaks_ties_of_the_first(monkeypatch):
    limit = (12345 << 32) + 678
    pairs = np.array([[12345, 677], [12345, 678], [12345, 679], [12344, 999], [12346, 0]], np.uint32)
    monkeypatch.setattr(Engine, "draw", lambda self, n: pairs.reshape(-1).copy())
    assert discrete._below(Engine(0), 5, limit).tolist() == [True, False, False, True, False]


def test_streams_go_on_through_many_and_few():
    def numbers():
        torch.manual_seed(1)
        return [torch.rand(5), torch.rand(3000), torch.randn(7), torch.randint(0, 9, (2000,)), torch.randperm(1500),
                torch.rand(2), torch.empty(1700).bernoulli_(0.3), torch.get_rng_state()]

    found = numbers()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accelerated, "WORDS", [])
        patch.setattr(accelerated, "SHUFFLES", [])
        expected = numbers()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
