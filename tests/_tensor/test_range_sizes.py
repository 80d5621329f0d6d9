"""Ranges of more elements than there are addresses: PyTorch's errors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
CASES = [(1e30,), (0, 2**63 - 1), (0, float("inf")), (float("nan"),), (-2**63, 2**63 - 1), (0, 2**62, 2),
         (-5, -2**63, -1), (1, 1e18, 1e-3), (2**63,), (0, 1, 1e-30), (0, 2**65), (1, 0), (0, 1, 0), (2**45, 2**45 + 3),
         (2**62, 2**62 + 5, 2), (3, -2**45, -2**45), (0., 1e18, 5e17)]


def outcome(torch: Any, *args: Any) -> Any:
    """The values of a range, or the error."""
    try:
        made = torch.arange(*args)
    except Exception as error:
        return type(error).__name__, str(error)
    return made.tolist(), str(made.dtype).split(".")[1]


@pytest.mark.parametrize("args", CASES, ids=str)
def test_ranges_that_do_not_fit_are_refused(args):
    results = [outcome(torch, *args) for torch in (flambeau, pytorch)]
    assert results[0] == results[1]
