"""`torch.Size` of the sizes of nested tensors."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]


def test_sizes_with_a_ragged_dimension() -> None:
    def sizes(t: Any) -> Any:
        shape = t.nested.nested_tensor([t.ones(2), t.ones(3)], layout=t.jagged).shape
        ragged = shape[1]
        return [type(s[1]).__name__ for s in (t.Size(shape), t.Size([2, ragged]), t.Size((ragged, ragged)))] + [
            t.Size(shape) == shape, t.Size([2, ragged])[1] is ragged or t.Size([2, ragged])[1] == ragged]

    assert sizes(flambeau) == sizes(torch)
