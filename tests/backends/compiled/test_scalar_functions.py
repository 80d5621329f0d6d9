"""The C library's functions over arrays by a built-in function: the bits of the module `math`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from flambeau import codegen
from flambeau.backends.compiled.families.random_words import scalar_function
from flambeau.kernels.random import libm

pytestmark = pytest.mark.skipif(not codegen.available(), reason="kernels are not compiled")


@pytest.mark.parametrize("name", ["log", "log1p", "exp", "cos", "sin", "tan"])
def test_bits_of_math(name: str) -> None:
    x = np.random.default_rng(0).random(5000) * 6
    found = scalar_function(name, x)
    assert found is not None
    assert found.tolist() == [libm._at_edge(getattr(math, name), each) for each in x.tolist()]
    assert x.min() >= 0  # the argument is left as it is


def test_what_math_refuses() -> None:
    found = [scalar_function("log1p", np.array([-1.0])), scalar_function("exp", np.array([1000.0]))]
    assert [None if each is None else each.tolist() for each in found] == [[-math.inf], [math.inf]]
    assert scalar_function("log", np.zeros(3, np.float32)) is None
