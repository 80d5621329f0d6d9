"""Recurrent networks, transformers, state-space models, speech; training steps and generation."""

from __future__ import annotations

import math
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from flambeau.utils.checkpoint import checkpoint
from tests.compiler.eager_comparison import Scenario, numbers, parameters

from .catalogue import adam, entropy, integers, model, tokens, training


@model
def lstm_language_model() -> Scenario:
    """The state is carried over, detached, and gradients are clipped, as in PyTorch's example."""
    class Lm(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.lstm, self.drop = nn.Embedding(20, 6), nn.LSTM(6, 8, 2, batch_first=True), nn.Dropout(0.2)
            self.out = nn.Linear(8, 20)

        def forward(self, x: Any, state: Any) -> Any:
            x, state = self.lstm(self.drop(self.embed(x)), state)
            return self.out(self.drop(x)), state

    net = Lm()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    carried = [torch.zeros(2, 2, 8), torch.zeros(2, 2, 8)]

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        out, state = net(x, tuple(s.detach() for s in carried))
        loss = F.cross_entropy(out.reshape(-1, 20), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 0.25)
        optimizer.step()
        carried[:] = state
        return loss.detach()

    return Scenario(step, tokens(20, 5), lambda: parameters(net))


@model
def gru_classifier_of_packed_texts() -> Scenario:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.gru = nn.Embedding(20, 6, padding_idx=0), nn.GRU(6, 8, batch_first=True,
                                                                             bidirectional=True)
            self.out = nn.Linear(16, 4)

        def forward(self, x: Any) -> Any:
            lengths = torch.tensor([5, 3, 2])
            packed = nn.utils.rnn.pack_padded_sequence(self.embed(x), lengths, batch_first=True)
            _, h = self.gru(packed)
            return self.out(torch.cat([h[0], h[1]], 1))

    return training(Net(), entropy, lambda i: (integers(20, 3, 5, seed=i), integers(4, 3, seed=i + 9)))


@model
def rnn_cell_loop() -> Scenario:
    """The loop of nn/char_rnn: one letter after the other."""
    class Rnn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.i2h, self.h2h, self.h2o = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 4)

        def forward(self, line: Any) -> Any:
            hidden = torch.zeros(1, 8)
            for i in range(line.size(0)):
                hidden = torch.tanh(self.i2h(line[i]) + self.h2h(hidden))
            return F.log_softmax(self.h2o(hidden), dim=1)

    return training(Rnn(), lambda net, x, y: F.nll_loss(net(x), y),
                    lambda i: (numbers(5, 1, 6, seed=i), integers(4, 1, seed=i + 9)))


@model
def seq2seq_with_attention() -> Scenario:
    """Bahdanau's attention, decoded token by token, with teacher forcing that a coin of Python's decides."""
    class Seq2Seq(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.encoder = nn.Embedding(12, 6), nn.GRU(6, 8, batch_first=True)
            self.wa, self.ua, self.va = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1)
            self.decoder, self.out = nn.GRU(14, 8, batch_first=True), nn.Linear(8, 12)

        def forward(self, source: Any, target: Any) -> Any:
            keys, hidden = self.encoder(self.embed(source))
            token = torch.zeros(len(source), 1, dtype=torch.long)
            outputs = []
            for t in range(target.shape[1]):
                query = hidden.permute(1, 0, 2)
                weights = F.softmax(self.va(torch.tanh(self.wa(query) + self.ua(keys))).squeeze(2).unsqueeze(1), -1)
                x = torch.cat((self.embed(token), torch.bmm(weights, keys)), dim=2)
                out, hidden = self.decoder(x, hidden)
                outputs.append(self.out(out))
                token = target[:, t].unsqueeze(1)
            return torch.cat(outputs, 1)

    return training(Seq2Seq(), lambda net, s, t: F.cross_entropy(net(s, t).view(-1, 12), t.view(-1)),
                    lambda i: (integers(12, 2, 4, seed=i), integers(12, 2, 4, seed=i + 9)), adam)


class PositionalEncoding(nn.Module):
    def __init__(self, d: int, length: int) -> None:
        super().__init__()
        position = torch.arange(length).unsqueeze(1)
        frequency = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
        table = torch.zeros(length, d)
        table[:, 0::2], table[:, 1::2] = torch.sin(position * frequency), torch.cos(position * frequency)
        self.register_buffer("table", table)

    def forward(self, x: Any) -> Any:
        return x + self.table[:x.size(1)]


