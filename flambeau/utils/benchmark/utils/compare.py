"""Where PyTorch defines `Compare`, by this name."""

from __future__ import annotations

from ..compare import Compare

__all__ = ["Compare"]
