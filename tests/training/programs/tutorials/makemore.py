"""A character model of made-up names with hand-written layers: embedding by indexing, batch normalization, tanh."""

import argparse
import random

import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()

syllables = ["an", "be", "cor", "da", "el", "fi", "go", "hul", "is", "jo", "ka", "lu"]
random.seed(42)
words = ["".join(random.choices(syllables, k=random.randint(1, 4))) for _ in range(400)]
chars = sorted(set("".join(words)))
stoi = {s: i + 1 for i, s in enumerate(chars)} | {".": 0}
itos = {i: s for s, i in stoi.items()}
vocab_size, block_size = len(itos), 3


def build_dataset(words):
    X, Y = [], []
    for w in words:
        context = [0] * block_size
        for ch in w + ".":
            X.append(context)
            Y.append(stoi[ch])
            context = context[1:] + [stoi[ch]]
    return torch.tensor(X), torch.tensor(Y)


Xtr, Ytr = build_dataset(words[:320])
Xdev, Ydev = build_dataset(words[320:])
g = torch.Generator().manual_seed(2147483647)


class Linear:
    def __init__(self, fan_in, fan_out, bias=True):
        self.weight = torch.randn((fan_in, fan_out), generator=g) / fan_in**0.5
        self.bias = torch.zeros(fan_out) if bias else None

    def __call__(self, x):
        self.out = x @ self.weight
        if self.bias is not None:
            self.out += self.bias
        return self.out

    def parameters(self):
        return [self.weight] + ([] if self.bias is None else [self.bias])


class BatchNorm1d:
    def __init__(self, dim, eps=1e-5, momentum=0.1):
        self.eps, self.momentum, self.training = eps, momentum, True
        self.gamma, self.beta = torch.ones(dim), torch.zeros(dim)
        self.running_mean, self.running_var = torch.zeros(dim), torch.ones(dim)

    def __call__(self, x):
        if self.training:
            xmean, xvar = x.mean(0, keepdim=True), x.var(0, keepdim=True)
        else:
            xmean, xvar = self.running_mean, self.running_var
        xhat = (x - xmean) / torch.sqrt(xvar + self.eps)
        self.out = self.gamma * xhat + self.beta
        if self.training:
            with torch.no_grad():
                self.running_mean = (1 - self.momentum) * self.running_mean + self.momentum * xmean
                self.running_var = (1 - self.momentum) * self.running_var + self.momentum * xvar
        return self.out

    def parameters(self):
        return [self.gamma, self.beta]


class Tanh:
    def __call__(self, x):
        self.out = torch.tanh(x)
        return self.out

    def parameters(self):
        return []


n_embd, n_hidden = 10, 64
C = torch.randn((vocab_size, n_embd), generator=g)
layers = [Linear(n_embd * block_size, n_hidden, bias=False), BatchNorm1d(n_hidden), Tanh(),
          Linear(n_hidden, n_hidden, bias=False), BatchNorm1d(n_hidden), Tanh(),
          Linear(n_hidden, vocab_size, bias=False), BatchNorm1d(vocab_size)]
with torch.no_grad():
    layers[-1].gamma *= 0.1
    for layer in layers[:-1]:
        if isinstance(layer, Linear):
            layer.weight *= 5 / 3
parameters = [C] + [p for layer in layers for p in layer.parameters()]
print(sum(p.nelement() for p in parameters))
for p in parameters:
    p.requires_grad = True
ud = []
for i in range(args.steps):
    ix = torch.randint(0, Xtr.shape[0], (32,), generator=g)
    x = C[Xtr[ix]].view(32, -1)
    for layer in layers:
        x = layer(x)
    loss = F.cross_entropy(x, Ytr[ix])
    for layer in layers:
        layer.out.retain_grad()
    for p in parameters:
        p.grad = None
    loss.backward()
    lr = 0.1 if i < 100 else 0.01
    for p in parameters:
        p.data += -lr * p.grad
    with torch.no_grad():
        ud.append([((lr * p.grad).std() / p.data.std()).log10().item() for p in parameters if p.ndim == 2])
for i, layer in enumerate(layers[:-1]):
    if isinstance(layer, Tanh):
        t = layer.out
        print("layer %d (%10s): mean %+.2f, std %.2f, saturated: %.2f%%, grad std %.3e" % (
            i, layer.__class__.__name__, t.mean(), t.std(), (t.abs() > 0.97).float().mean() * 100,
            layer.out.grad.std()))
print([f"{u:.3f}" for u in ud[-1]])


@torch.no_grad()
def split_loss(x, y):
    emb = C[x]
    h = emb.view(emb.shape[0], -1)
    for layer in layers:
        h = layer(h)
    return F.cross_entropy(h, y).item()


for layer in layers:
    layer.training = False
print(f"dev {split_loss(Xdev, Ydev):.4f}")
for _ in range(3):
    out, context = [], [0] * block_size
    while len(out) < 12:
        x = C[torch.tensor([context])].view(1, -1)
        for layer in layers:
            x = layer(x)
        ix = torch.multinomial(F.softmax(x, dim=1), num_samples=1, generator=g).item()
        context = context[1:] + [ix]
        if ix == 0:
            break
        out.append(itos[ix])
    print("".join(out))
