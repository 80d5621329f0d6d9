"""Pooling kernels for large arrays (*planes, *spatial).

Channels-last inputs give channels-last results, as in PyTorch. Every function returns None where NumPy is faster, or
where there is no kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from .... import codegen, dtypes
from ....errstate import run_quietly
from ....kernels.memory_format import channels_last_strides, to_channels_last
from ....runtime.filling import with_filling
from ..launching import filling_of
from .convolution import channels_last

ndarray = np.ndarray
_INT64 = np.dtype(np.int64)

#: the number of elements from which kernels are used
MIN_ELEMENTS = [1 << 8]


class PoolingKernels:
    """Pooling kernels with their launch plans."""

    def __init__(self) -> None:
        from ..launching import PlanCache

        self.plans = PlanCache()

    def run(self, launches: Callable[..., Any], outs: tuple[tuple[tuple[int, ...], np.dtype], ...], last: bool,
            operands: tuple[ndarray, ...], geometry: tuple) -> tuple[ndarray, ...]:
        """Run a kernel into new arrays of these shapes and dtypes.

        Args:
            launches: creates the launches from the specs of results and operands, and `geometry`.
            last: whether results are channels-last.
        """
        operands = tuple([x if 0 not in x.strides else np.ascontiguousarray(x) for x in operands])
        key = (launches, outs, last, geometry, *[(x.shape, x.strides) for x in operands])
        plan = self.plans.plans.get(key)
        if plan is None:
            plan = self.plans.insert(key, self._plan(launches, outs, last, operands, geometry))
        results = tuple([_new_array(shape, dtype, last) for shape, dtype in outs])
        plan.run((*results, *operands))
        return results

    @staticmethod
    def _plan(launches: Callable[..., Any], outs: tuple[tuple[tuple[int, ...], np.dtype], ...], last: bool,
              operands: tuple[ndarray, ...], geometry: tuple) -> Any:
        from ....runtime.launch import Spec
        from ..launching import Plan

        specs = [Spec(shape, channels_last_strides(shape, dtype.itemsize), dtype) if last else Spec.dense(shape, dtype)
                 for shape, dtype in outs]
        return Plan([(shape, dtype, None) for shape, dtype in outs],
                    launches(specs, *map(Spec.of, operands), *geometry))


def _new_array(shape: tuple[int, ...], dtype: np.dtype, last: bool) -> ndarray:
    if not last:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, np.empty(shape, dtype), 0, channels_last_strides(shape, dtype.itemsize))


_instance: list[PoolingKernels | None] = []


def _kernels() -> PoolingKernels | None:
    """The kernels, created on first use; None where kernels cannot be compiled."""
    if not _instance:
        if codegen.available():
            from ..allocator import allocator

            allocator()
            _instance.append(PoolingKernels())
        else:
            MIN_ELEMENTS[0] = 1 << 62
            _instance.append(None)
    return _instance[0]


def _run(launches: Callable[..., Any], x: ndarray, spatial: tuple[int, ...], geometry: tuple,
              indices: ndarray | None = None, with_indices: bool = False,
         is_average: bool = False) -> list[ndarray] | None:
    """Results (*planes, *spatial) of the dtype of `x`, with indices of int64 if `with_indices`."""
    rank = len(spatial)
    if not 1 <= rank <= 3 or not x.size or not prod(spatial):
        return None
    narrow = x.dtype if x.dtype in dtypes.NARROW else None
    wide = x if narrow is None else dtypes.widen(x)
    results = _kernels() if wide.dtype.char in "fd" else None
    if results is None:
        return None
    lead = x.shape[:x.ndim - rank]
    last = keeps_channels_last(x, rank, is_average)
    images = (1, prod(lead)) if len(lead) < 2 else (prod(lead[:-1]), lead[-1])
    operands = [wide.reshape(*images, *x.shape[x.ndim - rank:])]
    if indices is not None:
        operands.append(indices.reshape(operands[0].shape))
    shape = (*images, *spatial)
    outs = ((shape, wide.dtype), (shape, _INT64)) if with_indices else ((shape, wide.dtype),)
    results = run_quietly(results.run, launches, outs, last, tuple(operands), geometry)
    finished = [each if len(lead) == 2 else each.reshape(*lead, *spatial) for each in results]
    if narrow is not None:
        finished[0] = dtypes.cast(finished[0], narrow)
    return finished


def max_pool_launch(x: ndarray, positions: tuple[int, ...], *geometry: tuple[int, ...],
                    with_indices: bool = False) -> Callable[..., Any] | None:
    """The function of an array of this layout, row-major, that gives the maxima of its windows; None: there is none.

    Args:
        with_indices: whether it gives a pair, of the maxima and their flat indices in the planes.
    """
    return _launch(_max_launches, x, positions, geometry, with_indices)


def avg_pool_launch(x: ndarray, positions: tuple[int, ...], *geometry: Any) -> Callable[..., Any] | None:
    """The same for the means of windows."""
    return _launch(_avg_launches, x, positions, geometry)


def _launch(launches: Callable[..., Any], x: ndarray, spatial: tuple[int, ...], geometry: tuple[Any, ...],
            with_indices: bool = False) -> Callable[..., Any] | None:
    rank = len(spatial)
    kernels = _kernels() if 1 <= rank <= 3 and x.size and prod(spatial) and x.dtype.char in "fd" else None
    if kernels is None or not x.flags.c_contiguous:
        return None
    from ....runtime.launch import ALIGNMENT
    from ....runtime.thread_pool import pool

    lead, dtype = x.shape[:x.ndim - rank], x.dtype
    images = (1, prod(lead)) if len(lead) < 2 else (prod(lead[:-1]), lead[-1])
    operand = x.reshape(*images, *x.shape[x.ndim - rank:])
    outs: tuple[Any, ...] = (((*images, *spatial), dtype),)
    if with_indices:
        outs = (*outs, ((*images, *spatial), _INT64))
    plan = kernels._plan(launches, outs, False, (operand,), geometry)
    if plan.enter is None:
        return None
    enter, shape, empty = plan.enter, (*lead, *spatial), np.empty
    if with_indices:
        scratch = plan.scratch and plan.scratch + ALIGNMENT

        def run(a: ndarray, _plan: Any = plan) -> tuple[ndarray, ndarray]:
            values, indices = empty(shape, dtype), empty(shape, _INT64)
            if scratch:
                enter(pool(), empty(scratch, np.uint8), values, indices, a)
            else:
                enter(pool(), values, indices, a)
            return values, indices

        return run
    filling = filling_of(plan, (0,), [shape])
    if not plan.scratch:
        # the plan owns what `enter` reads
        return with_filling(lambda a, _plan=plan: enter(pool(), empty(shape, dtype), a), filling)
    scratch, byte = plan.scratch + ALIGNMENT, np.dtype(np.uint8)
    return with_filling(lambda a, _plan=plan: enter(pool(), empty(scratch, byte), empty(shape, dtype), a), filling)


def keeps_channels_last(x: ndarray, rank: int, is_average: bool) -> bool:
    """Whether pooling `rank` dimensions of `x` gives a channels-last result."""
    return x.ndim == rank + 2 and (rank == 2 or (rank == 3 and not is_average)) and channels_last(x)


def match_channels_last(results: list[ndarray], x: ndarray, rank: int, is_average: bool = False) -> list[ndarray]:
    """NumPy's results in the layout of the kernels' results."""
    return [to_channels_last(each) for each in results] if keeps_channels_last(x, rank, is_average) else results


# ----- max pooling ----------------------------------------------------------------------


def _max_launches(outputs: Any, x: Any, *geometry: Any) -> Any:
    from ....codegen.pooling import pooling

    windows = [pooling.regular(*each) for each in zip(x.shape[2:], outputs[0].shape[2:], *geometry, strict=True)]
    return pooling.max_pool(outputs, x, windows)


def max_pool(x: ndarray, positions: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
             padding: tuple[int, ...], dilation: tuple[int, ...], with_indices: bool) -> list[ndarray] | None:
    """The maximum of each window, and if `with_indices` its flat index in the plane: (*planes, *positions)."""
    if x.size < MIN_ELEMENTS[0]:
        return None
    return _run(_max_launches, x, positions, (tuple(kernel), tuple(stride), tuple(padding), tuple(dilation)),
                     with_indices=with_indices)


def _adaptive_max_launches(outputs: Any, x: Any) -> Any:
    from ....codegen.pooling import pooling

    windows = [pooling.adaptive(*each) for each in zip(x.shape[2:], outputs[0].shape[2:], strict=True)]
    return pooling.max_pool(outputs, x, windows)


def adaptive_max_pool(x: ndarray, positions: tuple[int, ...]) -> list[ndarray] | None:
    """Adaptive max pooling: the maxima, and their flat indices."""
    if x.size < MIN_ELEMENTS[0]:
        return None
    return _run(_adaptive_max_launches, x, tuple(positions), (), with_indices=True)


def _max_gradient_launches(outputs: Any, gy: Any, indices: Any) -> Any:
    from ....codegen.pooling import pooling

    return pooling.max_pool_gradient(outputs, gy, indices)


def scatter_planes(gy: ndarray, indices: ndarray, spatial: tuple[int, ...]) -> ndarray | None:
    """The gradient of max pooling: each window's gradient added at its flat index in zeros (*planes, *spatial)."""
    if gy.size < MIN_ELEMENTS[0]:
        return None
    results = _run(_max_gradient_launches, gy, spatial, (), indices)
    return None if results is None else results[0]


