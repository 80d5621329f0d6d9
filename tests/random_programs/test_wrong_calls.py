"""Wrong calls: flambeau and PyTorch accept the same arguments of a function, and refuse others in the same words."""

from __future__ import annotations

import importlib.util

import pytest

from . import wrong_calls
from .differential import explained

pytestmark = [
    pytest.mark.parity,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle"),
    pytest.mark.usefixtures("every_warning"),
]


@pytest.mark.parametrize("name", ["tril", "flip", "gather", "median", "linalg.svd", "nn.functional.celu", "rot90",
                                  "mode", "cholesky_inverse", "index_add"])
def test_calls_with_an_argument_of_another_class(name):
    for seed in range(12):
        program, found = wrong_calls.checked(seed, name)
        assert found is None, "\n" + explained(seed, program, found, shorten=False)
