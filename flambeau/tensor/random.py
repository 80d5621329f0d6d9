"""Random tensors and the generator."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []

METHODS: dict[str, Any] = {}
