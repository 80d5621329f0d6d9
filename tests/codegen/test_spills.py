"""The innermost loops of matmul and convolution keep their accumulators in registers, on several processors.

If LLVM runs out of registers it spills accumulators to the stack at every step, which no test of results notices.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.codegen.spills import PROCESSORS


@pytest.mark.parametrize("cpu", PROCESSORS)
def test_inner_loops_spill_no_vectors(cpu):
    done = subprocess.run([sys.executable, "-m", "tests.codegen.spills", cpu], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loops = [json.loads(line) for line in done.stdout.splitlines()]
    assert len({loop["code"] for loop in loops}) > 6
    assert not [loop for loop in loops if loop["spilled"]]
    # few instructions are neither multiply-adds nor their loads: no loop is bound by the front end
    assert all(loop["instructions"] < 3 * loop["products"] + 12 for loop in loops), max(
        loops, key=lambda loop: loop["instructions"] / loop["products"])
