"""The training step under `DistributedDataParallel`: its models, and the turns of two processes."""

from __future__ import annotations

import pytest

import flambeau
from benchmarks.data_parallel import ROWS, _Peer


@pytest.mark.parametrize("row", ["mlp", "gpt", "many_small"])
def test_models_of_rows(row):
    net, loss = ROWS[row](flambeau)
    loss(net).backward()
    assert all(each.grad is not None for each in net.parameters())


def test_a_turn():
    peer = _Peer("flambeau", "many_small", compiled=False)  # few kernels
    assert all(0 < each < 60 for each in peer.turn())
    peer.end()
    assert peer.process.returncode == 0