@model
def transformer_encoder_with_padding() -> Scenario:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.position = nn.Embedding(20, 8, padding_idx=0), PositionalEncoding(8, 10)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True), 2)
            self.out = nn.Linear(8, 4)

        def forward(self, x: Any) -> Any:
            padding = x == 0
            y = self.encoder(self.position(self.embed(x)), src_key_padding_mask=padding)
            weight = (~padding).unsqueeze(-1).float()
            return self.out((y * weight).sum(1) / weight.sum(1).clamp(min=1))

    return training(Net(), entropy, lambda i: (integers(20, 3, 6, seed=i) * (torch.arange(6) < 5 - i % 2),
                                               integers(4, 3, seed=i + 9)), adam)


@model
def translation_transformer() -> Scenario:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.out = nn.Embedding(12, 8), nn.Linear(8, 12)
            self.transformer = nn.Transformer(8, 2, 1, 1, 16, 0.1, batch_first=True)

        def forward(self, source: Any, target: Any) -> Any:
            mask = nn.Transformer.generate_square_subsequent_mask(target.size(1))
            return self.out(self.transformer(self.embed(source), self.embed(target), tgt_mask=mask))

    return training(Net(), lambda net, s, t: F.cross_entropy(net(s, t[:, :-1]).reshape(-1, 12), t[:, 1:].reshape(-1),
                                                             label_smoothing=0.1),
                    lambda i: (integers(12, 2, 4, seed=i), integers(12, 2, 5, seed=i + 9)), adam)


class CausalAttention(nn.Module):
    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.qkv, self.proj, self.heads = nn.Linear(d, 3 * d), nn.Linear(d, d), heads

    def forward(self, x: Any, cache: list[Any] | None = None) -> Any:
        b, t, c = x.size()
        q, k, v = (y.view(b, t, self.heads, c // self.heads).transpose(1, 2) for y in self.qkv(x).split(c, dim=2))
        if cache is not None:
            if cache:
                k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
            cache[:] = [k, v]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=t > 1)
        return self.proj(y.transpose(1, 2).contiguous().view(b, t, c))


class Gpt(nn.Module):
    def __init__(self, vocabulary: int = 20, d: int = 12, layers: int = 2, checkpoints: bool = False) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, d), nn.Embedding(16, d)
        self.attention = nn.ModuleList(CausalAttention(d, 3) for _ in range(layers))
        self.mlp = nn.ModuleList(nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))
                                 for _ in range(layers))
        self.ln1 = nn.ModuleList(nn.LayerNorm(d) for _ in range(layers))
        self.ln2 = nn.ModuleList(nn.LayerNorm(d) for _ in range(layers))
        self.ln_f, self.head = nn.LayerNorm(d), nn.Linear(d, vocabulary, bias=False)
        self.head.weight = self.wte.weight
        self.checkpoints = checkpoints

    def block(self, i: int, x: Any, cache: list[Any] | None = None) -> Any:
        x = x + self.attention[i](self.ln1[i](x), cache)
        return x + self.mlp[i](self.ln2[i](x))

    def forward(self, idx: Any, caches: list[list[Any]] | None = None) -> Any:
        start = 0 if caches is None or not caches[0] else caches[0][0].shape[2]
        x = self.wte(idx) + self.wpe(torch.arange(start, start + idx.size(1)))
        for i in range(len(self.mlp)):
            if self.checkpoints:
                x = checkpoint(self.block, i, x, use_reentrant=False)
            else:
                x = self.block(i, x, None if caches is None else caches[i])
        return self.head(self.ln_f(x))


@model
def gpt_2() -> Scenario:
    def optimizer(parameters: Any) -> Any:
        parameters = list(parameters)
        groups = [{"params": [p for p in parameters if p.dim() >= 2], "weight_decay": 0.1},
                  {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0}]
        return torch.optim.AdamW(groups, lr=1e-3, eps=1e-3)

    return training(Gpt(), entropy, tokens(20, 6), optimizer)


@model
def gpt_2_with_checkpoints() -> Scenario:
    return training(Gpt(checkpoints=True), entropy, tokens(20, 6), adam)


