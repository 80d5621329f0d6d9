"""`pad`: constant, reflect, replicate and circular padding."""

from __future__ import annotations

from ..._tensor.neural.padding import pad as pad

__all__ = ["pad"]
