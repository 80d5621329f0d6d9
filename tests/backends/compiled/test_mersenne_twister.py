"""Random words and permutations by kernels: NumPy's numbers, and the same state afterwards."""

from __future__ import annotations

import math

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends import compiled
from flambeau.kernels import random
from flambeau.kernels.random import accelerated, discrete, engine
from flambeau.kernels.random.engine import Engine

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)
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


DRAWS = {
    "rand": lambda e, n: random.uniform(e, n, F32),
    "rand double": lambda e, n: random.uniform(e, n, F64),
    "uniform_": lambda e, n: random.uniform(e, n, F32, -0.3, 0.7),
    "randn": lambda e, n: random.normal(e, n, F32),
    "normal_": lambda e, n: random.normal(e, n, F32, 0.3, 1.7),
    "randint": lambda e, n: random.randint(e, n, -5, 100),
    "randint int32": lambda e, n: random.randint(e, n, 0, 7, np.dtype(np.int32)),
    "bernoulli_": lambda e, n: random.bernoulli(e, n, 0.3, F32),
    "bernoulli": lambda e, n: random.bernoulli_each(e, np.linspace(0, 1, n, dtype=np.float32), F32),
    "randperm": lambda e, n: random.randperm(e, n),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("n", [1, 2, 8, 16, 17, 312, 313, 624, 625, 1040, 40_000, 70_000])
def test_direct_draws_equal_numpys(monkeypatch, words, name, n):
    one, other = Engine(n), Engine(n)
    monkeypatch.setattr(accelerated, "WORDS", [])
    monkeypatch.setattr(accelerated, "NORMALS", [])
    monkeypatch.setattr(accelerated, "DRAWS", [])
    expected = [DRAWS[name](other, n) for _ in range(3)]
    monkeypatch.setattr(accelerated, "DRAWS", [lambda generator, n: words.direct_draws(generator)])
    for each in expected:
        found = DRAWS[name](one, n)
        assert (found.dtype, found.tobytes()) == (each.dtype, each.tobytes())
    assert np.array_equal(one.get_state(), other.get_state())


@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.nan])
def test_what_is_no_probability_is_refused_after_those_before_it(words, monkeypatch, wrong):
    monkeypatch.setattr(accelerated, "DRAWS", [lambda generator, n: words.direct_draws(generator)])
    one, other = Engine(1), Engine(1)
    other.skip(2)
    with pytest.raises(RuntimeError, match="Expected p_in"):
        random.bernoulli_each(one, np.array([0.5, 0.5, wrong, 0.5], np.float32), F32)
    assert one.random() == other.random()


def test_direct_draws_follow_seeds_and_states(words, monkeypatch):
    monkeypatch.setattr(accelerated, "DRAWS", [lambda generator, n: words.direct_draws(generator)])
    one, other = Engine(1), Engine(1)
    random.uniform(one, 5, F32)
    for each in (one, other):
        each.seed(7)
    assert np.array_equal(one.get_state(), other.get_state())  # nothing was drawn
    assert np.array_equal(random.uniform(one, 700, F32), random.uniform(other.copy(), 700, F32))
    one.set_state(other.get_state())
    assert random.randint(one, 3, 0, 1000).tolist() == random.randint(other, 3, 0, 1000).tolist()


def test_draws_take_arrays_only(words):
    draws = words.direct_draws(Engine(0)._ready())
    with pytest.raises(TypeError, match="a kernel takes arrays"):
        draws.singles(3)
    with pytest.raises(TypeError, match="a kernel takes arrays"):
        draws.events(np.empty(2, np.float32), 0.5)
    with pytest.raises(AttributeError):
        draws.others


@pytest.mark.parametrize("draw", [
    lambda t: t.rand(4, 4), lambda t: t.rand((3,)), lambda t: t.rand(()), lambda t: t.rand([2, 2]), lambda t: t.rand(0),
    lambda t: t.randn(4, 4), lambda t: t.randn(5), lambda t: t.randint(10, (4,)), lambda t: t.randint(-3, 9, (2, 2)),
    lambda t: t.randint(0, 1 << 40, (2,)), lambda t: t.randperm(6), lambda t: t.randperm(1), lambda t: t.randperm(0),
    lambda t: t.rand_like(t.ones(4, 4)), lambda t: t.randn_like(t.ones(4, 4)), lambda t: t.randn_like(t.ones(4, 4).t()),
    lambda t: t.rand_like(t.ones(4, 4, 2).transpose(0, 1)), lambda t: t.bernoulli(t.full((4, 4), 0.5)),
    lambda t: t.nn.functional.dropout(t.ones(4, 4), 0.3), lambda t: t.rand(4, dtype=t.float64),
    lambda t: t.rand(2, requires_grad=True), lambda t: t.rand(2, 2, out=t.empty(2, 2)),
    lambda t: t.bernoulli(t.full((4, 4), 0.5, requires_grad=True)),
], ids=range(23))
def test_small_draws_equal_pytorchs(draw):
    pytorch = pytest.importorskip("torch")
    torch.ones(2000).exp()  # kernels are loaded
    found = []
    for each in (torch, pytorch):
        each.manual_seed(3)
        results = [draw(each) for _ in range(40)]
        found.append([(x.detach().numpy().tobytes(), str(x.dtype).split(".")[-1], x.shape, x.stride(), x.requires_grad,
                       getattr(x.grad_fn, "name", str)()) for x in results])
        found[-1].append(bytes(each.get_rng_state().numpy()))
    assert found[0] == found[1]


def test_small_draws_refuse_what_pytorch_refuses():
    for _ in range(30):
        torch.rand(4, 4)
    for call, error in ((lambda: torch.rand(2, -1), RuntimeError), (lambda: torch.rand(2.0), TypeError),
                        (lambda: torch.rand(), TypeError), (lambda: torch.randint(5, 5, (2,)), RuntimeError),
                        (lambda: torch.randperm(-1), RuntimeError),
                        (lambda: torch.bernoulli(torch.full((2,), 2.0)), RuntimeError)):
        with pytest.raises(error):
            call()
    with torch.inference_mode():
        assert torch.rand(4, 4).is_inference()
        assert torch.randn(4, 4).is_inference()
    assert torch.rand(4, 4, device="meta").is_meta


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
        patch.setattr(Engine, "direct_draws", lambda self, n: None)
        torch.default_generator._engine.draws = None
        expected = numbers()
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
