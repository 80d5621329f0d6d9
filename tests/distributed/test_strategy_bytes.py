"""What a step of each strategy sends is what the theory says."""

from __future__ import annotations

import pytest

from .strategy_bytes import THEORY, compared


@pytest.mark.parametrize("size", [2, 4])
def test_bytes_are_those_of_the_theory(size):
    rows = compared(size)
    assert len(rows) == size * len(THEORY)
    assert not [row for row in rows if not row[-1]]
