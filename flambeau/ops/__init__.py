"""The operators: one declaration each, by family. Nothing here knows a tensor."""

from __future__ import annotations

from . import (
    activation,
    arithmetic,
    attention,
    comparison,
    complex,
    convolution,
    copying,
    decomposition,
    differences,
    distance,
    exponential,
    indexing,
    joining,
    linalg,
    logical,
    lookup,
    loss,
    norm,
    normalization,
    ordering,
    pooling,
    positions,
    random,
    reduction,
    rounding,
    scalars,
    scan,
    selection,
    softmax,
    special,
    statistics,
    trigonometric,
    views,
)

FAMILIES = (activation, arithmetic, attention, comparison, complex, convolution, copying, decomposition,
            differences, distance, exponential, indexing, joining, linalg, logical, lookup, loss, norm,
            normalization, ordering, pooling, positions, random, reduction, rounding, scalars, scan,
            selection, softmax, special, statistics, trigonometric, views)
