"""Denoising diffusion of small pictures: a U-Net with attention, a cosine schedule, averaged weights, sampling."""

import argparse
import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(3)
TIMES = 100


def embedded(t, width):
    frequencies = torch.exp(-math.log(10_000) * torch.arange(width // 2, dtype=torch.float32) / (width // 2))
    angles = t[:, None].float() * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class Block(nn.Module):
    def __init__(self, inner, outer, times):
        super().__init__()
        self.first = nn.Sequential(nn.GroupNorm(4, inner), nn.SiLU(), nn.Conv2d(inner, outer, 3, padding=1))
        self.of_time = nn.Linear(times, 2 * outer)
        self.norm = nn.GroupNorm(4, outer)
        self.second = nn.Sequential(nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(outer, outer, 3, padding=1))
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x, t):
        h = self.first(x)
        scale, shift = self.of_time(t)[:, :, None, None].chunk(2, dim=1)
        return self.skip(x) + self.second(self.norm(h) * (1 + scale) + shift)


class Attention(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.norm, self.heads = nn.GroupNorm(4, width), heads
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3, self.heads, c // self.heads, h * w).transpose(-1, -2).unbind(1)
        y = F.scaled_dot_product_attention(q, k, v)
        return x + self.out(y.transpose(-1, -2).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.width = width
        self.time = nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, 4 * width))
        self.enter = nn.Conv2d(1, width, 3, padding=1)
        self.down = nn.ModuleList([Block(width, width, 4 * width), Block(width, 2 * width, 4 * width)])
        self.middle, self.attention = Block(2 * width, 2 * width, 4 * width), Attention(2 * width)
        self.up = nn.ModuleList([Block(4 * width, width, 4 * width), Block(2 * width, width, 4 * width)])
        self.leave = nn.Sequential(nn.GroupNorm(4, width), nn.SiLU(), nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, x, t):
        t = self.time(embedded(t, self.width))
        x = self.enter(x)
        kept = []
        for block in self.down:
            x = block(x, t)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.attention(self.middle(x, t))
        for block in self.up:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat([x, kept.pop()], dim=1), t)
        return self.leave(x)


angles = (torch.arange(TIMES + 1) / TIMES + 0.008) / 1.008 * math.pi / 2
signal = torch.cos(angles) ** 2 / torch.cos(angles[0]) ** 2
betas = (1 - signal[1:] / signal[:-1]).clamp(max=0.999)
alphas = torch.cumprod(1 - betas, dim=0)

model = UNet()
average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=2e-3, total_steps=args.steps + 1)
for _ in range(args.steps):
    centres = torch.randint(4, 12, (16, 2, 1, 1))
    grid = torch.arange(16)
    pictures = ((grid[None, :, None] - centres[:, 0]).abs() + (grid - centres[:, 1]).abs() < 4).float()[:, None] * 2 - 1
    t = torch.randint(TIMES, (16,))
    noise = torch.randn_like(pictures)
    kept = alphas[t][:, None, None, None]
    predicted = model(kept.sqrt() * pictures + (1 - kept).sqrt() * noise, t)
    loss = F.mse_loss(predicted, noise)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    average.update_parameters(model)

average.eval()
x = torch.randn(4, 1, 16, 16)
with torch.no_grad():
    for time in reversed(range(0, TIMES, 10)):
        predicted = average(x, torch.full((4,), time))
        x = (x - betas[time] / (1 - alphas[time]).sqrt() * predicted) / (1 - betas[time]).sqrt()
        if time:
            x = x + betas[time].sqrt() * torch.randn_like(x)
print(f"samples: mean {x.mean():.4f}, std {x.std():.4f}")
