"""`iterator_hooks`, by PyTorch's name."""

from __future__ import annotations

from .iterator_hooks import IteratorDecorator, _SnapshotState, hook_iterator

__all__ = ["IteratorDecorator", "_SnapshotState", "hook_iterator"]
