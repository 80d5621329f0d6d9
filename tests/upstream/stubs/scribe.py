"""Stub for PyTorch's log of events of its own infrastructure: nothing is sent."""

from __future__ import annotations


def open_source_signpost(*, subsystem: str, name: str, parameters: str) -> None:
    """Nothing."""
