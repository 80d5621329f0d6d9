"""Random calls, and programs about objects: seeds of topics on which flambeau and PyTorch agree."""

from __future__ import annotations

import importlib.util

import pytest

from . import calls, objects
from .differential import explained

pytestmark = [
    pytest.mark.parity,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle"),
    pytest.mark.usefixtures("every_warning"),
]


@pytest.mark.parametrize(("topic", "programs"), [
    ("_printed", 60), ("_copied", 60), ("_fit", 20), ("_written", 40), ("_hooked", 30), ("_parametrized", 30),
    ("_sampled", 30), ("_functional", 40), ("_shown", 60)])
def test_programs_about_objects(topic, programs):
    for seed in range(programs):
        program, found = objects.checked(seed, topic)
        assert found is None, "\n" + explained(seed, program, found)


@pytest.mark.parametrize("name", ["where", "cat", "permute", "logical_not_", "sigmoid", "gather", "stack", "lerp"])
def test_calls_of_an_operator(name):
    for seed in range(25):
        program, found = calls.checked(seed, [name])
        assert found is None, "\n" + explained(seed, program, found)
