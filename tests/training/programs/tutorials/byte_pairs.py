"""Byte pair encoding trained on a text, and a language model of its tokens: GRU, tied weights, perplexity, a checkpoint."""

import argparse
import io
import math

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(0)


def get_stats(ids):
    counts = {}
    for pair in zip(ids, ids[1:]):
        counts[pair] = counts.get(pair, 0) + 1
    return counts


def merge(ids, pair, idx):
    newids, i = [], 0
    while i < len(ids):
        if ids[i] == pair[0] and i < len(ids) - 1 and ids[i + 1] == pair[1]:
            newids.append(idx)
            i += 2
        else:
            newids.append(ids[i])
            i += 1
    return newids


text = " ".join(f"{n} bottles of {d} on the wall, take {k} down" for n in range(12, 40) for d, k in (
    ("beer", "one"), ("milk", "two"), ("tea — hot", "one")))
ids, merges, vocab = list(text.encode("utf-8")), {}, {i: bytes([i]) for i in range(256)}
for i in range(40):
    stats = get_stats(ids)
    pair = max(stats, key=stats.get)
    ids = merge(ids, pair, 256 + i)
    merges[pair] = 256 + i
    vocab[256 + i] = vocab[pair[0]] + vocab[pair[1]]
decode = lambda ids: b"".join(vocab[int(i)] for i in ids).decode("utf-8", errors="replace")
assert decode(ids) == text
print(len(text), len(ids), decode(list(merges.values())[-5:]))


class Tokens(Dataset):
    def __init__(self, ids, length=12):
        self.ids, self.length = torch.tensor(ids), length

    def __len__(self):
        return (len(self.ids) - 1) // self.length

    def __getitem__(self, i):
        begin = i * self.length
        return {"x": self.ids[begin:begin + self.length], "y": self.ids[begin + 1:begin + self.length + 1]}


class Model(nn.Module):
    def __init__(self, size, width=32):
        super().__init__()
        self.embedding = nn.Embedding(size, width)
        self.rnn = nn.GRU(width, width, num_layers=2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(width, size, bias=False)
        self.head.weight = self.embedding.weight
        nn.init.normal_(self.embedding.weight, std=0.1)

    def forward(self, x, hidden=None):
        out, hidden = self.rnn(self.embedding(x), hidden)
        return self.head(out), hidden


model = Model(len(vocab))
print(sum(p.numel() for p in model.parameters()), len(list(model.parameters())), [n for n, _ in model.named_parameters()][:2])
optimizer = optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)
scheduler = optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1e-2, total_steps=max(args.steps, 2))
loader = DataLoader(Tokens(ids), batch_size=16, shuffle=True, drop_last=True)
criterion, step = nn.CrossEntropyLoss(label_smoothing=0.05), 0
while step < args.steps:
    for batch in loader:
        logits, _ = model(batch["x"])
        loss = criterion(logits.flatten(0, 1), batch["y"].flatten())
        optimizer.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        step += 1
        if step == args.steps:
            break
print(f"perplexity {math.exp(loss.item()):.3f}, norm {norm:.4f}, rate {scheduler.get_last_lr()[0]:.6f}")
buffer = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, buffer)
buffer.seek(0)
loaded = torch.load(buffer, weights_only=True)
again = Model(len(vocab))
print(again.load_state_dict(loaded["model"]), loaded["step"])
again.eval()
token, hidden, said = torch.tensor([[ids[0]]]), None, []
with torch.inference_mode():
    for _ in range(20):
        logits, hidden = again(token, hidden)
        values, _ = torch.topk(logits[:, -1], 5)
        logits[:, -1][logits[:, -1] < values[:, [-1]]] = -float("inf")
        token = torch.distributions.Categorical(logits=logits[:, -1]).sample().unsqueeze(0)
        said.append(token.item())
print(repr(decode(said)))
