"""A decoder in today's style: rotary positions as complex numbers, RMS norm, gated units, grouped queries, a cache, nucleus sampling."""

import argparse
import math
from dataclasses import dataclass
from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(9)


@dataclass
class Config:
    dim: int = 32
    n_layers: int = 2
    n_heads: int = 4
    n_kv_heads: Optional[int] = 2
    vocab_size: int = 24
    max_seq_len: int = 32
    norm_eps: float = 1e-5


class RMSNorm(torch.nn.Module):
    def __init__(self, dim: int, eps: float):
        super().__init__()
        self.eps, self.weight = eps, nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    freqs = torch.outer(torch.arange(end, device=freqs.device), freqs).float()
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(x, freqs_cis):
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    freqs_cis = freqs_cis.view(1, x_.shape[1], 1, x_.shape[-1])
    return torch.view_as_real(x_ * freqs_cis).flatten(3).type_as(x)


def repeat_kv(x: torch.Tensor, n_rep: int) -> torch.Tensor:
    bs, slen, n_kv_heads, head_dim = x.shape
    if n_rep == 1:
        return x
    return x[:, :, :, None, :].expand(bs, slen, n_kv_heads, n_rep, head_dim).reshape(bs, slen, n_kv_heads * n_rep, head_dim)


class Attention(nn.Module):
    def __init__(self, c: Config):
        super().__init__()
        self.n_kv, self.n_rep, self.head_dim = c.n_kv_heads, c.n_heads // c.n_kv_heads, c.dim // c.n_heads
        self.wq = nn.Linear(c.dim, c.n_heads * self.head_dim, bias=False)
        self.wk, self.wv = (nn.Linear(c.dim, self.n_kv * self.head_dim, bias=False) for _ in range(2))
        self.wo = nn.Linear(c.n_heads * self.head_dim, c.dim, bias=False)
        self.cache = None

    def forward(self, x, start_pos, freqs_cis, mask):
        b, t, _ = x.shape
        q, k, v = (w(x).view(b, t, -1, self.head_dim) for w in (self.wq, self.wk, self.wv))
        q, k = apply_rotary_emb(q, freqs_cis), apply_rotary_emb(k, freqs_cis)
        if self.cache is not None:
            keys, values = self.cache
            keys[:b, start_pos:start_pos + t], values[:b, start_pos:start_pos + t] = k, v
            k, v = keys[:b, :start_pos + t], values[:b, :start_pos + t]
        k, v = repeat_kv(k, self.n_rep), repeat_kv(v, self.n_rep)
        q, k, v = (a.transpose(1, 2) for a in (q, k, v))
        if self.training:
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = torch.matmul(q, k.transpose(2, 3)) / math.sqrt(self.head_dim)
            scores = scores if mask is None else scores + mask
            out = torch.matmul(F.softmax(scores.float(), dim=-1).type_as(q), v)
        return self.wo(out.transpose(1, 2).contiguous().view(b, t, -1))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        hidden = 8 * ((int(8 * c.dim / 3) + 7) // 8)
        self.attention = Attention(c)
        self.w1, self.w3 = nn.Linear(c.dim, hidden, bias=False), nn.Linear(c.dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, c.dim, bias=False)
        self.attention_norm, self.ffn_norm = RMSNorm(c.dim, c.norm_eps), RMSNorm(c.dim, c.norm_eps)

    def forward(self, x, *rest):
        h = x + self.attention(self.attention_norm(x), *rest)
        n = self.ffn_norm(h)
        return h + self.w2(F.silu(self.w1(n)) * self.w3(n))


class Transformer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok_embeddings = nn.Embedding(c.vocab_size, c.dim)
        self.layers = torch.nn.ModuleList(Block(c) for _ in range(c.n_layers))
        self.norm, self.output = RMSNorm(c.dim, c.norm_eps), nn.Linear(c.dim, c.vocab_size, bias=False)
        self.freqs_cis = precompute_freqs_cis(c.dim // c.n_heads, c.max_seq_len * 2)

    def forward(self, tokens, start_pos=0):
        b, t = tokens.shape
        h, mask = self.tok_embeddings(tokens), None
        if t > 1:
            mask = torch.full((t, t), float("-inf"), device=tokens.device)
            mask = torch.triu(mask, diagonal=1)
            mask = torch.hstack([torch.zeros((t, start_pos), device=tokens.device), mask]).type_as(h)
        for layer in self.layers:
            h = layer(h, start_pos, self.freqs_cis[start_pos:start_pos + t], mask)
        return self.output(self.norm(h)).float()


def sample_top_p(probs, p):
    probs_sort, probs_idx = torch.sort(probs, dim=-1, descending=True)
    probs_sum = torch.cumsum(probs_sort, dim=-1)
    probs_sort[probs_sum - probs_sort > p] = 0.0
    probs_sort.div_(probs_sort.sum(dim=-1, keepdim=True))
    return torch.gather(probs_idx, -1, torch.multinomial(probs_sort, num_samples=1))


config = Config()
model = Transformer(config)
start = torch.randint(config.vocab_size, (64, 1))
sequences = (start + torch.arange(17) * torch.randint(1, 4, (64, 1))) % config.vocab_size
decays = [p for p in model.parameters() if p.dim() >= 2]
optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": 0.1}, {"params": [p for p in model.parameters() if p.dim() < 2]}],
                              lr=5e-3, betas=(0.9, 0.95), eps=1e-8, fused=None, foreach=False)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda i: min(1.0, (i + 1) / 5) * 0.5 * (1 + math.cos(math.pi * i / 200)))
for step in range(args.steps):
    optimizer.zero_grad(set_to_none=True)
    for part in sequences[torch.randint(64, (16,))].chunk(2):
        loss = F.cross_entropy(model(part[:, :-1]).flatten(0, -2), part[:, 1:].flatten(), ignore_index=-1) / 2
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=True)
    optimizer.step()
    schedule.step()
model.eval()
with torch.no_grad():
    whole = model(sequences[:2, :12])
    for layer in model.layers:
        layer.attention.cache = torch.zeros(2, 2, 32, config.n_kv_heads, config.dim // config.n_heads).unbind(0)
    parts = torch.cat([model(sequences[:2, :5], 0), *(model(sequences[:2, i:i + 1], i) for i in range(5, 12))], 1)
    print("cache agrees:", torch.allclose(whole, parts, atol=1e-5))
    tokens, position = sequences[:2, :5], 0
    for _ in range(10):
        logits = model(tokens[:, position:], position)[:, -1]
        position = tokens.shape[1]
        tokens = torch.cat([tokens, sample_top_p(torch.softmax(logits / 0.8, dim=-1), 0.9)], 1)
    print(tokens.tolist())
