"""Functionals of neural networks, where a declaration cannot take their arguments."""

from __future__ import annotations

from typing import Any

__all__: list[str] = []

METHODS: dict[str, Any] = {}
