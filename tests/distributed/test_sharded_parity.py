"""Distributed tensors, tensor parallelism and fully sharded data parallelism, compared with PyTorch's on gloo."""

from __future__ import annotations

import pytest

from .ranks import differences

pytestmark = pytest.mark.parity


def test_distributed_tensors():
    pytest.importorskip("torch")
    assert not differences("distributed_tensors", 2)


def test_sharded_training():
    pytest.importorskip("torch")
    assert not differences("sharded_training", 2)
