"""Autoencoders, adversarial networks, flows, diffusion and energy-based models."""

from __future__ import annotations

import itertools
import math
from typing import Any

import flambeau as torch
from flambeau import distributions, nn
from flambeau.nn import functional as F
from tests.compiler.eager_comparison import Scenario, numbers, parameters

from .catalogue import adam, model, training


def mlp(*sizes: int, act: type = nn.ReLU) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in itertools.pairwise(sizes):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


@model
def variational_autoencoder() -> Scenario:
    class Vae(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode = mlp(12, 10, 6), mlp(3, 10, 12)

        def forward(self, x: Any) -> Any:
            mu, logvar = self.encode(x).chunk(2, 1)
            z = mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)
            out = self.decode(z).sigmoid()
            return (F.binary_cross_entropy(out, x.sigmoid(), reduction="sum")
                    - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()))

    return training(Vae(), lambda net, x: net(x), lambda i: (numbers(4, 12, seed=i),), adam)


@model
def vae_of_distributions() -> Scenario:
    class Vae(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode = mlp(12, 10, 6), mlp(3, 10, 12)

        def forward(self, x: Any) -> Any:
            mu, raw = self.encode(x).chunk(2, 1)
            q = distributions.Normal(mu, F.softplus(raw) + 1e-3)
            p = distributions.Normal(torch.zeros_like(mu), 1.0)
            likelihood = distributions.Independent(distributions.Normal(self.decode(q.rsample()), 1.0), 1)
            return (distributions.kl_divergence(q, p).sum(1) - likelihood.log_prob(x)).mean()

    return training(Vae(), lambda net, x: net(x), lambda i: (numbers(4, 12, seed=i),), adam)


@model
def vector_quantized_autoencoder() -> Scenario:
    class Vq(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encode, self.decode, self.book = mlp(12, 10, 4), mlp(4, 10, 12), nn.Embedding(7, 4)

        def forward(self, x: Any) -> Any:
            z = self.encode(x)
            q = self.book(torch.cdist(z, self.book.weight).argmin(1))
            straight = z + (q - z).detach()
            return (F.mse_loss(self.decode(straight), x) + F.mse_loss(q, z.detach())
                    + 0.25 * F.mse_loss(z, q.detach()))

    return training(Vq(), lambda net, x: net(x), lambda i: (numbers(5, 12, seed=i),), adam)


def adversarial(loss: Any, spectral: bool = False) -> Scenario:
    """Both networks' steps in one function, which notes the losses as numbers."""
    generator, critic = mlp(3, 8, 6), mlp(6, 8, 1)
    if spectral:
        critic = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(6, 8)), nn.LeakyReLU(0.2),
                               nn.Linear(8, 1))
    g, d = adam(generator.parameters()), adam(critic.parameters())
    history: list[float] = []

    def step(real: Any) -> Any:
        fake = generator(torch.randn(len(real), 3))
        d.zero_grad()
        of_critic = loss(critic, real, fake.detach())
        of_critic.backward()
        d.step()
        g.zero_grad()
        of_generator = F.softplus(-critic(fake)).mean()
        of_generator.backward()
        g.step()
        history.append(of_critic.item() + of_generator.item())

    return Scenario(step, lambda i: (numbers(4, 6, seed=i),),
                    lambda: (parameters(generator), parameters(critic), torch.tensor(history)))


def _logistic(critic: nn.Module, real: Any, fake: Any) -> Any:
    return F.softplus(-critic(real)).mean() + F.softplus(critic(fake)).mean()


@model
def gan() -> Scenario:
    return adversarial(_logistic)


@model
def gan_with_spectral_norm() -> Scenario:
    return adversarial(_logistic, spectral=True)


@model
def wasserstein_gan_with_gradient_penalty() -> Scenario:
    def loss(critic: nn.Module, real: Any, fake: Any) -> Any:
        mixed = torch.lerp(real, fake, torch.rand(len(real), 1)).requires_grad_(True)
        [slope] = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)
        return critic(fake).mean() - critic(real).mean() + 10 * ((slope.norm(2, dim=1) - 1) ** 2).mean()

    return adversarial(loss)


