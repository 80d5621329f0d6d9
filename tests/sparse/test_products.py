"""Products of sparse matrices whose sums over a row are another reduction."""

import pytest

import flambeau as torch


@pytest.mark.parametrize("reduce", ["sum", "mean", "max", "min", "amax", "amin"])
def test_reduced_products(reduce):
    a = torch.tensor([[0.0, 2.0, -1.0], [3.0, 0.0, 0.0]])
    x = torch.tensor([[1.0, -2.0], [0.5, 4.0], [3.0, 1.0]])
    products = [torch.stack([a[0, 1] * x[1], a[0, 2] * x[2]]), (a[1, 0] * x[0])[None]]
    expected = torch.stack([getattr(p, reduce if reduce[0] == "a" or reduce in ("sum", "mean") else "a" + reduce)(0)
                            for p in products])
    assert torch.equal(torch.sparse.mm(a.to_sparse_csr(), x, reduce), expected)


@pytest.mark.parametrize(("reduce", "text"), [("prod", "prod has not been enabled"), ("other", "got other")])
def test_reductions_that_there_are_not(reduce, text):
    with pytest.raises(RuntimeError, match=text):
        torch.sparse.mm(torch.eye(2).to_sparse_csr(), torch.eye(2), reduce)


@pytest.mark.parity
@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_gradients_of_reduced_products(reduce):
    pytorch = pytest.importorskip("torch")
    found = []
    for t in (pytorch, torch):
        x = t.tensor([[1.0, 0, 2], [0, 3, 3], [0, 0, 0], [-1, 1, 0]]).to_sparse_csr().requires_grad_()
        y = t.tensor([[1.0, 2], [3, 3], [3, -1]], requires_grad=True)  # with equal products in the second row
        product = t.sparse.mm(x, y, reduce)
        (product * t.arange(1.0, 9).reshape(4, 2)).sum().backward()
        found.append((type(product.grad_fn).__name__, x.grad.values().tolist(), y.grad.tolist()))
    assert found[1] == found[0]
