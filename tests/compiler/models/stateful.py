"""Modules that keep state on themselves: spiking nets, cells, teachers, caches, running norms; steps of each."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from tests.compiler.eager_comparison import Scenario, numbers, parameters

from .catalogue import integers, model, training

#: the names of these models
NAMES = ("spiking_net", "lstm_cell_with_kept_state", "ema_teacher", "decoder_with_cache_on_modules",
         "policy_with_running_norm")


class SurrogateSpike(torch.autograd.Function):
    """A step function whose derivative is that of a sigmoid, as in snntorch."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return (x > 0).float()

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, = ctx.saved_tensors
        return g / (1 + (3 * x).abs()) ** 2


class Leaky(nn.Module):
    """A leaky integrate-and-fire neuron that keeps its membrane potential."""

    def __init__(self, beta: float) -> None:
        super().__init__()
        self.beta, self.mem = beta, None

    def forward(self, x: Any) -> Any:
        if self.mem is None:
            self.mem = torch.zeros_like(x)
        reset = (self.mem > 1).float().detach()
        self.mem = self.beta * self.mem + x - reset
        return SurrogateSpike.apply(self.mem - 1)


@model
def spiking_net() -> Scenario:
    """One time step a call: loss, backward, then the potentials are detached: truncated backpropagation."""
    net = nn.Sequential(nn.Linear(6, 10), Leaky(0.9), nn.Linear(10, 4), Leaky(0.8))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        net(x)
        loss = F.cross_entropy(net[3].mem, y)
        loss.backward()
        optimizer.step()
        for layer in (net[1], net[3]):
            layer.mem = layer.mem.detach()
        return loss.detach()

    return Scenario(step, lambda i: (numbers(3, 6, seed=i), integers(4, 3, seed=i + 9)),
                    lambda: (parameters(net), net[1].mem, net[3].mem))


@model
def lstm_cell_with_kept_state() -> Scenario:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.out = nn.LSTMCell(5, 8), nn.Linear(8, 3)
            self.hidden = (torch.zeros(2, 8), torch.zeros(2, 8))

        def forward(self, x: Any) -> Any:
            h, c = self.hidden
            h, c = self.cell(x, (h.detach(), c.detach()))
            self.hidden = (h, c)
            return self.out(h)

    net = Net()
    scenario = training(net, lambda net, x, y: F.mse_loss(net(x), y),
                        lambda i: (numbers(2, 5, seed=i), numbers(2, 3, seed=i + 9)))
    return Scenario(scenario.function, scenario.arguments, lambda: (parameters(net), net.hidden))


@model
def ema_teacher() -> Scenario:
    """A student that is trained towards an average of itself, which is assigned, and counts its steps."""
    class Ema(nn.Module):
        def __init__(self, student: nn.Module) -> None:
            super().__init__()
            self.average = [p.detach().clone() for p in student.parameters()]
            self.step = 0

        def update(self, student: nn.Module) -> None:
            self.step += 1
            decay = self.step / (self.step + 10.0)
            for i, p in enumerate(student.parameters()):
                self.average[i] = decay * self.average[i] + (1 - decay) * p.detach()

        def forward(self, x: Any) -> Any:
            w, b, w2, b2 = self.average
            return F.linear(torch.relu(F.linear(x, w, b)), w2, b2)

    student = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))
    teacher = Ema(student)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = F.mse_loss(student(x + 0.1), teacher(x).detach()) + student(x).square().mean()
        loss.backward()
        optimizer.step()
        teacher.update(student)
        return loss.detach()

    return Scenario(step, lambda i: (numbers(5, 6, seed=i),), lambda: (parameters(student), teacher.average,
                                                                      teacher.step))


@model
def decoder_with_cache_on_modules() -> Scenario:
    """A token a call; keys and values are buffers that are assigned, of a window, and a position is counted."""
    class Attention(nn.Module):
        def __init__(self, width: int, window: int) -> None:
            super().__init__()
            self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.register_buffer("keys", torch.zeros(1, window, width), persistent=False)
            self.register_buffer("values", torch.zeros(1, window, width), persistent=False)

        def forward(self, x: Any) -> Any:
            q, k, v = self.project(x).chunk(3, -1)
            self.keys = torch.cat([self.keys[:, 1:], k], 1)
            self.values = torch.cat([self.values[:, 1:], v], 1)
            return self.out(F.scaled_dot_product_attention(q, self.keys, self.values))

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.layers = nn.Embedding(20, 8), nn.ModuleList([Attention(8, 5), Attention(8, 5)])
            self.head, self.position = nn.Linear(8, 20), 0

        def forward(self, token: Any) -> Any:
            x = self.embed(token) * (1 + 0.01 * self.position)
            self.position += 1
            for layer in self.layers:
                x = x + layer(F.layer_norm(x, (8,)))
            return self.head(x)[:, -1]

    net = Decoder().eval()

    @torch.no_grad()
    def step(token: Any) -> Any:
        return net(token).argmax(-1)

    return Scenario(step, lambda i: (integers(20, 1, 1, seed=i),),
                    lambda: ([dict(layer.named_buffers()) for layer in net.layers], net.position))


@model
def policy_with_running_norm() -> Scenario:
    """Observations are normalized by statistics that each step assigns, with their count."""
    class Normalizer(nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.count = 1e-4
            self.register_buffer("mean", torch.zeros(width))
            self.register_buffer("var", torch.ones(width))

        def forward(self, x: Any) -> Any:
            if self.training:
                total = self.count + x.shape[0]
                delta = x.mean(0) - self.mean
                scatter = self.var * self.count + x.var(0, unbiased=False) * x.shape[0]
                self.mean = self.mean + delta * (x.shape[0] / total)
                self.var = (scatter + delta.square() * (self.count * x.shape[0] / total)) / total
                self.count = total
            return (x - self.mean) / (self.var + 1e-8).sqrt()

    net = nn.Sequential(Normalizer(4), nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

    def step(observation: Any, action: Any, advantage: Any) -> Any:
        optimizer.zero_grad()
        log_probability = torch.distributions.Categorical(logits=net(observation)).log_prob(action)
        loss = -(log_probability * advantage).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Scenario(step, lambda i: (numbers(6, 4, seed=i), integers(2, 6, seed=i + 9), numbers(6, seed=i + 20)),
                    lambda: (parameters(net), net[0].count))
