"""`nn.init` compared with PyTorch: values from the same seed, errors, warnings."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import flambeau
from flambeau.nn import init as ours

torch = pytest.importorskip("torch")
theirs = torch.nn.init
pytestmark = pytest.mark.parity

CALLS = [
    "uniform_(e(3, 4), -1, 2)", "uniform_(e(50))", "normal_(e(3, 4), 1.0, 0.5)", "normal_(e(40))",
    "constant_(e(3), 0.3)", "ones_(e(2, 2))", "zeros_(e(2, 2))", "eye_(e(3, 5))", "dirac_(e(4, 3, 3, 3), groups=2)",
    "dirac_(e(2, 3, 2))", "dirac_(e(3, 2, 1, 2, 3))", "xavier_uniform_(e(3, 4))",
    "xavier_uniform_(e(3, 4, 5), gain=2.0)",
    "xavier_normal_(e(30, 4))", "kaiming_uniform_(e(30, 4))", "kaiming_uniform_(e(3, 4, 2, 2), a=0.3, mode='fan_out')",
    "kaiming_normal_(e(30, 4), nonlinearity='relu')", "trunc_normal_(e(300))", "trunc_normal_(e(300), 0.0, 3.0, -1, 1)",
    "trunc_normal_(e(100), 2.0, 1.0, 0.0, 0.5)", "sparse_(e(10, 6), 0.3)", "sparse_(e(3, 2), 0.0)",
]
ALMOST = ["orthogonal_(e(5, 3))", "orthogonal_(e(3, 5), gain=2)", "orthogonal_(e(3, 2, 2))"]
ERRORS = [
    "calculate_gain('foo')", "calculate_gain('leaky_relu', True)", "calculate_gain('leaky_relu', 'a')",
    "_calculate_fan_in_and_fan_out(e(3))", "_calculate_correct_fan(e(3, 3), 'foo')", "eye_(e(3))", "dirac_(e(3, 3))",
    "dirac_(e(4, 3, 3), groups=3)", "orthogonal_(e(3))", "sparse_(e(3), 0.1)", "xavier_uniform_(e(3))",
    "kaiming_uniform_(e(3, 3), mode='x')", "kaiming_normal_(e(3, 3), nonlinearity='x')",
]
WARNINGS = ["kaiming_uniform_(e(0, 3))", "kaiming_normal_(e(0, 3))", "trunc_normal_(e(3), mean=10)", "uniform(e(2))",
            "kaiming_normal(e(2, 2))", "eye(e(2, 2))"]


def call(source, module, init):
    module.manual_seed(7)
    return eval(f"init.{source}", {"init": init, "e": module.empty})


@pytest.mark.parametrize("source", CALLS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_bits(source):
    a, b = call(source, torch, theirs), call(source, flambeau, ours)
    assert np.array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("source", ALMOST)
def test_values(source):
    a, b = call(source, torch, theirs), call(source, flambeau, ours)
    np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("source", ERRORS)
def test_errors(source):
    caught = []
    for module, init in ((torch, theirs), (flambeau, ours)):
        with pytest.raises(ValueError) as info:
            call(source, module, init)
        caught.append(str(info.value))
    assert caught[1] == caught[0]


@pytest.mark.parametrize("source", WARNINGS)
def test_warnings(source):
    caught = []
    for module, init in ((torch, theirs), (flambeau, ours)):
        with warnings.catch_warnings(record=True) as records:
            warnings.simplefilter("always")
            call(source, module, init)
        caught.append([(w.category, str(w.message).replace("flambeau.", "torch.")) for w in records])
    assert caught[1] == caught[0]


@pytest.mark.parametrize("name", [*ours.UNIT_GAIN, "tanh", "relu", "leaky_relu", "selu"])
def test_gain(name):
    assert ours.calculate_gain(name) == theirs.calculate_gain(name)


def test_result_is_the_tensor():
    p = flambeau.nn.Parameter(flambeau.empty(2, 2))
    assert ours.normal_(p) is p
    assert p.requires_grad
    assert p.grad_fn is None
