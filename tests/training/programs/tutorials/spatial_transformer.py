"""A spatial transformer that straightens shapes: affine_grid and grid_sample, negative log-likelihood, two dropouts."""

import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(4)


def shapes(count):
    labels = torch.randint(0, 3, (count,))
    angle, shift = torch.empty(count).uniform_(-1, 1), torch.empty(count, 2).uniform_(-0.3, 0.3)
    theta = torch.stack([torch.stack([angle.cos(), -angle.sin(), shift[:, 0]], 1),
                         torch.stack([angle.sin(), angle.cos(), shift[:, 1]], 1)], 1)
    grid = F.affine_grid(theta, [count, 1, 20, 20], align_corners=False)
    x, y = grid.unbind(-1)
    kinds = torch.stack([(x.abs() < 0.5) & (y.abs() < 0.15), x.hypot(y) < 0.4, torch.maximum(x.abs(), y.abs()) < 0.4])
    return kinds[labels, torch.arange(count)].float().unsqueeze(1), labels


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5), nn.Conv2d(6, 8, 3)
        self.conv2_drop = nn.Dropout2d(0.1)
        self.fc1, self.fc2 = nn.Linear(72, 24), nn.Linear(24, 3)
        self.localization = nn.Sequential(nn.Conv2d(1, 4, 5), nn.MaxPool2d(2, stride=2), nn.ReLU(True),
                                          nn.Conv2d(4, 6, 5), nn.MaxPool2d(2, stride=2), nn.ReLU(True))
        self.fc_loc = nn.Sequential(nn.Linear(6 * 2 * 2, 16), nn.ReLU(True), nn.Linear(16, 3 * 2))
        self.fc_loc[2].weight.data.zero_()
        self.fc_loc[2].bias.data.copy_(torch.tensor([1, 0, 0, 0, 1, 0], dtype=torch.float))

    def stn(self, x):
        xs = self.localization(x)
        theta = self.fc_loc(xs.view(-1, 6 * 2 * 2)).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=True)
        return F.grid_sample(x, grid, align_corners=True, padding_mode="border")

    def forward(self, x):
        x = self.stn(x)
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = F.relu(self.fc1(x.view(-1, 72)))
        x = F.dropout(x, training=self.training, p=0.1)
        return F.log_softmax(self.fc2(x), dim=1)


model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
data, target = shapes(256)
model.train()
for step in range(args.steps):
    picked = torch.randperm(256)[:32]
    optimizer.zero_grad()
    output = model(data[picked])
    loss = F.nll_loss(output, target[picked])
    loss.backward()
    optimizer.step()
with torch.no_grad():
    model.eval()
    output = model(data)
    test_loss = F.nll_loss(output, target, reduction="sum").item() / len(data)
    pred = output.max(1, keepdim=True)[1]
    correct = pred.eq(target.view_as(pred)).sum().item()
    print(f"Test set: Average loss: {test_loss:.4f}, Accuracy: {correct}/{len(data)}")
    straight = model.stn(data[:4])
    print(straight.shape, straight.mean((1, 2, 3)))
