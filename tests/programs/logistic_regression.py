"""Logistic regression from scratch, and with BCEWithLogitsLoss."""
import torch
import torch.nn.functional as F

torch.manual_seed(1)
n = 200
X = torch.cat([torch.randn(n // 2, 2) + 1.5, torch.randn(n // 2, 2) - 1.5])
t = torch.cat([torch.ones(n // 2), torch.zeros(n // 2)])
perm = torch.randperm(n)
X, t = X[perm], t[perm]
print(perm[:10], t[:10], X.mean(0), X.std(0))

w = torch.zeros(2, 1, requires_grad=True)
b = torch.zeros((), requires_grad=True)
for step in range(50):
    p = torch.sigmoid(X @ w + b).squeeze()
    loss = -(t * p.log() + (1 - t) * (1 - p).log()).mean()
    gw, gb = torch.autograd.grad(loss, (w, b))
    with torch.no_grad():
        w -= 0.5 * gw
        b -= 0.5 * gb
    if step % 10 == 0:
        print(f"{step:3d} {loss:.4f} {w.tolist()[0][0]:.3f} {b:.3f}")
pred = (torch.sigmoid(X @ w + b).squeeze() > 0.5).float()
print("accuracy", (pred == t).float().mean(), (pred == t).sum().item(), "of", len(t))
print(F.binary_cross_entropy(torch.sigmoid(X @ w + b).squeeze(), t), F.binary_cross_entropy_with_logits((X @ w + b).squeeze(), t))
print(F.logsigmoid(torch.tensor([-1., 0., 20., -20.])), torch.logit(torch.tensor([0.5, 0.9])), torch.special.expit(torch.tensor(0.)))

model = torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.Flatten(0))
opt = torch.optim.LBFGS(model.parameters(), lr=1)
loss_fn = torch.nn.BCEWithLogitsLoss(pos_weight=torch.tensor(2.0))


def closure():
    opt.zero_grad()
    loss = loss_fn(model(X), t)
    loss.backward()
    return loss


for _ in range(2):
    print(f"{opt.step(closure).item():.4f}")
tp = ((model(X) > 0) & (t == 1)).sum()
fp = ((model(X) > 0) & (t == 0)).sum()
print(tp, fp, tp / (tp + fp), torch.bincount(t.long()), torch.unique((model(X) > 0).long(), return_counts=True))
