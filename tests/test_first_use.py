"""What is imported on first use is there in a process that has imported the package only."""

from __future__ import annotations

import subprocess
import sys

import pytest

SUBMODULES = ("export.custom_ops", "export.decomp_utils", "fx._utils", "fx.config", "profiler.profiler",
              "testing._comparison", "testing._internal", "optim.lr_scheduler", "utils.data", "nn.utils.parametrize")


@pytest.mark.parametrize("name", SUBMODULES)
def test_submodules_are_attributes_of_their_packages(name):
    code = f"import flambeau as torch; print(torch.{name}.__name__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found.strip() == f"flambeau.{name}"


def test_the_first_profile_has_spans_of_functions_that_were_not_used_before():
    code = ("import flambeau as torch\n"
            "with torch.autograd.profiler.profile() as prof:\n"
            "    torch.ones(3).max()\n"
            "    torch.nn.functional.linear(torch.zeros(1, 2), torch.zeros(2, 2))\n"
            "print(*(event.name for event in prof.function_events))")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert {"aten::ones", "aten::max", "aten::zeros", "aten::linear"} <= set(found.split())
