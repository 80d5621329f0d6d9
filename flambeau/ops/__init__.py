"""The operators: one declaration each, by family. Nothing here knows a tensor."""

from __future__ import annotations

from . import (
    activation,
    arithmetic,
    comparison,
    complex,
    copying,
    differences,
    exponential,
    indexing,
    joining,
    linalg,
    logical,
    norm,
    ordering,
    positions,
    random,
    reduction,
    rounding,
    scan,
    selection,
    softmax,
    special,
    statistics,
    trigonometric,
    views,
)

FAMILIES = (activation, arithmetic, comparison, complex, copying, differences, exponential, indexing, joining,
            linalg, logical, norm, ordering, positions, random, reduction, rounding, scan, selection, softmax,
            special, statistics, trigonometric, views)
