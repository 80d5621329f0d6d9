"""Second derivatives through in-place operators: saved copies of inputs, and saved results, have tangents too."""

from __future__ import annotations

import pytest

import flambeau as torch

PROGRAMS = {
    "saves its input": (lambda t: t.mul(2).sin_().sum(), lambda t: t.mul(2).sin().sum()),
    "saves its result": (lambda t: t.mul(2).exp_().sum(), lambda t: t.mul(2).exp().sum()),
    "two inputs": (lambda t: t.mul(2).mul_(t).div_(t.exp()).sum(), lambda t: (t * 2 * t / t.exp()).sum()),
    "two writes": (lambda t: t.mul(2).sin_().cos_().sum(), lambda t: t.mul(2).sin().cos().sum()),
    "inplace=": (lambda t: torch.nn.functional.silu(t.mul(2), inplace=True).sum(),
                 lambda t: torch.nn.functional.silu(t.mul(2)).sum()),
}


def through_a_view(t):
    y = t.mul(2)
    y[:1].exp_()
    return y.sum()


PROGRAMS["a view"] = (through_a_view, lambda t: (t[:1] * 2).exp().sum() + (t[1:] * 2).sum())


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("second", ["jacfwd of jacrev", "jacfwd of grad", "jacrev of grad", "jacfwd twice"])
def test_second_derivatives(program, second):
    func = torch.func
    transform = {"jacfwd of jacrev": func.hessian, "jacfwd of grad": lambda f: func.jacfwd(func.grad(f)),
                 "jacrev of grad": lambda f: func.jacrev(func.grad(f)),
                 "jacfwd twice": lambda f: func.jacfwd(func.jacfwd(f))}[second]
    in_place, out_of_place = PROGRAMS[program]
    x = torch.tensor([0.3, 0.5], dtype=torch.float64)
    torch.testing.assert_close(transform(in_place)(x), transform(out_of_place)(x))


def test_a_dual_tensors_gradient():
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        x = torch.tensor([0.3, 0.5], dtype=torch.float64, requires_grad=True)
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        gradient, = torch.autograd.grad(dual.mul(2).exp_().sum(), dual, create_graph=True)
        tangent = forward_ad.unpack_dual(gradient).tangent
    torch.testing.assert_close(tangent, 4 * (2 * x).exp())
