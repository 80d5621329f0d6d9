"""Losses of all ranks, and how far they are from others."""

from __future__ import annotations

from collections.abc import Sequence

from ..ranks import run

TOLERANCE = 1e-5


def reports(library: str, size: int, *words: str) -> dict[tuple[str, str], list[list[float]]]:
    """(model, strategy) -> the losses that each rank has."""
    of_ranks = run("same_losses", library, size, *words, timeout=1200)
    return {key: [each[key] for each in of_ranks] for key in of_ranks[0]}


def error(found: Sequence[Sequence[float]], expected: Sequence[Sequence[float]]) -> float:
    """The largest relative difference of any loss."""
    return max(abs(a - b) / abs(b) for one, other in zip(found, expected, strict=True)
               for a, b in zip(one, other, strict=True))
