"""The programs of this package, a few steps each, under both libraries; all steps are a command away."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from .catalogue import OWN, Program
from .comparison import Comparison
from .running import Run, here, run

_ALONE = [program for program in OWN if not program.needs]
_TUTORIALS = [program for program in _ALONE if "tutorials" in program.scripts[0][0]]
#: those that run in one process of each library
_TOGETHER = [[program for program in _ALONE if program not in _TUTORIALS], _TUTORIALS[::2], _TUTORIALS[1::2]]


@pytest.mark.parity
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is the oracle")
@pytest.mark.parametrize("programs", _TOGETHER, ids=["own", "tutorials", "more-tutorials"])
def test_programs_train_as_under_pytorch(tmp_path, programs):
    together = Program("together", tuple(program.scripts[0] for program in programs), ends=True, prints=True)
    theirs, mine = (run(together, here(oracle), tmp_path, Path(), 1, 300) for oracle in (True, False))
    assert len(mine.losses) >= len(programs)
    assert Comparison(together, mine, theirs).complaint is None


@pytest.mark.parametrize(("mine", "said"), [
    ([1.0, 1.5, 2.5, 3.4, 3.4, 3.4, 3.4], None),
    ([1.0, 1.5, 2.5, 3.8, 3.4, 3.4, 3.4], "loss 3 is 3.8 instead of 3.0; PyTorch's own differ by 2.0e-01"),
    ([1.6, 1.5, 2.5, 3.4, 3.4, 3.4, 3.4], "loss 0 is 1.6 instead of 1.0; PyTorch's own differ by 5.0e-02"),
])
def test_losses_may_differ_by_as_much_as_pytorchs_own(mine, said):
    theirs, again = [1.0, 1.5, 2.5, 3.0, 3.0, 3.0, 3.0], [1.0, 1.5, 2.5, 3.15, 3.0, 3.0, 3.6]
    program = Program("chaotic", ())
    first = Comparison(program, Run(mine, "", 1.0, None), Run(theirs, "", 1.0, None))
    assert first.losses_differ
    assert first.complaint is not None
    second = Comparison(program, first.flambeau, first.pytorch, (first.pytorch, Run(again, "", 1.0, None)))
    assert second.complaint == said
    assert second.pytorchs_own == pytest.approx(0.2)
