"""Records of finite differences, Vandermonde matrices, reductions of segments and hashes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tests.ops.spec import Make, Sample, record, sample


def difference_samples(make: Make) -> Iterable[Sample]:
    yield sample(make(4))
    yield sample(make(3, 4), spacing=0.5, edge_order=2)
    yield sample(make(3, 4), spacing=(1.5, 2.0), edge_order=1)
    yield sample(make(3, 4), spacing=(make.module.tensor([0.0, 1, 3], dtype=make.dtype.to_real()),), dim=0)
    yield sample(make(4), spacing=[make.module.tensor([0.0, 1, 3, 4], dtype=make.dtype.to_real())], edge_order=2)


def numpy_gradient(x: Any, *, spacing: Any = 1.0, dim: Any = None, edge_order: int = 1) -> Any:
    spacings = spacing if isinstance(spacing, (tuple, list)) else (spacing,)
    result = np.gradient(x, *map(np.asarray, spacings), axis=dim, edge_order=edge_order)
    return list(result) if isinstance(result, (tuple, list)) else [result]


record("gradient", difference_samples, reference=numpy_gradient, complex=True)
record("vander", lambda make: [sample(make(3)), sample(make(3), 2), sample(make(2), 4, True)],
       reference=lambda x, n=None, increasing=False: np.vander(x, n, increasing), complex=True)


def segment_samples(make: Make) -> Iterable[Sample]:
    lengths = make.module.tensor([2, 3])
    for reduce in ("sum", "mean", "max", "min", "prod"):
        yield sample(make.apart(5), reduce, lengths=lengths)
    yield sample(make.apart(2, 5), "sum", lengths=make.module.tensor([[2, 3], [1, 4]]), axis=1)
    yield sample(make.apart(5, 2), "mean", offsets=make.module.tensor([0, 2, 5]), initial=1.0)


def numpy_segments(x: Any, reduce: str, *, lengths: Any = None, offsets: Any = None, axis: int = 0,
                   initial: Any = None) -> Any:
    if axis:
        return np.stack([numpy_segments(row, reduce, lengths=part) for row, part in zip(x, lengths, strict=True)])
    ends = np.cumsum(lengths) if offsets is None else np.asarray(offsets)[1:]
    function = getattr(np, reduce)
    parts = [function(part, 0) for part in np.split(x, ends[:-1])]
    counts = np.diff(ends, prepend=0)
    return np.stack([part if initial is None else part + initial / n for part, n in zip(parts, counts, strict=True)])


record("segment_reduce", segment_samples, reference=numpy_segments, twice=False,
       covers=("_segment_reduce", "_segment_reduce_backward"))
record("hash_tensor", lambda make: [
    sample(make(3, 4)), sample(make(3, 4), 0), sample(make(2, 3), (0, 1), keepdim=True)],
    differentiable=False, integers=True, keeps_dtype=False, covers=("_hash_tensor",))
