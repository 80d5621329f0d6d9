"""Derivatives at signed zeros, infinities and NaN, compared with PyTorch."""

from __future__ import annotations

import pytest

from tests.autograd.differential import same

INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize("name", ["smooth_l1_loss", "huber_loss", "mse_loss", "l1_loss"])
def test_gradients_of_losses_of_nan(name):
    def program(torch):
        x = torch.tensor([1.0, NAN, 3.0, 0.2], requires_grad=True)
        getattr(torch.nn.functional, name)(x, torch.tensor([NAN, 1.0, 5.0, 0.0]), reduction="sum").backward()
        return x.grad

    same(program)


@pytest.mark.parametrize("dim", [None, 0])
@pytest.mark.parametrize("numbers", [[0.0, 0.0, NAN, 2.0], [0.0, 3.0, NAN, 2.0], [0.0, 3.0, INF, 2.0], [0.0, 3.0, 2.0],
                                     [0.0, 0.0, 2.0]], ids=str)
def test_products_with_zeros(numbers, dim):
    def program(torch):
        x = torch.tensor(numbers, requires_grad=True)
        (x.prod() if dim is None else x.prod(dim)).backward()
        return x.grad

    same(program)


@pytest.mark.parametrize("name", ["xlogy", "special.xlog1py"])
def test_times_a_logarithm(name):
    def program(torch):
        module, _, function = name.rpartition(".")
        call = getattr(torch.special if module else torch, function)
        x = torch.tensor([0.0, 0.0, 0.0, 1.0, INF, 2.0], requires_grad=True)
        y = torch.tensor([0.0, NAN, INF, 0.0, -0.0, 3.0], requires_grad=True)
        found = call(x, y)
        found.sum().backward()
        return found.detach(), x.grad, y.grad

    same(program)


def test_gradient_of_sinc_where_squares_underflow():
    def program(torch):
        x = torch.tensor([0.0, 1e-40, 1e-25, -1e-25, 0.5], requires_grad=True)
        torch.sinc(x).sum().backward()
        return x.grad

    same(program)


@pytest.mark.parametrize("p", [0.0, 1.0, 1.5, 2.0])
def test_distances_of_nan(p):
    def program(torch):
        x = torch.tensor([[0.0, NAN, 1.0], [1.0, 2.0, 3.0]])
        return torch.cdist(x, x, p=p)

    same(program)


@pytest.mark.parametrize("count", [1, 3, 33, 100_000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
def test_zeros_keep_their_sign_at_bounds_that_are_numbers(dtype, count):
    def program(torch):
        functional = torch.nn.functional
        x = torch.full((count,), -0.0, dtype=getattr(torch, dtype))
        results = [torch.relu(x), functional.relu(x), x.clone().relu_(), x.clamp(min=0), x.clamp_min(0), x.clamp(0, 1),
                   (-x).clamp(max=-0.0), (-x).clamp_max(-0.0), functional.relu6(x), functional.hardtanh(x, 0., 1.),
                   functional.threshold(x, 0., 0.), functional.leaky_relu(x)]
        return torch.stack([torch.signbit(each).sum() for each in results])

    same(program)
