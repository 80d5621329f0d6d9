"""Random numbers of compiled programs: distributions, independence of draws and runs, seeds."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

import flambeau as torch
from flambeau import nn
from flambeau.export import aot
from tests.export.aot.c_program import run


def test_distributions(tmp_path):
    def draws(p: Any) -> tuple[Any, ...]:
        kept = nn.functional.dropout(torch.ones(4000), 0.25)
        return (
            kept,
            torch.randn(4001),
            torch.randn(4000),
            torch.rand(40, 100),
            torch.randint(3, 9, (4000,)),
            torch.bernoulli(p),
            torch.empty(4000).uniform_(-1, 3),
            torch.empty(4000, dtype=torch.float64).normal_(2, 3),
            torch.empty(4000).exponential_(2.0),
        )

    path = tmp_path / "draws.so"
    before = torch.get_rng_state()
    p = torch.linspace(0, 1, 4000)
    aot.compile(draws, (p,), path, target="native")
    assert torch.equal(torch.get_rng_state(), before)
    outputs = [np.zeros(x.shape, x.numpy().dtype) for x in draws(p)]
    first, second = run(path, [p.numpy()], outputs, runs=2, state=True)
    for kept, x, y, u, n, b, v, z, e in (first, second):
        assert set(np.unique(kept)) == {0, np.float32(4 / 3)}
        assert abs((kept == 0).mean() - 0.25) < 0.03
        assert abs(x.mean()) < 0.06
        assert abs(x.std() - 1) < 0.05
        assert abs(np.corrcoef(x[:4000], y)[0, 1]) < 0.06
        assert 0 <= u.min() < 0.01
        assert 0.99 < u.max() < 1
        assert [*np.unique(n)] == [3, 4, 5, 6, 7, 8]
        assert abs(b[:1000].mean() - 0.125) < 0.04
        assert abs(b[3000:].mean() - 0.875) < 0.04
        assert -1 <= v.min() < v.max() < 3
        assert abs(v.mean() - 1) < 0.1
        assert abs(z.mean() - 2) < 0.2
        assert abs(z.std() - 3) < 0.15
        assert abs(e.mean() - 0.5) < 0.04
    assert abs(np.corrcoef(first[1], second[1])[0, 1]) < 0.06


def test_a_seed_repeats_the_numbers(tmp_path):
    path = tmp_path / "noise.so"
    report = aot.compile(lambda x: x + torch.randn(50), (torch.zeros(50),), path, target="native")
    assert [(each.name, each.is_integer) for each in report.interface.settings] == [("seed", True)]
    assert "int noise_set_seed(void *state, size_t state_bytes, int64_t value);" in path.with_suffix(".h").read_text()
    library = ctypes.CDLL(str(path))
    library.noise_arena_size.restype = ctypes.c_size_t
    arena = np.zeros(library.noise_arena_size(), np.uint8)
    memory = np.zeros(report.state + 64, np.uint8)
    state = ctypes.c_void_p(-(-memory.ctypes.data // 64) * 64), ctypes.c_size_t(report.state)
    x, y = np.zeros(50, np.float32), np.zeros(50, np.float32)
    results = []
    for seed in (1, 2, 1):
        assert library.noise_set_seed(*state, ctypes.c_int64(seed)) == 0
        for _ in range(2):
            assert (
                library.noise_run(
                    *state, *(ctypes.c_void_p(a.ctypes.data) for a in (x, y, arena)), ctypes.c_size_t(arena.nbytes)
                )
                == 0
            )
            results.append(y.copy())
    assert np.array_equal(results[0], results[4])
    assert np.array_equal(results[1], results[5])
    assert not any(np.array_equal(results[0], each) for each in results[1:4])


def test_a_model_with_dropout_trains(tmp_path):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, y = torch.randn(32, 8), torch.arange(32) % 4

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    path = tmp_path / "step.so"
    aot.compile(step, (x, y), path, target="native")
    losses = [
        loss.item() for [loss] in run(path, [x.numpy(), y.numpy()], [np.zeros((), np.float32)], runs=60, state=True)
    ]
    assert losses[0] > 1
    assert np.mean(losses[-5:]) < 0.6 * losses[0]
