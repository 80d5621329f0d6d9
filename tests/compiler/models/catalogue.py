"""The models by name, and what their steps have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch
from flambeau import nn
from flambeau.nn import functional as F
from tests.compiler.eager_comparison import Scenario, numbers, parameters

#: name -> what makes a new model with its step, its data and its state
MODELS: dict[str, Callable[[], Scenario]] = {}


def model(make: Callable[[], Scenario]) -> Callable[[], Scenario]:
    """Add a model to the catalogue, by the name of its function."""
    MODELS[make.__name__] = make
    return make


def adam(parameters: Any) -> Any:
    """Adam whose epsilon leaves gradients that are rounding errors small: a key's bias has no other."""
    return torch.optim.Adam(parameters, lr=1e-3, eps=1e-3)


def sgd(parameters: Any) -> Any:
    return torch.optim.SGD(parameters, lr=0.05, momentum=0.9)


def training(module: nn.Module, loss: Callable[..., Any], batch: Callable[[int], tuple[Any, ...]],
             make: Callable[[Any], Any] = sgd) -> Scenario:
    """A training step: `loss(module, *batch)`, backward, and an optimizer's step.

    Args:
        module: the model.
        loss: of the model and a batch.
        batch: returns the arguments of call `i`.
        make: makes the optimizer of the parameters.
    """
    optimizer = make(module.parameters())

    def step(*data: Any) -> Any:
        optimizer.zero_grad()
        value = loss(module, *data)
        value.backward()
        optimizer.step()
        return value.detach()

    return Scenario(step, batch, lambda: parameters(module))


def entropy(module: nn.Module, x: Any, y: Any) -> Any:
    """The cross-entropy of logits, classes last, and labels."""
    out = module(x)
    return F.cross_entropy(out.reshape(-1, out.shape[-1]), y.reshape(-1))


def integers(high: int, *shape: int, seed: int) -> Any:
    """Integers from 0 to `high`, `high` excluded, independent of the library's stream."""
    return (numbers(*shape, seed=seed).abs() * 1000).long() % high


def images(channels: int, size: int, classes: int, count: int = 2) -> Callable[[int], tuple[Any, ...]]:
    """Batches of images (count, channels, size, size) and labels (count,)."""
    return lambda i: (numbers(count, channels, size, size, seed=i), integers(classes, count, seed=100 + i))


def tokens(vocabulary: int, length: int, count: int = 2) -> Callable[[int], tuple[Any, ...]]:
    """Batches of tokens (count, length) and the next ones."""
    def batch(i: int) -> tuple[Any, ...]:
        text = integers(vocabulary, count, length + 1, seed=i)
        return text[:, :-1].contiguous(), text[:, 1:].contiguous()
    return batch
