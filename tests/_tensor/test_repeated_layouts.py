"""Launches of repeated layouts: up to which size they are looked up."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor.fastpath.repeated_layouts import (
    CALLS,
    F32,
    MISSES,
    MOST,
    MOST_MISSES,
    PROOFS,
    Launches,
    launch_or_limit,
)
from flambeau.ops.declare import REGISTRY


@pytest.mark.parametrize(("name", "size", "params", "most"), [
    ("roll", 129, {"shifts": (1,), "dims": (0,)}, 8192),
    ("logcumsumexp", 4, {"dim": 1}, 0),
    ("cumsum", 64, {"dim": 0, "dtype": None}, 1024),
])
def test_operators_without_a_launch_are_not_looked_up_again(name, size, params, most):
    torch.ones(64, 64).exp()  # loads kernels
    launches = Launches()
    assert launch_or_limit(launches, REGISTRY[name], [np.ones((size, size), np.float32)], params) is None
    assert launches.most == most


def test_a_launch_leaves_the_limit():
    launches = Launches()
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    launch = launch_or_limit(launches, REGISTRY["roll"], [x], {"shifts": (1,), "dims": (0,)})
    assert np.array_equal(launch(x), np.roll(x, 1, 0))
    assert launches.most == MOST


def test_large_rearrangements_have_launches():
    torch.ones(64, 64).exp()
    launches = Launches()
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    launch = launch_or_limit(launches, REGISTRY["tril"], [x], {"diagonal": 0})
    assert np.array_equal(launch(x), np.tril(x))
    launch = launch_or_limit(launches, REGISTRY["tril"], [x[:30, :30].copy()], {"diagonal": 0})
    assert np.array_equal(launch(x[:30, :30].copy()), np.tril(x[:30, :30]))
    assert launches.most == MOST


def _count_plans(launches, calls):
    """The layouts that are planned in calls of layouts, given as numbers."""
    planned = []

    def make(key):
        planned.append(key)
        return np.negative

    for key in calls:
        x = np.ones(key + 1, np.float32)
        if key in launches.single:
            launches.hit()
        else:
            launches.consider(F32, key, (x,), -x, make, key)
    return planned


def test_few_layouts_are_planned_after_as_many_calls_as_the_first():
    launches = Launches()
    assert _count_plans(launches, [*range(20)] * (CALLS + PROOFS)) == [*range(20)]
    assert set(launches.single) == set(range(20))


def test_the_more_layouts_are_planned_the_later_others_are():
    launches = Launches()
    launches.single.update(dict.fromkeys(range(100, 164), np.negative))
    assert _count_plans(launches, [0] * (4 * CALLS - 1)) == []
    assert _count_plans(launches, [0] * (PROOFS + 1)) == [0]
    assert 0 in launches.single


def test_calls_of_ever_other_layouts_are_skipped():
    launches = Launches()
    assert _count_plans(launches, range(MISSES)) == []
    assert launches.skips == 0
    _count_plans(launches, [k % 1000 for k in range(8 * MOST_MISSES)])
    assert launches.misses == MOST_MISSES
    launches.skips = 0
    launches.miss()
    assert launches.skips == (MOST_MISSES - MISSES) // 64
    for _ in range(MOST_MISSES):  # layouts that are known come again
        launches.hit()
    launches.miss()
    launches.skips = 0
    assert _count_plans(launches, [5000] * CALLS) == [5000]


def test_results_of_ever_other_lengths_are_the_same():
    torch.ones(64, 64).exp()
    for n in [*range(1, 300), *range(1, 300)]:
        x = torch.arange(float(n))
        assert torch.equal(torch.where(x > 3, x, -x), torch.tensor([float(k if k > 3 else -k) for k in range(n)]))
