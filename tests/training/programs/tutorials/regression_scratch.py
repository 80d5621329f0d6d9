"""Linear and polynomial regression by hand, then concisely: data iterators, weight decay, tensors of the loss by epoch."""

import argparse
import random

import torch
from torch import nn
from torch.utils import data

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()
torch.manual_seed(3)
random.seed(3)


def synthetic_data(w, b, num_examples):
    X = torch.normal(0, 1, (num_examples, len(w)))
    y = torch.matmul(X, w) + b
    y += torch.normal(0, 0.01, y.shape)
    return X, y.reshape((-1, 1))


def data_iter(batch_size, features, labels):
    indices = list(range(len(features)))
    random.shuffle(indices)
    for i in range(0, len(features), batch_size):
        batch_indices = torch.tensor(indices[i:min(i + batch_size, len(features))])
        yield features[batch_indices], labels[batch_indices]


def sgd(params, lr, batch_size):
    with torch.no_grad():
        for param in params:
            param -= lr * param.grad / batch_size
            param.grad.zero_()


true_w, true_b = torch.tensor([2, -3.4]), 4.2
features, labels = synthetic_data(true_w, true_b, 200)
w = torch.normal(0, 0.01, size=(2, 1), requires_grad=True)
b = torch.zeros(1, requires_grad=True)
step = 0
while step < args.steps:
    for X, y in data_iter(10, features, labels):
        loss = (torch.matmul(X, w) + b - y.reshape((X.shape[0], 1))) ** 2 / 2
        loss.sum().backward()
        sgd([w, b], 0.03, 10)
        step += 1
        if step == args.steps:
            break
with torch.no_grad():
    print(f"error in estimating w: {true_w - w.reshape(true_w.shape)}, b: {true_b - b}")

max_degree, n_train = 20, 100
weights = torch.zeros(max_degree)
weights[0:4] = torch.tensor([5, 1.2, -3.4, 5.6])
x = torch.randn(2 * n_train, 1)
poly = torch.pow(x, torch.arange(max_degree).reshape(1, -1))
poly /= torch.exp(torch.lgamma(torch.arange(max_degree) + 1.0))
target = poly @ weights + torch.randn(2 * n_train) * 0.1
dataset = data.TensorDataset(poly[:n_train, :4], target[:n_train, None])
train_iter = data.DataLoader(dataset, 10, shuffle=True, generator=torch.Generator().manual_seed(1))
net = nn.Sequential(nn.Linear(4, 1, bias=False))
net[0].weight.data.fill_(0.01)
trainer = torch.optim.SGD([{"params": net[0].weight, "weight_decay": 3e-3}], lr=0.01, momentum=0.5, nesterov=True)
loss = nn.MSELoss(reduction="none")
for epoch in range(1 + args.steps // 20):
    for X, y in train_iter:
        trainer.zero_grad()
        loss(net(X), y).mean().backward()
        trainer.step()
    print("epoch", epoch, "weight:", net[0].weight.data.numpy().round(4), "test",
          f"{loss(net(poly[n_train:, :4]), target[n_train:, None]).mean():f}")
    print("L2 norm of w:", net[0].weight.norm().item())
