"""Complete training runs compared with PyTorch: the same seed gives the same losses."""

from __future__ import annotations

import numpy as np
import pytest

import flambeau

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity


# No bias before a batch norm, which takes it away again: its gradient is rounding noise, and Adam makes steps of it.
def mlp(nn):
    return nn.Sequential(nn.Linear(8, 16, bias=False), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4))


def convnet(nn):
    return nn.Sequential(nn.Unflatten(1, (1, 4, 2)), nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4),
                         nn.GELU(), nn.MaxPool2d(2), nn.Flatten(), nn.LayerNorm(8), nn.Linear(8, 4))


def train(module, build, optimizer, options, clip):
    rng = np.random.default_rng(0)
    x = module.tensor(rng.standard_normal((32, 8)).astype(np.float32))
    y = module.tensor(rng.integers(0, 4, 32))
    module.manual_seed(0)
    net = build(module.nn)
    opt = getattr(module.optim, optimizer)(net.parameters(), **options)
    scheduler = module.optim.lr_scheduler.StepLR(opt, 5, 0.5)
    criterion = module.nn.CrossEntropyLoss()
    losses = []
    for _ in range(12):
        opt.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        if clip:
            module.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
        opt.step()
        scheduler.step()
        losses.append(loss.item())
    net.eval()
    with module.no_grad():
        losses.append(criterion(net(x), y).item())
    return losses


@pytest.mark.parametrize("build", [mlp, convnet])
@pytest.mark.parametrize(("optimizer", "options", "clip"), [
    ("SGD", {"lr": 0.1, "momentum": 0.9}, False), ("Adam", {"lr": 0.01}, True), ("AdamW", {"lr": 0.01}, False),
])
def test_losses(build, optimizer, options, clip):
    theirs = train(torch, build, optimizer, options, clip)
    ours = train(flambeau, build, optimizer, options, clip)
    np.testing.assert_allclose(ours, theirs, rtol=2e-4)
    assert ours[0] == pytest.approx(theirs[0], rel=2e-6)
