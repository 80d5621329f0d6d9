"""Every strategy on two and four processes: the losses of one process, and those of PyTorch on gloo."""

from __future__ import annotations

import pytest

from .ranks import run
from .same_losses.comparison import TOLERANCE, error, reports
from .same_losses.records import MODELS, STRATEGIES


@pytest.fixture(scope="module")
def one_process():
    return run("same_losses", "flambeau", 1)[0]


@pytest.fixture(scope="module")
def of_two():
    return reports("flambeau", 2)


def records(size):
    return {(model, strategy.name) for strategy in STRATEGIES if size in strategy.meshes for model in MODELS}


def check(found, size, expected):
    assert found.keys() == records(size)
    errors = {key: error(losses, expected(key)) for key, losses in found.items()}
    assert not {key: each for key, each in errors.items() if each > TOLERANCE}


def test_two_processes(one_process, of_two):
    check(of_two, 2, lambda key: [one_process[key[0]]] * 2)


def test_four_processes(one_process):
    check(reports("flambeau", 4), 4, lambda key: [one_process[key[0]]] * 4)


@pytest.mark.parity
def test_two_processes_beside_pytorch(of_two):
    pytest.importorskip("torch")
    theirs = reports("torch", 2)
    check(of_two, 2, theirs.get)
