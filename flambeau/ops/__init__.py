"""The operators: one declaration each, by family. Nothing here knows a tensor."""

from __future__ import annotations

from . import arithmetic, exponential, linalg, positions, random, reduction, trigonometric, views

FAMILIES = (arithmetic, exponential, linalg, positions, random, reduction, trigonometric, views)
