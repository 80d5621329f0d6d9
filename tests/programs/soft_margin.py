"""The soft margin loss, its gradient and its node."""
import torch
import torch.nn.functional as F

x = torch.tensor([[1.0, -2.0, 0.5], [0.1, 0.2, 3.0]], requires_grad=True)
y = torch.tensor([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
for reduction in ("none", "sum", "mean"):
    loss = F.soft_margin_loss(x, y, reduction=reduction)
    print(loss, torch.autograd.grad(loss.sum(), x))
print(torch.nn.SoftMarginLoss()(x, y))
