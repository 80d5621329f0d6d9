"""Launches of repeated layouts: up to which size they are looked up."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau._tensor.fastpath.repeated_layouts import MOST, Launches, launch_or_limit
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
