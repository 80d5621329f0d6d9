"""`scatter_reduce` and `index_reduce` of products with two zeros at one position: no second derivative."""

from __future__ import annotations

import pytest

from tests.autograd.differential import attempt, same


@pytest.mark.parametrize("values", [[2.0, 3.0], [0.0, 3.0], [0.0, 0.0]])
@pytest.mark.parametrize("name", ["scatter_reduce", "index_reduce"])
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_the_second_derivative_of_a_product(name, values):
    def program(torch):
        x = torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
        src = torch.tensor(values, dtype=torch.float64, requires_grad=True)
        y = getattr(torch, name)(x, 0, torch.tensor([0, 0]), src, "prod")
        first = torch.autograd.grad(y * y, (x, src), torch.ones(1, dtype=torch.float64), create_graph=True)
        second = attempt(lambda: torch.autograd.grad((first[0] * 2).sum() + (first[1] * 3).sum(), (x, src)))
        return [g.detach().tolist() for g in first], second if isinstance(second, str) else [
            g.tolist() for g in second]

    said = same(program)
    assert isinstance(said[1], str) == (values == [0.0, 0.0])
