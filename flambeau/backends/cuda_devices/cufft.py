"""Fourier transforms by cuFFT: plans, which are kept, and their execution on a stream.

A plan transforms a batch of arrays over all their dimensions, at most three, to dense row-major ones. Its workspace
comes from the caching allocator, for each execution.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from ctypes import byref, c_int, c_longlong, c_size_t, c_void_p
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from .array import DeviceArray
from .libraries import functions

#: dimensions that one plan transforms, and plans of a device that are kept
MAX_DIMENSIONS, MAX_PLANS = 3, 4096
_FORWARD, _INVERSE = -1, 1
_LONGS = c_void_p
_PROTOTYPES: dict[str, Sequence[Any]] = {
    "cufftCreate": (c_void_p,), "cufftDestroy": (c_int,), "cufftSetAutoAllocation": (c_int, c_int),
    "cufftMakePlanMany64": (c_int, c_int, _LONGS, _LONGS, c_longlong, c_longlong, _LONGS, c_longlong, c_longlong, c_int,
                            c_longlong, c_void_p),
    "cufftSetStream": (c_int, c_void_p), "cufftSetWorkArea": (c_int, c_void_p),
    **dict.fromkeys(("cufftExecC2C", "cufftExecZ2Z"), (c_int, c_void_p, c_void_p, c_int)),
    **dict.fromkeys(("cufftExecR2C", "cufftExecD2Z", "cufftExecC2R", "cufftExecZ2D"), (c_int, c_void_p, c_void_p)),
}
#: dtypes of elements of the source and of the target -> name and number of cuFFT's type
_TYPES = {("F", "F"): ("C2C", 0x29), ("f", "F"): ("R2C", 0x2A), ("F", "f"): ("C2R", 0x2C),
          ("D", "D"): ("Z2Z", 0x69), ("d", "D"): ("D2Z", 0x6A), ("D", "d"): ("Z2D", 0x6C)}
#: types of which half of the results are returned
_FROM_REAL = (0x2A, 0x6A)
_STATUS = {1: "CUFFT_INVALID_PLAN", 2: "CUFFT_ALLOC_FAILED", 3: "CUFFT_INVALID_TYPE", 4: "CUFFT_INVALID_VALUE",
           5: "CUFFT_INTERNAL_ERROR", 6: "CUFFT_EXEC_FAILED", 7: "CUFFT_SETUP_FAILED", 8: "CUFFT_INVALID_SIZE",
           9: "CUFFT_UNALIGNED_DATA", 11: "CUFFT_INVALID_DEVICE", 14: "CUFFT_NOT_IMPLEMENTED",
           16: "CUFFT_NOT_SUPPORTED"}


class Layout(NamedTuple):
    """How a batch of arrays lies in memory, in elements.

    Attributes:
        embed: the extents of the arrays that the transformed ones are the first elements of.
        step: between neighbours of the last dimension.
        distance: between neighbouring arrays.
    """

    embed: tuple[int, ...]
    step: int
    distance: int


def layout_of(a: DeviceArray, rank: int) -> Layout | None:
    """The layout of a batch of arrays of `rank` dimensions; None where cuFFT has no such layouts."""
    size, first = a.itemsize, a.ndim - rank
    if a.byte_offset % (size if a.dtype.kind == "c" else 2 * size):
        return None
    if any(s <= 0 or s % size for n, s in zip(a.shape, a.strides, strict=True) if n != 1):
        return None
    strides = [s // size for s in a.strides]
    step = reach = strides[-1] if a.shape[-1] != 1 else 1
    embed = list(a.shape[first:])
    for d in range(a.ndim - 2, first - 1, -1):  # from the inside
        if a.shape[d] == 1:
            reach *= embed[d + 1 - first]
            continue
        if strides[d] % reach or strides[d] // reach < a.shape[d + 1]:
            return None
        embed[d + 1 - first] = strides[d] // reach
        reach = strides[d]
    batch = [(n, s) for n, s in zip(a.shape[:first], strides, strict=False) if n != 1]
    if any(s != t * m for (_, s), (m, t) in pairwise(batch)):
        return None
    return Layout(tuple(embed), step, batch[-1][1] if batch else 1)


class _Plan(NamedTuple):
    """A plan of cuFFT's, and the bytes that it works in."""

    handle: int
    workspace: int