@model
def real_nvp() -> Scenario:
    class Coupling(nn.Module):
        def __init__(self, flip: bool) -> None:
            super().__init__()
            self.net, self.flip = mlp(2, 8, 4, act=nn.Tanh), flip

        def forward(self, x: Any) -> Any:
            a, b = x.chunk(2, 1)
            if self.flip:
                a, b = b, a
            s, t = self.net(a).chunk(2, 1)
            b = b * torch.exp(torch.tanh(s)) + t
            return torch.cat((b, a) if self.flip else (a, b), 1), torch.tanh(s).sum(1)

    class Flow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(3))

        def forward(self, x: Any) -> Any:
            total = torch.zeros(len(x))
            for layer in self.layers:
                x, log_det = layer(x)
                total += log_det
            return -(distributions.Normal(0.0, 1.0).log_prob(x).sum(1) + total).mean()

    return training(Flow(), lambda net, x: net(x), lambda i: (numbers(5, 4, seed=i),), adam)


@model
def diffusion() -> Scenario:
    beta = torch.linspace(1e-4, 0.02, 20)
    alpha_bar = torch.cumprod(1 - beta, 0)

    class Denoiser(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net, self.time = mlp(6 + 8, 16, 6, act=nn.SiLU), nn.Linear(8, 8)

        def forward(self, x: Any, t: Any) -> Any:
            frequency = torch.exp(-math.log(10000) * torch.arange(4) / 4)
            angle = t[:, None].float() * frequency
            time = self.time(torch.cat((angle.sin(), angle.cos()), -1))
            return self.net(torch.cat((x, time), 1))

    def loss(net: nn.Module, x: Any) -> Any:
        t = torch.randint(0, 20, (len(x),))
        noise = torch.randn_like(x)
        a = alpha_bar[t][:, None]
        return F.mse_loss(net(a.sqrt() * x + (1 - a).sqrt() * noise, t), noise)

    return training(Denoiser(), loss, lambda i: (numbers(4, 6, seed=i),), adam)


@model
def energy_based_model() -> Scenario:
    """Langevin steps use the gradient of the input."""
    def loss(net: nn.Module, x: Any) -> Any:
        fake = torch.rand(len(x), 6)
        for _ in range(2):
            fake.requires_grad_(True)
            [slope] = torch.autograd.grad(net(fake).sum(), fake)
            fake = (fake - 0.1 * slope + 0.01 * torch.randn_like(fake)).detach()
        return net(x).mean() - net(fake).mean()

    return training(mlp(6, 8, 1), loss, lambda i: (numbers(4, 6, seed=i),), adam)


@model
def moving_average_of_weights() -> Scenario:
    """A student and a teacher, its exponential average."""
    student, teacher = mlp(5, 8, 3), mlp(5, 8, 3)
    teacher.load_state_dict(student.state_dict())
    teacher.requires_grad_(False)
    optimizer = adam(student.parameters())

    def step(a: Any, b: Any) -> Any:
        optimizer.zero_grad()
        with torch.no_grad():
            target = F.softmax(teacher(a) / 0.5, -1)
        loss = -(target * F.log_softmax(student(b), -1)).sum(-1).mean()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for p, q in zip(student.parameters(), teacher.parameters(), strict=True):
                q.mul_(0.9).add_(p, alpha=0.1)
        return loss.detach()

    return Scenario(step, lambda i: (numbers(4, 5, seed=i), numbers(4, 5, seed=i + 9)),
                    lambda: (parameters(student), parameters(teacher)))


@model
def mixed_precision() -> Scenario:
    net = mlp(6, 12, 3)
    optimizer = adam(net.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.mse_loss(net(x).float(), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Scenario(step, lambda i: (numbers(4, 6, seed=i), numbers(4, 3, seed=i + 9)), lambda: parameters(net))


@model
def accumulated_gradients() -> Scenario:
    """An optimizer's step at every second call, counted in Python, with a schedule."""
    net = mlp(6, 12, 3)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    calls = [0]

    def step(x: Any, y: Any) -> Any:
        loss = F.mse_loss(net(x), y) / 2
        loss.backward()
        calls[0] += 1
        if calls[0] % 2 == 0:
            nn.utils.clip_grad_value_(net.parameters(), 0.5)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
        return loss.detach()

    return Scenario(step, lambda i: (numbers(4, 6, seed=i), numbers(4, 3, seed=i + 9)), lambda: parameters(net))
