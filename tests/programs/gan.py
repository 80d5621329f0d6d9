"""Two networks against each other on a one-dimensional Gaussian."""
import torch
from torch import nn

torch.manual_seed(99)
G = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1))
D = nn.Sequential(nn.Linear(1, 16), nn.LeakyReLU(0.2, inplace=True), nn.Dropout(0.1), nn.Linear(16, 1), nn.Sigmoid())
print(G, D, sep="\n")
bce = nn.BCELoss()
opt_g = torch.optim.Adam(G.parameters(), lr=5e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=5e-3, betas=(0.5, 0.999))
real_label, fake_label = torch.ones(32, 1), torch.zeros(32, 1)
for step in range(41):
    real = 3 + 0.5 * torch.randn(32, 1)
    fake = G(torch.randn(32, 4))
    opt_d.zero_grad()
    loss_d = bce(D(real), real_label) + bce(D(fake.detach()), fake_label)
    loss_d.backward()
    opt_d.step()
    opt_g.zero_grad()
    loss_g = bce(D(fake), real_label)
    loss_g.backward()
    opt_g.step()
    if step % 10 == 0:
        print(f"{step:3d} D {loss_d.item():.3f} G {loss_g.item():.3f} mean {fake.mean():.2f} std {fake.std():.2f}")
for p in D.parameters():
    p.requires_grad_(False)
print([p.requires_grad for p in D.parameters()], D(G(torch.zeros(1, 4))).requires_grad)
for p in D.parameters():
    p.requires_grad_(True)
x = torch.randn(8, 1, requires_grad=True)
gradient, = torch.autograd.grad(D(x).sum(), x, create_graph=True)
penalty = ((gradient.norm(2, dim=1) - 1) ** 2).mean()
opt_d.zero_grad()
penalty.backward()
print(f"{penalty.item():.3f}", penalty.grad_fn, D[0].weight.grad.shape)
