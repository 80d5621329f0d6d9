"""Small models of many kinds, each with example inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F

#: name -> what makes a model and its example inputs
MODELS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {}


def model(make: Callable[[], tuple[nn.Module, tuple[Any, ...]]]) -> Callable[[], tuple[nn.Module, tuple[Any, ...]]]:
    MODELS[make.__name__] = make
    return make


@model
def mlp():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4), nn.Softmax(-1)), (torch.randn(3, 8),)


@model
def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3),
        nn.GELU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(6, 5),
    ), (torch.randn(2, 3, 12, 12),)


class Residual(nn.Module):
    def __init__(self, cin: int, cout: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(cout)
        self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(cout)
        self.shortcut = nn.Conv2d(cin, cout, 1, stride, bias=False)

    def forward(self, x: Any) -> Any:
        out = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(out + self.shortcut(x))


@model
def resnet():
    return nn.Sequential(
        Residual(3, 8, 2), Residual(8, 16, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 5)
    ), (torch.randn(2, 3, 10, 10),)


class Squeeze(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def forward(self, x: Any) -> Any:
        return x * F.hardsigmoid(self.up(F.relu(self.down(x.mean((2, 3), keepdim=True)))))


@model
def mobilenet():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1),
        nn.Hardswish(),
        nn.Conv2d(8, 8, 3, 1, 1, groups=8),
        nn.BatchNorm2d(8),
        nn.Hardswish(),
        Squeeze(8),
        nn.Conv2d(8, 12, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 4),
    ), (torch.randn(2, 3, 9, 9),)


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 6, padding_idx=0)
        self.lstm = nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
        self.out = nn.Linear(10, 3)

    def forward(self, tokens: Any) -> Any:
        y, (h, _) = self.lstm(self.embedding(tokens))
        return self.out(y), h


@model
def lstm():
    return Tagger(), (torch.tensor([[1, 2, 3, 0], [4, 5, 6, 7]]),)


class Attention(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.qkv, self.out, self.heads, self.causal = (
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
            heads,
            causal,
        )

    def forward(self, x: Any) -> Any:
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, causal)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Language(nn.Module):
    def __init__(self, causal: bool, length: int = 8, width: int = 16, vocabulary: int = 20) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*(Block(width, 4, causal) for _ in range(2)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        h = self.tokens(x) + self.positions(torch.arange(x.shape[1]))
        return self.norm(self.blocks(h)) @ self.tokens.weight.T


@model
def gpt():
    return Language(causal=True), (torch.tensor([[1, 5, 2, 7], [3, 3, 19, 0]]),)


@model
def bert():
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
    return nn.TransformerEncoder(encoder, 2, enable_nested_tensor=False), (torch.randn(2, 5, 8),)


class ViT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.block, self.head = Block(16, 2, False), nn.Linear(16, 3)

    def forward(self, x: Any) -> Any:
        h = self.patches(x).flatten(2).transpose(1, 2)
        h = torch.cat([self.token.expand(x.shape[0], -1, -1), h], 1)
        return self.head(self.block(h)[:, 0])


@model
def vit():
    return ViT(), (torch.randn(2, 3, 8, 8),)


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
        self.down2 = nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.InstanceNorm2d(8), nn.LeakyReLU(0.2))
        self.up = nn.ConvTranspose2d(8, 4, 2, 2)
        self.last = nn.Conv2d(8, 1, 1)

    def forward(self, x: Any) -> Any:
        a = self.down1(x)
        y = torch.cat([a, self.up(self.down2(F.max_pool2d(a, 2)))], 1)
        z = F.interpolate(F.avg_pool2d(y, 2), scale_factor=2, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.last(z))


@model
def unet():
    return UNet(), (torch.randn(2, 1, 8, 8),)


class VAE(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = nn.Linear(12, 8), nn.Sequential(nn.Linear(4, 12), nn.Sigmoid())

    def forward(self, x: Any, noise: Any) -> Any:
        mean, variance = self.encoder(x).chunk(2, 1)
        return self.decoder(mean + noise * (0.5 * variance).exp()), mean, variance


@model
def vae():
    return VAE(), (torch.randn(3, 12), torch.randn(3, 4))


class GraphConvolution(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(5, 8), nn.Linear(8, 3)

    def forward(self, x: Any, source: Any, target: Any) -> Any:
        for layer in (self.first, self.second):
            messages = layer(x)[source]
            x = torch.zeros(x.shape[0], messages.shape[1]).index_add(0, target, messages).tanh()
        return x


@model
def gnn():
    return GraphConvolution(), (
        torch.randn(6, 5),
        torch.tensor([0, 1, 2, 3, 4, 5, 0]),
        torch.tensor([1, 2, 3, 4, 5, 0, 3]),
    )


class Mixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.across, self.within = nn.Linear(6, 6), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        x = x + self.across(x.transpose(1, 2)).transpose(1, 2)
        return (x + self.within(F.layer_norm(x, (4,)))).mean(1)


@model
def mixer():
    return Mixer(), (torch.randn(2, 6, 4),)


class Filters(nn.Module):
    """Signals: dilated convolutions, a scan, and reductions of several dtypes."""

    def __init__(self) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(nn.Conv1d(2, 2, 2, dilation=2**i) for i in range(2))

    def forward(self, x: Any) -> Any:
        for i, each in enumerate(self.convolutions):
            x = x + torch.tanh(each(F.pad(x, (2**i, 0))))
        return x.cumsum(-1), x.argmax(-1), (x > 0).any(1), x.double().std(), (x * math.pi).half()


@model
def filters():
    return Filters(), (torch.randn(2, 2, 9),)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru, self.rnn = nn.GRU(3, 4), nn.RNN(4, 5, nonlinearity="relu")

    def forward(self, x: Any) -> Any:
        return self.rnn(self.gru(x)[0])[0]


@model
def recurrent():
    return Recurrent(), (torch.randn(6, 2, 3),)


class Zoo(nn.Module):
    """Parts of all families of kernels, for targets that are slow to test: one program."""

    def __init__(self) -> None:
        super().__init__()
        self.cnn, self.tagger, self.language, self.unet = cnn()[0], Tagger(), Language(True), UNet()

    def forward(self, image: Any, tokens: Any, plane: Any) -> Any:
        models = self.cnn(image), self.tagger(tokens)[0], self.language(tokens), self.unet(plane), plane.sum(-1)
        return (*models, *self.operators(image[0, 0, :8, :8], tokens))

    def operators(self, x: Any, i: Any) -> tuple[Any, ...]:
        """Operators whose kernels are of families that no model has."""
        order = x.argsort(1)
        lower = torch.linalg.cholesky(x @ x.mT + torch.eye(8))
        points = torch.stack((x, x.T), -1)[None] / 2
        return (
            x.sort(0)[0] + order,
            torch.searchsorted(x[0].sort()[0], x).float(),
            x.scatter_reduce(1, order, x.T, "amax"),
            torch.linalg.solve(lower @ lower.mT, x),
            (i // 3 + (i - 5) % 3).float(),
            F.grid_sample(x[None, None], points, align_corners=False),
            torch.fft.rfft(x).abs(),
        )


def zoo():
    torch.manual_seed(0)
    return Zoo().eval(), (
        torch.randn(2, 3, 12, 12),
        torch.tensor([[1, 2, 3, 0], [4, 5, 6, 7]]),
        torch.randn(2, 1, 8, 8),
    )


def make(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    torch.manual_seed(0)
    module, args = MODELS[name]()
    return module.eval(), args
