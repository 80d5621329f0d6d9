"""A cubic fitted to a sine: arrays, autograd, modules, optimisers, and a dynamic graph."""
import math
import random

import torch

x = torch.linspace(-math.pi, math.pi, 200)
y = torch.sin(x)
torch.manual_seed(3)
a, b, c, d = (torch.randn((), requires_grad=True) for _ in range(4))
print(a, b, c, d)
for t in range(301):
    loss = (a + b * x + c * x ** 2 + d * x ** 3 - y).pow(2).sum()
    if t % 100 == 0:
        print(t, f"{loss.item():.1f}")
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 1e-5 * p.grad
            p.grad = None
print(f"y = {a.item():.3f} + {b.item():.3f} x + {c.item():.3f} x^2 + {d.item():.3f} x^3")

xx = x.unsqueeze(-1).pow(torch.tensor([1, 2, 3]))
print(xx.shape, xx[0])
model = torch.nn.Sequential(torch.nn.Linear(3, 1), torch.nn.Flatten(0, 1))
print(model)
loss_fn = torch.nn.MSELoss(reduction="sum")
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for t in range(301):
    loss = loss_fn(model(xx), y)
    if t % 100 == 0:
        print(t, f"{loss.item():.2f}")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model[0].weight.shape, model[0].bias.requires_grad)


class Dynamic(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Parameter(torch.randn(()))
        self.b = torch.nn.Parameter(torch.randn(()))
        self.e = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x):
        y = self.a + self.b * x
        for exp in range(4, random.randint(4, 6)):
            y = y + self.e * x ** exp
        return y

    def string(self):
        return f"{self.a.item():.3f} + {self.b.item():.3f} x"


random.seed(0)
m = Dynamic()
print(m, m.string(), [n for n, _ in m.named_parameters()])
opt = torch.optim.SGD(m.parameters(), lr=1e-8, momentum=0.9)
for t in range(100):
    loss = torch.nn.MSELoss(reduction="sum")(m(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(m.string(), f"{loss.item():.2f}")
