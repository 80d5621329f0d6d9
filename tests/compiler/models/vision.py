"""Convolutional networks, vision transformers, segmentation and detection."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from tests.compiler.eager_comparison import Scenario, numbers

from .catalogue import adam, entropy, images, integers, model, training


class Residual(nn.Module):
    def __init__(self, *layers: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.body = nn.Sequential(*layers)
        self.shortcut = shortcut

    def forward(self, x: Any) -> Any:
        identity = x if self.shortcut is None else self.shortcut(x)
        return self.body(x) + identity


def conv_bn(cin: int, cout: int, k: int = 3, stride: int = 1, groups: int = 1, act: type = nn.ReLU) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(cin, cout, k, stride, k // 2, groups=groups, bias=False), nn.BatchNorm2d(cout),
                         act(inplace=True))


def head(channels: int, classes: int = 5) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes)]


@model
def lenet() -> Scenario:
    net = nn.Sequential(nn.Conv2d(1, 4, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(4, 8, 5), nn.Tanh(), nn.AvgPool2d(2),
                        nn.Flatten(), nn.Linear(8 * 16, 20), nn.Tanh(), nn.Linear(20, 5))
    return training(net, entropy, images(1, 28, 5))


@model
def alexnet() -> Scenario:
    net = nn.Sequential(nn.Conv2d(3, 8, 5, 2, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2), nn.Conv2d(8, 8, 3, 1, 1),
                        nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.5),
                        nn.Linear(32, 16), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(16, 5))
    return training(net, entropy, images(3, 20, 5))


@model
def vgg() -> Scenario:
    layers: list[nn.Module] = []
    channels = 3
    for v in (4, "M", 8, 8, "M"):
        if v == "M":
            layers.append(nn.MaxPool2d(2))
        else:
            layers += [nn.Conv2d(channels, v, 3, padding=1), nn.BatchNorm2d(v), nn.ReLU(inplace=True)]
            channels = v
    return training(nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 4, 5)), entropy, images(3, 8, 5))


@model
def resnet_18() -> Scenario:
    def block(cin: int, cout: int, stride: int) -> nn.Module:
        body = [*conv_bn(cin, cout, stride=stride), nn.Conv2d(cout, cout, 3, padding=1), nn.BatchNorm2d(cout)]
        shortcut = None if stride == 1 else nn.Sequential(nn.Conv2d(cin, cout, 1, stride), nn.BatchNorm2d(cout))
        return nn.Sequential(Residual(*body, shortcut=shortcut), nn.ReLU())

    return training(nn.Sequential(conv_bn(3, 4), block(4, 4, 1), block(4, 8, 2), *head(8)), entropy, images(3, 8, 5))


@model
def resnet_50() -> Scenario:
    def bottleneck(c: int, mid: int) -> nn.Module:
        return nn.Sequential(Residual(*conv_bn(c, mid, 1), *conv_bn(mid, mid), nn.Conv2d(mid, c, 1),
                                      nn.BatchNorm2d(c)), nn.ReLU(inplace=True))

    return training(nn.Sequential(conv_bn(3, 8, 7, 2), nn.MaxPool2d(3, 2, 1), bottleneck(8, 4), bottleneck(8, 4),
                                  *head(8)), entropy, images(3, 16, 5))


class SqueezeExcite(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def forward(self, x: Any) -> Any:
        scale = F.adaptive_avg_pool2d(x, 1)
        return x * F.hardsigmoid(self.fc2(F.relu(self.fc1(scale))))


@model
def mobilenet_v3() -> Scenario:
    block = Residual(conv_bn(4, 12, 1, act=nn.Hardswish), conv_bn(12, 12, 5, groups=12, act=nn.Hardswish),
                     SqueezeExcite(12), nn.Conv2d(12, 4, 1), nn.BatchNorm2d(4))
    return training(nn.Sequential(conv_bn(3, 4, stride=2, act=nn.Hardswish), block, *head(4)), entropy,
                    images(3, 12, 5))


class StochasticDepth(nn.Module):
    """A residual block that is left out at random, sample by sample."""

    def __init__(self, body: nn.Module, p: float) -> None:
        super().__init__()
        self.body, self.p = body, p

    def forward(self, x: Any) -> Any:
        if not self.training or self.p == 0.0:
            return x + self.body(x)
        keep = torch.empty(x.shape[0], 1, 1, 1).bernoulli_(1 - self.p).div_(1 - self.p)
        return x + self.body(x) * keep


@model
def efficientnet() -> Scenario:
    body = nn.Sequential(conv_bn(4, 8, 1, act=nn.SiLU), conv_bn(8, 8, groups=8, act=nn.SiLU), SqueezeExcite(8),
                         nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4))
    return training(nn.Sequential(conv_bn(3, 4, act=nn.SiLU), StochasticDepth(body, 0.2), *head(4)), entropy,
                    images(3, 8, 5), adam)


class ShuffleBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(conv_bn(channels // 2, channels // 2, 1),
                                    conv_bn(channels // 2, channels // 2, groups=channels // 2))

    def forward(self, x: Any) -> Any:
        a, b = x.chunk(2, dim=1)
        out = torch.cat((a, self.branch(b)), dim=1)
        n, c, h, w = out.size()
        return out.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)


@model
def shufflenet() -> Scenario:
    return training(nn.Sequential(conv_bn(3, 8), ShuffleBlock(8), ShuffleBlock(8), *head(8)), entropy, images(3, 8, 5))


class DenseBlock(nn.Module):
    def __init__(self, channels: int, growth: int, count: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(channels + i * growth), nn.ReLU(),
                                                  nn.Conv2d(channels + i * growth, growth, 3, padding=1))
                                    for i in range(count))

    def forward(self, x: Any) -> Any:
        features = [x]
        for layer in self.layers:
            features.append(layer(torch.cat(features, 1)))
        return torch.cat(features, 1)


@model
def densenet() -> Scenario:
    return training(nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), DenseBlock(4, 2, 3), nn.Conv2d(10, 4, 1),
                                  nn.AvgPool2d(2), *head(4)), entropy, images(3, 8, 5))


class Inception(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.a, self.b = conv_bn(channels, 3, 1), nn.Sequential(conv_bn(channels, 2, 1), conv_bn(2, 3))
        self.c = nn.Sequential(nn.MaxPool2d(3, 1, 1), conv_bn(channels, 2, 1))

    def forward(self, x: Any) -> Any:
        return torch.cat([branch(x) for branch in (self.a, self.b, self.c)], 1)


@model
def inception() -> Scenario:
    return training(nn.Sequential(Inception(3), Inception(8), *head(8)), entropy, images(3, 8, 5))


@model
def convnext() -> Scenario:
    class Block(nn.Module):
        def __init__(self, c: int) -> None:
            super().__init__()
            self.dw, self.norm = nn.Conv2d(c, c, 7, padding=3, groups=c), nn.LayerNorm(c)
            self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)
            self.gamma = nn.Parameter(1e-2 * torch.ones(c))

        def forward(self, x: Any) -> Any:
            y = self.norm(self.dw(x).permute(0, 2, 3, 1))
            return x + (self.gamma * self.down(F.gelu(self.up(y)))).permute(0, 3, 1, 2)

    return training(nn.Sequential(nn.Conv2d(3, 6, 2, 2), Block(6), Block(6), *head(6)), entropy, images(3, 8, 5),
                    lambda p: torch.optim.AdamW(p, lr=1e-3, eps=1e-3))


class UNet(nn.Module):
    def __init__(self, channels: int = 3, classes: int = 3) -> None:
        super().__init__()
        self.enc1, self.enc2, self.mid = conv_bn(channels, 4), conv_bn(4, 8), conv_bn(8, 8)
        self.up, self.dec = nn.ConvTranspose2d(8, 4, 2, 2), conv_bn(8, 4)
        self.out = nn.Conv2d(4, classes, 1)

    def forward(self, x: Any) -> Any:
        a = self.enc1(x)
        b = self.mid(self.enc2(F.max_pool2d(a, 2)))
        up = self.up(b)
        if up.shape[-2:] != a.shape[-2:]:
            up = F.pad(up, [0, a.shape[-1] - up.shape[-1], 0, a.shape[-2] - up.shape[-2]])
        return self.out(self.dec(torch.cat([up, a], dim=1)))


@model
def u_net() -> Scenario:
    def dice(net: nn.Module, x: Any, y: Any) -> Any:
        logits = net(x)
        one_hot = F.one_hot(y, 3).permute(0, 3, 1, 2).float()
        p = logits.softmax(1)
        overlap = 2 * (p * one_hot).sum((0, 2, 3)) / ((p + one_hot).sum((0, 2, 3)) + 1e-6)
        return F.cross_entropy(logits, y) + 1 - overlap.mean()

    return training(UNet(), dice, lambda i: (numbers(2, 3, 9, 8, seed=i), integers(3, 2, 9, 8, seed=i + 50)))


@model
def segmentation_with_ignored_pixels() -> Scenario:
    def loss(net: nn.Module, x: Any, y: Any) -> Any:
        out = F.interpolate(net(x), size=y.shape[-2:], mode="bilinear", align_corners=False)
        return F.cross_entropy(out, torch.where(y == 3, -100, y), ignore_index=-100)

    net = nn.Sequential(conv_bn(3, 4, stride=2), nn.Conv2d(4, 3, 3, padding=2, dilation=2))
    return training(net, loss, lambda i: (numbers(2, 3, 8, 8, seed=i), integers(4, 2, 8, 8, seed=i + 50)))


class ViT(nn.Module):
    def __init__(self, size: int = 8, patch: int = 4, d: int = 12, classes: int = 5) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, d, patch, patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))
        self.pos = nn.Parameter(torch.randn(1, 1 + (size // patch) ** 2, d) * 0.02)
        self.blocks = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 3, 24, 0.1, "gelu", batch_first=True,
                                                                       norm_first=True), 2, enable_nested_tensor=False)
        self.head = nn.Linear(d, classes)

    def forward(self, x: Any) -> Any:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(x.shape[0], -1, -1), x), 1) + self.pos
        return self.head(self.blocks(x)[:, 0])


@model
def vision_transformer() -> Scenario:
    return training(ViT(), entropy, images(3, 8, 5), adam)


class WindowAttention(nn.Module):
    """Swin's attention in shifted windows, with a table of relative positions."""

    def __init__(self, d: int, heads: int, window: int, shift: int) -> None:
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.table = nn.Parameter(torch.randn((2 * window - 1) ** 2, heads) * 0.02)
        at = torch.stack(torch.meshgrid(torch.arange(window), torch.arange(window), indexing="ij")).flatten(1)
        relative = (at[:, :, None] - at[:, None, :]).permute(1, 2, 0) + window - 1
        self.register_buffer("index", relative[..., 0] * (2 * window - 1) + relative[..., 1])

    def forward(self, x: Any) -> Any:
        b, h, w, c = x.shape
        n = self.window
        x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        x = x.view(b, h // n, n, w // n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, n * n, c)
        q, k, v = self.qkv(x).view(-1, n * n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        bias = self.table[self.index.view(-1)].view(n * n, n * n, -1).permute(2, 0, 1)
        weights = (q @ k.transpose(-2, -1) / (c // self.heads) ** 0.5 + bias).softmax(-1)
        x = self.proj((weights @ v).transpose(1, 2).reshape(-1, n * n, c))
        x = x.view(b, h // n, w // n, n, n, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return torch.roll(x, (self.shift, self.shift), (1, 2))


@model
def swin_transformer() -> Scenario:
    class Swin(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch, self.a, self.b = nn.Conv2d(3, 8, 2, 2), WindowAttention(8, 2, 2, 0), WindowAttention(8, 2, 2, 1)
            self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 5)

        def forward(self, x: Any) -> Any:
            x = self.patch(x).permute(0, 2, 3, 1)
            x = x + self.a(self.norm(x))
            x = x + self.b(self.norm(x))
            return self.head(x.mean((1, 2)))

    return training(Swin(), entropy, images(3, 8, 5), adam)


@model
def mlp_mixer() -> Scenario:
    class Mixer(nn.Module):
        def __init__(self, tokens: int, d: int) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.tokens = nn.Sequential(nn.Linear(tokens, 8), nn.GELU(), nn.Linear(8, tokens))
            self.channels = nn.Sequential(nn.Linear(d, 16), nn.GELU(), nn.Linear(16, d))

        def forward(self, x: Any) -> Any:
            x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
            return x + self.channels(self.norm2(x))

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.patch, self.mix, self.head = nn.Conv2d(3, 6, 4, 4), Mixer(4, 6), nn.Linear(6, 5)

        def forward(self, x: Any) -> Any:
            return self.head(self.mix(self.patch(x).flatten(2).transpose(1, 2)).mean(1))

    return training(Net(), entropy, images(3, 8, 5))


@model
def single_shot_detector() -> Scenario:
    """Boxes matched to anchors by overlap; only those that match are trained, the hardest of the others."""
    anchors = torch.rand(16, 2, generator=torch.Generator().manual_seed(1)).repeat(1, 2)
    anchors[:, 2:] += 0.3

    def overlap(a: Any, b: Any) -> Any:
        low, high = torch.max(a[:, None, :2], b[None, :, :2]), torch.min(a[:, None, 2:], b[None, :, 2:])
        inter = (high - low).clamp(min=0).prod(-1)
        area = [(x[:, 2] - x[:, 0]) * (x[:, 3] - x[:, 1]) for x in (a, b)]
        return inter / (area[0][:, None] + area[1][None] - inter)

    def loss(net: nn.Module, x: Any, boxes: Any) -> Any:
        out = net(x).view(16, 5)
        best, which = overlap(anchors, boxes).max(1)
        positive = best > 0.3
        localisation = F.smooth_l1_loss(out[positive][:, :4], (boxes[which] - anchors)[positive], reduction="sum")
        confidence = F.binary_cross_entropy_with_logits(out[:, 4], positive.float(), reduction="none")
        hardest = confidence[~positive].topk(3).values
        count = max(1, int(positive.sum()))
        return (localisation + confidence[positive].sum() + hardest.sum()) / count

    def batch(i: int) -> tuple[Any, ...]:
        corner = numbers(3, 2, seed=i).abs() * 0.4
        return numbers(1, 3, 8, 8, seed=i + 9), torch.cat((corner, corner + 0.4), 1)

    net = nn.Sequential(conv_bn(3, 4, stride=2), nn.Flatten(), nn.Linear(64, 80))
    return training(net, loss, batch)


@model
def non_maximum_suppression() -> Scenario:
    """Detection without training: a loop whose length the data decide."""
    def suppress(boxes: Any, scores: Any) -> Any:
        order = scores.argsort(descending=True)
        kept = []
        while order.numel() > 0:
            first = order[0]
            kept.append(first)
            rest = order[1:]
            low = torch.maximum(boxes[first, :2], boxes[rest, :2])
            high = torch.minimum(boxes[first, 2:], boxes[rest, 2:])
            inter = (high - low).clamp(min=0).prod(1)
            areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
            order = rest[inter / (areas[first] + areas[rest] - inter) <= 0.3]
        return torch.stack(kept)

    def batch(i: int) -> tuple[Any, ...]:
        corner = numbers(7, 2, seed=i).abs()
        return torch.cat((corner, corner + 0.8), 1), numbers(7, seed=i + 9)

    return Scenario(suppress, batch)


@model
def siamese_triplets() -> Scenario:
    def loss(net: nn.Module, a: Any, b: Any, c: Any) -> Any:
        return F.triplet_margin_loss(*(F.normalize(net(x)) for x in (a, b, c)), margin=0.3)

    net = nn.Sequential(conv_bn(1, 4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 6))
    return training(net, loss, lambda i: tuple(numbers(2, 1, 8, 8, seed=i + k) for k in (0, 50, 90)))


@model
def contrastive_pretraining() -> Scenario:
    """CLIP: images and texts in one space, a learned temperature, both directions."""
    class Clip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.image, self.text = nn.Sequential(nn.Flatten(), nn.Linear(48, 6)), nn.EmbeddingBag(20, 6)
            self.scale = nn.Parameter(torch.tensor(2.6592))

        def forward(self, image: Any, text: Any) -> Any:
            a, b = F.normalize(self.image(image), dim=-1), F.normalize(self.text(text), dim=-1)
            logits = self.scale.exp() * a @ b.t()
            labels = torch.arange(len(logits))
            return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2

    return training(Clip(), lambda net, *data: net(*data),
                    lambda i: (numbers(4, 3, 4, 4, seed=i), integers(20, 4, 5, seed=i + 9)), adam)


@model
def style_transfer() -> Scenario:
    """The image is what is trained; the network is fixed."""
    net = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 6, 3, padding=1)).requires_grad_(False)
    image = nn.Parameter(numbers(1, 3, 8, 8, seed=3))

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.image = image

    def gram(x: Any) -> Any:
        n, c, h, w = x.size()
        features = x.view(n * c, h * w)
        return torch.mm(features, features.t()).div(n * c * h * w)

    def loss(holder: nn.Module, content: Any, style: Any) -> Any:
        with torch.no_grad():
            holder.image.clamp_(-2, 2)
        found = net(holder.image)
        return F.mse_loss(found, net(content)) + 10 * F.mse_loss(gram(found), gram(net(style)).detach())

    return training(Holder(), loss, lambda i: (numbers(1, 3, 8, 8, seed=7), numbers(1, 3, 8, 8, seed=8)), adam)


@model
def super_resolution() -> Scenario:
    net = nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.PReLU(), nn.Conv2d(8, 4, 3, padding=1), nn.PixelShuffle(2))
    return training(net, lambda m, x, y: F.l1_loss(m(x), y),
                    lambda i: (numbers(2, 1, 5, 5, seed=i), numbers(2, 1, 10, 10, seed=i + 9)))


@model
def spatial_transformer() -> Scenario:
    class Stn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.where = nn.Linear(64, 6)
            self.where.weight.data.zero_()
            self.where.bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))
            self.classify = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), *head(4))

        def forward(self, x: Any) -> Any:
            grid = F.affine_grid(self.where(x.flatten(1)).view(-1, 2, 3), x.size(), align_corners=False)
            return self.classify(F.grid_sample(x, grid, align_corners=False))

    return training(Stn(), entropy, images(1, 8, 5))


@model
def capsules() -> Scenario:
    """Routing by agreement, three rounds."""
    class Capsules(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weights = nn.Parameter(torch.randn(4, 6, 5, 3) * 0.1)

        def forward(self, x: Any) -> Any:
            votes = torch.einsum("bni,cnio->bcno", x, self.weights.permute(0, 1, 2, 3))
            logits = torch.zeros(votes.shape[:3])
            for _ in range(3):
                s = (logits.softmax(1).unsqueeze(-1) * votes).sum(2)
                norm = s.norm(dim=-1, keepdim=True)
                v = norm ** 2 / (1 + norm ** 2) * s / (norm + 1e-8)
                logits = logits + (votes * v.unsqueeze(2)).sum(-1)
            return v.norm(dim=-1)

    return training(Capsules(), entropy, lambda i: (numbers(3, 6, 5, seed=i), integers(4, 3, seed=i + 9)))


@model
def video_classifier() -> Scenario:
    net = nn.Sequential(nn.Conv3d(3, 4, (3, 3, 3), padding=1), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d(2),
                        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 5))
    return training(net, entropy, lambda i: (numbers(2, 3, 4, 6, 6, seed=i), integers(5, 2, seed=i + 9)))
