"""Grad modes as context managers and decorators; dual numbers; the functional interface."""

from __future__ import annotations

import pytest

import flambeau as torch


def test_no_grad_and_enable_grad_nest():
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_modes_decorate_functions_and_generators():
    @torch.no_grad()
    def function():
        return torch.is_grad_enabled()

    @torch.no_grad
    def bare():
        return torch.is_grad_enabled()

    @torch.no_grad()
    def generator():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    assert not function()
    assert not bare()
    inside = []
    for value in generator():
        inside.append(value)
        assert torch.is_grad_enabled()
    assert inside == [False, False]


def test_set_grad_enabled_acts_at_once():
    try:
        torch.set_grad_enabled(False)
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_inference_mode():
    x = torch.ones(2, requires_grad=True)
    with torch.inference_mode():
        y = x * 2
        assert torch.is_inference_mode_enabled()
        assert not torch.is_grad_enabled()
    assert y.is_inference()
    assert not y.requires_grad
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        _ = y._version
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        y.add_(1)


def test_tangents_live_inside_the_level_only():
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
        y = x * x + torch.sin(x)
        assert abs(forward_ad.unpack_dual(y).tangent.item() - 5.0100) < 1e-4
    assert forward_ad.unpack_dual(y).tangent is None
    with pytest.raises(RuntimeError, match="no level exists"):
        forward_ad.make_dual(torch.tensor(3.0), torch.tensor(1.0))
    with forward_ad.dual_level(), pytest.raises(RuntimeError, match="Nested forward mode"):
        forward_ad.enter_dual_level()


def test_forward_over_reverse_and_reverse_over_forward():
    def f(x):
        return (x**3).sum()

    x = torch.tensor([1.0, 2.0])
    _, forward_over_reverse = torch.func.jvp(torch.func.grad(f), (x,), (torch.ones(2),))
    reverse_over_forward = torch.func.grad(lambda x: torch.func.jvp(f, (x,), (torch.ones(2),))[1])(x)
    assert forward_over_reverse.tolist() == reverse_over_forward.tolist() == [6.0, 12.0]


def test_jacobians_agree():
    def f(x):
        return torch.stack([x[0] * x[1] * x[2], x[0] + x[1] ** 2])

    at = torch.tensor([1.0, 2.0, 3.0])
    expected = [[6.0, 3.0, 2.0], [1.0, 4.0, 0.0]]
    assert torch.func.jacrev(f)(at).tolist() == expected
    assert torch.func.jacfwd(f)(at).tolist() == expected
    assert torch.autograd.functional.jacobian(f, at).tolist() == expected
    columns = torch.autograd.functional.jacobian(f, at, vectorize=True, strategy="forward-mode")
    assert columns.tolist() == expected


def test_hessians_agree():
    def f(x):
        return (x**3).sum() + x[0] * x[1]

    at = torch.tensor([1.0, 2.0])
    expected = [[6.0, 1.0], [1.0, 12.0]]
    assert torch.func.hessian(f)(at).tolist() == expected
    assert torch.autograd.functional.hessian(f, at).tolist() == expected
    assert torch.autograd.functional.hvp(f, at, torch.ones(2))[1].tolist() == [7.0, 13.0]
    assert torch.autograd.functional.vhp(f, at, torch.ones(2))[1].tolist() == [7.0, 13.0]
