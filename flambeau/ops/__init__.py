"""The operators: one declaration each, by family. Nothing here knows a tensor."""

from __future__ import annotations

from . import (
    activation,
    arithmetic,
    comparison,
    complex,
    exponential,
    linalg,
    logical,
    positions,
    random,
    reduction,
    rounding,
    selection,
    special,
    trigonometric,
    views,
)

FAMILIES = (activation, arithmetic, comparison, complex, exponential, linalg, logical, positions, random,
            reduction, rounding, selection, special, trigonometric, views)
