"""Two spirals, an MLP trained with AdamW, weight initialisation, clipping and a scheduler."""
import math

import torch
from torch import nn

torch.manual_seed(7)
n = 64
theta = torch.sqrt(torch.rand(n)) * 2 * math.pi
r = 2 * theta + math.pi
data = torch.stack([torch.cos(theta) * r, torch.sin(theta) * r], 1)
X = torch.cat([data, -data]) / 10 + torch.randn(2 * n, 2) * 0.02
y = torch.arange(2).repeat_interleave(n)
print(X.shape, y.shape, X[0], y[::32])
model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.GELU(), nn.Linear(32, 2))


def init(m):
    if isinstance(m, nn.Linear):
        nn.init.kaiming_uniform_(m.weight, nonlinearity="relu")
        nn.init.zeros_(m.bias)


print(model.apply(init))
print([f"{p.std():.4f}" for p in model.parameters() if p.dim() > 1])
opt = torch.optim.AdamW(model.parameters(), lr=0.02, weight_decay=0.01)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=20, gamma=0.5)
criterion = nn.CrossEntropyLoss()
for epoch in range(61):
    idx = torch.randperm(len(X))
    total = 0.0
    for batch in idx.split(32):
        opt.zero_grad(set_to_none=True)
        loss = criterion(model(X[batch]), y[batch])
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        total += loss.item() * len(batch)
    sched.step()
    if epoch % 20 == 0:
        print(f"{epoch} loss {total / len(X):.2f} lr {sched.get_last_lr()}")
acc = (model(X).argmax(dim=1) == y).float().mean()
print(f"accuracy {acc:.1f}", norm.dtype, norm.requires_grad)
probs = torch.softmax(model(X[:2]), dim=-1)
print(probs.sum(-1).sub(1).abs().max() < 1e-6, probs.shape, probs.grad_fn)
