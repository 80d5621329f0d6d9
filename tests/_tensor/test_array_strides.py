"""NumPy arrays whose strides no tensor can have."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def overlapping() -> np.ndarray:
    return np.lib.stride_tricks.as_strided(np.array([3.0, 5.0, 8.0]), (2,), (3,))


ARRAYS = {"no multiple": overlapping, "a field": lambda: np.zeros(3, [("a", "i1"), ("b", "f8")])["b"],
          "negative": lambda: np.arange(6)[::-1], "negative of length 1": lambda: np.ones((1, 3))[::-1],
          "another byte order": lambda: np.ones(3, ">f8"), "transposed": lambda: np.ones((2, 3)).T,
          "every second one": lambda: np.arange(6)[::2]}


@pytest.mark.parametrize("function", ["from_numpy", "as_tensor", "tensor", "asarray"])
@pytest.mark.parametrize("array", ARRAYS)
def test_as_pytorch(array: str, function: str) -> None:
    def outcome(module):
        try:
            return getattr(module, function)(ARRAYS[array]()).stride()
        except ValueError as error:
            return str(error)

    assert outcome(flambeau) == outcome(torch)
