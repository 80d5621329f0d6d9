"""Learning to learn sine waves: gradients of gradient steps by torch.func, batched over tasks by vmap, an ensemble in one call."""

import argparse

import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, jacrev, stack_module_state, vmap

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(13)
net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
parameters = {name: p.detach().requires_grad_() for name, p in net.named_parameters()}


def tasks(count, points):
    amplitude, phase = torch.empty(count, 1, 1).uniform_(0.5, 2), torch.empty(count, 1, 1).uniform_(0, torch.pi)
    x = torch.empty(2, count, points, 1).uniform_(-3, 3)
    return x[0], amplitude * torch.sin(x[0] + phase), x[1], amplitude * torch.sin(x[1] + phase)


def mse(parameters, x, y):
    return ((functional_call(net, parameters, (x,)) - y) ** 2).mean()


def adapted_loss(parameters, x, y, x_new, y_new):
    fast = parameters
    for _ in range(2):
        gradients = grad(mse)(fast, x, y)
        fast = {name: fast[name] - 0.05 * gradients[name] for name in fast}
    return mse(fast, x_new, y_new)


optimizer = torch.optim.Adam(parameters.values(), lr=5e-3)
for step in range(args.steps):
    loss = vmap(adapted_loss, in_dims=(None, 0, 0, 0, 0))(parameters, *tasks(8, 6)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
x, y, _, _ = tasks(4, 5)
per_sample = vmap(grad_and_value(mse), in_dims=(None, 0, 0))(parameters, x, y)
print({name: f"{g.norm():.4f}" for name, g in per_sample[0].items()}, per_sample[1].shape)
models = [nn.Sequential(nn.Linear(1, 4), nn.ReLU(), nn.Linear(4, 1)) for _ in range(3)]
stacked, buffers = stack_module_state(models)
print({name: tuple(p.shape) for name, p in stacked.items()}, buffers)
together = vmap(lambda p, x: functional_call(models[0], p, (x,)), in_dims=(0, None))(stacked, x[0])
print(torch.allclose(together, torch.stack([m(x[0]) for m in models]), atol=1e-6))
kernel = vmap(jacrev(lambda p, x: functional_call(net, p, (x,)).sum()), (None, 0))(parameters, x[0])
print(f"{sum(torch.einsum('if,jf->ij', j.flatten(1), j.flatten(1)) for j in kernel.values()).trace():.4f}")
