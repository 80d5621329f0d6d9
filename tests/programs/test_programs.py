"""Programs as users write them print under flambeau what they print under PyTorch, to the character.

Each program of this folder runs as `python -W default -m flambeau run program.py`; what it must
print is stored in `expected/`, written by PyTorch (see `oracle.py`), so PyTorch is not needed here.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.programs.transcript import EXPECTED, HERE, PROGRAMS, transcript

ROOT = HERE.parents[1]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_program_prints_what_it_prints_under_pytorch(program):
    done = subprocess.run([sys.executable, "-W", "default", "-m", "flambeau", "run", str(program)],
                          capture_output=True, cwd=ROOT, env=dict(os.environ, PYTHONIOENCODING="utf-8"))
    said = transcript(program, done.stdout.decode(), done.stderr.decode(), done.returncode)
    assert said.splitlines() == (EXPECTED / f"{program.stem}.txt").read_text(encoding="utf-8").splitlines()


def test_every_stored_output_has_its_program():
    assert {path.stem for path in EXPECTED.glob("*.txt")} == {program.stem for program in PROGRAMS}


@pytest.mark.parity
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None or not hasattr(os, "fork"),
                    reason="PyTorch, and a system that forks")
def test_the_stored_outputs_are_pytorchs():
    code = "import json; from tests.programs.oracle import *\nprint(json.dumps(transcripts(PROGRAMS)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, check=True)
    import json
    for name, said in json.loads(done.stdout).items():
        assert said.splitlines() == (EXPECTED / f"{name}.txt").read_text(encoding="utf-8").splitlines(), name
