"""The benchmark of a GPU, on the fake device at tiny sizes."""

from __future__ import annotations

import pytest

from benchmarks import gpu
from flambeau import codegen


@pytest.mark.parametrize(("row", "column"), [("chain", gpu.COMPILED), ("mlp-tiny", gpu.EAGER),
                                             ("gpt2-generate", gpu.EAGER)])
def test_a_row_is_measured(row, column):
    found = gpu.child(row, column, 1, True, 1e-4)
    assert found["seconds"] > 0
    assert found["memory"] > 0
    if column == gpu.COMPILED and codegen.available():
        assert found["bytes"] > 0


def test_rooflines_and_sizes():
    assert gpu.roofline("NVIDIA A100", {"seconds": 1.0, "bytes": 1.0, "operations": 156e12}, True).startswith("50 %")
    assert not gpu.roofline("another", {"seconds": 1.0, "bytes": 1.0, "operations": 1.0}, False)
    assert gpu.grown({"side": 1024}, 16) == {"side": 4096}
    assert gpu.grown({}, 16) == {}
