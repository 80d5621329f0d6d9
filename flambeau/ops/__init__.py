"""The operators: one declaration each, by family. Nothing here knows a tensor."""

from __future__ import annotations

from . import (
    activation,
    arithmetic,
    attention,
    batched_indexing,
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
    margin,
    norm,
    normalization,
    ordering,
    pooling,
    positions,
    random,
    recurrent,
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
from . import aten as aten

FAMILIES = (activation, arithmetic, attention, batched_indexing, comparison, complex, convolution, copying,
            decomposition, differences, distance, exponential, indexing, joining, linalg, logical, lookup, loss, margin,
            norm, normalization, ordering, pooling, positions, random, recurrent, reduction, rounding, scalars, scan,
            selection, softmax, special, statistics, trigonometric, views)
