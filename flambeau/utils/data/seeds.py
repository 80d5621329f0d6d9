"""Seeds of samplers, loaders and worker processes."""

from __future__ import annotations

from typing import Any

from ... import dtypes
from ..._tensor.creation.constants import empty


def draw_seed(generator: Any = None) -> int:
    """Return a random seed below 2⁶³, drawn from a generator; the default one if None."""
    return int(empty((), dtype=dtypes.int64).random_(generator=generator).item())
