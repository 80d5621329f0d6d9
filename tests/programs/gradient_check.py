"""Gradients against finite differences, by hand and with gradcheck."""
import torch
import torch.nn.functional as F

torch.manual_seed(0)


def numeric(f, x, eps=1e-6):
    g = torch.zeros_like(x)
    for i in range(x.numel()):
        up, down = x.clone(), x.clone()
        up.view(-1)[i] += eps
        down.view(-1)[i] -= eps
        g.view(-1)[i] = (f(up) - f(down)) / (2 * eps)
    return g


x = torch.rand(3, 4, dtype=torch.double) * 0.8 + 0.1
functions = {
    "sin": lambda t: t.sin().sum(), "softmax": lambda t: (F.softmax(t, 1) * t).sum(), "logsumexp": lambda t: t.logsumexp(0).sum(),
    "norm": lambda t: t.norm(), "std": lambda t: t.std(1).sum(), "prod": lambda t: t.prod(1).sum(), "cumprod": lambda t: t.cumprod(1).sum(),
    "max": lambda t: t.max(1)[0].sum(), "gelu": lambda t: F.gelu(t).sum(), "layer_norm": lambda t: (F.layer_norm(t, (4,)) * t).sum(),
    "matmul": lambda t: (t @ t.t()).pow(3).sum(), "gather": lambda t: t.gather(1, torch.zeros(3, 2, dtype=torch.long)).exp().sum(),
    "median": lambda t: t.median(), "var": lambda t: t.var(unbiased=False), "atan2": lambda t: torch.atan2(t, t + 1).sum(),
    "lgamma": lambda t: torch.lgamma(t + 1).sum(), "erf": lambda t: torch.erf(t).sum(), "sort": lambda t: (t.sort(1)[0] * torch.arange(4)).sum(),
    "clamp": lambda t: t.clamp(0.3, 0.7).pow(2).sum(), "roll": lambda t: (t.roll(1, 0) * t).sum(), "tanh": lambda t: (t.tanh() / t).sum(),
    "where": lambda t: torch.where(t > 0.5, t ** 2, t ** 3).sum(), "einsum": lambda t: torch.einsum("ij,kj->ik", t, t).sin().sum(),
    "det": lambda t: (t[:3, :3] + torch.eye(3)).det(), "inverse": lambda t: (t[:3, :3] + 2 * torch.eye(3)).inverse().sum(),
    "pad": lambda t: (F.pad(t, (1, 1)) ** 2).sum(), "flip": lambda t: (t.flip(0) * t.cumsum(0)).sum(), "log1p": lambda t: t.log1p().mean(),
    "hypot": lambda t: torch.hypot(t, 1 - t).sum(), "xlogy": lambda t: torch.xlogy(t, t).sum(), "renorm": lambda t: t.renorm(2, 0, 0.5).sum(),
    "cross": lambda t: torch.linalg.cross(t[:, :3], t[:, 1:]).pow(2).sum(), "addmm": lambda t: torch.addmm(t, t, t[:, :1].expand(3, 4).t() @ t).sum(),
}
for name, f in functions.items():
    leaf = x.clone().requires_grad_()
    y = f(leaf)
    y.backward()
    print(f"{name:12s} {y.item():9.4f} {type(y.grad_fn).__name__:24s} {(leaf.grad - numeric(f, x)).abs().max() < 1e-7}")
