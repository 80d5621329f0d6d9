"""Vectors quantized by a codebook of moving averages: straight-through gradients, k-means for a start, dead codes, perplexity."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(8)


def kmeans(samples, num_clusters, num_iters=4):
    means = samples[torch.randperm(samples.shape[0])[:num_clusters]]
    for _ in range(num_iters):
        buckets = torch.cdist(samples, means).argmin(dim=-1)
        bins = torch.bincount(buckets, minlength=num_clusters)
        zero_mask = bins == 0
        bins_min_clamped = bins.masked_fill(zero_mask, 1)
        new_means = buckets.new_zeros(num_clusters, samples.shape[-1], dtype=samples.dtype)
        new_means.scatter_add_(0, buckets[:, None].expand_as(samples), samples)
        means = torch.where(zero_mask[..., None], means, new_means / bins_min_clamped[..., None])
    return means, bins


class VectorQuantizer(nn.Module):
    def __init__(self, dim, size, decay=0.9, eps=1e-5):
        super().__init__()
        self.decay, self.eps, self.size = decay, eps, size
        self.register_buffer("initted", torch.Tensor([False]))
        self.register_buffer("cluster_size", torch.zeros(size))
        self.register_buffer("embed", torch.empty(size, dim).normal_())
        self.register_buffer("embed_avg", self.embed.clone())

    @torch.no_grad()
    def start(self, flat):
        if self.initted:
            return
        embed, bins = kmeans(flat, self.size)
        self.embed.data.copy_(embed)
        self.embed_avg.data.copy_(embed * bins[:, None])
        self.cluster_size.data.copy_(bins)
        self.initted.data.copy_(torch.Tensor([True]))

    def forward(self, x):
        flat = x.movedim(1, -1).reshape(-1, x.shape[1])
        self.start(flat)
        distance = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.embed.t() + self.embed.pow(2).sum(1)
        index = distance.argmin(-1)
        onehot = F.one_hot(index, self.size).type(flat.dtype)
        quantized = F.embedding(index, self.embed).view(*x.movedim(1, -1).shape).movedim(-1, 1)
        if self.training:
            with torch.no_grad():
                self.cluster_size.lerp_(onehot.sum(0), 1 - self.decay)
                self.embed_avg.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
                n = self.cluster_size.sum()
                sizes = (self.cluster_size + self.eps) / (n + self.size * self.eps) * n
                self.embed.copy_(self.embed_avg / sizes.unsqueeze(1))
                dead = self.cluster_size < 0.01
                if torch.any(dead):
                    self.embed[dead] = flat[torch.randint(0, len(flat), (int(dead.sum()),))]
        loss = F.mse_loss(quantized.detach(), x)
        quantized = x + (quantized - x).detach()
        probs = onehot.mean(0)
        perplexity = torch.exp(-torch.sum(probs * torch.log(probs + 1e-10)))
        return quantized, loss, perplexity, index.view(x.shape[0], *x.shape[2:])


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Conv1d(1, 16, 4, 2, 1), nn.LeakyReLU(0.1), nn.Conv1d(16, 16, 4, 2, 1), nn.Mish(),
                                     nn.Conv1d(16, 8, 3, padding="same", padding_mode="circular"))
        self.quantizer = VectorQuantizer(8, 12)
        self.decoder = nn.Sequential(nn.ConvTranspose1d(8, 16, 4, 2, 1), nn.InstanceNorm1d(16, affine=True), nn.ELU(),
                                     nn.Upsample(scale_factor=2, mode="linear", align_corners=False),
                                     nn.ReflectionPad1d(1), nn.Conv1d(16, 1, 3))

    def forward(self, x):
        quantized, loss, perplexity, index = self.quantizer(self.encoder(x))
        return self.decoder(quantized), loss, perplexity, index


t = torch.linspace(0, 1, 32)
waves = torch.sin(2 * torch.pi * (torch.rand(96, 1) * 3 + 1) * t + torch.rand(96, 1) * 6).unsqueeze(1)
model = Model()
torch.nn.utils.parametrizations.weight_norm(model.encoder[0])
optimizer = torch.optim.RAdam(model.parameters(), lr=3e-3)
for step in range(args.steps):
    x = waves[torch.randperm(96)[:24]]
    out, commitment, perplexity, _ = model(x)
    loss = F.l1_loss(out, x) + 0.25 * commitment
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    out, commitment, perplexity, index = model(waves)
print(f"{F.l1_loss(out, waves):.4f} {commitment:.4f} {perplexity:.3f}", index.unique().numel(), index[0].tolist())
