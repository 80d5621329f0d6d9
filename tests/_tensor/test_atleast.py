"""`atleast_1d`, `atleast_2d` and `atleast_3d` of one tensor, of several, of lists, and of what is none."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


def outcome(call: Any, *args: Any) -> Any:
    """The type of a result and its shapes, or the error."""
    try:
        made = call(*args)
    except Exception as error:
        return type(error).__name__, str(error)
    if isinstance(made, tuple):
        return "tuple", [tuple(x.shape) for x in made]
    return "a tensor", tuple(made.shape)


@pytest.mark.parametrize("name", ["atleast_1d", "atleast_2d", "atleast_3d"])
def test_tensors_have_at_least_so_many_dimensions(name):
    results = []
    for torch in (flambeau, pytorch):
        a, b, c, d = torch.tensor(1.), torch.ones(2), torch.ones(2, 3), torch.ones(2, 3, 4)
        calls = [(a,), (b,), (c,), (d,), (a, b), (a, b, c, d), (a,) * 10, ([a, b],), ((a, b, c),), ([a] * 10,), ([],),
                 (), (a, 2), ([a, 2],), (2, a), (1,), (None,), ("a",), ([1, 2],)]
        results.append([outcome(getattr(torch, name), *args) for args in calls])
    assert results[0] == results[1]


def test_gradients_reach_each_of_several_tensors():
    results = []
    for torch in (flambeau, pytorch):
        a, b = torch.tensor(1., requires_grad=True), torch.ones(2, requires_grad=True)
        x, y = torch.atleast_2d(a, b)
        (x.sum() * y.sum()).backward()
        results.append((a.grad.tolist(), b.grad.tolist()))
    assert results[0] == results[1]
