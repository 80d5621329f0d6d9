"""Models of texts, sounds, graphs, points and tables."""

from __future__ import annotations

from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from tests.export.full_size.catalogue import model, tokens


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x: Any) -> Any:
        b, t, c = x.shape
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        return self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


@model
def gpt_2() -> Any:
    """GPT-2 small: 124 million parameters, of which the token embedding is used twice."""

    class Gpt(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
            self.blocks, self.norm = nn.Sequential(*(Block(768, 12) for _ in range(12))), nn.LayerNorm(768)
            nn.init.normal_(self.tokens.weight, std=0.02)

        def forward(self, ids: Any) -> Any:
            h = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
            return F.linear(self.norm(self.blocks(h))[:, -1], self.tokens.weight)

    return Gpt(), (tokens(50257, 64),)


@model
def bert() -> Any:
    """BERT base: 12 layers, 110 million parameters."""

    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.positions = nn.Embedding(30522, 768), nn.Embedding(512, 768)
            self.types = nn.Embedding(2, 768)
            layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, "gelu", batch_first=True)
            self.norm = nn.LayerNorm(768, 1e-12)
            self.encoder = nn.TransformerEncoder(layer, 12, enable_nested_tensor=False)
            self.pooler = nn.Linear(768, 768)

        def forward(self, ids: Any, types: Any) -> Any:
            h = self.tokens(ids) + self.positions(torch.arange(ids.shape[1])) + self.types(types)
            h = self.encoder(self.norm(h))
            return h, torch.tanh(self.pooler(h[:, 0]))

    return Bert(), (tokens(30522, 64), tokens(2, 64))


