"""The models by name, and what makes their arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flambeau as torch

#: name -> what makes a model and its example arguments
MODELS: dict[str, Callable[[], Any]] = {}


def model(make: Callable[[], Any]) -> Callable[[], Any]:
    """Add a model, by the name of its function."""
    MODELS[make.__name__] = make
    return make


def image(channels: int, size: int) -> tuple[Any, ...]:
    """One image."""
    return (torch.randn(1, channels, size, size),)


def tokens(vocabulary: int, length: int) -> Any:
    """One text."""
    return torch.randint(0, vocabulary, (1, length))