@model
def gpt_2_generation() -> Scenario:
    """A token a call, with a cache of keys and values."""
    net = Gpt().eval()
    caches: list[list[Any]] = [[], []]

    @torch.no_grad()
    def next_token(idx: Any) -> Any:
        logits = net(idx, caches)[:, -1] / 0.8
        v, _ = torch.topk(logits, 5)
        logits = logits.masked_fill(logits < v[:, [-1]], -float("inf"))
        return torch.multinomial(logits.softmax(-1), 1)

    return Scenario(next_token, lambda i: (integers(20, 1, 1, seed=i),), lambda: [list(c) for c in caches])


@model
def bert() -> Scenario:
    """Masked tokens: the loss of those that a random mask chose."""
    class Bert(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.tokens, self.types, self.positions = nn.Embedding(20, 8), nn.Embedding(2, 8), nn.Embedding(8, 8)
            self.norm, self.drop = nn.LayerNorm(8), nn.Dropout(0.1)
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.1, "gelu", batch_first=True), 1)
            self.bias = nn.Parameter(torch.zeros(20))
            self.register_buffer("position_ids", torch.arange(8).expand((1, -1)))

        def forward(self, ids: Any, types: Any, attention: Any) -> Any:
            x = self.tokens(ids) + self.types(types) + self.positions(self.position_ids[:, :ids.shape[1]])
            x = self.encoder(self.drop(self.norm(x)), src_key_padding_mask=attention == 0)
            return F.linear(x, self.tokens.weight, self.bias)

    def loss(net: nn.Module, ids: Any, types: Any, attention: Any) -> Any:
        chosen = torch.bernoulli(torch.full(ids.shape, 0.4)).bool() & attention.bool()
        labels = ids.masked_fill(~chosen, -100)
        inputs = ids.clone()
        inputs[chosen] = 1
        return F.cross_entropy(net(inputs, types, attention).view(-1, 20), labels.view(-1))

    return training(Bert(), loss, lambda i: (integers(20, 2, 6, seed=i), integers(2, 2, 6, seed=i + 9),
                                             (torch.arange(6) < 5).long().repeat(2, 1)), adam)


@model
def t5() -> Scenario:
    """Relative positions in buckets, RMS norms, gated feed-forward."""
    class RmsNorm(nn.Module):
        def __init__(self, d: int) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(d))

        def forward(self, x: Any) -> Any:
            variance = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
            return self.weight * (x * torch.rsqrt(variance + 1e-6))

    class T5(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm, self.bias = nn.Embedding(20, 8), RmsNorm(8), nn.Embedding(8, 2)
            self.q, self.k, self.v, self.o = (nn.Linear(8, 8, bias=False) for _ in range(4))
            self.wi0, self.wi1, self.wo = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 8)

        def buckets(self, n: int) -> Any:
            relative = torch.arange(n)[None, :] - torch.arange(n)[:, None]
            out = (relative > 0).to(torch.long) * 4
            distance = torch.abs(relative)
            large = 2 + (torch.log(distance.float() / 2) / math.log(8) * 2).to(torch.long)
            large = torch.min(large, torch.full_like(large, 3))
            return out + torch.where(distance < 2, distance, large)

        def forward(self, ids: Any) -> Any:
            x = self.embed(ids)
            n = self.norm(x)
            q, k, v = (f(n).view(*ids.shape, 2, 4).transpose(1, 2) for f in (self.q, self.k, self.v))
            scores = torch.matmul(q, k.transpose(3, 2)) + self.bias(self.buckets(ids.shape[1])).permute(2, 0, 1)
            weights = F.softmax(scores.float(), dim=-1).type_as(scores)
            x = x + self.o((weights @ v).transpose(1, 2).contiguous().view(*ids.shape, 8))
            n = self.norm(x)
            return F.linear(x + self.wo(F.gelu(self.wi0(n)) * self.wi1(n)), self.embed.weight)

    return training(T5(), entropy, tokens(20, 5), lambda p: torch.optim.Adafactor(p, lr=1e-2))


