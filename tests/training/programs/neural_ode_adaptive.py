"""A neural ODE of a spiral by torchdiffeq: adaptive steps, adjoint gradients, and a continuous normalising flow."""

import argparse

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(8)


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 50), nn.Tanh(), nn.Linear(50, 2))
        for layer in self.net:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, mean=0, std=0.1)
                nn.init.constant_(layer.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 32), nn.Softplus(), nn.Linear(32, 2))

    def forward(self, t, state):
        z, _ = state
        with torch.enable_grad():
            z = z.requires_grad_()
            dz = self.net(torch.cat([z, t.expand(len(z), 1)], dim=1))
            trace = sum(torch.autograd.grad(dz[:, i].sum(), z, create_graph=True)[0][:, i] for i in range(2))
        return dz, -trace[:, None]


times = torch.linspace(0, 10, 200)
with torch.no_grad():
    matrix = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
    truth = odeint(lambda t, y: y**3 @ matrix, torch.tensor([[2.0, 0.0]]), times, method="dopri5")
field = Field()
optimizer = torch.optim.RMSprop(field.parameters(), lr=1e-3)
for _ in range(args.steps):
    rows = torch.randperm(190)[:20]
    target = torch.stack([truth[rows + i] for i in range(10)])
    optimizer.zero_grad()
    found = odeint_adjoint(field, truth[rows], times[:10])
    (found - target).abs().mean().backward()
    optimizer.step()

flow = Flow()
optimizer = torch.optim.Adam(flow.parameters(), lr=1e-2)
normal = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
for _ in range(args.steps // 2):
    angle = torch.rand(64) * 6.28
    points = torch.stack([angle.cos(), angle.sin()], 1) + 0.1 * torch.randn(64, 2)
    optimizer.zero_grad()
    z, change = odeint_adjoint(flow, (points, torch.zeros(64, 1)), torch.tensor([1.0, 0.0]), atol=1e-4, rtol=1e-4,
                               method="dopri5", adjoint_params=tuple(flow.parameters()))
    (-(normal.log_prob(z[-1]) - change[-1].flatten()).mean()).backward()
    optimizer.step()
