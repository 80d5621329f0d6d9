"""Operators of strided nested tensors whose operands do not fit: PyTorch's refusals."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = [pytest.mark.parity, pytest.mark.filterwarnings("ignore::UserWarning")]


def outcome(call: Any, *args: Any, **kwargs: Any) -> Any:
    """The shapes of the components of a result, or the error."""
    try:
        made = call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
    return [tuple(part.shape) for part in made.unbind()]


def operand(torch: Any, name: str) -> Any:
    shapes = {"empty": [], "vectors": [(2,), (3,)], "matrices": [(2, 4), (3, 4)], "three": [(4, 6), (4, 5), (4, 7)],
              "factors": [(4, 6), (4, 5)], "batches": [(2, 2, 4), (2, 3, 4)], "other batches": [(3, 4, 6), (3, 4, 5)],
              "broadcast": [(1, 4, 6), (3, 4, 5)], "fitting batches": [(2, 4, 6), (2, 4, 5)],
              "wide": [(2, 12), (30, 4)]}
    if name == "dense":
        return torch.ones(2, 4, 3)
    if name == "dense vector":
        return torch.ones(4)
    return torch.nested.nested_tensor([torch.ones(shape) for shape in shapes[name]])


NAMES = ("empty", "vectors", "matrices", "three", "factors", "batches", "other batches", "broadcast",
         "fitting batches", "wide", "dense", "dense vector")


@pytest.mark.parametrize("left", NAMES)
def test_products_are_refused_as_pytorchs(left):
    results = []
    for torch in (flambeau, pytorch):
        results.append([])
        for right in NAMES:
            if left.startswith("dense") and right.startswith("dense"):
                continue
            a, b = operand(torch, left), operand(torch, right)
            results[-1] += [(right, outcome(torch.matmul, a, b)), (right, outcome(torch.bmm, a, b))]
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_elementwise_operands_are_refused_as_pytorchs(name):
    results = []
    for torch in (flambeau, pytorch):
        function, nested = getattr(torch, name), torch.nested.nested_tensor
        square, matrices = nested([torch.ones(4, 4), torch.ones(4, 4)]), operand(torch, "matrices")
        parts = nested([torch.ones(i, 4) for i in (3, 4, 5)]).chunk(2, -1)
        again = nested([torch.ones(i, 4) for i in (3, 4, 5)]).chunk(2, -1)
        results.append([outcome(function, square.transpose(1, 2), square), outcome(function, *parts),
                        outcome(function, parts[0], again[0]), outcome(function, parts[1], parts[1]),
                        outcome(function, matrices, square), outcome(function, matrices, operand(torch, "three")),
                        outcome(function, matrices, matrices + 1), outcome(function, matrices, 2)])
        if name in ("add", "mul"):
            in_place = getattr(matrices, f"{name}_")
            results[-1] += [outcome(in_place, square), outcome(in_place, matrices),
                            outcome(getattr(square, f"{name}_"), square.transpose(1, 2))]
    assert results[0] == results[1]


def test_memory_formats_of_images_are_refused():
    results = []
    for torch in (flambeau, pytorch):
        x = operand(torch, "matrices")
        formats = (torch.channels_last, torch.channels_last_3d, torch.contiguous_format, torch.preserve_format)
        results.append([outcome(x.clone, memory_format=each) for each in formats]
                       + [outcome(x.to, torch.float64, memory_format=each) for each in formats])
    assert results[0] == results[1]
