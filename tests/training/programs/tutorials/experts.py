"""A mixture of experts with top-2 gates, index_add and a balancing loss; a contrastive loss of augmented views; a scan of states."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(16)


class Experts(nn.Module):
    def __init__(self, dim, count, k=2):
        super().__init__()
        self.gate, self.k = nn.Linear(dim, count, bias=False), k
        self.w1 = nn.Parameter(torch.empty(count, dim, 2 * dim))
        self.w2 = nn.Parameter(torch.empty(count, 2 * dim, dim))
        for w in (self.w1, self.w2):
            nn.init.kaiming_uniform_(w, a=5**0.5)

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        probs = F.softmax(self.gate(flat), dim=-1, dtype=torch.float)
        weights, chosen = torch.topk(probs, self.k, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        mask = F.one_hot(chosen, num_classes=len(self.w1)).permute(2, 1, 0)
        for e in range(len(self.w1)):
            nth, token = torch.where(mask[e])
            if token.shape[0] == 0:
                continue
            y = F.gelu(flat[token] @ self.w1[e]) @ self.w2[e]
            out.index_add_(0, token, (y * weights[token, nth, None]).to(x.dtype))
        share = mask.float().sum(1).mean(-1)
        balance = len(self.w1) * (share * probs.mean(0)).sum()
        return out.reshape(x.shape), balance


class Scan(nn.Module):
    """A diagonal linear recurrence h_t = a_t h_{t-1} + b_t with gates from the input, unrolled."""

    def __init__(self, dim, state=4):
        super().__init__()
        self.A_log = nn.Parameter(torch.log(torch.arange(1, state + 1, dtype=torch.float32).repeat(dim, 1)))
        self.project = nn.Linear(dim, 2 * state + 1, bias=False)
        self.D, self.dt = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.rand(dim))

    def forward(self, u):
        n = self.A_log.shape[1]
        delta, B, C = self.project(u).split([1, n, n], dim=-1)
        delta = F.softplus(delta + self.dt)
        dA = torch.exp(torch.einsum("bld,dn->bldn", delta, -torch.exp(self.A_log)))
        dBu = torch.einsum("bld,bln,bld->bldn", delta, B, u)
        h, ys = u.new_zeros(dA.shape[0], *dA.shape[2:]), []
        for i in range(u.shape[1]):
            h = dA[:, i] * h + dBu[:, i]
            ys.append(torch.einsum("bdn,bn->bd", h, C[:, i]))
        return torch.stack(ys, dim=1) + u * self.D


def info_nce(a, b, temperature=0.2):
    z = F.normalize(torch.cat([a, b]), dim=-1)
    similarity = z @ z.T / temperature
    similarity = similarity.masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)
    positives = torch.arange(len(z)).roll(len(a))
    return F.cross_entropy(similarity, positives)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.scan, self.experts = nn.Linear(2, 16), Scan(16), Experts(16, 4)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 8)

    def forward(self, x):
        x = self.embed(x)
        x = x + self.scan(x)
        y, balance = self.experts(self.norm(x))
        return self.head((x + y).mean(1)), balance


model = Encoder()
optimizer = torch.optim.Adafactor(model.parameters(), lr=1e-2)
curves = torch.stack([torch.stack([torch.sin(f * torch.linspace(0, 6, 10)), torch.cos(f * torch.linspace(0, 6, 10))], -1)
                      for f in torch.linspace(0.5, 3, 24)])
view = lambda x: x * (1 + 0.1 * torch.randn(len(x), 1, 1)) + 0.05 * torch.randn_like(x)
for step in range(args.steps):
    batch = curves[torch.randperm(24)[:12]]
    (a, balance_a), (b, balance_b) = model(view(batch)), model(view(batch))
    loss = info_nce(a, b) + 0.01 * (balance_a + balance_b)
    model.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    z = F.normalize(model(curves)[0], dim=-1)
    near = (z @ z.T).fill_diagonal_(-1).argmax(-1)
    print(f"loss {loss.item():.4f}", near.shape)
    knn = torch.cdist(z, z).topk(3, largest=False).indices[:, 1:]
    print(knn.shape, torch.histc(knn.float(), 4, 0, 24).sum().item())
