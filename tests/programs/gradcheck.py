"""gradcheck and gradgradcheck: on operators, on Functions, on wrong derivatives."""
import torch
from torch.autograd import Function, gradcheck, gradgradcheck


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 3 * x ** 2 * grad


class Wrong(Cube):
    @staticmethod
    def backward(ctx, grad):
        return grad


torch.manual_seed(0)
a = torch.rand(2, 3, dtype=torch.double, requires_grad=True)
b = torch.rand(3, 2, dtype=torch.double, requires_grad=True)
print(torch.autograd.gradcheck(torch.mm, (a, b)), torch.autograd.gradgradcheck(torch.mm, (a, b)))
print(torch.autograd.gradcheck(lambda t: t.exp().log(), a, eps=1e-6, atol=1e-4))
try:
    torch.autograd.gradcheck(lambda t: t.detach() * t, a)
except Exception as e:
    print(type(e).__name__, str(e).splitlines()[0])
print(torch.autograd.gradcheck(lambda t: t.detach() * t, a, raise_exception=False))
print(gradcheck(Cube.apply, a), gradgradcheck(Cube.apply, a))
d = torch.tensor([0.5, 2.0], dtype=torch.double, requires_grad=True)
try:
    gradcheck(Wrong.apply, d)
except Exception as e:
    print(type(e).__name__, "|", e)
