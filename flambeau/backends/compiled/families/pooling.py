"""Pooling of large arrays, by compiled kernels; small ones are quicker by NumPy's.

Arrays are (*planes, *spatial). Images that lie in memory with their channels last give images that do, as in PyTorch.
Every function gives None where NumPy is the quicker way, or the only one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from .... import codegen, dtypes
from ...errstate import run_quietly
from .convolution import as_last, channels_last, last_strides

ndarray = np.ndarray
_INT64 = np.dtype(np.int64)

#: elements from which on kernels are asked
LEAST = [1 << 13]


class Pooling:
    """Kernels for pooling, with their plans."""

    def __init__(self) -> None:
        from ..launching import Plans

        self.plans = Plans()

    def run(self, launches: Callable[..., Any], outs: tuple[tuple[tuple[int, ...], np.dtype], ...], last: bool,
            operands: tuple[ndarray, ...], how: tuple) -> tuple[ndarray, ...]:
        """New arrays of these shapes and dtypes, computed from the operands as a plan says.

        Args:
            launches: makes the launches, from the results' specs, the operands' and `how`.
            last: whether results have their channels last.
        """
        operands = tuple([x if 0 not in x.strides else np.ascontiguousarray(x) for x in operands])
        key = (launches, outs, last, how, *[(x.shape, x.strides) for x in operands])
        plan = self.plans.found.get(key)
        if plan is None:
            plan = self.plans.keep(key, self._plan(launches, outs, last, operands, how))
        results = tuple([_made(shape, dtype, last) for shape, dtype in outs])
        plan.run((*results, *operands))
        return results

    @staticmethod
    def _plan(launches: Callable[..., Any], outs: tuple[tuple[tuple[int, ...], np.dtype], ...], last: bool,
              operands: tuple[ndarray, ...], how: tuple) -> Any:
        from ....runtime.launch import Spec
        from ..launching import Plan

        specs = [Spec(shape, last_strides(shape, dtype.itemsize), dtype) if last else Spec.dense(shape, dtype)
                 for shape, dtype in outs]
        return Plan([(shape, dtype, None) for shape, dtype in outs],
                    launches(specs, *map(Spec.of, operands), *how))


def _made(shape: tuple[int, ...], dtype: np.dtype, last: bool) -> ndarray:
    if not last:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, np.empty(shape, dtype), 0, last_strides(shape, dtype.itemsize))


_found: list[Pooling | None] = []


def _kernels() -> Pooling | None:
    """The kernels, made ready when first asked for; None where there are none."""
    if not _found:
        if codegen.available():
            from ..allocator import allocator

            allocator()
            _found.append(Pooling())
        else:
            LEAST[0] = 1 << 62
            _found.append(None)
    return _found[0]


def _computed(launches: Callable[..., Any], x: ndarray, spatial: tuple[int, ...], how: tuple,
              indices: ndarray | None = None, places: bool = False, means: bool = False) -> list[ndarray] | None:
    """Results (*planes, *spatial) of x's dtype, and `places` of int64."""
    rank = len(spatial)
    if not 1 <= rank <= 3 or not x.size or not prod(spatial):
        return None
    narrow = x.dtype if x.dtype in dtypes.NARROW else None
    wide = x if narrow is None else dtypes.widen(x)
    found = _kernels() if wide.dtype.char in "fd" else None
    if found is None:
        return None
    lead = x.shape[:x.ndim - rank]
    last = keeps_last(x, rank, means)
    images = (1, prod(lead)) if len(lead) < 2 else (prod(lead[:-1]), lead[-1])
    operands = [wide.reshape(*images, *x.shape[x.ndim - rank:])]
    if indices is not None:
        operands.append(indices.reshape(operands[0].shape))
    shape = (*images, *spatial)
    outs = ((shape, wide.dtype), (shape, _INT64)) if places else ((shape, wide.dtype),)
    results = run_quietly(found.run, launches, outs, last, tuple(operands), how)
    finished = [each if len(lead) == 2 else each.reshape(*lead, *spatial) for each in results]
    if narrow is not None:
        finished[0] = dtypes.cast(finished[0], narrow)
    return finished


def keeps_last(x: ndarray, rank: int, means: bool) -> bool:
    """Whether what is made of windows of `rank` dimensions of `x` has its channels last."""
    return x.ndim == rank + 2 and (rank == 2 or (rank == 3 and not means)) and channels_last(x)


def like(results: list[ndarray], x: ndarray, rank: int, means: bool = False) -> list[ndarray]:
    """NumPy's results in the layout that the kernels' have."""
    return [as_last(each) for each in results] if keeps_last(x, rank, means) else results


# ----- maxima ---------------------------------------------------------------------------


def _max(outputs: Any, x: Any, *how: Any) -> Any:
    from ....codegen.pooling import pooling

    windows = [pooling.regular(*each) for each in zip(x.shape[2:], outputs[0].shape[2:], *how, strict=True)]
    return pooling.max_pool(outputs, x, windows)