@model
def llama() -> Scenario:
    """Rotary positions, grouped queries, SwiGLU."""
    class Llama(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm = nn.Embedding(20, 16), nn.RMSNorm(16)
            self.q, self.kv, self.o = nn.Linear(16, 16, bias=False), nn.Linear(16, 16, bias=False), nn.Linear(16, 16)
            self.gate, self.up, self.down = nn.Linear(16, 24), nn.Linear(16, 24), nn.Linear(24, 16)

        def rotate(self, x: Any) -> Any:
            half = x.shape[-1] // 2
            angle = torch.outer(torch.arange(x.shape[-2]).float(), 1 / 10000 ** (torch.arange(half) / half))
            cos, sin = torch.cat((angle.cos(),) * 2, -1), torch.cat((angle.sin(),) * 2, -1)
            return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin

        def forward(self, ids: Any) -> Any:
            b, t = ids.shape
            x = self.embed(ids)
            n = self.norm(x)
            q = self.q(n).view(b, t, 4, 4).transpose(1, 2)
            k, v = self.kv(n).view(b, t, 2, 2, 4).permute(2, 0, 3, 1, 4)
            k, v = self.rotate(k).repeat_interleave(2, 1), v.repeat_interleave(2, 1)
            y = F.scaled_dot_product_attention(self.rotate(q), k, v, is_causal=True)
            x = x + self.o(y.transpose(1, 2).reshape(b, t, 16))
            n = self.norm(x)
            return F.linear(x + self.down(F.silu(self.gate(n)) * self.up(n)), self.embed.weight)

    return training(Llama(), entropy, tokens(20, 6), adam)


@model
def mixture_of_experts() -> Scenario:
    """Tokens are sent to two of four experts: sizes that the data decide."""
    class Moe(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gate = nn.Linear(8, 4)
            self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) for _ in range(4))

        def forward(self, x: Any) -> Any:
            weights, chosen = torch.topk(self.gate(x).softmax(-1), 2)
            weights = weights / weights.sum(-1, keepdim=True)
            out = torch.zeros_like(x)
            for i, expert in enumerate(self.experts):
                rows, nth = torch.where(chosen == i)
                out[rows] += weights[rows, nth, None] * expert(x[rows])
            return out

    net = nn.Sequential(Moe(), nn.Linear(8, 3))
    return training(net, entropy, lambda i: (numbers(6, 8, seed=i), integers(3, 6, seed=i + 9)))


@model
def mamba() -> Scenario:
    """A selective scan, step by step."""
    class Mamba(nn.Module):
        def __init__(self, d: int = 6, n: int = 3) -> None:
            super().__init__()
            self.into, self.conv = nn.Linear(d, 2 * d), nn.Conv1d(d, d, 3, padding=2, groups=d)
            self.bc, self.dt, self.out = nn.Linear(d, 2 * n, bias=False), nn.Linear(d, d), nn.Linear(d, d)
            self.a_log = nn.Parameter(torch.log(torch.arange(1.0, n + 1).repeat(d, 1)))
            self.d = nn.Parameter(torch.ones(d))

        def forward(self, x: Any) -> Any:
            u, z = self.into(x).chunk(2, -1)
            u = F.silu(self.conv(u.transpose(1, 2))[..., :x.shape[1]].transpose(1, 2))
            b, c = self.bc(u).chunk(2, -1)
            dt = F.softplus(self.dt(u))
            da = torch.exp(torch.einsum("bld,dn->bldn", dt, -torch.exp(self.a_log)))
            dbu = torch.einsum("bld,bld,bln->bldn", dt, u, b)
            state = torch.zeros(x.shape[0], u.shape[2], b.shape[2])
            ys = []
            for t in range(x.shape[1]):
                state = da[:, t] * state + dbu[:, t]
                ys.append(torch.einsum("bdn,bn->bd", state, c[:, t]))
            return self.out((torch.stack(ys, 1) + u * self.d) * F.silu(z))

    net = nn.Sequential(nn.Embedding(20, 6), Mamba(), nn.Linear(6, 20))
    return training(net, entropy, tokens(20, 5), adam)


@model
def wavenet() -> Scenario:
    class Gated(nn.Module):
        def __init__(self, c: int, dilation: int) -> None:
            super().__init__()
            self.conv, self.mix, self.dilation = nn.Conv1d(c, 2 * c, 2, dilation=dilation), nn.Conv1d(c, c, 1), dilation

        def forward(self, x: Any) -> Any:
            y = self.conv(F.pad(x, (self.dilation, 0)))
            return x + self.mix(torch.tanh(y[:, :x.shape[1]]) * torch.sigmoid(y[:, x.shape[1]:]))

    net = nn.Sequential(nn.Conv1d(1, 4, 1), *(Gated(4, 2 ** i) for i in range(3)), nn.Conv1d(4, 1, 1))
    return training(net, lambda m, x: F.mse_loss(m(x[..., :-1]), x[..., 1:]), lambda i: (numbers(2, 1, 13, seed=i),))


