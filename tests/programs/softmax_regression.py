"""Softmax regression written out on scikit-learn's digits."""
import torch
from sklearn.datasets import load_digits

digits = load_digits()
X = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.from_numpy(digits.target)
print(X.shape, X.dtype, y.dtype, y[:10], torch.bincount(y))
g = torch.Generator().manual_seed(0)
perm = torch.randperm(len(X), generator=g)
train, test = perm[:1500], perm[1500:]
W = torch.zeros(64, 10, requires_grad=True)
b = torch.zeros(10, requires_grad=True)


def softmax(z):
    e = (z - z.max(dim=1, keepdim=True).values).exp()
    return e / e.sum(dim=1, keepdim=True)


for epoch in range(10):
    for i in range(0, 1500, 100):
        idx = train[i:i + 100]
        p = softmax(X[idx] @ W + b)
        loss = -p[range(len(idx)), y[idx]].log().mean()
        loss.backward()
        with torch.no_grad():
            W -= 0.5 * W.grad
            b -= 0.5 * b.grad
            W.grad = b.grad = None
    with torch.no_grad():
        accuracy = (softmax(X[test] @ W + b).argmax(1) == y[test]).float().mean()
    print(f"{epoch} {loss.item():.3f} {accuracy:.3f}")
logits = X[test] @ W + b
print(torch.nn.functional.cross_entropy(logits, y[test]), torch.allclose(softmax(logits), logits.softmax(1), atol=1e-6))
confusion = torch.zeros(10, 10, dtype=torch.long)
confusion.index_put_((y[test], logits.argmax(1)), torch.ones(len(test), dtype=torch.long), accumulate=True)
print(confusion.sum(), confusion.diag().sum(), confusion.shape)
