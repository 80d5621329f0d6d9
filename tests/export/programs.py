"""Modules that are exported: each is a function of the library that it is written for."""

from __future__ import annotations

import math
from typing import Any


def _module(t: Any, forward: Any, **attributes: Any) -> Any:
    class Program(t.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, value in attributes.items():
                setattr(self, name, value)

        def forward(self, *args):
            return forward(self, *args)

    return Program()


def mlp(t):
    return t.nn.Sequential(t.nn.Linear(8, 16), t.nn.ReLU(), t.nn.Dropout(0.1), t.nn.Linear(16, 4)).eval(), (
        t.randn(3, 8),)


def cnn(t):
    return t.nn.Sequential(
        t.nn.Conv2d(3, 4, 3, padding=1), t.nn.ReLU(inplace=True), t.nn.MaxPool2d(2), t.nn.Conv2d(4, 6, 3, 2, "valid"),
        t.nn.GELU(), t.nn.AdaptiveAvgPool2d(1), t.nn.Flatten(), t.nn.Linear(6, 5), t.nn.LogSoftmax(-1)).eval(), (
            t.randn(2, 3, 12, 12),)


def residual(t):
    class Block(t.nn.Module):
        def __init__(self, cin, cout, stride):
            super().__init__()
            self.conv1 = t.nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
            self.bn1 = t.nn.BatchNorm2d(cout)
            self.relu = t.nn.ReLU(inplace=True)
            self.conv2 = t.nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
            self.bn2 = t.nn.BatchNorm2d(cout)
            self.downsample = t.nn.Sequential(t.nn.Conv2d(cin, cout, 1, stride, bias=False), t.nn.BatchNorm2d(cout))

        def forward(self, x):
            out = self.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.downsample(x)
            return self.relu(out)

    return t.nn.Sequential(Block(3, 4, 2), Block(4, 8, 1)).eval(), (t.randn(2, 3, 8, 8),)


def training_norm(t):
    return t.nn.Sequential(t.nn.Conv1d(3, 4, 3), t.nn.BatchNorm1d(4), t.nn.SiLU(), t.nn.Dropout(0.5)), (
        t.randn(2, 3, 8),)


def lstm(t):
    class Tagger(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = t.nn.Embedding(10, 6, padding_idx=0)
            self.lstm = t.nn.LSTM(6, 5, 2, batch_first=True, bidirectional=True)
            self.out = t.nn.Linear(10, 3)

        def forward(self, tokens):
            y, (h, c) = self.lstm(self.embedding(tokens))
            return self.out(y), h, c

    return Tagger().eval(), (t.tensor([[1, 2, 3, 0], [4, 5, 6, 7]]),)


def recurrent(t):
    class Both(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.gru, self.rnn = t.nn.GRU(3, 4, bidirectional=True), t.nn.RNN(8, 5, nonlinearity="relu")

        def forward(self, x):
            y, h = self.gru(x)
            return self.rnn(y)[0], h

    return Both().eval(), (t.randn(6, 2, 3),)


def recurrent_cells(t):
    class Cells(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.gru, self.rnn = t.nn.LSTMCell(3, 4), t.nn.GRUCell(4, 5), t.nn.RNNCell(5, 2)

        def forward(self, x):
            h, c = self.lstm(x)
            h, c = self.lstm(x, (h, c))
            return self.rnn(self.gru(h)), c

    return Cells().eval(), (t.randn(2, 3),)


def encoder(t):
    layer = t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu", norm_first=True)
    return t.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(), (t.randn(2, 3, 8),)


def attention(t):
    class Attention(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = t.nn.Linear(12, 36), t.nn.Linear(12, 12)
            self.norm = t.nn.LayerNorm(12)

        def forward(self, x):
            b, n, c = x.shape
            q, k, v = self.qkv(self.norm(x)).view(b, n, 3, 4, c // 4).permute(2, 0, 3, 1, 4)
            y = t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return x + self.out(y.transpose(1, 2).reshape(b, n, c))

    return Attention().eval(), (t.randn(2, 5, 12),)


def manual_attention(t):
    def forward(self, q, k, v, mask):
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
        scores = scores.masked_fill(mask == 0, float("-inf"))
        return t.softmax(scores, dim=-1) @ v

    return _module(t, forward), (t.randn(2, 3, 4, 8), t.randn(2, 3, 4, 8), t.randn(2, 3, 4, 8),
                                 t.tril(t.ones(4, 4)))


def unet(t):
    class UNet(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.down1 = t.nn.Sequential(t.nn.Conv2d(1, 4, 3, padding=1), t.nn.GroupNorm(2, 4), t.nn.SiLU())
            self.down2 = t.nn.Sequential(t.nn.Conv2d(4, 8, 3, padding=1), t.nn.InstanceNorm2d(8), t.nn.LeakyReLU(0.2))
            self.up = t.nn.ConvTranspose2d(8, 4, 2, 2)
            self.sample = t.nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)
            self.last = t.nn.Conv2d(8, 1, 1)

        def forward(self, x):
            a = self.down1(x)
            b = self.down2(t.nn.functional.max_pool2d(a, 2))
            y = t.cat([a, self.up(b)], dim=1)
            z = self.sample(t.nn.functional.avg_pool2d(y, 2))
            w = t.nn.functional.interpolate(z, size=(8, 8), mode="nearest")
            return t.sigmoid(self.last(w))

    return UNet().eval(), (t.randn(2, 1, 8, 8),)


def indexing(t):
    def forward(self, x, i):
        y = x.clone()
        y[0] = 1.0
        y[:, 1:3] += 2
        y[..., -1] = x[..., 0]
        y[:, i] = 0
        z = x[i, None, ::2]
        return y, z, x[1], x[:, :-1], x[i, i], x[x.shape[0] - 1, 1:], x[None]

    return _module(t, forward), (t.randn(4, 6), t.tensor([0, 2]))


def arithmetic(t):
    def forward(self, x, y):
        a = x + y, x - 1, 2 * x, x / y, 1 / y, 1 - x, x ** 2, 2 ** x, -x, abs(x), x // 2, x % 3
        b = x > y, x == 1, (x > 0) & (y > 0), ~(x > 0), t.where(x > 0, x, y), t.where(x > 0, 1.0, 0.0)
        return a, b, t.add(x, y, alpha=2), x.add(1), t.maximum(x, y), x.clamp(-1, 1), x.clamp(min=0)

    return _module(t, forward), (t.randn(3, 4), t.rand(3, 4) + 1)


def reductions(t):
    def forward(self, x):
        return (x.sum(), x.sum(1), x.sum(dim=(0, 1), keepdim=True), x.mean(), x.mean(-1), x.max(), x.max(1), x.amax(0),
                x.min(dim=0).values, x.argmax(), x.argmax(1), x.std(), x.std(0), x.var(1, unbiased=False), x.prod(),
                x.prod(1), (x > 0).any(), (x > 0).all(1), x.norm(), x.norm(2, dim=1), x.logsumexp(1), x.cumsum(0),
                t.linalg.norm(x), t.linalg.vector_norm(x, 2, 1), x.topk(2), x.sort(1), x.argsort(0))

    return _module(t, forward), (t.randn(3, 5),)


def shapes(t):
    def forward(self, x):
        b, c, h, w = x.shape
        y = x.view(b, c, -1), x.reshape(b * c, h, w), x.flatten(1), x.permute(0, 2, 3, 1), x.transpose(1, 2)
        z = t.cat([x, x], 1), t.stack([x, x]), x.unsqueeze(0), x.unsqueeze(-1).squeeze(-1), x.expand(2, -1, -1, -1)
        u = x.repeat(1, 2, 1, 1), x.chunk(2, 1), x.split(1, 2), x.split([1, 3], 3), x.unbind(0), x.narrow(1, 0, 1)
        v = x.roll(1, 2), x.flip(3), x.tile((1, 1, 1, 2)), x.contiguous(), x.permute(0, 2, 3, 1).contiguous(), x.mT
        w = t.nn.functional.pad(x, (1, 2)), t.nn.functional.pad(x, (1, 1, 1, 1), mode="reflect"), x.unfold(3, 2, 1)
        s = x.select(1, 0), x.diagonal(0, 2, 3), x[0, 0].tril(), x[0, 0].triu(1), x[0, 0].t(), x.swapaxes(0, 1)
        return y, z, u, v, w, s, t.broadcast_to(x, (2, 1, 2, 3, 4)), x.unflatten(1, (2, 1)), x.movedim(1, -1)

    return _module(t, forward), (t.randn(1, 2, 3, 4),)


def creation(t):
    def forward(self, x):
        n = x.shape[0]
        return (t.zeros(2, 3), t.ones(n, dtype=x.dtype), t.full((2,), 3.0), t.arange(5), t.arange(1, 5, 2), t.eye(3),
                t.zeros_like(x), t.ones_like(x, dtype=t.float64), t.full_like(x, 2), x.new_zeros(2, 2),
                x.new_ones((3,)), x.new_full((2,), 1.5), t.linspace(0, 1, 5), t.tensor([1, 2]), t.arange(n),
                t.empty(0), x.new_tensor([1.0]))

    return _module(t, forward), (t.randn(3, 2),)


def losses(t):
    F = t.nn.functional

    def forward(self, x, y, i):
        return (F.cross_entropy(x, i), F.mse_loss(x, y), F.l1_loss(x, y), F.smooth_l1_loss(x, y), F.huber_loss(x, y),
                F.nll_loss(F.log_softmax(x, 1), i), F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
                F.binary_cross_entropy_with_logits(x, y.sigmoid()), F.kl_div(x, y, reduction="batchmean"),
                F.cosine_similarity(x, y), F.cross_entropy(x, i, reduction="none", label_smoothing=0.1))

    return _module(t, forward), (t.randn(3, 4), t.randn(3, 4), t.tensor([0, 1, 3]))


def activations(t):
    F = t.nn.functional

    def forward(self, x):
        return (F.relu(x), F.relu6(x), F.elu(x), F.selu(x), F.celu(x), F.leaky_relu(x), F.gelu(x),
                F.gelu(x, approximate="tanh"), F.silu(x), F.mish(x), F.hardswish(x), F.hardsigmoid(x), F.hardtanh(x),
                F.softplus(x), F.softsign(x), F.logsigmoid(x), F.tanhshrink(x), F.softshrink(x), F.hardshrink(x),
                F.threshold(x, 0.1, 2.0), F.softmax(x, -1), F.log_softmax(x, 0), F.glu(x), F.normalize(x), t.tanh(x),
                t.sigmoid(x), F.prelu(x, t.tensor([0.2])), F.softmin(x, 1), F.rms_norm(x, (4,)))

    return _module(t, forward), (t.randn(3, 4),)


def conversions(t):
    def forward(self, x, i):
        return (x.to(t.float64), x.float(), x.double(), x.long(), i.float(), x.to(i.dtype), x.type_as(i), x.bool(),
                x.int(), i.to(x), x.half(), x.to("cpu"), x.detach(), x.clone(), x.type(t.float64))

    return _module(t, forward), (t.randn(3), t.tensor([1, 2, 3]))


def selection(t):
    F = t.nn.functional

    def forward(self, x, i):
        return (x.gather(1, i), x.scatter(1, i, 1.0), x.scatter_add(1, i, x), x.index_select(0, i[:, 0]), x.take(i),
                t.where(x > 0, x, 0.0), x.masked_fill(x > 0, 0.0), F.one_hot(i, 4), F.embedding(i, x),
                x.index_add(0, i[:, 0], x), t.isin(i, i), t.searchsorted(x[0].sort().values, x),
                t.einsum("ij,kj->ik", x, x), t.outer(x[0], x[1]), t.meshgrid(x[0], x[1], indexing="ij"),
                t.bmm(x[None], x.t()[None]), t.addmm(x, x, x), t.baddbmm(x[None], x[None], x[None]), t.dot(x[0], x[1]),
                t.tensordot(x, x, 1), t.cdist(x, x))

    return _module(t, forward), (t.randn(3, 3), t.tensor([[0, 1, 2], [2, 1, 0], [1, 1, 1]]))


def pointwise(t):
    def forward(self, x):
        names = """exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh asinh atanh erf
                erfc abs neg sign floor ceil round trunc frac reciprocal square isnan isinf isfinite sigmoid logical_not
                sgn lgamma digamma""".split()  # noqa: SIM905
        y = x * 0.5 + 0.25
        return [getattr(t, name)(y) for name in names] + [t.atan2(x, y), t.pow(y, 3), t.fmod(x, 2), t.remainder(x, 2),
                                                          t.hypot(x, y), t.xlogy(x, y), t.lerp(x, y, 0.5),
                                                          t.addcmul(x, y, y), t.addcdiv(x, y, y, value=2)]

    return _module(t, forward), (t.rand(2, 3),)


PROGRAMS = {f.__name__: f for f in (
    mlp, cnn, residual, training_norm, lstm, recurrent, recurrent_cells, encoder, attention, manual_attention, unet,
    indexing,
    arithmetic, reductions, shapes, creation, losses, activations, conversions, selection, pointwise)}