@model
def speech_recognition() -> Scenario:
    """Spectrograms, convolutions, a GRU and the CTC loss."""
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.gru = nn.Conv1d(9, 8, 3, padding=1), nn.GRU(8, 6, batch_first=True)
            self.out = nn.Linear(6, 5)
            self.register_buffer("window", torch.hann_window(16))

        def forward(self, wave: Any) -> Any:
            power = torch.stft(wave, 16, 8, window=self.window, return_complex=True).abs().pow(2)
            x = F.relu(self.conv(torch.log1p(power))).transpose(1, 2)
            return F.log_softmax(self.out(self.gru(x)[0]), -1)

    def loss(net: nn.Module, wave: Any, text: Any) -> Any:
        log_probs = net(wave).transpose(0, 1)
        return F.ctc_loss(log_probs, text, torch.full((2,), log_probs.shape[0]), torch.tensor([3, 2]))

    return training(Net(), loss, lambda i: (numbers(2, 80, seed=i), integers(4, 2, 3, seed=i + 9) + 1), adam)


@model
def whisper() -> Scenario:
    """Convolutions, an encoder, and a decoder with cross-attention."""
    class Whisper(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.conv2 = nn.Conv1d(6, 8, 3, padding=1), nn.Conv1d(8, 8, 3, stride=2, padding=1)
            self.register_buffer("position", torch.randn(6, 8) * 0.1)
            self.encoder = nn.TransformerEncoderLayer(8, 2, 16, 0.0, F.gelu, batch_first=True, norm_first=True)
            self.embed = nn.Embedding(12, 8)
            self.decoder = nn.TransformerDecoderLayer(8, 2, 16, 0.0, F.gelu, batch_first=True, norm_first=True)

        def forward(self, mel: Any, text: Any) -> Any:
            x = F.gelu(self.conv2(F.gelu(self.conv1(mel)))).permute(0, 2, 1)
            memory = self.encoder(x + self.position)
            n = text.shape[-1]
            mask = torch.empty(n, n).fill_(float("-inf")).triu_(1)
            return self.decoder(self.embed(text), memory, tgt_mask=mask) @ self.embed.weight.t()

    return training(Whisper(), lambda net, mel, text: F.cross_entropy(net(mel, text[:, :-1]).flatten(0, 1),
                                                                     text[:, 1:].flatten()),
                    lambda i: (numbers(2, 6, 12, seed=i), integers(12, 2, 5, seed=i + 9)), adam)


@model
def word2vec() -> Scenario:
    """Skip-grams with negative samples, sparse gradients aside."""
    class SkipGram(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.center, self.context = nn.Embedding(30, 6), nn.Embedding(30, 6)

        def forward(self, center: Any, context: Any) -> Any:
            negative = torch.randint(0, 30, (len(center), 4))
            c = self.center(center)
            good = F.logsigmoid((c * self.context(context)).sum(1))
            bad = F.logsigmoid(-torch.bmm(self.context(negative), c.unsqueeze(2)).squeeze(2)).sum(1)
            return -(good + bad).mean()

    return training(SkipGram(), lambda net, *data: net(*data),
                    lambda i: (integers(30, 5, seed=i), integers(30, 5, seed=i + 9)))


@model
def text_classifier_of_bags() -> Scenario:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.bag, self.fc = nn.EmbeddingBag(20, 6, mode="mean"), nn.Linear(6, 3)

        def forward(self, text: Any, offsets: Any) -> Any:
            return self.fc(self.bag(text, offsets))

    return training(Net(), lambda net, t, o, y: F.cross_entropy(net(t, o), y),
                    lambda i: (integers(20, 9, seed=i), torch.tensor([0, 2, 5]), integers(3, 3, seed=i + 9)))


@model
def longformer_window() -> Scenario:
    """Attention to a window, by unfolding."""
    class Local(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.qkv = nn.Linear(6, 18)

        def forward(self, x: Any) -> Any:
            q, k, v = self.qkv(x).chunk(3, -1)
            k, v = (F.pad(y, (0, 0, 1, 1)).unfold(1, 3, 1) for y in (k, v))
            weights = torch.einsum("btd,btdw->btw", q, k).softmax(-1)
            return torch.einsum("btw,btdw->btd", weights, v)

    net = nn.Sequential(nn.Embedding(20, 6), Local(), nn.Linear(6, 20))
    return training(net, entropy, tokens(20, 6), adam)
