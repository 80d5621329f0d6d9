"""Where PyTorch defines `Timer`, by this name."""

from __future__ import annotations

from ..timer import Timer

__all__ = ["Timer"]
