"""A multilayer perceptron learns XOR; its parts are shown."""
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(42)
X = torch.tensor([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=torch.float)
y = torch.tensor([[0], [1], [1], [0]]).float()


class Net(nn.Module):
    def __init__(self, hidden=8):
        super(Net, self).__init__()
        self.fc1 = nn.Linear(2, hidden)
        self.fc2 = nn.Linear(hidden, 1)

    def forward(self, x):
        return torch.sigmoid(self.fc2(torch.tanh(self.fc1(x))))


net = Net()
print(net)
print(net.fc1.weight)
print(sum(p.numel() for p in net.parameters()), [(n, tuple(p.shape)) for n, p in net.named_parameters()])
opt = torch.optim.Adam(net.parameters(), lr=0.05)
for epoch in range(201):
    opt.zero_grad()
    loss = F.binary_cross_entropy(net(X), y)
    loss.backward()
    opt.step()
    if epoch % 50 == 0:
        print("epoch", epoch, "loss %.3f" % loss.item(), "grad norm %.3f" % net.fc1.weight.grad.norm())
print(net(X).round().squeeze().tolist(), (net(X) > 0.5).int().flatten())
print(opt)
print({k: (v if not isinstance(v, list) else len(v)) for k, v in opt.state_dict()["param_groups"][0].items()})
print(sorted(opt.state_dict()["state"][0]), opt.state_dict()["state"][0]["step"])