# ----- average pooling ------------------------------------------------------------------


def _windows(lengths: Any, positions: Any, kernel: Any, stride: Any, padding: Any, padded: bool) -> list[Any]:
    from ....codegen.pooling import pooling

    return [pooling.regular(length, count, k, s, p, 1, padded)
            for length, count, k, s, p in zip(lengths, positions, kernel, stride, padding, strict=True)]


def _avg_launches(outputs: Any, x: Any, kernel: Any, stride: Any, padding: Any, padded: bool, divisor: int) -> Any:
    from ....codegen.pooling import pooling

    return pooling.avg_pool(outputs, x, _windows(x.shape[2:], outputs[0].shape[2:], kernel, stride, padding, padded),
                            divisor)


def avg_pool(x: ndarray, positions: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
             padding: tuple[int, ...], padded: bool, divisor: int | None) -> ndarray | None:
    """Each window's sum over its size, or over `divisor`: (*planes, *positions)."""
    if x.size < MIN_ELEMENTS[0] or divisor == 0:
        return None
    geometry = (tuple(kernel), tuple(stride), tuple(padding), bool(padded), divisor or 0)
    results = _run(_avg_launches, x, positions, geometry, is_average=True)
    return None if results is None else results[0]


def _avg_gradient_launches(outputs: Any, gy: Any, kernel: Any, stride: Any, padding: Any, padded: bool,
                           divisor: int) -> Any:
    from ....codegen.pooling import pooling

    windows = _windows(outputs[0].shape[2:], gy.shape[2:], kernel, stride, padding, padded)
    return pooling.avg_pool_gradient(outputs, gy, windows, divisor)


