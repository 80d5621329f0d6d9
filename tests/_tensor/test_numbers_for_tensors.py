"""Numbers where operators take tensors: sums, differences, products and quotients, as functions and as overloads."""

from __future__ import annotations

from typing import Any

import pytest

import flambeau

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity
NAMES = ("add", "sub", "mul", "div", "divide", "multiply", "subtract", "true_divide")


def outcome(call: Any, *args: Any, **kwargs: Any) -> Any:
    """The values and the dtype of a result; what kind of error it is."""
    try:
        made = call(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    return made.tolist(), str(made.dtype).split(".")[1]


def operands(torch: Any) -> list[Any]:
    x, i = torch.arange(3.) + 1, torch.arange(3) + 1
    half = torch.tensor(2., dtype=torch.float16)
    return [(2, x), (2, i), (2.5, i), (2.5, half), (1j, x), (True, i), (2, 3), (2, True), (x, 2), (i, 2.5), (x, i)]


@pytest.mark.parametrize("name", [*NAMES, "floor_divide"])
@pytest.mark.parametrize("form", ["function", "packet", "overload"])
def test_a_number_is_either_operand(name, form):
    results = []
    for torch in (flambeau, pytorch):
        packet = getattr(torch.ops.aten, name)
        function = {"function": getattr(torch, name), "packet": packet,
                    "overload": packet.default if name == "floor_divide" else packet.Tensor}[form]
        given = operands(torch)[:-4] if name == "floor_divide" else operands(torch)  # PyTorch crashes on False
        results.append([outcome(function, *pair) for pair in given])
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["add", "sub"])
def test_the_first_operand_of_a_scaled_sum_is_a_number(name):
    results = []
    for torch in (flambeau, pytorch):
        function, packet = getattr(torch, name), getattr(torch.ops.aten, name)
        x, i = torch.arange(3.), torch.arange(3)
        out = torch.empty(0, dtype=torch.int64)
        results.append([
            outcome(function, 1, i, alpha=2), outcome(function, 1, 2, alpha=2), outcome(function, 1.5, x, alpha=0.5),
            outcome(function, 1, x, alpha=True), outcome(function, 1, i, alpha=2, out=out),
            outcome(packet, 1, i, alpha=2), outcome(packet.Tensor, 1, x, alpha=2)])
        y = torch.ones(2, requires_grad=True)
        function(3, y, alpha=2).sum().backward()
        results[-1].append(y.grad.tolist())
    assert results[0] == results[1]


@pytest.mark.parametrize("name", ["sin", "maximum", "atan2", "hypot", "logical_and"])
def test_other_operators_take_no_number_first(name):
    results = []
    for torch in (flambeau, pytorch):
        x = torch.ones(2)
        results.append(outcome(getattr(torch.ops.aten, name), 1, x))
    assert results[0] == results[1] == "RuntimeError"
