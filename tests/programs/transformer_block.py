"""A transformer block written with linear maps, layer norm, softmax and matmul."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class CausalSelfAttention(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        assert dim % heads == 0
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).view(1, 1, length, length))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.qkv(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        y = (att @ v).transpose(1, 2).contiguous().view(B, T, C)
        return self.proj(y), att


class Block(nn.Module):
    def __init__(self, dim, heads, length):
        super().__init__()
        self.ln_1 = nn.LayerNorm(dim)
        self.attn = CausalSelfAttention(dim, heads, length)
        self.ln_2 = nn.LayerNorm(dim)
        self.mlp = nn.ModuleDict(dict(up=nn.Linear(dim, 4 * dim), act=nn.GELU(), down=nn.Linear(4 * dim, dim)))

    def forward(self, x):
        a, att = self.attn(self.ln_1(x))
        x = x + a
        m = self.mlp
        return x + m.down(m.act(m.up(self.ln_2(x)))), att


class GPT(nn.Module):
    def __init__(self, vocab=11, dim=16, heads=4, length=8, depth=2):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.pos = nn.Parameter(torch.zeros(1, length, dim))
        self.blocks = nn.ModuleList([Block(dim, heads, length) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        self.apply(self._init)

    def _init(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.2)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        x = self.tok(idx) + self.pos[:, :idx.size(1)]
        for block in self.blocks:
            x, att = block(x)
        logits = self.head(self.norm(x))
        loss = None if targets is None else F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1))
        return logits, loss, att


torch.manual_seed(1337)
model = GPT()
print(model)
print(sum(p.numel() for p in model.parameters()), [n for n, _ in model.named_buffers()])
data = torch.randint(11, (4, 9))
x, y = data[:, :-1], data[:, 1:]
print(x, y[0])
decay = [p for p in model.parameters() if p.dim() >= 2]
other = [p for p in model.parameters() if p.dim() < 2]
opt = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": other, "weight_decay": 0.0}], lr=1e-2, betas=(0.9, 0.95))
for step in range(12):
    logits, loss, att = model(x, y)
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    if step % 3 == 0:
        print(step, f"{loss.item():.4f}")
print(logits.shape, att[0, 0, :3, :3], att.sum(-1).shape)
print(opt)


@torch.no_grad()
def generate(idx, count):
    for _ in range(count):
        logits, _, _ = model(idx[:, -8:])
        logits = logits[:, -1] / 0.8
        v, _ = torch.topk(logits, 5)
        logits[logits < v[:, [-1]]] = -float("inf")
        idx = torch.cat((idx, torch.multinomial(F.softmax(logits, -1), 1)), dim=1)
    return idx


print(generate(torch.zeros(1, 1, dtype=torch.long), 6).shape)
q, k, v = (torch.randn(2, 2, 5, 4, requires_grad=True) for _ in range(3))
out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
mask = torch.ones(5, 5, dtype=torch.bool).tril()
ref = torch.softmax((q @ k.mT / 2).masked_fill(~mask, -torch.inf), -1) @ v
print(torch.allclose(out, ref, atol=1e-6), out.shape)
mha = nn.MultiheadAttention(8, 2, batch_first=True)
z = torch.randn(1, 3, 8)
o, weights = mha(z, z, z)
print(o.shape, weights.shape, weights.sum(-1), mha)
