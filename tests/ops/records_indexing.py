"""Records of what takes elements by index or mask, writes them and adds them up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.ops.spec import Make, Sample, record, sample

Samples = Callable[[Make], Iterable[Sample]]
MOVES: dict[str, Any] = {"complex": True, "integers": True}


def samples_of(build: Callable[[Make], Iterable[tuple[Any, ...]]]) -> Samples:
    """Samples from tuples of arguments; a dict last gives keywords."""
    def samples(make: Make) -> Iterable[Sample]:
        for args in build(make):
            kwargs = args[-1] if isinstance(args[-1], dict) else {}
            yield sample(*(args[:-1] if kwargs else args), **kwargs)
    return samples


def index_of(make: Make, *values: Any) -> Any:
    return make.module.tensor(values if len(values) > 1 else list(values))


def mask_of(make: Make, rows: list[Any]) -> Any:
    return make.module.tensor(rows)


MASK = [[True, False, True], [False, False, True]]

record("gather", samples_of(lambda make: [
    (make(3, 4), 0, make.integers(2, 4, high=3)), (make(3, 4), -1, make.integers(3, 2, high=4)),
    (make(), 0, make.integers(high=1))]), covers=("_gather_padded",), **MOVES)
record("scatter", samples_of(lambda make: [
    (make(3, 4), 0, index_of(make, [0, 1, 2, 0]), make(2, 4)), (make(3, 4), 1, index_of(make, [0, 1], [2, 3]), 2.5)]),
    covers=("_scatter", "_scatter_scalar"), **MOVES)
record("scatter_add", samples_of(lambda make: [
    (make(3, 4), 0, make.integers(2, 4, high=3), make(3, 4)),
    (make(3), 0, make.integers(5, high=3), make(6))]), **MOVES)
record("scatter_reduce", samples_of(lambda make: [
    (make.apart(3, 4), 0, make.integers(2, 4, high=3), make(2, 4, low=3, high=4), how, {"include_self": own})
    for how in ("sum", "prod", "mean", "amax", "amin") for own in (True, False)]))
record("index_reduce", samples_of(lambda make: [
    (make.apart(3, 4), 0, index_of(make, 2, 0), make(2, 4, low=3, high=4), how, {"include_self": own})
    for how in ("prod", "mean", "amax", "amin") for own in (True, False)]))
record("index_select", samples_of(lambda make: [
    (make(3, 4), 0, index_of(make, 2, 0, 2)), (make(3, 4), -1, index_of(make, 1)),
    (make(), 0, index_of(make, 0))]), **MOVES)
record("index_add", samples_of(lambda make: [
    (make(3, 4), 0, index_of(make, 2, 0, 2), make(3, 4)),
    (make(3, 4), 1, index_of(make, 1), make(3, 1), {"alpha": 2})]),
    **MOVES)
record("index_copy", samples_of(lambda make: [(make(3, 4), 0, index_of(make, 2, 0), make(2, 4))]), **MOVES)
record("index_fill", samples_of(lambda make: [
    (make(3, 4), 0, index_of(make, 2, 0), 2.0), (make(3, 4), 1, index_of(make, 2, 0), make())]),
    covers=("_index_fill_scalar", "_index_fill_tensor"), **MOVES)
record("index_put", samples_of(lambda make: [
    (make(3, 4), (index_of(make, 2, 0),), make(2, 4)),
    (make(3, 4), (index_of(make, 2, 0), index_of(make, 1, 1)), make(2), True),
    (make(2, 3), (mask_of(make, MASK),), make())]), covers=("_index_put", "_index", "_add_at_indices"), **MOVES)
record("masked_fill", samples_of(lambda make: [
    (make(2, 3), mask_of(make, MASK), 2.0), (make(2, 3), mask_of(make, MASK), make()),
    (make(3), mask_of(make, MASK), 1.0)]), covers=("_masked_fill_scalar",), **MOVES)
record("masked_select", samples_of(lambda make: [(make(2, 3), mask_of(make, MASK)), (make(3), mask_of(make, MASK))]),
       reference=lambda x, m: np.broadcast_to(x, m.shape)[m.astype(bool)], covers=("_masked_select_backward",), **MOVES)
record("masked_scatter", samples_of(lambda make: [(make(2, 3), mask_of(make, MASK), make(4))]),
       covers=("_masked_scatter_backward",), **MOVES)
record("take", samples_of(lambda make: [(make(3, 4), make.integers(2, 2, high=12))]), reference=np.take, **MOVES)
record("put", samples_of(lambda make: [
    (make(3, 4), index_of(make, 0, 5), make(2)), (make(3, 4), index_of(make, 5, 5), make(2), True)]), **MOVES)
record("take_along_dim", samples_of(lambda make: [(make(3, 4), make.integers(3, 2, high=4), 1)]),
       reference=np.take_along_axis, **MOVES)
record("argwhere", samples_of(lambda make: [(make.integers(3, 4, high=2),)]), reference=np.argwhere,
       differentiable=False, integers=True)
record("nonzero", samples_of(lambda make: [(make.integers(3, 4, high=2),)]), reference=np.argwhere,
       differentiable=False, integers=True, covers=("_nonzero",))
