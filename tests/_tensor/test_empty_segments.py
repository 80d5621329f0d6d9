"""`segment_reduce` of data without elements: results, gradients and refusals as PyTorch's."""

from __future__ import annotations

import math
from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]


def outcome(torch: Any, shape: tuple[int, ...], reduce: str, **options: Any) -> Any:
    """The values, the dtype and the shape of the gradient, or the error."""
    given = {key: torch.tensor(value, dtype=torch.int64) if isinstance(value, list) else value
             for key, value in options.items()}
    x = torch.ones(shape, dtype=torch.float64, requires_grad=True)
    try:
        made = torch.segment_reduce(x, reduce, **given)
        made.nan_to_num().sum().backward()
    except RuntimeError as error:
        return str(error)
    values = [None if math.isnan(value) else value for value in made.flatten().tolist()]
    return values, tuple(made.shape), str(made.dtype).split(".")[1], tuple(x.grad.shape)


@pytest.mark.parametrize("reduce", ["sum", "max", "mean", "min", "prod"])
@pytest.mark.parametrize("initial", [None, 0, 2.0])
def test_empty_data_have_empty_segments(reduce, initial):
    results = []
    for torch in (flambeau, pytorch):
        results.append([outcome(torch, shape, reduce, initial=initial, **options) for shape, options in (
            ((0,), {"lengths": [0, 0]}), ((0, 2), {"lengths": [0, 0]}), ((0, 0), {"offsets": [0, 0, 0]}),
            ((0,), {"lengths": [0, 0], "unsafe": True}), ((0,), {"offsets": [0]}), ((0,), {"lengths": []}),
            ((0,), {"lengths": [1]}), ((2, 0), {"lengths": [1, 1]}),
            ((2, 0), {"lengths": [[0, 0], [0, 0]], "axis": 1}), ((2, 0), {"lengths": [[1, 1]], "axis": 1}))])
    assert results[0] == results[1]
