"""`torch._dispatch`: the dispatcher that PyTorch has in Python for symbolic sizes."""

from __future__ import annotations

from . import python

__all__ = ["python"]