class PlanCache:
    """The plans of a device, by what they transform, the latest last.

    Attributes:
        max_size: how many are kept.
        destroy: gives a plan back; None: no plan was made yet.
    """

    def __init__(self) -> None:
        self.max_size = MAX_PLANS
        self.destroy: Callable[[_Plan], None] | None = None
        self._plans: OrderedDict[Any, _Plan] = OrderedDict()
        self.lock = threading.RLock()

    def __len__(self) -> int:
        return len(self._plans)

    def take(self, key: Any) -> _Plan | None:
        """A plan, which is taken out until `keep` puts it back."""
        return self._plans.pop(key, None)

    def keep(self, key: Any, plan: _Plan) -> None:
        """Keep a plan, the latest; the oldest ones that are too many are given back."""
        self._plans[key] = plan
        self.resize(self.max_size)

    def resize(self, max_size: int) -> None:
        """Keep at most so many plans.

        Raises:
            RuntimeError: a negative number (PyTorch's text).
        """
        if max_size < 0:
            raise RuntimeError(f"cuFFT plan cache size must be non-negative, but got {max_size}")
        with self.lock:
            self.max_size = max_size
            while len(self._plans) > max_size:
                plan = self._plans.popitem(last=False)[1]
                if self.destroy is not None:
                    self.destroy(plan)

    def clear(self) -> None:
        """Give all plans back."""
        kept = self.max_size
        self.resize(0)
        self.max_size = kept


def plan_cache(runtime: Any, device: int) -> PlanCache:
    """The plans of a device of a runtime."""
    caches: dict[int, PlanCache] = vars(runtime).setdefault("_plan_caches", {})
    return caches[device] if device in caches else caches.setdefault(device, PlanCache())


class FourierTransforms:
    """The transforms of a runtime's devices.

    Args:
        runtime: a `CupyRuntime`.

    Raises:
        OSError: cuFFT is not installed.
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._functions = functions(runtime.library("cufft"), _PROTOTYPES)

    def execute(self, source: DeviceArray, target: DeviceArray, rank: int, forward: bool) -> None:
        """Start a transform over the last dimensions; within `Runtime.launch`.

        Args:
            source: of a layout that cuFFT has (`layout_of`). A transform to real numbers overwrites it.
            target: row-major and dense: complex numbers, or real ones from half of a Hermitian source.
            rank: the number of transformed dimensions, at most `MAX_DIMENSIONS`.
            forward: whether the exponent is negative; transforms from and to real numbers have but one sign.

        Raises:
            RuntimeError: cuFFT failed (PyTorch's text).
        """
        runtime, device = self._runtime, source.torch_device.index
        name, kind = _TYPES[source.dtype.char, target.dtype.char]
        signal = source if source.dtype.kind == "f" else target
        sizes, batch = signal.shape[signal.ndim - rank:], prod(signal.shape[:signal.ndim - rank])
        layout = None if source.flags.c_contiguous else layout_of(source, rank)
        key = kind, sizes, batch, layout
        if runtime.current.recording is not None:
            runtime.current.recording.refuse()
        cache = plan_cache(runtime, device)
        with cache.lock:
            cache.destroy = self._destroy
            plan = cache.take(key) or self._made(kind, sizes, batch, layout)
            workspace = runtime.allocate(device, plan.workspace)
            self._check(self._functions.cufftSetStream(plan.handle, runtime.stream_address(
                device, runtime.current_stream(device))))
            self._check(self._functions.cufftSetWorkArea(plan.handle, runtime.address_of((workspace, 0))))
            arguments = [plan.handle, *(runtime.address_of((each.memory, each.byte_offset))
                                        for each in (source, target))]
            if name in ("C2C", "Z2Z"):
                arguments.append(_FORWARD if forward else _INVERSE)
            self._check(getattr(self._functions, f"cufftExec{name}")(*arguments))
            cache.keep(key, plan)

    def _destroy(self, plan: _Plan) -> None:
        self._check(self._functions.cufftDestroy(plan.handle))

    def _made(self, kind: int, sizes: Sequence[int], batch: int, layout: Layout | None) -> _Plan:
        handle, workspace = c_int(), c_size_t()
        self._check(self._functions.cufftCreate(byref(handle)))
        self._check(self._functions.cufftSetAutoAllocation(handle, 0))
        lengths = np.array(sizes, np.int64)
        if layout is None:
            places: tuple[Any, ...] = None, 1, 0, None, 1, 0
        else:
            halved = sizes[-1] // 2 + 1 if kind in _FROM_REAL else sizes[-1]
            results = np.array([*sizes[:-1], halved], np.int64)
            embed = np.array(layout.embed, np.int64)
            places = (embed.ctypes.data, layout.step, layout.distance,
                      results.ctypes.data, 1, int(np.prod(results)))
        self._check(self._functions.cufftMakePlanMany64(
            handle, len(sizes), lengths.ctypes.data, *places, kind, batch, byref(workspace)))
        return _Plan(handle.value, workspace.value)

    @staticmethod
    def _check(status: int) -> None:
        if status:
            raise RuntimeError(f"cuFFT error: {_STATUS.get(status, status)}")


__all__ = ["MAX_DIMENSIONS", "FourierTransforms", "Layout", "PlanCache", "layout_of", "plan_cache"]
