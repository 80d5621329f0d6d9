"""Counts of many numbers by a kernel: those of NumPy, lengths, refused numbers."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau as torch
from flambeau import codegen
from flambeau.backends.compiled.thresholds import COPIES

pytestmark = pytest.mark.skipif(not codegen.available(), reason="no generated code")
MANY = COPIES[0] + 3


@pytest.mark.parametrize("largest", [0, 1, 40, 5000, 1 << 14, 1 << 16])
@pytest.mark.parametrize("least", [0, 50, 20000])
def test_counts(largest, least):
    numbers = np.random.default_rng(0).integers(0, largest + 1, MANY)
    found = torch.bincount(torch.from_numpy(numbers), minlength=least)
    assert np.array_equal(found.numpy(), np.bincount(numbers, minlength=least))
    assert np.array_equal(torch.bincount(torch.from_numpy(numbers[::2]), minlength=least).numpy(),
                          np.bincount(numbers[::2], minlength=least))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int8, torch.uint8])
def test_dtypes_and_refused_numbers(dtype):
    numbers = torch.arange(MANY) % 100
    assert torch.equal(torch.bincount(numbers.to(dtype)), torch.bincount(numbers))
    if dtype is not torch.uint8:
        for count in (5, MANY):
            refused = numbers[:count].to(dtype)
            refused[count // 2] = -1
            with pytest.raises(RuntimeError, match="only supports 1-d non-negative integral inputs"):
                torch.bincount(refused)
