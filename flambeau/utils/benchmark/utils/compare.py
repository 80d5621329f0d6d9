"""Where PyTorch defines `Compare`, by this name."""

from __future__ import annotations

from ..compare import Colorize, Compare

__all__ = ["Colorize", "Compare"]
