"""Linear regression: by hand, with autograd, with nn and optim."""
import torch
from torch import nn, optim

torch.manual_seed(0)
true_w, true_b = torch.tensor([2.0, -3.4]), 4.2
X = torch.randn(100, 2)
y = X @ true_w + true_b + 0.01 * torch.randn(100)
print(X[:3], y[:3])

w = torch.zeros(2, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for epoch in range(5):
    for i in range(0, 100, 20):
        loss = ((X[i:i + 20] @ w + b - y[i:i + 20]) ** 2 / 2).mean()
        loss.backward()
        with torch.no_grad():
            for p in (w, b):
                p -= 0.3 * p.grad
                p.grad.zero_()
    print(f"epoch {epoch + 1}, loss {((X @ w + b - y) ** 2).mean().item():.5f}")
print(w, b)

model = nn.Linear(2, 1)
print(model, model.weight.shape, list(model.parameters())[1])
criterion = nn.MSELoss()
optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
print(optimizer)
for step in range(60):
    optimizer.zero_grad()
    loss = criterion(model(X).squeeze(1), y)
    loss.backward()
    optimizer.step()
    if step % 15 == 0:
        print(step, round(loss.item(), 4), [round(v, 3) for v in model.weight.grad.flatten().tolist()])
print(criterion(model(X), y.unsqueeze(1)).item() < 1e-2, model.weight.data.round(decimals=1), model.bias.data.round(decimals=1))
criterion(model(X), y)
A = torch.cat([X, torch.ones(100, 1)], dim=1)
print(torch.linalg.lstsq(A, y.unsqueeze(1)).solution.flatten())
print(torch.linalg.solve(A.T @ A, A.T @ y), torch.inverse(A.T @ A) @ A.T @ y)
