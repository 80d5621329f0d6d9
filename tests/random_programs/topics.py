"""What topics of `objects` are made of: the table of topics, and random options as source text."""

from __future__ import annotations

import random
from collections.abc import Callable

Lines = list[str]
TOPICS: list[Callable[[random.Random], Lines]] = []


def topic(function: Callable[[random.Random], Lines]) -> Callable[[random.Random], Lines]:
    """Declare a topic."""
    TOPICS.append(function)
    return function


def options_of(r: random.Random, share: float = 0.35, /, **options: tuple[str, ...]) -> str:
    """Some keyword arguments, each with one of its values."""
    return ", ".join(f"{name}={r.choice(values)}" for name, values in options.items() if r.random() < share)


def call_of(name: str, *arguments: str) -> str:
    return f"{name}({', '.join(a for a in arguments if a)})"


def given_of(r: random.Random, shape: tuple[int, ...], dtype: str = "float32", grad: bool = False) -> str:
    return f"given({shape}, '{dtype}', {r.randrange(999)}{', grad=True' if grad else ''})"


BOOL = ("True", "False")
INT = ("0", "1", "2", "3", "-1")
FLOAT = ("0.0", "0.1", "0.5", "0.9", "1.0", "2.0", "-0.5", "1e-8", "float('nan')", "torch.tensor(0.1)", "1", "None",
    "'a'")
