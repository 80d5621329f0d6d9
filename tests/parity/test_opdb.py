"""PyTorch's operator samples give the same on flambeau: one test an operator, all gating checks in it.

FLAMBEAU_PARITY_SAMPLES sets how many samples each check takes (default 4); replay a failure with the
command line its message ends in.
"""

from __future__ import annotations

import functools
import importlib
import os
import warnings

import pytest

pytest.importorskip("torch", reason="PyTorch is the oracle")
pytest.importorskip("expecttest", reason="PyTorch's operator table needs it")

import torch

from . import deviations, opdb
from .bridge import Side, candidate_name
from .outcome import Outcome
from .runs import Run
from .suite import GATING, run_check

pytestmark = pytest.mark.usefixtures("every_warning")

SAMPLES = int(os.environ.get("FLAMBEAU_PARITY_SAMPLES", "4"))
THOROUGH = 30  # with fewer samples, a ledger line that excuses nothing may have missed its sample
SHOWN = 12


@functools.cache
def sides() -> tuple[Side, Side]:
    """(PyTorch, the candidate)."""
    torch.set_num_threads(1)
    return Side.named("torch"), Side(importlib.import_module(candidate_name()))


@functools.cache
def ledger() -> list[deviations.Deviation]:
    return deviations.read()


def to_test() -> list[str]:
    """The promised operators and any others that exist."""
    _, have = sides()
    return [n for n, op in opdb.operators().items() if n in opdb.REQUIRED or opdb.present(op, have)]


def test_promised_operators_are_in_the_table() -> None:
    assert sorted(set(opdb.REQUIRED) - set(opdb.operators())) == []


@pytest.mark.parametrize("name", to_test())
def test_operator(name: str) -> None:
    want, have = sides()
    op = opdb.operators()[name]
    if (absent := opdb.absence(op, have)) is not None:
        judge(name, [Outcome(name, "present", "-", "-", absent)], ("present",))
        return
    run = Run(op, want, have, SAMPLES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the sample makers'; calls under test record their own
        failures = [o for check in GATING for o in run_check(run, check) if not o.ok]
    judge(name, failures, GATING)


@pytest.mark.parametrize(
    "name", sorted({n for op in opdb.operators().values() for n in opdb.dtype_names(op)})
)
def test_dtype(name: str) -> None:
    """The `dtypes` check passes over a dtype the candidate has not; that it has it is tested here."""
    there = sides()[1].has_dtype(name)
    judge(name, [] if there else [Outcome(name, "present", name, "-", f"missing {name}")], ("present",))


def judge(name: str, failures: list[Outcome], checks: tuple[str, ...]) -> None:
    """Fail for what the ledger does not list, expect what it does, and tell which lines can go."""
    lines = [d for d in ledger() if d.concerns(name) and d.check in checks]
    new = [o for o in failures if not any(d.excuses(o) for d in lines)]
    for line in lines:
        if SAMPLES >= THOROUGH and not any(map(line.excuses, failures)):
            warnings.warn(f"torch_deviations.txt:{line.line} can go: {line.op} | {line.check}", stacklevel=1)
    if new:
        shown = [f"{o.check} {o.dtype} #{o.sample}: {o.reason}\n    {o.replay()}" for o in new[:SHOWN]]
        more = [f"... and {len(new) - SHOWN} more"] if len(new) > SHOWN else []
        pytest.fail("\n".join([f"{name}: {len(new)} differences", *shown, *more]), pytrace=False)
    if failures:
        pytest.xfail("; ".join(dict.fromkeys(d.reason for d in lines if any(map(d.excuses, failures)))))
