"""In-place operators with separate nodes: comparisons, whose gradient is zero, and others."""

from __future__ import annotations

from typing import Any

import pytest

from tests.autograd.differential import same


@pytest.mark.parametrize("other", ["w * 1", "0.5"])
@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_"])
def test_a_comparison_written_over_its_input_has_gradient_zero(name: str, other: str) -> None:
    def program(torch: Any) -> Any:
        x, w = torch.tensor([0.2, 0.7], requires_grad=True), torch.tensor([0.5, 0.5], requires_grad=True)
        y = x * 2
        getattr(y, name)(eval(other, {"w": w}))
        node = y.grad_fn.name()
        (y * x).sum().backward()
        return node, y, x.grad, w.grad

    assert same(program)[0].startswith(name[:2].title())


@pytest.mark.parametrize("name", ["acosh_", "asinh_", "atanh_", "conj_physical_"])
def test_functions_written_over_their_input(name: str) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([0.2, 0.7], dtype=torch.float64, requires_grad=True)
        y = x + (1 if name == "acosh_" else 0)
        getattr(y, name)()
        return y.grad_fn.name(), y  # PyTorch has no gradient of most of them; flambeau has

    assert same(program)[0].endswith("Backward1")


@pytest.mark.parametrize(("name", "args"), [("leaky_relu", (0.1,)), ("elu", (1.5,)), ("celu", (1.5,)), ("selu", ()),
                                            ("threshold", (0.1, 2.0))])
def test_activations_written_over_their_input(name: str, args: tuple[float, ...]) -> None:
    def program(torch: Any) -> Any:
        x = torch.tensor([-0.2, 0.7], requires_grad=True)
        y = getattr(torch.nn.functional, name)(x * 1, *args, inplace=True)
        y.sum().backward()
        return y.grad_fn.name(), y, x.grad

    assert same(program)[0].endswith("Backward1")


def test_the_tangent_of_a_comparison_is_zero() -> None:
    def program(torch: Any) -> Any:
        forward = torch.autograd.forward_ad
        with forward.dual_level():
            y = forward.make_dual(torch.ones(2), torch.ones(2)) * 1
            y.eq_(1.0)
            return forward.unpack_dual(y).tangent

    same(program)


@pytest.mark.parametrize("layer", ["w.t()", "linear", "batches"])
def test_error_names_the_view_of_a_written_weight(layer: str) -> None:
    def program(torch: Any) -> Any:
        w, b = torch.ones(8, 4, requires_grad=True), torch.zeros(8, requires_grad=True)
        x = torch.ones(3, 4, requires_grad=True) * 1
        if layer == "w.t()":
            y = x @ w.t()
        else:
            y = torch.nn.functional.linear(x if layer == "linear" else x.view(1, 3, 4), w, b)
        with torch.no_grad():
            w.add_(1)
        try:
            y.sum().backward()
        except RuntimeError as error:
            return str(error)

    assert "which is output 0 of AsStrided, is at version 1" in same(program)
