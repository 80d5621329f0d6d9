"""Graphs, tables, recommendation, reinforcement learning, physics and meta-learning."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import distributions, nn
from flambeau.func import functional_call, grad, vmap
from flambeau.nn import functional as F
from tests.compiler.eager_comparison import Scenario, numbers, parameters

from .catalogue import adam, entropy, integers, model, training
from .generative import mlp


def edges(i: int) -> Any:
    return integers(6, 2, 12, seed=i)


@model
def graph_convolution() -> Scenario:
    class Gcn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(5, 8), nn.Linear(8, 3)

        def propagate(self, x: Any, edge: Any) -> Any:
            source, target = edge
            degree = torch.zeros(x.size(0)).scatter_add_(0, target, torch.ones(source.numel())).clamp(min=1)
            weight = (degree[source] * degree[target]).rsqrt()
            return torch.zeros_like(x).index_add_(0, target, x[source] * weight[:, None])

        def forward(self, x: Any, edge: Any) -> Any:
            x = F.dropout(F.relu(self.propagate(self.a(x), edge)), 0.5, self.training)
            return F.log_softmax(self.propagate(self.b(x), edge), 1)

    return training(Gcn(), lambda net, x, edge, y: F.nll_loss(net(x, edge)[:4], y[:4]),
                    lambda i: (numbers(6, 5, seed=i), edges(i), integers(3, 6, seed=i + 9)), adam)


@model
def graph_attention() -> Scenario:
    class Gat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.a = nn.Linear(5, 8, bias=False), nn.Parameter(torch.randn(2, 8) * 0.3)

        def forward(self, x: Any, edge: Any) -> Any:
            source, target = edge
            h = self.w(x)
            score = F.leaky_relu((h * self.a[0]).sum(1)[source] + (h * self.a[1]).sum(1)[target], 0.2)
            top = torch.full((x.size(0),), -1e9).scatter_reduce(0, target, score, "amax")
            weight = (score - top[target]).exp()
            total = torch.zeros(x.size(0)).scatter_add(0, target, weight)
            weight = weight / (total[target] + 1e-9)
            return torch.zeros(x.size(0), 8).index_add(0, target, weight[:, None] * h[source])

    return training(Gat(), lambda net, x, edge, y: F.cross_entropy(net(x, edge), y),
                    lambda i: (numbers(6, 5, seed=i), edges(i), integers(8, 6, seed=i + 9)), adam)


@model
def graph_classifier() -> Scenario:
    """Messages of node pairs, a sum and a maximum per graph."""
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.message, self.out = mlp(10, 8, 6), nn.Linear(12, 3)

        def forward(self, x: Any, edge: Any, graph: Any) -> Any:
            m = self.message(torch.cat((x[edge[0]], x[edge[1]]), 1))
            nodes = torch.zeros(len(x), 6).index_add(0, edge[1], m)
            total = torch.zeros(2, 6).index_add(0, graph, nodes)
            top = torch.zeros(2, 6).scatter_reduce(0, graph[:, None].expand(-1, 6), nodes, "amax", include_self=False)
            return self.out(torch.cat((total, top), 1))

    return training(Net(), lambda net, x, e, g, y: F.cross_entropy(net(x, e, g), y),
                    lambda i: (numbers(6, 5, seed=i), edges(i), torch.tensor([0, 0, 0, 1, 1, 1]),
                               integers(3, 2, seed=i + 9)), adam)


@model
def point_net() -> Scenario:
    class PointNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.turn, self.points, self.out = nn.Linear(8, 9), nn.Conv1d(3, 8, 1), nn.Linear(8, 4)
            self.norm = nn.BatchNorm1d(8)

        def forward(self, x: Any) -> Any:
            matrix = self.turn(self.points(x).max(2).values).view(-1, 3, 3) + torch.eye(3)
            y = F.relu(self.norm(self.points(torch.bmm(matrix, x))))
            return self.out(torch.max(y, 2, keepdim=False)[0])

    return training(PointNet(), entropy, lambda i: (numbers(3, 3, 9, seed=i), integers(4, 3, seed=i + 9)), adam)


@model
def matrix_factorization() -> Scenario:
    class Factors(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.user, self.item = nn.Embedding(10, 4), nn.Embedding(12, 4)
            self.user_bias, self.item_bias = nn.Embedding(10, 1), nn.Embedding(12, 1)

        def forward(self, u: Any, i: Any) -> Any:
            dot = (self.user(u) * self.item(i)).sum(1, keepdim=True)
            return (dot + self.user_bias(u) + self.item_bias(i)).squeeze()

    return training(Factors(), lambda net, u, i, r: F.mse_loss(net(u, i), r),
                    lambda i: (integers(10, 6, seed=i), integers(12, 6, seed=i + 9), numbers(6, seed=i + 20)),
                    lambda p: torch.optim.Adagrad(p, lr=0.1))


@model
def deep_recommendation() -> Scenario:
    """DLRM: bags of categories, a bottom and a top network, products of all pairs."""
    class Dlrm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bags = nn.ModuleList(nn.EmbeddingBag(10, 4, mode="sum") for _ in range(3))
            self.bottom, self.top = mlp(5, 8, 4), mlp(4 + 6, 8, 1)

        def forward(self, dense: Any, sparse: Any) -> Any:
            x = self.bottom(dense)
            every = torch.stack([x, *(bag(s) for bag, s in zip(self.bags, sparse, strict=True))], 1)
            products = torch.bmm(every, every.transpose(1, 2))
            at = torch.tril_indices(4, 4, -1)
            return self.top(torch.cat((x, products[:, at[0], at[1]]), 1)).squeeze(1)

    return training(Dlrm(), lambda net, d, s, y: F.binary_cross_entropy_with_logits(net(d, s), y),
                    lambda i: (numbers(4, 5, seed=i), [integers(10, 4, 3, seed=i + k) for k in range(3)],
                               (numbers(4, seed=i + 9) > 0).float()))


@model
def wide_and_deep() -> Scenario:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = nn.ModuleDict({"city": nn.Embedding(8, 3), "day": nn.Embedding(7, 2)})
            self.deep, self.wide, self.norm = mlp(5 + 4, 8, 1), nn.Linear(4, 1), nn.BatchNorm1d(4)

        def forward(self, row: dict[str, Any]) -> Any:
            x = self.norm(row["numbers"])
            parts = [self.embed[name](row[name]) for name in self.embed]
            return (self.deep(torch.cat([*parts, x], 1)) + self.wide(x)).sigmoid().squeeze(1)

    return training(Net(), lambda net, row, y: F.binary_cross_entropy(net(row), y),
                    lambda i: ({"city": integers(8, 5, seed=i), "day": integers(7, 5, seed=i + 1),
                                "numbers": numbers(5, 4, seed=i + 2)}, (numbers(5, seed=i + 3) > 0).float()), adam)


@model
def policy_gradient() -> Scenario:
    """REINFORCE over an episode; returns are added up in Python."""
    net = mlp(4, 8, 2)
    optimizer = adam(net.parameters())

    def episode(states: Any, rewards: Any) -> Any:
        log_probs, returns, total = [], [], 0.0
        for s in states:
            policy = distributions.Categorical(logits=net(s))
            action = policy.sample()
            log_probs.append(policy.log_prob(action))
        for r in reversed(rewards):
            total = r + 0.9 * total
            returns.insert(0, total)
        value = torch.tensor(returns)
        value = (value - value.mean()) / (value.std() + 1e-6)
        loss = torch.stack([-p * v for p, v in zip(log_probs, value, strict=True)]).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return torch.tensor(loss.item())

    return Scenario(episode, lambda i: (numbers(4, 4, seed=i), [0.5, 1.0, -0.5, 2.0 + i]), lambda: parameters(net))


@model
def proximal_policy_optimization() -> Scenario:
    class ActorCritic(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.actor, self.critic = mlp(4, 8, 2, act=nn.Tanh), mlp(4, 8, 1)
            self.log_std = nn.Parameter(torch.zeros(2))

        def forward(self, s: Any, a: Any) -> Any:
            policy = distributions.Normal(self.actor(s), self.log_std.exp())
            return policy.log_prob(a).sum(-1), policy.entropy().sum(-1), self.critic(s).squeeze(-1)

    def loss(net: nn.Module, s: Any, a: Any, old: Any, advantage: Any, returns: Any) -> Any:
        log_prob, entropy_, value = net(s, a)
        ratio = (log_prob - old).exp()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy = -torch.min(ratio * advantage, torch.clamp(ratio, 0.8, 1.2) * advantage).mean()
        return policy + 0.5 * F.mse_loss(value, returns) - 0.01 * entropy_.mean()

    return training(ActorCritic(), loss, lambda i: (numbers(6, 4, seed=i), numbers(6, 2, seed=i + 1),
                                                    numbers(6, seed=i + 2), numbers(6, seed=i + 3),
                                                    numbers(6, seed=i + 4)), adam)


@model
def deep_q_learning() -> Scenario:
    """A target network that is copied at every third call."""
    online, target = mlp(4, 8, 3), mlp(4, 8, 3)
    target.load_state_dict(online.state_dict())
    optimizer = torch.optim.RMSprop(online.parameters(), lr=1e-3)
    calls = [0]

    def step(s: Any, a: Any, r: Any, following: Any, done: Any) -> Any:
        q = online(s).gather(1, a.unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = target(following).max(1)[0]
            expected = r + 0.99 * best * (1 - done)
        loss = F.smooth_l1_loss(q, expected)
        optimizer.zero_grad()
        loss.backward()
        for p in online.parameters():
            p.grad.data.clamp_(-1, 1)
        optimizer.step()
        calls[0] += 1
        if calls[0] % 3 == 0:
            target.load_state_dict(online.state_dict())
        return loss.detach()

    return Scenario(step, lambda i: (numbers(5, 4, seed=i), integers(3, 5, seed=i + 1), numbers(5, seed=i + 2),
                                     numbers(5, 4, seed=i + 3), (numbers(5, seed=i + 4) > 0.5).float()),
                    lambda: (parameters(online), parameters(target)))


@model
def soft_actor_critic() -> Scenario:
    class Sac(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.actor, self.q = mlp(4, 8, 4), mlp(6, 8, 1)

        def act(self, s: Any) -> Any:
            mu, log_std = self.actor(s).chunk(2, -1)
            policy = distributions.Normal(mu, log_std.clamp(-20, 2).exp())
            u = policy.rsample()
            a = torch.tanh(u)
            return a, (policy.log_prob(u) - torch.log(1 - a.pow(2) + 1e-6)).sum(-1)

    def loss(net: Any, s: Any) -> Any:
        a, log_prob = net.act(s)
        return (0.2 * log_prob - net.q(torch.cat((s, a), -1)).squeeze(-1)).mean()

    return training(Sac(), loss, lambda i: (numbers(5, 4, seed=i),), adam)


@model
def neural_ode() -> Scenario:
    class Ode(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.f = mlp(2, 8, 2, act=nn.Tanh)

        def forward(self, y: Any) -> Any:
            path, h = [y], 0.1
            for _ in range(4):
                k1 = self.f(y)
                k2 = self.f(y + h / 2 * k1)
                k3 = self.f(y + h / 2 * k2)
                k4 = self.f(y + h * k3)
                y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
                path.append(y)
            return torch.stack(path)

    return training(Ode(), lambda net, y, truth: torch.mean(torch.abs(net(y) - truth)),
                    lambda i: (numbers(3, 2, seed=i), numbers(5, 3, 2, seed=i + 9)), adam)


@model
def physics_informed_network() -> Scenario:
    """Burgers' equation: derivatives of the output with respect to the input are in the loss."""
    def loss(net: nn.Module, tx: Any) -> Any:
        tx = tx.detach().requires_grad_(True)
        u = net(tx)
        [du] = torch.autograd.grad(u.sum(), tx, create_graph=True)
        u_t, u_x = du[:, :1], du[:, 1:]
        [d2u] = torch.autograd.grad(u_x.sum(), tx, create_graph=True)
        return (u_t + u * u_x - 0.01 * d2u[:, 1:]).pow(2).mean()

    return training(mlp(2, 8, 1, act=nn.Tanh), loss, lambda i: (numbers(6, 2, seed=i),), adam)


