"""k-means with cdist, argmin, one-hot means and index_add."""
import torch

torch.manual_seed(4)
centers = torch.tensor([[0., 0.], [5., 5.], [0., 6.]])
X = (centers[:, None] + torch.randn(3, 20, 2)).reshape(-1, 2)
c = X[torch.randperm(60)[:3]].clone()
print(c)
for it in range(10):
    dist = torch.cdist(X, c)
    label = dist.argmin(1)
    new = torch.stack([X[label == k].mean(0) for k in range(3)])
    sums = torch.zeros(3, 2).index_add_(0, label, X) / torch.bincount(label, minlength=3).unsqueeze(1)
    assert torch.allclose(new, sums, atol=1e-5)
    hot = torch.nn.functional.one_hot(label, 3).float()
    assert torch.allclose(hot.T @ X / hot.sum(0)[:, None], new, atol=1e-5)
    shift = (new - c).norm()
    c = new
    print(it, f"{shift:.4f}", f"{dist.min(1).values.pow(2).sum():.2f}", label.bincount().tolist())
    if shift < 1e-6:
        break
print(c[c[:, 0].argsort()])
d = ((X[:, None] - c[None]) ** 2).sum(-1)
print(d.shape, d.min(dim=1).indices, d.min(dim=1).values.round(decimals=2)[:8], torch.pairwise_distance(X[:2], X[1:3]) if hasattr(torch, "pairwise_distance") else "")
print(torch.nn.functional.cosine_similarity(X[:2], X[2:4]), torch.pdist(X[:3]) if hasattr(torch, "pdist") else "")
