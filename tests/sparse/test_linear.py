"""`linear` with a sparse weight, compared with PyTorch."""

from __future__ import annotations

import pytest

from tests.autograd.differential import same


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
@pytest.mark.parametrize("bias", [False, True])
def test_linear(layout, bias):
    def program(torch):
        results = []
        for shape in ((3,), (2, 3), (4, 2, 3)):
            if layout == "coo" and bias and len(shape) == 2:
                continue  # an error of PyTorch's addmm, which has an answer here
            weight = getattr(torch.tensor([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]]), f"to_sparse_{layout}")()
            weight.requires_grad_()
            x = torch.ones(shape, requires_grad=True)
            y = torch.nn.functional.linear(x, weight, torch.ones(2, requires_grad=True) if bias else None)
            y.sum().backward()
            results.append((y.grad_fn.name(), y.tolist(), weight.grad.to_dense().tolist(), x.grad.tolist()))
        return results

    same(program)
