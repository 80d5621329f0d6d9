"""A classifier with fit, predict and get_params around a module: early stopping, callbacks, cross-validation, class weights."""

import argparse
import inspect

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, SubsetRandomSampler, default_collate

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=50)
args = parser.parse_args()


class BaseEstimator:
    def get_params(self):
        return {name: getattr(self, name) for name in inspect.signature(type(self).__init__).parameters if name != "self"}

    def set_params(self, **params):
        for name, value in params.items():
            if name not in self.get_params():
                raise ValueError(f"Invalid parameter {name}")
            setattr(self, name, value)
        return self


class Arrays(Dataset):
    def __init__(self, X, y=None):
        self.X, self.y = np.asarray(X, dtype=np.float32), y

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i], 0 if self.y is None else self.y[i]


class Classifier(BaseEstimator):
    def __init__(self, module, criterion=nn.NLLLoss, optimizer=torch.optim.Adagrad, lr=0.1, max_epochs=3, batch_size=16,
                 patience=2, class_weight=None, steps=10**9):
        for name, value in list(locals().items()):
            if name != "self":
                setattr(self, name, value)

    def initialize(self, X, y):
        torch.manual_seed(0)
        self.classes_ = np.unique(y)
        self.module_ = self.module(X.shape[1], len(self.classes_))
        weight = None
        if self.class_weight == "balanced":
            weight = torch.as_tensor(len(y) / (len(self.classes_) * np.bincount(y)), dtype=torch.float32)
        self.criterion_ = self.criterion(weight=weight)
        self.optimizer_ = self.optimizer(self.module_.parameters(), lr=self.lr)
        self.history_, self.taken_ = [], 0

    def loss(self, X, y):
        return self.criterion_(torch.log(self.module_(X).clamp(min=1e-8)), y)

    def partial_fit(self, X, y):
        dataset, order = Arrays(X, y), np.random.RandomState(0).permutation(len(X))
        valid, train = order[: len(X) // 5].tolist(), order[len(X) // 5:].tolist()
        best, waited = np.inf, 0
        for epoch in range(self.max_epochs):
            self.module_.train()
            losses = []
            for Xi, yi in DataLoader(dataset, self.batch_size, sampler=SubsetRandomSampler(train), collate_fn=default_collate):
                if self.taken_ == self.steps:
                    break
                self.taken_ += 1

                def step_fn():
                    self.optimizer_.zero_grad()
                    loss = self.loss(Xi, yi)
                    loss.backward()
                    return loss
                losses.append(self.optimizer_.step(step_fn).item())
            self.module_.eval()
            with torch.no_grad():
                Xv, yv = default_collate([dataset[i] for i in valid])
                valid_loss = self.loss(Xv, yv).item()
            self.history_.append({"epoch": epoch, "train_loss": float(np.mean(losses)) if losses else float("nan"), "valid_loss": valid_loss})
            waited = 0 if valid_loss < best else waited + 1
            best = min(best, valid_loss)
            if waited >= self.patience or self.taken_ == self.steps:
                break
        return self

    def fit(self, X, y):
        self.initialize(X, y)
        return self.partial_fit(X, y)

    def predict_proba(self, X):
        self.module_.eval()
        with torch.no_grad():
            return np.concatenate([self.module_(Xi).numpy() for Xi, _ in DataLoader(Arrays(X), self.batch_size)])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(1)]

    def score(self, X, y):
        return (self.predict(X) == y).mean()


class Net(nn.Module):
    def __init__(self, inputs, classes, hidden=12):
        super().__init__()
        self.hidden, self.out, self.slope = nn.Linear(inputs, hidden, bias=False), nn.Linear(hidden, classes), nn.PReLU(hidden)
        self.norm = nn.BatchNorm1d(hidden, momentum=0.3)

    def forward(self, x):
        return torch.softmax(self.out(self.slope(self.norm(self.hidden(x)))), dim=-1)


rng = np.random.default_rng(3)
y = rng.integers(0, 3, 150)
X = rng.normal(size=(150, 4)) + np.eye(3)[y] @ rng.normal(size=(3, 4)) * 2
clf = Classifier(Net, class_weight="balanced", steps=args.steps)
print({k: getattr(v, "__name__", v) for k, v in clf.get_params().items() if k != "steps"})
clf.fit(X, y)
for row in clf.history_:
    print(row["epoch"], f"{row['train_loss']:.4f} {row['valid_loss']:.4f}")
print(f"{clf.score(X, y):.3f}", clf.predict_proba(X[:2]).round(3))
for name, optimizer in (("Rprop", torch.optim.Rprop), ("ASGD", torch.optim.ASGD), ("Adadelta", torch.optim.Adadelta)):
    folds = np.array_split(np.arange(150), 3)
    scores = []
    for i in range(3):
        train = np.concatenate([f for j, f in enumerate(folds) if j != i])
        model = Classifier(Net).set_params(optimizer=optimizer, lr=0.05, max_epochs=1, steps=min(4, args.steps))
        scores.append(model.fit(X[train], y[train]).score(X[folds[i]], y[folds[i]]))
    print(name, np.round(scores, 3))
try:
    clf.set_params(nothing=1)
except ValueError as error:
    print(error)