@model
def radiance_field() -> Scenario:
    """NeRF: encoded positions, densities accumulated along rays."""
    class Nerf(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = mlp(3 + 12, 16, 4)

        def forward(self, origin: Any, direction: Any) -> Any:
            depth = torch.linspace(0.5, 2, 6).expand(len(origin), 6)
            depth = depth + torch.rand_like(depth) * 0.2
            points = origin[:, None] + direction[:, None] * depth[..., None]
            encoded = torch.cat([points, *(f(2.0 ** k * points) for k in range(2) for f in (torch.sin, torch.cos))], -1)
            raw = self.net(encoded)
            step = torch.cat([depth[:, 1:] - depth[:, :-1], torch.full((len(origin), 1), 1e3)], -1)
            alpha = 1.0 - torch.exp(-F.relu(raw[..., 3]) * step)
            kept = torch.cumprod(torch.cat([torch.ones(len(origin), 1), 1.0 - alpha + 1e-10], -1), -1)[:, :-1]
            return ((alpha * kept)[..., None] * torch.sigmoid(raw[..., :3])).sum(1)

    return training(Nerf(), lambda net, o, d, c: F.mse_loss(net(o, d), c),
                    lambda i: tuple(numbers(4, 3, seed=i + k) for k in (0, 9, 20)), adam)


@model
def meta_learning() -> Scenario:
    """MAML: the loss after an inner step, by the functional API."""
    net = mlp(1, 8, 1, act=nn.Tanh)
    optimizer = adam(net.parameters())

    def inner(params: Any, x: Any, y: Any) -> Any:
        return F.mse_loss(functional_call(net, params, (x,)), y)

    def step(x: Any, y: Any) -> Any:
        params = dict(net.named_parameters())
        slopes = grad(inner)(params, x[:4], y[:4])
        loss = inner({k: p - 0.1 * slopes[k] for k, p in params.items()}, x[4:], y[4:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return Scenario(step, lambda i: (numbers(8, 1, seed=i), numbers(8, 1, seed=i + 9)), lambda: parameters(net))


@model
def private_gradients() -> Scenario:
    """Gradients of each example, clipped one by one (DP-SGD)."""
    net = mlp(5, 6, 3)

    def step(x: Any, y: Any) -> Any:
        params = {k: p.detach() for k, p in net.named_parameters()}

        def loss(params: Any, x: Any, y: Any) -> Any:
            return F.cross_entropy(functional_call(net, params, (x[None],)), y[None])

        each = vmap(grad(loss), (None, 0, 0))(params, x, y)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()], 1).norm(dim=1)
        scale = (1.0 / (norms + 1e-6)).clamp(max=1.0)
        with torch.no_grad():
            for name, p in net.named_parameters():
                g = torch.einsum("b...,b->...", each[name], scale) / len(x)
                p -= 0.1 * (g + 0.01 * torch.randn_like(g))
        return norms

    return Scenario(step, lambda i: (numbers(6, 5, seed=i), integers(3, 6, seed=i + 9)), lambda: parameters(net))


@model
def fourier_operator() -> Scenario:
    class Spectral(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 4, 3, dtype=torch.cfloat) * 0.2)
            self.w = nn.Conv1d(4, 4, 1)

        def forward(self, x: Any) -> Any:
            spectrum = torch.fft.rfft(x)
            out = torch.zeros_like(spectrum)
            out[:, :, :3] = torch.einsum("bix,iox->box", spectrum[:, :, :3], self.weight)
            return F.gelu(torch.fft.irfft(out, n=x.size(-1)) + self.w(x))

    return training(nn.Sequential(nn.Conv1d(1, 4, 1), Spectral(), nn.Conv1d(4, 1, 1)),
                    lambda net, x, y: F.mse_loss(net(x), y),
                    lambda i: (numbers(2, 1, 8, seed=i), numbers(2, 1, 8, seed=i + 9)), adam)


