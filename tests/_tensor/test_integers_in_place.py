"""Numbers that are added in place, `count += 1`: the values, versions, graphs and errors of the general path."""

from __future__ import annotations

import pytest

import flambeau as torch
from flambeau.modes import special

STEPS = {
    "add": lambda x, n: x.add_(n), "+=": lambda x, n: x.__iadd__(n), "sub": lambda x, n: x.sub_(n),
    "*=": lambda x, n: x.__imul__(n), "div": lambda x, n: x.div_(n)}
TENSORS = {
    "count": lambda: torch.tensor(3), "integers": lambda: torch.arange(6).view(2, 3),
    "wrapping": lambda: torch.tensor([2 ** 62, -(2 ** 62)]), "column": lambda: torch.arange(6).view(2, 3)[:, 1],
    "floats": lambda: torch.ones(2, 3), "double": lambda: torch.ones(3, dtype=torch.float64),
    "expanded": lambda: torch.tensor(1).expand(3), "bool": lambda: torch.tensor([True, False]),
    "int32": lambda: torch.tensor([1, 2], dtype=torch.int32), "half": lambda: torch.ones(2, dtype=torch.float16),
    "leaf": lambda: torch.ones(2, requires_grad=True), "graph": lambda: torch.ones(2, requires_grad=True) * 2}


def outcome(make, step, number):
    x = make()
    try:
        result = step(x, number)
    except (RuntimeError, OverflowError) as error:
        return type(error), str(error)
    node = result.grad_fn
    return (result is x, x.tolist(), x.dtype, x._version, type(node).__name__, getattr(node, "_saved_other", None))


@pytest.mark.parametrize("number", [1, -3, 4, 2 ** 24, 2 ** 24 + 1, 2 ** 40, True, 1.5])
@pytest.mark.parametrize("name", TENSORS)
def test_as_the_general_path(name, number):
    for step in STEPS.values():
        found = outcome(TENSORS[name], step, number)
        special[0] += 1
        try:
            expected = outcome(TENSORS[name], step, number)
        finally:
            special[0] -= 1
        assert found == expected


def test_inference_tensors():
    with torch.inference_mode():
        x = torch.tensor(1)
        assert x.add_(1).item() == 2
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        x.add_(1)


def test_saved_integers_are_modified():
    x, index = torch.ones(3, requires_grad=True), torch.tensor([0, 1])
    y = x[index]
    index += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
