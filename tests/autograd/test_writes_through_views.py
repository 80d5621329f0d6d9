"""Second derivatives of writes through views, and writes that raise errors."""

from __future__ import annotations

import pytest

from tests.autograd.differential import attempt, same


def kept(torch, y):
    y[0].exp_()
    return (y * y).sum()


def gone(torch, y):
    z = y[:, 1].tanh_() * 2
    return (z.sin() * y[0]).sum()


def of_a_view(torch, y):
    torch.nn.functional.relu(y.view(-1)[1:3], inplace=True)
    return (y**3).sum()


@pytest.mark.parametrize("write", [kept, gone, of_a_view])
def test_the_second_derivative(write):
    def program(torch):
        x = torch.tensor([[0.3, -0.2], [0.5, 0.7]], dtype=torch.float64, requires_grad=True)
        g, = torch.autograd.grad(write(torch, x * 1.5), x, create_graph=True)
        weights = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64)
        return g.detach(), torch.autograd.grad((g * weights).sum(), x)

    same(program)


def test_the_history_of_a_real_view_in_no_grad_mode():
    def program(torch):
        x = torch.ones(2, dtype=torch.complex64, requires_grad=True).clone()
        real = x.real
        x.add_(1)
        with torch.no_grad():
            return real.grad_fn.name()

    same(program)


def test_set_has_no_derivative():
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        y, z = x * 2, torch.ones(2)
        y.set_(torch.zeros(2))
        z.set_(x * 2)
        return [y.grad_fn, z.grad_fn, attempt(lambda: y.sum().backward()), attempt(lambda: x.set_(torch.zeros(2)))]

    same(program)


def test_resizing_counts_as_a_write():
    def program(torch):
        x = torch.ones(1)
        seen = []
        for change in (lambda: x.resize_(1, 2), lambda: x.resize_as_(torch.ones(3)), lambda: x.resize_(3),
                       lambda: x.resize_as_(torch.ones(3)), lambda: x.set_(torch.zeros(4)), lambda: x.set_()):
            change()
            seen.append((tuple(x.shape), x._version))
        return seen

    same(program)


def test_inference_tensors_change_their_sizes_and_have_views_without_history():
    def program(torch):
        with torch.inference_mode():
            x = torch.ones(1, 2, 3, requires_grad=True)
            x.resize_(1, 2)
        y = x.view(-1)
        return x, y, y.is_leaf, y._is_view(), torch.is_inference(y)

    same(program)
