"""Draws that generated code makes: numbers and states of PyTorch's generator, whatever sets the state in between."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau._tensor.creation.generators import default_generator, lock
from flambeau._tensor.fastpath.known_calls import EVERY
from flambeau._tensor.fastpath.repeated_layouts import LEARNED
from flambeau.backends.compiled import enable_kernels
from flambeau.runtime import object_layout

pytestmark = pytest.mark.skipif(not (codegen.available() and object_layout.readable()), reason="no generated code")
#: calls after which the next one is known
MANY = 3 * LEARNED

DRAWS = {
    "rand": lambda torch, x: torch.rand(4, 4), "rand of a tuple": lambda torch, x: torch.rand((3, 1)),
    "rand of a list": lambda torch, x: torch.rand([5]), "rand of a size": lambda torch, x: torch.rand(x.shape),
    "rand(())": lambda torch, x: torch.rand(()), "randn": lambda torch, x: torch.randn(4, 8),
    "randn of many": lambda torch, x: torch.randn(2, 999), "randn of sixteen": lambda torch, x: torch.randn(16),
    "randn of seventeen": lambda torch, x: torch.randn(17),
    "randn of few": lambda torch, x: torch.randn(5), "randn of others": lambda torch, x: torch.randn(3, 7),
    "randint": lambda torch, x: torch.randint(0, 10, (4, 4)), "randint(high)": lambda torch, x: torch.randint(7, (3,)),
    "negative": lambda torch, x: torch.randint(-5, 5, [2, 2]), "randperm": lambda torch, x: torch.randperm(9),
    "rand_like": lambda torch, x: torch.rand_like(x), "randn_like": lambda torch, x: torch.randn_like(x),
    "of transposed": lambda torch, x: torch.rand_like(x.t()), "bernoulli": lambda torch, x: x.bernoulli(),
    "torch.bernoulli": lambda torch, x: torch.bernoulli(x), "dropout": lambda torch, x: torch.nn.functional.dropout(x),
    "float64": lambda torch, x: torch.rand(3, dtype=torch.float64),
    "poisson": lambda torch, x: torch.poisson(x * 5), "poisson, large": lambda torch, x: torch.poisson(x * 90),
    "normal_": lambda torch, x: torch.empty(5).normal_(),
    "generator": lambda torch, x: torch.rand(4, generator=torch.Generator().manual_seed(3))}


@pytest.fixture(autouse=True)
def _kernels():
    enable_kernels()


def _frames(call):
    names = []

    def note(frame, event, _):
        if event == "call" and "flambeau" in frame.f_code.co_filename and "tests" not in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)

    sys.setprofile(note)
    call()
    sys.setprofile(None)
    return names


@pytest.mark.parametrize("name", DRAWS)
def test_draws_are_pytorchs(name):
    oracle = pytest.importorskip("torch")
    call = DRAWS[name]
    chances = np.random.default_rng(0).uniform(0, 1, (4, 4)).astype(np.float32)
    x, y = torch.from_numpy(chances), oracle.from_numpy(chances)
    torch.manual_seed(5), oracle.manual_seed(5)
    for number in range(2 * MANY):
        assert np.array_equal(call(torch, x).numpy(), call(oracle, y).numpy()), number
    assert np.array_equal(torch.get_rng_state().numpy(), oracle.get_rng_state().numpy())


def test_whatever_sets_the_state():
    oracle = pytest.importorskip("torch")
    rng = np.random.default_rng(1)
    chances = rng.uniform(0, 1, (4, 4)).astype(np.float32)
    pairs = [(torch, torch.from_numpy(chances)), (oracle, oracle.from_numpy(chances))]
    for library, _ in pairs:
        library.manual_seed(7)
    states = [library.get_rng_state() for library, _ in pairs]
    names = list(DRAWS)

    def forked(library, x):
        with library.random.fork_rng():
            library.manual_seed(1)
            return library.rand(4, 4)

    for step in range(600):
        draw = DRAWS[names[rng.integers(len(names))]]
        for _ in range(int(rng.integers(1, 4))):
            a, b = (draw(library, x).numpy() for library, x in pairs)
            assert np.array_equal(a, b), step
        action = rng.integers(12)
        if action == 0:
            for library, _ in pairs:
                library.manual_seed(step)
        elif action == 1:
            for (library, _), state in zip(pairs, states, strict=True):
                library.set_rng_state(state)
        elif action == 2:
            states = [library.get_rng_state() for library, _ in pairs]
        elif action == 3:
            a, b = (forked(library, x).numpy() for library, x in pairs)
            assert np.array_equal(a, b)
    assert np.array_equal(*(library.get_rng_state().numpy() for library, _ in pairs))


def test_known_draws_run_no_python():
    x = torch.full((4, 4), 0.5)
    for call in (lambda: torch.rand(4, 4), lambda: torch.randn(4, 4), lambda: torch.randint(0, 10, (4, 4)),
                 lambda: torch.randperm(5), lambda: torch.rand_like(x), lambda: torch.randn_like(x),
                 lambda: x.bernoulli()):
        for _ in range(LEARNED * EVERY + 1):
            call()
        assert len(_frames(call)) <= 2  # a method's guard, and its function's
        with lock:  # which another thread may hold while it draws
            assert len(_frames(call)) > 2
        torch.manual_seed(0)
        assert len(_frames(call)) > 2


def test_states_are_seen():
    calls = [lambda: torch.rand(4), lambda: torch.randn(16)]
    for _ in range(MANY):
        for call in calls:
            call()
    torch.set_default_dtype(torch.float64)
    try:
        assert all(call().dtype is torch.float64 for call in calls)
    finally:
        torch.set_default_dtype(torch.float32)
    with torch.device("meta"):
        assert all(call().is_meta for call in calls)
    assert not any(call().is_meta for call in calls)
    drawn = torch.func.vmap(lambda a: a + torch.rand(4), randomness="different")(torch.zeros(3, 4))
    assert len({float(each) for each in drawn[:, 0]}) == 3
    assert torch.rand(4, requires_grad=True).requires_grad
    bad = torch.full((4, 4), 1.5)
    good = torch.full((4, 4), 0.5)
    for _ in range(MANY):
        torch.bernoulli(good)
    with pytest.raises(RuntimeError):
        torch.bernoulli(bad)
    leaf = good.clone().requires_grad_()
    assert torch.bernoulli(leaf).grad_fn is not None
    with pytest.raises(TypeError):
        torch.rand(4.0)


def test_threads_draw_from_one_stream():
    torch.manual_seed(3)
    expected = sorted(torch.rand(4, 400).flatten().tolist())
    torch.manual_seed(3)
    torch.rand(0)
    found = []

    def work():
        for _ in range(100):
            found.extend(torch.rand(4).tolist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(found) == expected


def test_references_are_returned():
    x = torch.full((4, 4), 0.5)

    def calls():
        torch.rand(4, 4), torch.randn(4, 4), torch.randint(0, 10, (4, 4)), torch.bernoulli(x), torch.rand_like(x)

    for _ in range(2 * MANY):
        calls()
    objects = (x, x._array, x._array.dtype, None, default_generator, default_generator.engine.indirect)
    gc.collect()
    before = [sys.getrefcount(each) for each in objects]
    for _ in range(500):
        calls()
    gc.collect()
    assert all(abs(b - a) < 50 for a, b in zip(before, map(sys.getrefcount, objects), strict=True))


def test_normals_of_every_size_are_pytorchs():
    pytorch = pytest.importorskip("torch")
    for seed, sizes in enumerate(([*range(1, 70)], [100, 700, 4097, 16383, 16384, 16385, 32767, 32768, 40000])):
        torch.manual_seed(seed)
        pytorch.manual_seed(seed)
        for n in sizes:
            found, expected = torch.randn(n), pytorch.randn(n)
            assert found.numpy().tobytes() == expected.numpy().tobytes(), n
            x = torch.zeros(n, 3)
            found, expected = torch.randn_like(x), pytorch.randn_like(pytorch.zeros(n, 3))
            assert found.numpy().tobytes() == expected.numpy().tobytes(), n
