"""A fixed range of seeds, on every run; thousands more are a command away (see the package)."""

from __future__ import annotations

import importlib.util

import pytest

from .differential import checked, explained

pytestmark = [
    pytest.mark.parity,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle"),
    pytest.mark.usefixtures("every_warning"),
]

_EACH = 40


@pytest.mark.parametrize("first", range(0, 3 * _EACH, _EACH))
def test_programs_that_mix_dtypes_devices_and_transforms(first):
    for seed in range(first, first + _EACH):
        program, found = checked(seed, mixed=True)
        assert found is None, "\n" + explained(seed, program, found)


@pytest.mark.parametrize("first", range(0, 10 * _EACH, _EACH))
def test_random_programs_do_what_they_do_under_pytorch(first):
    for seed in range(first, first + _EACH):
        program, found = checked(seed)
        assert found is None, "\n" + explained(seed, program, found)
