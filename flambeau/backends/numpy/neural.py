"""Convolution, pooling, normalisation, losses."""

from __future__ import annotations

from typing import Any

PRIMITIVES: dict[str, Any] = {}
