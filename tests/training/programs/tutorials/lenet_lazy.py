"""Lazy convolutional networks on images made here: initialization by `apply`, accuracy, weights shared, best of epochs."""

import argparse
import copy

import torch
from torch import nn
from torch.optim import lr_scheduler

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(0)


class Reshape(nn.Module):
    def forward(self, x):
        return x.view(-1, 1, 16, 16)


def images(count, seed):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(4, (count,), generator=generator)
    rows = torch.arange(16.0)
    angle = labels * torch.pi / 4
    phase = rows[None, :, None] * torch.cos(angle)[:, None, None] + rows[None, None] * torch.sin(angle)[:, None, None]
    return (phase.sin() + 0.3 * torch.randn(count, 16, 16, generator=generator)).unsqueeze(1), labels


def init_weights(m):
    if type(m) == nn.Linear or type(m) == nn.Conv2d:
        nn.init.xavier_uniform_(m.weight)
        if m.bias is not None:
            nn.init.zeros_(m.bias)


net = nn.Sequential(
    Reshape(), nn.LazyConv2d(6, kernel_size=5, padding=2), nn.Sigmoid(), nn.AvgPool2d(kernel_size=2, stride=2),
    nn.LazyConv2d(16, kernel_size=5, bias=False), nn.LazyBatchNorm2d(), nn.GELU(), nn.AdaptiveMaxPool2d((2, 2)), nn.Flatten(),
    nn.LazyLinear(32), nn.Dropout(0.2), nn.ReLU(), nn.LazyLinear(4))
X = torch.rand(size=(1, 1, 16, 16))
for layer in net:
    X = layer(X)
    print(layer.__class__.__name__, "output shape:\t", X.shape)
net.apply(init_weights)
print(net)
optimizer = torch.optim.RMSprop(net.parameters(), lr=3e-3, alpha=0.9, centered=True)
scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, "min", patience=0, factor=0.5)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(*images(256, 1)), batch_size=32, shuffle=True)
test_x, test_y = images(64, 2)
loss_fn, best, best_loss, step = nn.CrossEntropyLoss(), None, float("inf"), 0


def accuracy(y_hat, y):
    if len(y_hat.shape) > 1 and y_hat.shape[1] > 1:
        y_hat = y_hat.argmax(axis=1)
    cmp = y_hat.type(y.dtype) == y
    return float(cmp.type(y.dtype).sum())


while step < args.steps:
    net.train()
    total, correct, seen = 0.0, 0.0, 0
    for inputs, targets in loader:
        optimizer.zero_grad()
        outputs = net(inputs)
        _, predicted = torch.max(outputs, 1)
        loss = loss_fn(outputs, targets)
        loss.backward()
        optimizer.step()
        total += loss.item() * inputs.size(0)
        correct += torch.sum(predicted == targets.data)
        seen += len(inputs)
        step += 1
        if step == args.steps:
            break
    net.eval()
    with torch.no_grad():
        test_loss = loss_fn(net(test_x), test_y).item()
        right = accuracy(net(test_x), test_y) / len(test_y)
    scheduler.step(test_loss)
    if test_loss < best_loss:
        best_loss, best = test_loss, copy.deepcopy(net.state_dict())
    print(f"train {total / seen:.4f} {correct.double() / seen:.3f} test {test_loss:.4f} {right:.3f} "
          f"rate {optimizer.param_groups[0]['lr']}")
net.load_state_dict(best)
print({name: tuple(value.shape) for name, value in best.items() if "num_batches" not in name})