def max_pool(x: ndarray, positions: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
             padding: tuple[int, ...], dilation: tuple[int, ...], places: bool) -> list[ndarray] | None:
    """Each window's maximum, and if `places` its flat index within the plane: (*planes, *positions)."""
    if x.size < LEAST[0]:
        return None
    return _computed(_max, x, positions, (tuple(kernel), tuple(stride), tuple(padding), tuple(dilation)),
                     places=places)


def _adaptive_max(outputs: Any, x: Any) -> Any:
    from ....codegen.pooling import pooling

    windows = [pooling.adaptive(*each) for each in zip(x.shape[2:], outputs[0].shape[2:], strict=True)]
    return pooling.max_pool(outputs, x, windows)


def adaptive_max_pool(x: ndarray, positions: tuple[int, ...]) -> list[ndarray] | None:
    """The maxima of windows that cover planes evenly, and their flat indices."""
    return None if x.size < LEAST[0] else _computed(_adaptive_max, x, tuple(positions), (), places=True)


def _scatter(outputs: Any, gy: Any, indices: Any) -> Any:
    from ....codegen.pooling import pooling

    return pooling.max_pool_gradient(outputs, gy, indices)


def scatter_planes(gy: ndarray, indices: ndarray, spatial: tuple[int, ...]) -> ndarray | None:
    """Zeros (*planes, *spatial) with each window's gradient added at its flat index."""
    if gy.size < LEAST[0]:
        return None
    found = _computed(_scatter, gy, spatial, (), indices)
    return None if found is None else found[0]


# ----- means ----------------------------------------------------------------------------


def _windows(lengths: Any, positions: Any, kernel: Any, stride: Any, padding: Any, padded: bool) -> list[Any]:
    from ....codegen.pooling import pooling

    return [pooling.regular(length, count, k, s, p, 1, padded)
            for length, count, k, s, p in zip(lengths, positions, kernel, stride, padding, strict=True)]


def _avg(outputs: Any, x: Any, kernel: Any, stride: Any, padding: Any, padded: bool, divisor: int) -> Any:
    from ....codegen.pooling import pooling

    return pooling.avg_pool(outputs, x, _windows(x.shape[2:], outputs[0].shape[2:], kernel, stride, padding, padded),
                            divisor)


def avg_pool(x: ndarray, positions: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
             padding: tuple[int, ...], padded: bool, divisor: int | None) -> ndarray | None:
    """Each window's sum over its size, or over `divisor`: (*planes, *positions)."""
    if x.size < LEAST[0] or divisor == 0:
        return None
    how = (tuple(kernel), tuple(stride), tuple(padding), bool(padded), divisor or 0)
    found = _computed(_avg, x, positions, how, means=True)
    return None if found is None else found[0]


def _avg_back(outputs: Any, gy: Any, kernel: Any, stride: Any, padding: Any, padded: bool, divisor: int) -> Any:
    from ....codegen.pooling import pooling

    windows = _windows(outputs[0].shape[2:], gy.shape[2:], kernel, stride, padding, padded)
    return pooling.avg_pool_gradient(outputs, gy, windows, divisor)


def avg_pool_backward(gy: ndarray, spatial: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
                      padding: tuple[int, ...], padded: bool, divisor: int | None) -> ndarray | None:
    """The transpose of `avg_pool`: (*planes, *spatial)."""
    if _size(gy, spatial) < LEAST[0] or divisor == 0:
        return None
    how = (tuple(kernel), tuple(stride), tuple(padding), bool(padded), divisor or 0)
    found = _computed(_avg_back, gy, spatial, how, means=True)
    return None if found is None else found[0]


def _adaptive_avg(outputs: Any, x: Any) -> Any:
    from ....codegen.pooling import pooling

    windows = [pooling.adaptive(*each) for each in zip(x.shape[2:], outputs[0].shape[2:], strict=True)]
    return pooling.avg_pool(outputs, x, windows)


def adaptive_avg_pool(x: ndarray, positions: tuple[int, ...]) -> ndarray | None:
    """The means of windows that cover planes evenly: (*planes, *positions)."""
    found = None if x.size < LEAST[0] else _computed(_adaptive_avg, x, tuple(positions), (), means=True)
    return None if found is None else found[0]


def _adaptive_back(outputs: Any, gy: Any) -> Any:
    from ....codegen.pooling import pooling

    windows = [pooling.adaptive(*each) for each in zip(outputs[0].shape[2:], gy.shape[2:], strict=True)]
    return pooling.avg_pool_gradient(outputs, gy, windows)


def adaptive_avg_pool_backward(gy: ndarray, spatial: tuple[int, ...]) -> ndarray | None:
    """The transpose of `adaptive_avg_pool`: (*planes, *spatial)."""
    found = None if _size(gy, spatial) < LEAST[0] else _computed(_adaptive_back, gy, spatial, (), means=True)
    return None if found is None else found[0]


def _size(gy: ndarray, spatial: tuple[int, ...]) -> int:
    """Elements of the gradient by the input."""
    return prod(gy.shape[:gy.ndim - len(spatial)]) * prod(spatial)


__all__ = ["LEAST", "Pooling", "adaptive_avg_pool", "adaptive_avg_pool_backward", "adaptive_max_pool", "avg_pool",
           "avg_pool_backward", "keeps_last", "like", "max_pool", "scatter_planes"]
