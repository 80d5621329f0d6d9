"""Thresholds: environment variable, pauses, restoring."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import flambeau as torch
from flambeau.backends.compiled import thresholds


def test_each_operator_has_one_limit():
    assert thresholds.threshold_of("mul") is thresholds.threshold_of("mul")
    assert thresholds.threshold_of("mul")[0] > thresholds.threshold_of("gelu")[0]
    assert thresholds.MIN_ELEMENTS[0] <= min(thresholds.threshold_of(name)[0] for name in ("mul", "gelu", "exp"))


def test_limits_are_restored():
    limits = [thresholds.threshold_of(name) for name in ("mul", "gelu")] + [thresholds.SUMS]
    values = [limit[0] for limit in limits]
    before = thresholds.set_thresholds(7)
    assert [limit[0] for limit in limits] == [6, 6, 6]
    thresholds.restore_thresholds(before)
    assert [limit[0] for limit in limits] == values


def test_a_pause_disables_kernels():
    limit = thresholds.threshold_of("mul")
    before = limit[0]
    thresholds.pause_kernels()
    thresholds.pause_kernels()
    assert limit[0] > 1 << 60
    thresholds.resume_kernels()
    assert limit[0] > 1 << 60
    thresholds.resume_kernels()
    assert limit[0] == before


@pytest.mark.parametrize("f", [lambda x: x * 2.5, lambda x: x + x, lambda x: x.sqrt(), lambda x: x.exp(),
                               lambda x: x.sum(), lambda x: torch.nn.functional.gelu(x), lambda x: x.clamp(0, 1),
                               lambda x: x > 0.5])
def test_results_are_equal_on_both_sides_of_a_limit(f):
    for n in (1023, 1024, 1025, 2048, 2049, 16384, 16385):
        x = torch.linspace(0, 2, n)
        expected = f(x.double())
        np.testing.assert_allclose(f(x).double().numpy(), expected.double().numpy(), rtol=1e-5, atol=1e-6)


def run(code, **environment):
    import os

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


CODE = """
import sys, flambeau as torch
x = torch.linspace(-2, 2, 50_000, requires_grad=True)
y = torch.nn.functional.gelu(x) * x.tanh() + x.abs().sqrt()
y.sum().backward()
p = torch.nn.Parameter(torch.ones(50_000)); p.grad = torch.ones(50_000)
torch.optim.Adam([p]).step()
print(float(y.sum()), float(x.grad.abs().sum()), float(p.sum()), 'llvmlite' in sys.modules)
"""


def test_without_kernels_numpy_computes_everything():
    with_kernels, without = run(CODE), run(CODE, FLAMBEAU_JIT="0")
    assert with_kernels[3] == "True"
    assert without[3] == "False"
    np.testing.assert_allclose([float(v) for v in without[:3]], [float(v) for v in with_kernels[:3]], rtol=1e-5)


def test_small_programs_load_nothing():
    assert run("import sys, flambeau as torch; x = torch.ones(100, requires_grad=True); "
               "(x * 2).exp().sum().backward(); print('llvmlite' in sys.modules)") == ["False"]


def test_the_environment_variable_sets_all_limits():
    code = ("from flambeau.backends.compiled.thresholds import *; "
            "print(MIN_ELEMENTS[0], SUMS[0], threshold_of('x')[0], threshold_of('mul')[0])")
    assert run(code, FLAMBEAU_KERNELS_FROM="10") == ["9"] * 4
