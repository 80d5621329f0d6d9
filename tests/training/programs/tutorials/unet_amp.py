"""A U-Net that finds blobs: bfloat16 by autocast, a dice loss, accumulated gradients, checkpointed blocks, a custom Function."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(15)


class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        ctx.save_for_backward(i)
        return i * torch.sigmoid(i)

    @staticmethod
    def backward(ctx, grad_output):
        i, = ctx.saved_tensors
        s = torch.sigmoid(i)
        return grad_output * (s * (1 + i * (1 - s)))


class DoubleConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.c1, self.n1 = nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(2, o)
        self.c2, self.n2 = nn.Conv2d(o, o, 3, padding=1, padding_mode="reflect"), nn.GroupNorm(2, o)

    def forward(self, x):
        return Swish.apply(self.n2(self.c2(Swish.apply(self.n1(self.c1(x))))))


class UNet(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.inc, self.down, self.deep = DoubleConv(1, width), DoubleConv(width, 2 * width), DoubleConv(2 * width, 4 * width)
        self.up1, self.conv1 = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2), DoubleConv(4 * width, 2 * width)
        self.up2, self.conv2 = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), DoubleConv(3 * width, width)
        self.outc = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = checkpoint(self.down, F.max_pool2d(x1, 2), use_reentrant=False)
        x3 = self.deep(F.avg_pool2d(x2, 2))
        x = self.up1(x3)
        dy, dx = x2.size(2) - x.size(2), x2.size(3) - x.size(3)
        x = F.pad(x, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        x = self.conv1(torch.cat([x2, x], dim=1))
        x = F.interpolate(self.up2(x), size=x1.shape[-2:], mode="nearest")
        return self.outc(self.conv2(torch.cat([x1, x], dim=1)))


def dice(probability, target, smooth=1.0):
    dims = (1, 2, 3)
    intersection = (probability * target).sum(dims)
    return (1 - (2 * intersection + smooth) / (probability.sum(dims) + target.sum(dims) + smooth)).mean()


def blobs(count):
    axis = torch.linspace(-1, 1, 18)
    centers, size = torch.empty(count, 2, 1, 1).uniform_(-0.6, 0.6), torch.empty(count, 1, 1).uniform_(0.15, 0.4)
    mask = ((axis[:, None] - centers[:, 0]) ** 2 + (axis - centers[:, 1]) ** 2 < size**2).float()
    return (mask + 0.4 * torch.randn(count, 18, 18)).unsqueeze(1), mask.unsqueeze(1)


model = UNet().to(memory_format=torch.channels_last)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu", enabled=True, init_scale=2.0**8, growth_interval=10)
for step in range(args.steps):
    optimizer.zero_grad()
    for _ in range(2):
        x, y = blobs(8)
        with torch.autocast(device_type="cpu", dtype=torch.bfloat16, enabled=step % 2 == 1):
            logits = model(x.contiguous(memory_format=torch.channels_last))
        logits = logits.float()
        loss = (F.binary_cross_entropy_with_logits(logits, y, pos_weight=torch.tensor(2.0)) + dice(logits.sigmoid(), y)) / 2
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 5.0)
    scaler.step(optimizer)
    scaler.update()
model.eval()
x, y = blobs(16)
with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
    logits = model(x)
print(logits.dtype, scaler.get_scale(), model.inc.c1.weight.is_contiguous(memory_format=torch.channels_last))
predicted = logits.float() > 0
print(f"iou {(predicted & y.bool()).sum() / (predicted | y.bool()).sum():.2f}")
