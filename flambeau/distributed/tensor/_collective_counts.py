"""Counts of the collectives that redistributions start."""

from __future__ import annotations

#: one count by name of the collective for each block that counts
counters: list[dict[str, int]] = []


def note(name: str) -> None:
    """Count a collective.

    Args:
        name: `all_gather_into_tensor`, `reduce_scatter_tensor`, `all_reduce` or `all_to_all_single`.
    """
    for counter in counters:
        counter[name] = counter.get(name, 0) + 1


__all__ = ["counters", "note"]
