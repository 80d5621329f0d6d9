"""A convolutional variational autoencoder of images of rings."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(1)


def rings(count):
    y, x = torch.meshgrid(torch.linspace(-1, 1, 28), torch.linspace(-1, 1, 28), indexing="ij")
    radius = torch.empty(count, 1, 1).uniform_(0.2, 0.8)
    shift = torch.randn(2, count, 1, 1) * 0.15
    distance = torch.hypot(x - shift[0], y - shift[1])
    return torch.exp(-((distance - radius) / 0.12) ** 2).unsqueeze(1)


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.Conv2d(16, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Flatten(), nn.Linear(32 * 7 * 7, 2 * latent))
        self.decoder = nn.Sequential(
            nn.Linear(latent, 32 * 7 * 7), nn.ReLU(), nn.Unflatten(1, (32, 7, 7)),
            nn.ConvTranspose2d(32, 16, 4, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, 2, 1))

    def forward(self, x):
        mean, log_variance = self.encoder(x).chunk(2, dim=1)
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return self.decoder(z), mean, log_variance


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rings(1024)), batch_size=64, shuffle=True)
step = 0
while step < args.steps:
    for (x,) in loader:
        logits, mean, log_variance = model(x)
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum") / len(x)
        divergence = -0.5 * (1 + log_variance - mean.pow(2) - log_variance.exp()).sum(1).mean()
        optimizer.zero_grad()
        (reconstruction + divergence).backward()
        optimizer.step()
        step += 1
        if step == args.steps:
            break
model.eval()
with torch.no_grad():
    samples = torch.sigmoid(model.decoder(torch.randn(16, 8)))
print(f"samples: mean {samples.mean():.4f}, std {samples.std():.4f}")
