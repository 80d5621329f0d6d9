"""An autoencoder, then a variational one with the reparametrisation trick."""
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(11)
X = torch.rand(64, 3) @ torch.randn(3, 10)
print(X.shape, X.mean(), torch.linalg.matrix_rank(X))


class AE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 6), nn.LeakyReLU(0.1), nn.Linear(6, 3))
        self.decoder = nn.Sequential(nn.Linear(3, 6), nn.ELU(), nn.Linear(6, 10))

    def forward(self, x):
        return self.decoder(self.encoder(x))


model = AE()
print(model)
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(31):
    loss = F.mse_loss(model(X), X)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 10 == 0:
        print(epoch, f"{loss.item():.4f}")


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(10, 8)
        self.mu, self.logvar = nn.Linear(8, 2), nn.Linear(8, 2)
        self.dec = nn.Sequential(nn.Linear(2, 8), nn.SiLU(), nn.Linear(8, 10))

    def forward(self, x):
        h = torch.tanh(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar


vae = VAE()
opt = torch.optim.Adamax(vae.parameters(), lr=1e-2)
for epoch in range(31):
    out, mu, logvar = vae(X)
    recon = F.smooth_l1_loss(out, X, reduction="sum") / len(X)
    kl = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / len(X)
    loss = recon + 0.1 * kl
    vae.zero_grad()
    loss.backward()
    opt.step()
    if epoch % 10 == 0:
        print(epoch, f"{recon.item():.3f} {kl.item():.3f}")
print(F.kl_div(torch.log_softmax(out, 1), torch.softmax(X, 1), reduction="batchmean").shape, F.huber_loss(out, X) > 0)
