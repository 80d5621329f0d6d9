"""A vision transformer written with unflatten, permute and einsum: sine-cosine positions, a class token, mixup, an average of weights."""

import argparse

import torch
import torch.nn.functional as F
from torch import einsum, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(6)


def exists(val):
    return val is not None


def pair(t):
    return t if isinstance(t, tuple) else (t, t)


def posemb_sincos_2d(h, w, dim, temperature: int = 10000, dtype=torch.float32):
    y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
    assert (dim % 4) == 0, "feature dimension must be multiple of 4 for sincos emb"
    omega = torch.arange(dim // 4) / (dim // 4 - 1)
    omega = 1.0 / (temperature ** omega)
    y, x = y.flatten()[:, None] * omega[None, :], x.flatten()[:, None] * omega[None, :]
    return torch.cat((x.sin(), x.cos(), y.sin(), y.cos()), dim=1).type(dtype)


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=8, dropout=0.):
        super().__init__()
        self.heads, self.scale = heads, dim_head ** -0.5
        self.attend = nn.Softmax(dim=-1)
        self.to_qkv = nn.Linear(dim, heads * dim_head * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(dropout))

    def forward(self, x, mask=None):
        q, k, v = map(lambda t: t.unflatten(-1, (self.heads, -1)).transpose(1, 2), self.to_qkv(x).chunk(3, dim=-1))
        dots = einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        if exists(mask):
            dots = dots.masked_fill(~mask, -torch.finfo(dots.dtype).max)
        out = einsum("b h i j, b h j d -> b h i d", self.attend(dots), v)
        return self.to_out(out.transpose(1, 2).flatten(-2))


class ViT(nn.Module):
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, channels=3, pool="cls"):
        super().__init__()
        self.p1, self.p2 = pair(patch_size)
        h, w = pair(image_size)
        self.embed = nn.Sequential(nn.LayerNorm(channels * self.p1 * self.p2), nn.Linear(channels * self.p1 * self.p2, dim))
        self.register_buffer("positions", posemb_sincos_2d(h // self.p1, w // self.p2, dim), persistent=False)
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim))
        self.layers = nn.ModuleList([])
        for _ in range(depth):
            self.layers.append(nn.ModuleList([
                PreNorm(dim, Attention(dim)),
                PreNorm(dim, nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(approximate="tanh"), nn.Linear(2 * dim, dim)))]))
        self.pool, self.head = pool, nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def forward(self, img):
        b, c, h, w = img.shape
        x = img.unfold(2, self.p1, self.p1).unfold(3, self.p2, self.p2).permute(0, 2, 3, 4, 5, 1).reshape(
            b, -1, self.p1 * self.p2 * c)
        x = self.embed(x) + self.positions
        x = torch.cat((self.cls_token.expand(b, -1, -1), x), dim=1)
        for attn, ff in self.layers:
            x = attn(x) + x
            x = ff(x) + x
        return self.head(x.mean(dim=1) if self.pool == "mean" else x[:, 0])


model = ViT(image_size=16, patch_size=(4, 8), num_classes=5, dim=24, depth=2)
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.Adamax(model.parameters(), lr=4e-3)
beta = torch.distributions.Beta(0.4, 0.4)
labels = torch.randint(5, (128,))
images = torch.randn(128, 3, 16, 16) + (torch.randn(5, 3, 16, 16) * 0.5)[labels]
for step in range(args.steps):
    i = torch.randint(0, 128, (16,))
    x, y = images[i], F.one_hot(labels[i], 5).float()
    lam, perm = beta.sample(), torch.randperm(16)
    x, y = lam * x + (1 - lam) * x[perm], torch.lerp(y[perm], y, lam)
    loss = torch.sum(-y * F.log_softmax(model(x), dim=-1), dim=-1).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average.update_parameters(model)
model.eval(), average.eval()
with torch.no_grad():
    print(f"{F.cross_entropy(model(images), labels):.4f} {F.cross_entropy(average(images), labels):.4f}",
          (model(images).argmax(-1) == labels).sum().item(), average.n_averaged)
print(len(model.state_dict()), sorted(model.state_dict())[:3], list(average.state_dict())[:1])
