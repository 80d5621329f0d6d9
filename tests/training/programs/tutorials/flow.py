"""A normalizing flow of couplings and a variational Gaussian mixture: distributions, transforms, Kullback-Leibler divergences."""

import argparse

import torch
from torch import distributions as D
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(14)


class Coupling(D.transforms.Transform, nn.Module):
    domain = codomain = D.constraints.real_vector
    bijective = True

    def __init__(self, flipped):
        nn.Module.__init__(self)
        D.transforms.Transform.__init__(self)
        self.flipped = flipped
        self.net = nn.Sequential(nn.Linear(1, 16), nn.SiLU(), nn.Linear(16, 2))
        self.net[-1].weight.data.mul_(0.1)

    __hash__ = nn.Module.__hash__
    __eq__ = object.__eq__

    def _parts(self, x):
        a, b = x.split(1, -1)
        return (b, a) if self.flipped else (a, b)

    def _call(self, x):
        a, b = self._parts(x)
        s, t = self.net(a).chunk(2, -1)
        b = b * torch.exp(torch.tanh(s)) + t
        return torch.cat((b, a) if self.flipped else (a, b), -1)

    def _inverse(self, y):
        a, b = self._parts(y)
        s, t = self.net(a).chunk(2, -1)
        b = (b - t) * torch.exp(-torch.tanh(s))
        return torch.cat((b, a) if self.flipped else (a, b), -1)

    def log_abs_det_jacobian(self, x, y):
        return torch.tanh(self.net(self._parts(x)[0])[..., :1]).sum(-1)


base = D.MultivariateNormal(torch.zeros(2), scale_tril=torch.eye(2))
layers = nn.ModuleList([Coupling(False), Coupling(True), Coupling(False)])
flow = D.TransformedDistribution(base, list(layers))
target = D.MixtureSameFamily(D.Categorical(torch.ones(3)), D.Independent(D.Normal(
    torch.tensor([[-1.5, 0.0], [1.5, 0.5], [0.0, -1.5]]), 0.4), 1))
optimizer = torch.optim.Adam(layers.parameters(), lr=1e-2)
for step in range(args.steps):
    loss = -flow.log_prob(target.sample((64,))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    samples = flow.sample((8,))
    print(samples.mean(0), flow.event_shape, flow.batch_shape, f"{target.log_prob(samples).mean():.4f}")
rate = nn.Parameter(torch.tensor([0.5, -0.5]))
spread = nn.Parameter(torch.zeros(2))
counts = D.Poisson(torch.tensor([3.0, 0.7])).sample((20,))
optimizer = torch.optim.SGD([rate, spread], lr=1e-3)
for step in range(max(args.steps // 2, 1)):
    q = D.LogNormal(rate, nn.functional.softplus(spread))
    z = q.rsample((4,))
    likelihood = D.Poisson(z.unsqueeze(1)).log_prob(counts).sum(1).mean(0)
    loss = (D.kl_divergence(q, D.LogNormal(torch.zeros(2), 1.0)) - likelihood).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(q, q.mean.detach(), D.biject_to(D.constraints.simplex)(torch.tensor([0.1, -0.2])))
for p, other in ((D.Gamma(2.0, 1.0), D.Gamma(1.0, 2.0)), (D.Beta(2.0, 3.0), D.Uniform(0.0, 1.0)),
                 (D.Dirichlet(torch.ones(3)), D.Dirichlet(torch.tensor([1.0, 2.0, 3.0]))), (D.Laplace(0.0, 1.0), D.Normal(0.0, 2.0))):
    print(type(p).__name__, f"{D.kl_divergence(p, other):.5f} {p.entropy():.5f}")