@model
def translation_transformer() -> Any:
    class Translation(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.source, self.target = nn.Embedding(16000, 512), nn.Embedding(16000, 512)
            self.body = nn.Transformer(512, 8, 6, 6, 2048, 0.0, batch_first=True)
            self.head = nn.Linear(512, 16000)

        def forward(self, source: Any, target: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
            return self.head(self.body(self.source(source), self.target(target), tgt_mask=mask, tgt_is_causal=True))

    return Translation(), (tokens(16000, 32), tokens(16000, 24))


@model
def lstm_language_model() -> Any:
    class Language(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.lstm = nn.Embedding(10000, 650), nn.LSTM(650, 650, 2, batch_first=True)
            self.head = nn.Linear(650, 10000)

        def forward(self, ids: Any) -> Any:
            y, (h, c) = self.lstm(self.embedding(ids))
            return self.head(y), h, c

    return Language(), (tokens(10000, 35),)


@model
def gru_speech() -> Any:
    class Speech(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Sequential(nn.Conv1d(80, 256, 5, 2, 2), nn.ReLU(), nn.Conv1d(256, 256, 5, 2, 2), nn.ReLU())
            self.gru, self.head = nn.GRU(256, 256, 3, batch_first=True, bidirectional=True), nn.Linear(512, 29)

        def forward(self, x: Any) -> Any:
            return F.log_softmax(self.head(self.gru(self.conv(x).transpose(1, 2))[0]), -1)

    return Speech(), (torch.randn(1, 80, 200),)


@model
def sound_classifier() -> Any:
    """Power spectra of a second of sound at 16 kHz, and convolutions."""

    class Sound(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("window", torch.hann_window(400))
            parts, cin = [], 1
            for cout in (32, 64, 128):
                parts += [nn.Conv2d(cin, cout, 3, padding=1), nn.BatchNorm2d(cout), nn.ReLU(), nn.MaxPool2d(2)]
                cin = cout
            self.body = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 35))

        def forward(self, wave: Any) -> Any:
            spectrum = torch.stft(wave, 400, 160, window=self.window, return_complex=True)
            return self.body(torch.log1p(spectrum.abs().pow(2))[:, None])

    return Sound(), (torch.randn(1, 16000),)


@model
def wavenet() -> Any:
    class Gated(nn.Module):
        def __init__(self, dilation: int) -> None:
            super().__init__()
            self.both, self.out = nn.Conv1d(64, 128, 2, dilation=dilation), nn.Conv1d(64, 128, 1)
            self.dilation = dilation

        def forward(self, x: Any, skip: Any) -> Any:
            a, b = self.both(F.pad(x, (self.dilation, 0))).chunk(2, 1)
            rest, more = self.out(torch.tanh(a) * torch.sigmoid(b)).chunk(2, 1)
            return x + rest, skip + more

    class WaveNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Conv1d(256, 64, 1)
            self.layers = nn.ModuleList(Gated(2 ** (i % 10)) for i in range(20))
            self.last = nn.Sequential(nn.ReLU(), nn.Conv1d(64, 256, 1), nn.ReLU(), nn.Conv1d(256, 256, 1))

        def forward(self, x: Any) -> Any:
            h = self.first(x)
            skip = torch.zeros_like(h)
            for layer in self.layers:
                h, skip = layer(h, skip)
            return self.last(skip)

    return WaveNet(), (torch.randn(1, 256, 1100),)


def _edges(nodes: int, count: int) -> Any:
    return torch.randint(0, nodes, (2, count))


@model
def graph_convolution() -> Any:
    """The size of Cora: 2,708 nodes, 10,556 edges, 1,433 features."""

    class Gcn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(1433, 16), nn.Linear(16, 7)

        def forward(self, x: Any, edges: Any) -> Any:
            source, target = edges
            degree = torch.ones(x.shape[0]).index_add(0, target, torch.ones(edges.shape[1])).rsqrt()
            scale = (degree[source] * degree[target])[:, None]
            for layer in (self.first, self.second):
                h = layer(x)
                x = torch.relu((h * (degree * degree)[:, None]).index_add(0, target, h[source] * scale))
            return F.log_softmax(x, 1)

    return Gcn(), (torch.randn(2708, 1433), _edges(2708, 10556))


@model
def graph_attention() -> Any:
    class Gat(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w, self.a = nn.Linear(1433, 64, bias=False), nn.Parameter(torch.randn(2, 8, 8) * 0.3)
            self.out = nn.Linear(64, 7)

        def forward(self, x: Any, edges: Any) -> Any:
            source, target = edges
            h = self.w(x).view(-1, 8, 8)
            score = F.leaky_relu((h * self.a[0]).sum(-1)[source] + (h * self.a[1]).sum(-1)[target], 0.2)
            index = target[:, None].expand(-1, 8)
            top = torch.full((x.shape[0], 8), -1e9).scatter_reduce(0, index, score, "amax")
            weight = (score - top[target]).exp()
            total = torch.zeros(x.shape[0], 8).scatter_add(0, index, weight)
            weight = weight / (total[target] + 1e-9)
            return self.out(F.elu(torch.zeros_like(h).index_add(0, target, weight[:, :, None] * h[source]).flatten(1)))

    return Gat(), (torch.randn(2708, 1433), _edges(2708, 10556))


@model
def point_net() -> Any:
    class PointNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            parts = [(3, 64), (64, 64), (64, 64), (64, 128), (128, 1024)]
            self.points = nn.Sequential(*(nn.Sequential(nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())
                                          for a, b in parts))  # fmt: skip
            self.head = nn.Sequential(
                nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 40)
            )

        def forward(self, x: Any) -> Any:
            exact = "donot_use_mm_for_euclid_dist"
            nearest = torch.cdist(x[0].T[:256], x[0].T, compute_mode=exact).topk(16, largest=False)
            return self.head(self.points(x).amax(2)), nearest.values

    return PointNet(), (torch.randn(1, 3, 1024),)


@model
def recommendation() -> Any:
    class Dlrm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tables = nn.ModuleList(nn.EmbeddingBag(20000, 64, mode="sum") for _ in range(8))
            self.bottom = nn.Sequential(nn.Linear(13, 512), nn.ReLU(), nn.Linear(512, 64), nn.ReLU())
            self.top = nn.Sequential(
                nn.Linear(64 + 36, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 1)
            )

        def forward(self, dense: Any, ids: Any, offsets: Any) -> Any:
            x = self.bottom(dense)
            rows = torch.stack([x, *(table(each, offsets) for table, each in zip(self.tables, ids, strict=True))], 1)
            pairs = (rows @ rows.mT)[:, *torch.tril_indices(9, 9, -1)]
            return torch.sigmoid(self.top(torch.cat((x, pairs), 1)))

    return Dlrm(), (torch.randn(32, 13), torch.randint(0, 20000, (8, 100)), torch.arange(32) * 3)