def avg_pool_backward(gy: ndarray, spatial: tuple[int, ...], kernel: tuple[int, ...], stride: tuple[int, ...],
                      padding: tuple[int, ...], padded: bool, divisor: int | None) -> ndarray | None:
    """The gradient of `avg_pool`: (*planes, *spatial)."""
    if _gradient_size(gy, spatial) < MIN_ELEMENTS[0] or divisor == 0:
        return None
    geometry = (tuple(kernel), tuple(stride), tuple(padding), bool(padded), divisor or 0)
    results = _run(_avg_gradient_launches, gy, spatial, geometry, is_average=True)
    return None if results is None else results[0]


def _adaptive_avg_launches(outputs: Any, x: Any) -> Any:
    from ....codegen.pooling import pooling

    windows = [pooling.adaptive(*each) for each in zip(x.shape[2:], outputs[0].shape[2:], strict=True)]
    return pooling.avg_pool(outputs, x, windows)


def adaptive_avg_pool(x: ndarray, positions: tuple[int, ...]) -> ndarray | None:
    """Adaptive average pooling: (*planes, *positions)."""
    if x.size < MIN_ELEMENTS[0]:
        return None
    results = _run(_adaptive_avg_launches, x, tuple(positions), (), is_average=True)
    return None if results is None else results[0]


def _adaptive_avg_gradient_launches(outputs: Any, gy: Any) -> Any:
    from ....codegen.pooling import pooling

    windows = [pooling.adaptive(*each) for each in zip(outputs[0].shape[2:], gy.shape[2:], strict=True)]
    return pooling.avg_pool_gradient(outputs, gy, windows)


def adaptive_avg_pool_backward(gy: ndarray, spatial: tuple[int, ...]) -> ndarray | None:
    """The gradient of `adaptive_avg_pool`: (*planes, *spatial)."""
    if _gradient_size(gy, spatial) < MIN_ELEMENTS[0]:
        return None
    results = _run(_adaptive_avg_gradient_launches, gy, spatial, (), is_average=True)
    return None if results is None else results[0]


def _gradient_size(gy: ndarray, spatial: tuple[int, ...]) -> int:
    """The number of elements of the input's gradient."""
    return prod(gy.shape[:gy.ndim - len(spatial)]) * prod(spatial)


__all__ = ["MIN_ELEMENTS", "PoolingKernels", "adaptive_avg_pool", "adaptive_avg_pool_backward", "adaptive_max_pool",
           "avg_pool", "avg_pool_backward", "avg_pool_launch", "keeps_channels_last", "match_channels_last", "max_pool",
           "max_pool_launch", "scatter_planes"]
