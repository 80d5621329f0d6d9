"""The operators: one declaration each, by family. Nothing here knows a tensor."""

from __future__ import annotations

from .linalg import decomposition, distance, products
from .neural import attention, convolution, embedding, loss, margin, normalization, pooling, recurrent
from .pointwise import (
    activation,
    arithmetic,
    comparison,
    complex,
    exponential,
    logical,
    rounding,
    scalars,
    selection,
    special,
    trigonometric,
)
from .reduction import differences, norm, ordering, reductions, scan, softmax, statistics
from .shape import batched_indexing, copying, indexing, joining, positions, random, views

from . import aten as aten  # isort: skip

FAMILIES = (activation, arithmetic, attention, batched_indexing, comparison, complex, convolution, copying,
            decomposition, differences, distance, embedding, exponential, indexing, joining, logical, loss, margin,
            norm, normalization, ordering, pooling, positions, products, random, recurrent, reductions, rounding,
            scalars, scan, selection, softmax, special, statistics, trigonometric, views)
