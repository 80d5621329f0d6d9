"""The programs of this package, a few steps each, under both libraries; all steps are a command away."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from .catalogue import OWN, Program
from .comparison import Comparison
from .running import here, run

_TOGETHER = [program for program in OWN if not program.needs]  # in one process of each library


@pytest.mark.parity
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle")
def test_programs_train_as_under_pytorch(tmp_path):
    together = Program("together", tuple(program.scripts[0] for program in _TOGETHER), ends=True, prints=True)
    theirs, mine = (run(together, here(oracle), tmp_path, Path(), 1, 300) for oracle in (True, False))
    assert len(mine.losses) >= len(_TOGETHER)
    assert Comparison(together, mine, theirs).complaint is None
