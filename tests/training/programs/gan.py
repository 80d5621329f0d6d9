"""A deep convolutional GAN with spectral normalisation and a gradient penalty, which differentiates twice."""

import argparse

import torch
from torch import nn
from torch.nn.utils import parametrizations

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(2)


class Generator(nn.Module):
    def __init__(self, noise=32, width=16):
        super().__init__()
        self.main = nn.Sequential(
            nn.ConvTranspose2d(noise, 2 * width, 4, 1, 0, bias=False), nn.BatchNorm2d(2 * width), nn.ReLU(True),
            nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True),
            nn.ConvTranspose2d(width, 3, 4, 2, 1, bias=False), nn.Tanh())

    def forward(self, z):
        return self.main(z[:, :, None, None])


class Discriminator(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.main = nn.Sequential(
            parametrizations.spectral_norm(nn.Conv2d(3, width, 4, 2, 1)), nn.LeakyReLU(0.2),
            parametrizations.spectral_norm(nn.Conv2d(width, 2 * width, 4, 2, 1)), nn.LeakyReLU(0.2),
            nn.Conv2d(2 * width, 1, 4))

    def forward(self, x):
        return self.main(x).flatten()


def initialise(module):
    if isinstance(module, (nn.ConvTranspose2d, nn.BatchNorm2d)):
        nn.init.normal_(module.weight, 1.0 if isinstance(module, nn.BatchNorm2d) else 0.0, 0.02)


def pictures(count):
    colours = torch.rand(count, 3, 1, 1) * 2 - 1
    stripes = torch.sin(torch.arange(16.0) * torch.empty(count, 1, 1, 1).uniform_(0.3, 1.2))
    return (colours * stripes).expand(-1, -1, 16, -1)


generator, discriminator = Generator().apply(initialise), Discriminator()
of_generator = torch.optim.Adam(generator.parameters(), lr=5e-4, betas=(0.5, 0.999), eps=1e-5)
of_discriminator = torch.optim.Adam(discriminator.parameters(), lr=5e-4, betas=(0.5, 0.999), eps=1e-5)
criterion = nn.BCEWithLogitsLoss()
for _ in range(args.steps):
    real = pictures(32)
    fake = generator(torch.randn(32, 32))
    of_discriminator.zero_grad(set_to_none=True)
    loss = criterion(discriminator(real), torch.full((32,), 0.9)) + criterion(
        discriminator(fake.detach()), torch.zeros(32))
    between = torch.lerp(real, fake.detach(), torch.rand(32, 1, 1, 1)).requires_grad_()
    slope, = torch.autograd.grad(discriminator(between).sum(), between, create_graph=True)
    (loss + 0.5 * (slope.flatten(1).norm(dim=1) - 1).square().mean()).backward()
    of_discriminator.step()

    of_generator.zero_grad(set_to_none=True)
    criterion(discriminator(fake), torch.ones(32)).backward()
    of_generator.step()
print(f"judged real: {torch.sigmoid(discriminator(real)).mean():.4f}")
print(f"judged fake: {torch.sigmoid(discriminator(fake)).mean():.4f}")
