"""A neural ODE of a spiral: steps of Runge and Kutta, gradients by the adjoint equation in an autograd.Function."""

import argparse
import itertools

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(7)


def runge_kutta(f, y, t, h):
    a = f(t, y)
    b = f(t + h / 2, tuple(p + h / 2 * q for p, q in zip(y, a, strict=False)))
    c = f(t + h / 2, tuple(p + h / 2 * q for p, q in zip(y, b, strict=False)))
    d = f(t + h, tuple(p + h * q for p, q in zip(y, c, strict=False)))
    return tuple(p + h / 6 * (k + 2 * m + 2 * n + o) for p, k, m, n, o in zip(y, a, b, c, d, strict=False))


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, f, y, times, *parameters):
        found = [y]
        for start, end in itertools.pairwise(times):
            y, = runge_kutta(lambda t, s: (f(t, s[0]),), (y,), start, end - start)
            found.append(y)
        ctx.f = f
        ctx.save_for_backward(times, torch.stack(found), *parameters)
        return torch.stack(found)

    @staticmethod
    def backward(ctx, g):
        times, found, *parameters = ctx.saved_tensors

        def augmented(t, state):
            with torch.enable_grad():
                y = state[0].detach().requires_grad_()
                derivative = ctx.f(t, y)
                grads = torch.autograd.grad(derivative, (y, *parameters), -state[1], allow_unused=True,
                                            materialize_grads=True)
            return derivative.detach(), *grads

        state = (found[-1], g[-1], *(torch.zeros_like(p) for p in parameters))
        for i in range(len(times) - 1, 0, -1):
            state = runge_kutta(augmented, state, times[i], times[i - 1] - times[i])
            state = (found[i - 1], state[1] + g[i - 1], *state[2:])
        return None, state[1], None, *state[2:]


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))

    def forward(self, t, y):
        return self.net(y**3)


times = torch.linspace(0, 4, 40)
matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
truth = [torch.tensor([[2.0, 0.0]])]
with torch.no_grad():
    for step in range(39):
        truth.append(runge_kutta(lambda t, s: (s[0] ** 3 @ matrix,), (truth[-1],), times[step],
                                 times[step + 1] - times[step])[0])
truth = torch.stack(truth)
field = Field()
optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
for _ in range(args.steps):
    rows = torch.randperm(34)[:16]
    target = torch.stack([truth[rows + i] for i in range(6)])
    optimizer.zero_grad()
    found = Adjoint.apply(field, truth[rows], times[:6], *field.parameters())
    (found - target).abs().mean().backward()
    optimizer.step()
