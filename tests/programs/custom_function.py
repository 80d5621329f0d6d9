"""Custom autograd Functions: saving, several outputs, errors, double backward."""
import torch
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        x, = ctx.saved_tensors
        return 3 * x ** 2 * grad


class ScaledSum(Function):
    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.scale = scale
        ctx.shapes = a.shape, b.shape
        return (a.sum() + b.sum()) * scale

    @staticmethod
    def backward(ctx, grad):
        print("needs", ctx.needs_input_grad)
        a, b = ctx.shapes
        return grad.expand(a) * ctx.scale, grad.expand(b) * ctx.scale, None


class Straight(Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, grad):
        return grad


class Split(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(big := x > 1)
        return x.sin(), x.cos(), big

    @staticmethod
    def backward(ctx, gs, gc, gb):
        print(gs, gc, gb)
        return gs + 2 * gc


class NewStyle(Function):
    @staticmethod
    def forward(x, k):
        return x * k

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.k = inputs

    @staticmethod
    def backward(ctx, g):
        return g * ctx.k, None


class Once(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g * 2


x = torch.tensor([1., 2.], requires_grad=True)
y = Cube.apply(x)
print(y, y.grad_fn.name(), type(y.grad_fn).__name__)
g, = torch.autograd.grad(y.sum(), x, create_graph=True)
print(g)
print(torch.autograd.grad(g.sum(), x))
a, b = torch.ones(2, 2, requires_grad=True), torch.ones(3)
ScaledSum.apply(a, b, 5.).backward()
print(a.grad)
Straight.apply(x * 1.3).sum().backward()
print(x.grad)
s, c, big = Split.apply(x)
print(s, c, big, big.requires_grad)
s.sum().backward()
print(NewStyle.apply(x, 4))
d = torch.tensor([0.5, 2.], dtype=torch.float64, requires_grad=True)


class Wrong(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 2

    @staticmethod
    def backward(ctx, g):
        return g


class TooMany(Wrong):
    @staticmethod
    def backward(ctx, g):
        return g, g


class BadShape(Wrong):
    @staticmethod
    def backward(ctx, g):
        return torch.ones(5)


class NoBackward(Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2


class Tuple(Function):
    @staticmethod
    def forward(ctx, x):
        return [x * 2]


def attempt(f):
    try:
        print(f())
    except Exception as e:
        print(type(e).__name__, "|", e)


print(Wrong.apply(d))
attempt(lambda: TooMany.apply(x).sum().backward())
attempt(lambda: BadShape.apply(x).sum().backward())
attempt(lambda: NoBackward.apply(x).sum().backward())
attempt(lambda: Cube()(x))
attempt(lambda: Cube.forward(x))
attempt(lambda: torch.autograd.grad(torch.autograd.grad(Once.apply(x * x).sum(), x, create_graph=True)[0].sum(), x))
attempt(lambda: Cube.apply("a"))
