"""Models of images."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from tests.export.full_size.catalogue import image, model


@model
def mlp() -> Any:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    ), image(1, 28)


@model
def lenet() -> Any:
    return nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(9216, 128), nn.ReLU(), nn.Linear(128, 10), nn.LogSoftmax(1),
    ), image(1, 28)  # fmt: skip


class Basic(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout)
        self.down = None
        if stride != 1 or cin != cout:
            self.down = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x: Any) -> Any:
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


@model
def resnet_18() -> Any:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                               nn.MaxPool2d(3, 2, 1)]  # fmt: skip
    width = 64
    for cout, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [Basic(width, cout, stride), Basic(cout, cout, 1)]
        width = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000)), image(3, 224)


class Squeeze(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        inner = (channels // 4 + 4) // 8 * 8
        self.down, self.up = nn.Conv2d(channels, inner, 1), nn.Conv2d(inner, channels, 1)

    def forward(self, x: Any) -> Any:
        return x * F.hardsigmoid(self.up(F.relu(self.down(F.adaptive_avg_pool2d(x, 1)))))


class Inverted(nn.Module):
    def __init__(self, cin: int, kernel: int, wide: int, cout: int, squeeze: bool, swish: bool, stride: int) -> None:
        super().__init__()
        act = nn.Hardswish if swish else nn.ReLU
        parts: list[nn.Module] = []
        if wide != cin:
            parts += [nn.Conv2d(cin, wide, 1, bias=False), nn.BatchNorm2d(wide), act()]
        parts += [nn.Conv2d(wide, wide, kernel, stride, kernel // 2, groups=wide, bias=False), nn.BatchNorm2d(wide),
                  act()]  # fmt: skip
        parts += [Squeeze(wide)] if squeeze else []
        self.body = nn.Sequential(*parts, nn.Conv2d(wide, cout, 1, bias=False), nn.BatchNorm2d(cout))
        self.adds = stride == 1 and cin == cout

    def forward(self, x: Any) -> Any:
        return x + self.body(x) if self.adds else self.body(x)


@model
def mobilenet_v3() -> Any:
    rows = ((16, 3, 16, 16, 1, 0, 2), (16, 3, 72, 24, 0, 0, 2), (24, 3, 88, 24, 0, 0, 1), (24, 5, 96, 40, 1, 1, 2),
            (40, 5, 240, 40, 1, 1, 1), (40, 5, 240, 40, 1, 1, 1), (40, 5, 120, 48, 1, 1, 1), (48, 5, 144, 48, 1, 1, 1),
            (48, 5, 288, 96, 1, 1, 2), (96, 5, 576, 96, 1, 1, 1), (96, 5, 576, 96, 1, 1, 1))  # fmt: skip
    body = [Inverted(cin, k, wide, cout, bool(se), bool(hs), stride) for cin, k, wide, cout, se, hs, stride in rows]
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish(), *body,
        nn.Conv2d(96, 576, 1, bias=False), nn.BatchNorm2d(576), nn.Hardswish(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(576, 1024), nn.Hardswish(), nn.Linear(1024, 1000),
    ), image(3, 224)  # fmt: skip


class Fire(nn.Module):
    def __init__(self, cin: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(cin, squeeze, 1)
        self.one, self.three = nn.Conv2d(squeeze, expand, 1), nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x: Any) -> Any:
        x = F.relu(self.squeeze(x))
        return torch.cat((F.relu(self.one(x)), F.relu(self.three(x))), 1)


@model
def squeezenet() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, 2), nn.ReLU(), nn.MaxPool2d(3, 2, ceil_mode=True), Fire(64, 16, 64), Fire(128, 16, 64),
        nn.MaxPool2d(3, 2, ceil_mode=True), Fire(128, 32, 128), Fire(256, 32, 128), nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(256, 48, 192), Fire(384, 48, 192), Fire(384, 64, 256), Fire(512, 64, 256), nn.Conv2d(512, 1000, 1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    ), image(3, 224)  # fmt: skip


class NextBlock(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix, self.norm = nn.Conv2d(width, width, 7, padding=3, groups=width), nn.LayerNorm(width, eps=1e-6)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.scale = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x: Any) -> Any:
        y = self.norm(self.mix(x).permute(0, 2, 3, 1))
        return x + (self.scale * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)


class ChannelNorm(nn.LayerNorm):
    def forward(self, x: Any) -> Any:
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


@model
def convnext_tiny() -> Any:
    parts: list[nn.Module] = [nn.Conv2d(3, 96, 4, 4), ChannelNorm(96)]
    for i, (width, depth) in enumerate(((96, 3), (192, 3), (384, 9), (768, 3))):
        if i:
            parts += [ChannelNorm(width // 2), nn.Conv2d(width // 2, width, 2, 2)]
        parts += [NextBlock(width) for _ in range(depth)]
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(768), nn.Linear(768, 1000)), image(
        3, 224)  # fmt: skip


def double(cin: int, cout: int) -> nn.Module:
    return nn.Sequential(nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(),
                         nn.Conv2d(cout, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU())  # fmt: skip


@model
def u_net() -> Any:
    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = (3, 64, 128, 256, 512, 1024)
            self.down = nn.ModuleList(double(a, b) for a, b in pairwise(widths))
            self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in (512, 256, 128, 64))
            self.join = nn.ModuleList(double(2 * w, w) for w in (512, 256, 128, 64))
            self.last = nn.Conv2d(64, 2, 1)

        def forward(self, x: Any) -> Any:
            kept = []
            for i, each in enumerate(self.down):
                x = each(F.max_pool2d(x, 2) if i else x)
                kept.append(x)
            for up, join, skip in zip(self.up, self.join, kept[-2::-1], strict=True):
                x = join(torch.cat((skip, up(x)), 1))
            return self.last(x)

    return UNet(), image(3, 128)


@model
def vae() -> Any:
    class Vae(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = (3, 32, 64, 128, 256)
            self.encoder = nn.Sequential(*(nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.LeakyReLU())
                                           for a, b in pairwise(widths)), nn.Flatten())  # fmt: skip
            self.mean, self.deviation, self.start = nn.Linear(4096, 128), nn.Linear(4096, 128), nn.Linear(128, 4096)
            back = (256, 128, 64, 32, 32)
            self.decoder = nn.Sequential(
                *(nn.Sequential(nn.ConvTranspose2d(a, b, 3, 2, 1, 1), nn.BatchNorm2d(b), nn.LeakyReLU())
                  for a, b in pairwise(back)), nn.Conv2d(32, 3, 3, padding=1), nn.Tanh())  # fmt: skip

        def forward(self, x: Any, noise: Any) -> Any:
            h = self.encoder(x)
            mean, logarithm = self.mean(h), self.deviation(h)
            z = mean + noise * (0.5 * logarithm).exp()
            return self.decoder(self.start(z).view(-1, 256, 4, 4)), mean, logarithm

    return Vae(), (torch.randn(1, 3, 64, 64), torch.randn(1, 128))


@model
def dcgan_generator() -> Any:
    widths, parts = (100, 512, 256, 128, 64), []
    for i, (a, b) in enumerate(pairwise(widths)):
        parts += [nn.ConvTranspose2d(a, b, 4, 2 if i else 1, 1 if i else 0, bias=False), nn.BatchNorm2d(b), nn.ReLU()]
    return nn.Sequential(*parts, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh()), (
        torch.randn(1, 100, 1, 1),)  # fmt: skip


@model
def super_resolution() -> Any:
    class Residual(nn.Sequential):
        def forward(self, x: Any) -> Any:
            return x + super().forward(x) * 0.1

    body = [Residual(nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)) for _ in range(16)]
    return nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), *body, nn.Conv2d(64, 256, 3, padding=1), nn.PixelShuffle(2),
                         nn.Conv2d(64, 3, 3, padding=1)), image(3, 48)  # fmt: skip


@model
def mlp_mixer() -> Any:
    class Mixing(nn.Module):
        def __init__(self, tokens: int, width: int) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.across = nn.Sequential(nn.Linear(tokens, 256), nn.GELU(), nn.Linear(256, tokens))
            self.within = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: Any) -> Any:
            x = x + self.across(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.within(self.norm2(x))

    class Mixer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches, self.blocks = nn.Conv2d(3, 512, 16, 16), nn.Sequential(*(Mixing(196, 512) for _ in range(8)))
            self.norm, self.head = nn.LayerNorm(512), nn.Linear(512, 1000)

        def forward(self, x: Any) -> Any:
            return self.head(self.norm(self.blocks(self.patches(x).flatten(2).transpose(1, 2))).mean(1))

    return Mixer(), image(3, 224)


@model
def vit_b_16() -> Any:
    class ViT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patches, self.token = nn.Conv2d(3, 768, 16, 16), nn.Parameter(torch.randn(1, 1, 768) * 0.02)
            self.positions = nn.Parameter(torch.randn(1, 197, 768) * 0.02)
            layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, "gelu", batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 12, nn.LayerNorm(768), enable_nested_tensor=False)
            self.head = nn.Linear(768, 1000)

        def forward(self, x: Any) -> Any:
            h = self.patches(x).flatten(2).transpose(1, 2)
            h = torch.cat((self.token.expand(x.shape[0], -1, -1), h), 1) + self.positions
            return self.head(self.encoder(h)[:, 0])

    return ViT(), image(3, 224)
