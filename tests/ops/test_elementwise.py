"""PyTorch's conventions of elementwise operators: special points, dtypes, errors, Python's operators.

Expected values are PyTorch's.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional
INF, NAN = math.inf, math.nan


def gradient(f: Any, *values: Any) -> list[list[float]]:
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    return [g.tolist() for g in torch.autograd.grad(f(*leaves).sum(), leaves)]


# ----- gradients at special points -----

POINTS = [-3.0, -1.0, 0.0, 1.0, 3.0, NAN, 6.0]


@pytest.mark.parametrize(("f", "expected"), [
    (torch.abs, [-1, -1, 0, 1, 1, 0, 1]),
    (torch.relu, [0, 0, 0, 1, 1, 1, 1]),
    (F.relu6, [0, 0, 0, 1, 1, 1, 0]),
    (F.hardtanh, [0, 0, 1, 0, 0, 1, 0]),
    (F.leaky_relu, [0.01, 0.01, 0.01, 1, 1, 0.01, 1]),
    (F.elu, [math.exp(-3), math.exp(-1), 1, 1, 1, 1, 1]),
    (F.hardswish, [0, 1 / 6, 0.5, 5 / 6, 1, 1, 1]),
    (lambda x: F.hardshrink(x, 1.0), [1, 0, 0, 0, 1, 1, 1]),
    (lambda x: F.softshrink(x, 1.0), [1, 0, 0, 0, 1, 1, 1]),
    (lambda x: F.threshold(x, 1.0, 5.0), [0, 0, 0, 0, 1, 1, 1]),
    (lambda x: x.clamp(-1, 1), [0, 1, 1, 1, 0, 0, 0]),
    (lambda x: x.clamp(min=1), [0, 0, 0, 1, 1, 0, 1]),
    (torch.nan_to_num, [1, 1, 1, 1, 1, 0, 1]),
    (torch.sign, [0] * 7),
    (torch.floor, [0] * 7),
    (torch.frac, [1] * 7),
    (lambda x: x ** 0, [0] * 7),
    (lambda x: x ** torch.zeros(7, dtype=x.dtype), [0] * 7),
])
def test_gradient_at_kinks(f: Any, expected: list[float]) -> None:
    np.testing.assert_allclose(gradient(f, POINTS)[0], expected, rtol=1e-7)


def test_infinite_and_undefined_slopes() -> None:
    assert gradient(torch.sqrt, [0.0]) == [[INF]]
    assert gradient(lambda x: x ** 0.5, [0.0]) == [[INF]]
    np.testing.assert_array_equal(gradient(torch.hypot, [0.0], [0.0]), [[NAN], [NAN]])
    assert gradient(torch.atan2, [0.0], [0.0]) == [[0.0], [0.0]]
    assert gradient(torch.pow, [0.0], [2.0]) == [[0.0], [0.0]]
    assert gradient(lambda y: 0 ** y, [-1.0, 0.0, 2.0]) == [[-INF, 0.0, 0.0]]
    np.testing.assert_array_equal(gradient(torch.xlogy, [0.0], [0.0]), [[0.0], [NAN]])


def test_ties_share_the_gradient() -> None:
    assert gradient(torch.maximum, [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]) == [[0.0, 0.5, 1.0], [1.0, 0.5, 0.0]]
    assert gradient(torch.minimum, [1.0, 2.0, 3.0], [2.0, 2.0, 2.0]) == [[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]]
    assert gradient(torch.fmax, [2.0, NAN, 1.0], [2.0, 1.0, NAN]) == [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    assert gradient(lambda x, lo, hi: torch.clamp(x, lo, hi), [0.0, 5.0, 1.0], [1.0, 1.0, 3.0], [2.0, 2.0, 2.0]) == [
        [0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]


def test_the_branch_not_taken_may_be_undefined() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    torch.where(x > 0, x.sqrt(), x).sum().backward()
    assert x.grad.tolist()[1] == 0.25
    assert math.isnan(x.grad.tolist()[0])  # 0 · inf, as in PyTorch


def test_a_gradient_through_relu_can_be_differentiated_again() -> None:
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad(torch.relu(x).sum(), x, create_graph=True)
    assert g.grad_fn.name() == "ThresholdBackwardBackward0"
    (again,) = torch.autograd.grad(g.sum(), x)
    assert again.tolist() == [0.0, 0.0]


def test_unsupported_derivatives_raise() -> None:
    x = torch.ones(2, requires_grad=True)
    for y, name in ((x // 2, "floor_divide"), (3 % x, "remainder"), (torch.heaviside(x, x), "heaviside")):
        with pytest.raises(RuntimeError, match=f"derivative for aten::{name} is not implemented"):
            y.sum().backward()


# ----- integers, bools, promotion -----

def test_integer_division() -> None:
    x = torch.tensor([-7, 7])
    assert (x // 2).tolist() == [-4, 3]
    assert (x % 3).tolist() == [2, 1]
    assert torch.fmod(x, 3).tolist() == [-1, 1]
    assert torch.div(x, 2, rounding_mode="trunc").tolist() == [-3, 3]
    assert torch.div(x, 2, rounding_mode="floor").tolist() == [-4, 3]
    for f in (operator.floordiv, operator.mod, torch.fmod):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            f(x, 0)
    assert (torch.ones(1) // 0).tolist() == [INF]


def test_zero_remainders_keep_the_dividends_sign() -> None:
    found = torch.remainder(torch.tensor([-4.0, 4.0, -3.0]), 2)
    assert [math.copysign(1, v) for v in found.tolist()] == [-1.0, 1.0, 1.0]
    assert found.tolist() == [0.0, 0.0, 1.0]


def test_integers_wrap_around() -> None:
    x = torch.tensor([200], dtype=torch.uint8)
    assert [(x + 100).item(), (x * 300).item(), (-x).item(), (x - 201).item()] == [44, 96, 56, 255]
    assert torch.abs(torch.tensor([-128], dtype=torch.int8)).item() == -128


def test_integer_powers() -> None:
    x = torch.tensor([1, -1, 2])
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
        x ** -1
    assert (x ** torch.tensor([-1, -1, -1])).tolist() == [1, -1, 0]
    assert (x ** 2.0).dtype == torch.float32


@pytest.mark.parametrize(("call", "text"), [
    (lambda b: b - b, "with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."),
    (lambda b: b - 1, "with a bool tensor is not supported. If you are trying to invert a mask, use the `~`"),
    (lambda b: 1 - b, "with a bool tensor is not supported. If you are trying to invert a mask, use the `~`"),
    (lambda b: -b, "Negation, the `-` operator, on a bool tensor is not supported."),
    (lambda b: +b, "The `+` operator, on a bool tensor is not supported."),
    (lambda b: b // b, "\"div_floor_cpu\" not implemented for 'Bool'"),
    (lambda b: b % b, "\"remainder_cpu\" not implemented for 'Bool'"),
    (lambda b: abs(b), "\"abs_cpu\" not implemented for 'Bool'"),
    (lambda b: torch.maximum(b.to(torch.complex64), b), "maximum not implemented for complex tensors."),
    (lambda b: torch.sign(b.to(torch.complex64)), "Unlike NumPy, torch.sign is not intended to support complex"),
    (lambda b: torch.add(b.long(), b.long(), alpha=1.5), "argument alpha must not be a floating point number."),
    (lambda b: torch.where(b.float(), b, b), "where expected condition to be a boolean tensor"),
    (lambda b: torch.clamp(b.float()), "torch.clamp: At least one of 'min' or 'max' must not be None"),
    (lambda b: torch.div(b, b, rounding_mode="up"), "expected rounding_mode to be one of None, 'trunc', or 'floor'"),
])
def test_errors(call: Any, text: str) -> None:
    with pytest.raises((RuntimeError, NotImplementedError)) as caught:
        call(torch.tensor([True]))
    assert text in str(caught.value)


@pytest.mark.parametrize(("x", "number", "expected"), [
    ("bool", 2, "int64"), ("bool", 1.5, "float32"), ("int32", 2, "int32"), ("int32", 2.5, "float32"),
    ("float16", 2, "float16"), ("bfloat16", 2.5, "bfloat16"), ("float32", 1j, "complex64"),
    ("float64", 1j, "complex128"), ("int64", 1j, "complex64"),
])
def test_scalars_promote_by_category(x: str, number: Any, expected: str) -> None:
    t = torch.ones(2).to(getattr(torch, x))
    for f in (operator.add, operator.mul, operator.pow, lambda a, b: torch.where(torch.tensor([True, False]), a, b)):
        assert f(t, number).dtype == getattr(torch, expected)


# ----- Python's operators -----

def test_operators_with_numpy() -> None:
    x, n = torch.tensor([1.0, 2.0]), np.array([1.0, 4.0])
    for f in (operator.add, operator.sub, operator.mul, operator.truediv):
        assert f(x, n).dtype == torch.float64
        np.testing.assert_array_equal(f(x, n).numpy(), f(x.numpy(), n))
    assert (x == n).tolist() == [True, False]
    for f in (operator.mul, operator.sub):
        with pytest.raises(TypeError):
            f(n, x)
    assert (np.float64(2) * x).dtype == torch.float32
    assert (np.int64(2) - torch.tensor([1])).tolist() == [1]


def test_operators_with_foreign_types() -> None:
    x = torch.tensor([1.0, 2.0])
    assert (x == None, x != None, x == "a", x == [1.0, 2.0]) == (False, True, False, False)  # noqa: E711
    for f in (operator.add, operator.lt, operator.pow):
        with pytest.raises(TypeError):
            f(x, "a")
    assert [1, 2] * torch.tensor(2) == [1, 2, 1, 2]


def test_one_element_tensors_as_scalars() -> None:
    x, i, z = torch.tensor(2.5), torch.tensor([[3]]), torch.tensor(1 + 2j)
    assert (int(x), float(x), complex(x), complex(z), bool(x)) == (2, 2.5, 2.5 + 0j, 1 + 2j, True)
    assert (operator.index(i), math.floor(x), math.ceil(x), list(range(5))[i]) == (3, 2, 3, 3)
    for text, kind, f in (("only integer tensors of a single element can be converted to an index", TypeError,
                           lambda: operator.index(x)),
                          ("Boolean value of Tensor with more than one value is ambiguous", RuntimeError,
                           lambda: bool(torch.ones(2))),
                          ("Boolean value of Tensor with no values is ambiguous", RuntimeError,
                           lambda: bool(torch.ones(0))),
                          ("value cannot be converted to type double without overflow", RuntimeError,
                           lambda: float(z))):
        with pytest.raises(kind, match=text):
            f()


def test_membership() -> None:
    x = torch.tensor([1.0, 2.0])
    assert 2.0 in x
    assert 5 not in x
    with pytest.raises(RuntimeError, match="only supports Tensor or scalar, but you passed in a <class 'str'>"):
        "a" in x


# ----- accuracy and special values -----

def test_small_float32_results_are_rounded_from_float64() -> None:
    assert torch.exp(torch.tensor(1.0)).item() == 2.7182817459106445
    x = torch.linspace(0.1, 0.9, 500)
    for name in ("exp", "log", "sin", "tanh", "asin", "sigmoid", "expm1"):
        exact = getattr(torch, name)(x.double()).to(torch.float32)
        close = torch.isclose(getattr(torch, name)(x), exact, rtol=1.2e-7, atol=0)
        assert close.all()


def test_special_values() -> None:
    x = torch.tensor([NAN, INF, -INF, -0.0])
    assert torch.sign(x).tolist() == [0.0, 1.0, -1.0, 0.0]
    np.testing.assert_array_equal(torch.angle(torch.tensor([-0.0, -1.0, NAN])).numpy(),
                                  np.array([0, np.pi, np.nan], np.float32))
    np.testing.assert_array_equal(torch.nan_to_num(x.half()).numpy(), np.array([0, 65504, -65504, 0], np.float16))
    np.testing.assert_array_equal(torch.fmax(x, torch.zeros(4)).numpy(), np.array([0, INF, 0, 0], np.float32))
    assert torch.special.entr(torch.tensor([0.0, -1.0])).tolist() == [0.0, -INF]
    assert torch.heaviside(torch.tensor([NAN]), torch.tensor([1.0])).tolist() == [0.0]


def test_nextafter_in_bfloat16() -> None:
    one = torch.ones(1, dtype=torch.bfloat16)
    assert torch.nextafter(one, 2 * one).float().item() == 1 + 2 ** -7
    assert torch.nextafter(0 * one, one).float().item() == 2.0 ** -133


def test_complex_parts_are_views() -> None:
    z = torch.tensor([1 + 2j, 3 - 1j])
    z.real.mul_(2)
    z.imag = torch.zeros(2)
    assert z.tolist() == [2 + 0j, 6 + 0j]
    assert torch.view_as_real(z).shape == (2, 2)
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex dtypes"):
        torch.imag(torch.ones(1))


@pytest.mark.parametrize(("call", "name"), [
    (lambda x: x + 1, "AddBackward0"), (lambda x: 1 - x, "RsubBackward1"),
    (lambda x: torch.rsub(x, x), "RsubBackward0"),
    (lambda x: x ** 2, "PowBackward0"), (lambda x: x ** x, "PowBackward1"), (lambda x: 2 ** x, "PowBackward2"),
    (lambda x: x.square(), "PowBackward0"), (lambda x: x % 2, "RemainderBackward0"),
    (lambda x: x % x, "RemainderBackward1"), (lambda x: x.clamp(0, 1), "ClampBackward1"),
    (lambda x: x.clamp(x, x), "ClampBackward0"), (lambda x: x.clamp_min(0), "ClampMinBackward0"),
    (lambda x: torch.lerp(x, x, 0.5), "LerpBackward0"), (lambda x: torch.lerp(x, x, x), "LerpBackward1"),
    (lambda x: x.round(decimals=1), "RoundBackward1"), (lambda x: torch.xlogy(2, x), "XlogyBackward1"),
    (lambda x: x.log1p(), "Log1PBackward0"), (lambda x: x // 2, "torch::autograd::NotImplemented"),
    (lambda x: F.selu(x), "EluBackward0"), (lambda x: F.relu6(x), "HardtanhBackward0"),
    (lambda x: F.softsign(x), "DivBackward0"), (lambda x: F.tanhshrink(x), "SubBackward0"),
    (lambda x: F.prelu(x, x[:1]), "PreluKernelBackward0"), (lambda x: F.rrelu(x), "RreluWithNoiseBackward0"),
])
def test_names_of_nodes(call: Any, name: str) -> None:
    assert call(torch.ones(2, requires_grad=True)).grad_fn.name() == name


def test_deprecated_order_of_alpha() -> None:
    from flambeau._tensor.argument_errors import deprecated_overloads

    x = torch.ones(2)
    deprecated_overloads._warned[0] = False  # it warns once a process
    with pytest.warns(UserWarning, match="This overload of add is deprecated"):
        assert torch.add(x, 2, x).tolist() == [3.0, 3.0]
    assert x.clone().add_(2, x).tolist() == [3.0, 3.0]
    assert x.clone().addcmul_(2, x, x).tolist() == [3.0, 3.0]


def test_scalars_with_integer_tensors_are_truncated() -> None:
    x = torch.tensor([1, 2, 3], dtype=torch.int8)
    for found, expected in ((torch.addcmul(x, x, x, value=2.7), [3, 10, 21]),
                            (torch.threshold(x, 1.5, -2.9), [-2, 2, 3]), (F.threshold(x, 2.0, 9.9), [9, 9, 3])):
        assert found.dtype == torch.int8
        assert found.tolist() == expected
    for call in (lambda n: torch.addcmul(x, x, x, value=n), lambda n: torch.threshold(x, 0, n), x.clone().fill_):
        for number in (300, -129, 128.5, INF, NAN):
            with pytest.raises(RuntimeError, match=r"^value cannot be converted to type int8_t without overflow$"):
                call(number)
    # of negative numbers, the whole ones wrap where there is no sign
    assert torch.zeros(1, dtype=torch.uint8).fill_(-1).item() == 255
    with pytest.raises(RuntimeError, match="type uint8_t without overflow"):
        torch.zeros(1, dtype=torch.uint8).fill_(-0.5)
