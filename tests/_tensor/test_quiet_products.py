"""Products of infinities and of large numbers: NumPy warns of them, as of NumPy 2.4 in BLAS too; PyTorch does not."""

from __future__ import annotations

import warnings

import pytest

import flambeau as torch

PRODUCTS = {
    "mm": lambda x, y, v: x.mm(y),
    "matmul": lambda x, y, v: x @ y,
    "matmul of a vector": lambda x, y, v: x @ v,
    "mv": lambda x, y, v: x.mv(v),
    "dot": lambda x, y, v: x[0].dot(v),
    "vdot": lambda x, y, v: x[0].vdot(v),
    "outer": lambda x, y, v: x[0].outer(v),
    "bmm": lambda x, y, v: x[None].bmm(y[None]),
    "addmm": lambda x, y, v: torch.addmm(y, x, y),
    "addmv": lambda x, y, v: torch.addmv(v, x, v),
    "einsum": lambda x, y, v: torch.einsum("ij,jk->ki", x, y),
    "linear": lambda x, y, v: torch.nn.functional.linear(x, y),
    "linear with bias": lambda x, y, v: torch.nn.functional.linear(x, y, v),
}


@pytest.mark.parametrize(("value", "other"), [(float("inf"), 0.0), (1e38, 1e38)])
@pytest.mark.parametrize("size", [1, 3, 80])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_do_not_warn(name, dtype, size, value, other):
    product, kind = PRODUCTS[name], getattr(torch, dtype)
    given = torch.full((size, size), value, dtype=kind)
    zeros, vector = torch.full((size, size), other, dtype=kind), torch.full((size,), other, dtype=kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(12):  # repeated calls are known
            product(given, zeros, vector)
            x, y, v = (t.clone().requires_grad_() for t in (given, zeros, vector))
            product(x, y, v).sum().backward()


def test_training_that_diverges_does_not_warn():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e30, momentum=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(8):
            optimizer.zero_grad()
            loss = (model(torch.ones(4, 3)) ** 2).mean()
            loss.backward()
            optimizer.step()
    assert torch.isnan(loss) or torch.isinf(loss)