@model
def gaussian_process() -> Scenario:
    class Gp(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.log_scale, self.log_noise = nn.Parameter(torch.zeros(())), nn.Parameter(torch.tensor(-1.0))

        def forward(self, x: Any, y: Any) -> Any:
            k = torch.exp(-0.5 * torch.cdist(x, x).pow(2) / self.log_scale.exp() ** 2)
            lower = torch.linalg.cholesky(k + self.log_noise.exp() * torch.eye(len(x)))
            alpha = torch.cholesky_solve(y[:, None], lower)
            return 0.5 * (y @ alpha).squeeze() + lower.diagonal().log().sum()

    return training(Gp(), lambda net, *data: net(*data),
                    lambda i: (numbers(6, 1, seed=i), numbers(6, seed=i + 9)), lambda p: torch.optim.Rprop(p))


@model
def line_search() -> Scenario:
    """L-BFGS evaluates the loss as often as it needs."""
    net = mlp(3, 5, 1, act=nn.Tanh)
    optimizer = torch.optim.LBFGS(net.parameters(), lr=0.5, max_iter=3)

    def step(x: Any, y: Any) -> Any:
        def closure() -> Any:
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            return loss

        return optimizer.step(closure)

    return Scenario(step, lambda i: (numbers(6, 3, seed=i), numbers(6, 1, seed=i + 9)), lambda: parameters(net))


@model
def hand_written_optimizer() -> Scenario:
    """Adam as a class of the user's, which counts its steps in Python."""
    net = mlp(4, 6, 2)

    class Mine(torch.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {"lr": 1e-2, "betas": (0.9, 0.99)})

        @torch.no_grad()
        def step(self, closure: Any = None) -> None:
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    if len(state) == 0:
                        state["step"], state["m"], state["v"] = 0, torch.zeros_like(p), torch.zeros_like(p)
                    state["step"] += 1
                    b1, b2 = group["betas"]
                    state["m"].mul_(b1).add_(p.grad, alpha=1 - b1)
                    state["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                    m = state["m"] / (1 - b1 ** state["step"])
                    v = state["v"] / (1 - b2 ** state["step"])
                    p.addcdiv_(m, v.sqrt().add_(1e-8), value=-group["lr"])

    return training(net, lambda net, x, y: F.mse_loss(net(x), y),
                    lambda i: (numbers(4, 4, seed=i), numbers(4, 2, seed=i + 9)), Mine)
