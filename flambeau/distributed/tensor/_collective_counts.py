"""Who counts the collectives that redistributions start."""

from __future__ import annotations

from collections.abc import Callable

#: called with the name of each collective
listeners: list[Callable[[str], None]] = []


def note(name: str) -> None:
    """Report a collective.

    Args:
        name: `all_gather_into_tensor`, `reduce_scatter_tensor`, `all_reduce` or `all_to_all_single`.
    """
    for listener in tuple(listeners):
        listener(name)


__all__ = ["listeners", "note"]
