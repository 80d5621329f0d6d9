"""Backward kernels: broadcasting, scalars, freed and overwritten saved values, hooks, second derivatives."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flambeau as torch

F = torch.nn.functional


def tensors(*shapes, dtype=torch.float32, grad=True):
    random = np.random.default_rng(0)
    return [torch.tensor(random.uniform(0.2, 1.5, shape), dtype=dtype).requires_grad_(grad) for shape in shapes]


def gradients(impls, f, *shapes, dtype=torch.float32):
    def run():
        leaves = tensors(*shapes, dtype=dtype)
        out = f(*leaves)
        out.backward(torch.linspace(0.5, 1.5, out.numel()).to(out.dtype).reshape(out.shape))
        return [leaf.grad for leaf in leaves]

    return impls.both(run)


@pytest.mark.parametrize("shapes", [
    ((30, 20), (20,)), ((30, 20), (30, 1)), ((20,), (30, 20)), ((30, 20), ()), ((), (30, 20)), ((30, 1), (1, 20)),
    ((4, 1, 6), (5, 1)), ((30, 20), (1, 1)), ((2, 3, 4, 5), (3, 1, 5)), ((0, 3), (3,)), ((1, 1), (1,)),
], ids=str)
@pytest.mark.parametrize("f", [lambda x, y: x * y, lambda x, y: x + y, lambda x, y: x / y,
                               lambda x, y: torch.where(x > y, x, y), torch.atan2, torch.sub], ids=range(6))
def test_gradients_of_broadcast_inputs(impls, f, shapes):
    expected, found = gradients(impls, f, *shapes)
    for a, b in zip(expected, found, strict=True):
        assert (a.shape, a.dtype, a.stride()) == (b.shape, b.dtype, b.stride())
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
def test_gradients_have_their_inputs_dtypes(impls, dtype):
    def run():
        x, y = tensors((40, 5), (5,), dtype=dtype)
        z = tensors((40, 1))[0]
        ((x * y).exp() * z + F.silu(x)).sum().backward()
        return x.grad, y.grad, z.grad

    expected, found = impls.both(run)
    for a, b in zip(expected, found, strict=True):
        assert a.dtype is b.dtype
        np.testing.assert_allclose(b.double().numpy(), a.double().numpy(), rtol=0.02 if dtype is not torch.float64 else
                                   1e-6)


def test_passed_through_cotangents_are_not_shared_with_gradients(everything_large):
    x, y = tensors((50,), (50,))
    seed = torch.ones(50)
    (x + y).backward(seed)
    x.grad.mul_(3)
    assert y.grad.tolist() == [1.0] * 50
    assert seed.tolist() == [1.0] * 50


@pytest.mark.usefixtures("everything_large")
class TestSavedValues:
    def test_backward_twice_needs_the_graph(self):
        x, y = tensors((50,), (50,))
        z = (x * y).tanh()
        z.sum().backward(retain_graph=True)
        z.sum().backward()
        with pytest.raises(RuntimeError, match="second time"):
            z.sum().backward()

    @pytest.mark.parametrize("make", [lambda x: x.exp(), lambda x: x.tanh(), lambda x: x.sqrt()])
    def test_saved_outputs_modified_in_place(self, make):
        [x] = tensors((50,))
        y = make(x)
        y.detach().mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()

    def test_saved_inputs_modified_in_place(self):
        x, y = tensors((50,), (50,))
        w = y * 1
        z = x * w
        w.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()

    def test_inputs_modified_before_the_operator(self):
        x, y = tensors((50,), (50,))
        w = y * 1
        w.add_(1)
        (x * w).sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), w.detach().numpy())

    def test_python_scalar_operands(self):
        [x] = tensors((50,))
        for f, slope in ((lambda: x * 2.5, 2.5), (lambda: 3 * x, 3.0), (lambda: x / 4, 0.25), (lambda: 1 - x, -1.0)):
            x.grad = None
            f().sum().backward()
            assert x.grad.tolist() == [slope] * 50

    def test_hooks_see_the_same_gradients(self):
        [x] = tensors((50,))
        seen = []
        y = x.tanh()
        y.register_hook(lambda g: seen.append(g.clone()))
        z = y * 2
        z.retain_grad()
        z.sum().backward()
        np.testing.assert_array_equal(seen[0].numpy(), np.full(50, 2.0, "f4"))
        np.testing.assert_array_equal(z.grad.numpy(), np.ones(50, "f4"))
        np.testing.assert_allclose(x.grad.numpy(), 2 * (1 - np.tanh(x.detach().numpy()) ** 2), rtol=1e-5)

    def test_double_backward(self):
        x = torch.linspace(-1, 1, 50, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradgradcheck(lambda x: F.gelu(x) * x.exp() + F.softplus(x), x)

    def test_saved_tensor_hooks(self):
        [x] = tensors((50,))
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
            y = x.exp() * x
        y.sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), (np.exp(a := x.detach().numpy()) * (1 + a)), rtol=1e-5)

    def test_unsupported_derivatives(self):
        [x] = tensors((50,))
        with pytest.raises(RuntimeError, match="derivative for aten::heaviside is not implemented"):
            torch.heaviside(x, x.detach()).sum().backward()
        with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
            (x // 2).sum().backward()

    def test_functions_without_kernels(self):
        [x] = tensors((50,))
        torch.lgamma(x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), torch.digamma(x.detach()).numpy(), rtol=1e-6)

    def test_complex_numbers(self):
        z = torch.tensor(np.linspace(0.1, 1, 50) + 0.5j, requires_grad=True)
        (z * z.conj()).real.sum().backward()
        np.testing.assert_allclose(z.grad.numpy(), 2 * z.detach().numpy())


def test_accumulating_into_gradients(impls):
    def run():
        [x] = tensors((3000,))
        for _ in range(3):
            (x * x).sum().backward()
        return x.grad

    expected, found = impls.both(run)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-6)


def test_threads(everything_large):
    found = {}

    def work(k):
        for _ in range(30):
            x = torch.linspace(0.1, 1 + k, 5000, requires_grad=True)
            (x.exp() * x + F.gelu(x)).sum().backward()
            found.setdefault(k, []).append(x.grad.numpy().copy())

    workers = [threading.Thread(target=work, args=(k % 2,)) for k in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for values in found.values():
        for value in values[1:]:
            np.testing.assert_array_equal(value, values[0])
