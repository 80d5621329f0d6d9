"""Strides of elementwise results, whose rule is applied once for each layout of the operands."""

from __future__ import annotations

import numpy as np
import pytest

from flambeau.kernels import memory_format
from flambeau.kernels.memory_format import elementwise_strides


@pytest.fixture(autouse=True)
def _no_layouts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_format, "_strides_of_layouts", {})


def test_operands_of_one_layout_share_an_entry() -> None:
    x, y = np.zeros((3, 2)).T, np.zeros((2, 3))
    assert [elementwise_strides((2, 3), pair) for pair in ([x, y], [y, x], [x + 1, y + 1], [y, x])] == [
        (1, 2), None, (1, 2), None]
    assert len(memory_format._strides_of_layouts) == 2


def test_element_sizes_and_broadcast_shapes_are_part_of_a_layout() -> None:
    wide = np.zeros((4, 6))[:, ::2]
    narrow = np.zeros((4, 6), np.float32)[:, ::2]
    row = np.zeros((1, 3)).T
    for shape, operands in [((4, 3), [wide]), ((4, 3), [narrow]), ((2, 3, 1), [row]), ((3, 1), [row])]:
        assert elementwise_strides(shape, operands) == memory_format._elementwise_strides(shape, operands)
    assert len(memory_format._strides_of_layouts) == 4


def test_entries_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_format, "_MAX_LAYOUTS", 5)
    for n in range(2, 20):
        assert elementwise_strides((2, n), [np.zeros((n, 2)).T]) == (1, 2)
        assert len(memory_format._strides_of_layouts) <= 5
