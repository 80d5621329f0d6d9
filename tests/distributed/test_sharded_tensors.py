"""`torch.distributed._shard`: tensors whose parts are in several processes."""

from __future__ import annotations

import pytest

from .ranks import run


@pytest.mark.parity
def test_processes_see_what_they_see_in_pytorch() -> None:
    assert run("sharded_tensors", "flambeau", 2) == run("sharded_tensors", "torch", 2)


def test_sharded_tensors_are_compared_in_all_processes() -> None:
    """PyTorch's comparison needs an accelerator."""
    assert run("compared_shards", "flambeau", 2) == [[True, False, True, False]] * 2
