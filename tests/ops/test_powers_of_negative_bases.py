"""Gradients of powers by complex exponents, with negative bases."""

from __future__ import annotations

import pytest

from tests.autograd.differential import same


@pytest.mark.parametrize("exponent", ["complex64", "complex128", "float64"])
@pytest.mark.parametrize("base", ["float32", "float64", "complex64"])
def test_gradients_with_respect_to_the_exponent(base, exponent):
    def program(torch):
        x = torch.tensor([-1.5, 2.0, -0.5], dtype=getattr(torch, base), requires_grad=True)
        p = torch.tensor([0.7, -1.0, 3.3], dtype=getattr(torch, exponent), requires_grad=True)
        y = torch.pow(x, p)
        g = torch.autograd.grad(y, (x, p), torch.ones_like(y) * 2)
        return [t.to(torch.complex64).abs() for t in g], [t.dtype for t in g]

    same(program)


@pytest.mark.parametrize("base", [-1, -2.0, -1 + 2j, 2])
def test_gradients_with_respect_to_the_exponent_of_a_scalar(base):
    def program(torch):
        p = torch.tensor([0.5 + 1j, 2.0 - 1j], dtype=torch.complex128, requires_grad=True)
        return torch.autograd.grad(torch.pow(base, p).abs().sum(), p)[0].abs()

    same(program)
