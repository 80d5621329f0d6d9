"""Collectives of three processes, compared with PyTorch's on gloo."""

from __future__ import annotations

import pytest

from .ranks import differences

pytestmark = pytest.mark.parity


def test_collectives():
    pytest.importorskip("torch")
    assert not differences("collectives", 3)


def test_distributed_data_parallel():
    pytest.importorskip("torch")
    assert not differences("data_parallel", 2)


def test_local_sgd():
    pytest.importorskip("torch")
    assert not differences("local_sgd", 4)


def test_compared_collectives():
    pytest.importorskip("torch")
    assert not differences("compared_collectives", 2)
