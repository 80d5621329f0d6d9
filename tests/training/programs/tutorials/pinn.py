"""A network that satisfies the heat equation: derivatives by autograd.grad with create_graph, Adam, then L-BFGS; an inverse problem."""

import argparse

import torch
from torch import nn
from torch.autograd import grad

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(12)
torch.set_default_dtype(torch.float64)


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


class MLP(nn.Module):
    def __init__(self, *widths):
        super().__init__()
        layers = []
        for i, o in zip(widths[:-1], widths[1:]):
            layers += [nn.Linear(i, o), Sine()]
        self.net = nn.Sequential(*layers[:-1])

        def init(m):
            if isinstance(m, nn.Linear):
                torch.nn.init.trunc_normal_(m.weight, std=0.5)
                m.bias.data.uniform_(-1, 1)
        self.apply(init)

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


def derivative(y, x):
    return grad(y, x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True)[0]


net = MLP(2, 12, 12, 1)
diffusivity = nn.Parameter(torch.tensor(0.3))
sampler = torch.quasirandom.SobolEngine(2, scramble=True, seed=3)


def residual_loss():
    points = sampler.draw(32, dtype=torch.float64).requires_grad_()
    x, t = points.split(1, dim=1)
    u = net(x, t)
    u_t, u_x = derivative(u, t), derivative(u, x)
    residual = u_t - diffusivity * derivative(u_x, x)
    xb = torch.rand(16, 1)
    initial = net(xb, torch.zeros_like(xb)) - torch.sin(torch.pi * xb)
    tb = torch.rand(16, 1)
    walls = torch.vstack([net(torch.zeros_like(tb), tb), net(torch.ones_like(tb), tb)])
    known = net(xb, tb) - torch.sin(torch.pi * xb) * torch.exp(-0.1 * torch.pi**2 * tb)
    return residual.square().mean() + initial.square().mean() + walls.square().mean() + known.square().mean()


optimizer = torch.optim.Adam([*net.parameters(), diffusivity], lr=1e-2, betas=(0.9, 0.99))
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.99)
for step in range(max(args.steps // 2, 1)):
    optimizer.zero_grad()
    loss = residual_loss()
    loss.backward()
    optimizer.step()
    scheduler.step()
print(f"Adam {loss.item():.6f} {diffusivity.item():.5f} {scheduler.get_last_lr()[0]:.6f}")
x, t = torch.meshgrid(torch.linspace(0, 1, 6), torch.linspace(0, 1, 6), indexing="xy")
x, t = x.reshape(-1, 1).requires_grad_(), t.reshape(-1, 1).requires_grad_()
lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=max(args.steps // 4, 1), history_size=10, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    u = net(x, t)
    r = derivative(u, t) - diffusivity.detach() * derivative(derivative(u, x), x)
    loss = r.square().mean() + (u - torch.sin(torch.pi * x) * torch.exp(-0.1 * torch.pi**2 * t)).square().mean()
    loss.backward()
    return loss


first = lbfgs.step(closure)
print(f"L-BFGS {first.item():.6f} -> {closure().item():.6f}")
u = net(x, t)
hessian = torch.autograd.functional.hessian(lambda p: net(p[:1].view(1, 1), p[1:].view(1, 1)).sum(), torch.tensor([0.5, 0.5]))
print(hessian, torch.linalg.eigvalsh(hessian))
torch.set_default_dtype(torch.float32)
