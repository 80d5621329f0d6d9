"""Matrix products on GPUs by cuBLAS.

A thread has one handle for each GPU. cuBLAS computes in memory of ours: a workspace for each stream, so that products
may be captured, and for each pool of memory that graphs are captured with.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
import weakref
from typing import Any

import numpy as np

from ...dtypes import BFLOAT16
from . import libraries
from .allocator import DeviceMemory
from .runtime import Product

_INT, _WIDE, _POINTER, _ADDRESS = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_uint64
#: the functions of `cublas_api.h` that are called, with the types of their parameters
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (_POINTER,),
    "cublasSetStream_v2": (_POINTER, _POINTER),
    "cublasSetWorkspace_v2": (_POINTER, _ADDRESS, ctypes.c_size_t),
    "cublasGemmEx_64": (_POINTER, _INT, _INT, _WIDE, _WIDE, _WIDE, _POINTER, _ADDRESS, _INT, _WIDE, _ADDRESS, _INT,
                        _WIDE, _POINTER, _ADDRESS, _INT, _WIDE, _INT, _INT),
    "cublasGemmStridedBatchedEx_64": (
        _POINTER, _INT, _INT, _WIDE, _WIDE, _WIDE, _POINTER, _ADDRESS, _INT, _WIDE, _WIDE, _ADDRESS, _INT, _WIDE,
        _WIDE, _POINTER, _ADDRESS, _INT, _WIDE, _WIDE, _WIDE, _INT, _INT),
}
#: CUBLAS_OP_N and CUBLAS_OP_T, by whether a matrix is transposed; CUBLAS_GEMM_DEFAULT
_TRANSPOSED, _ALGORITHM = (0, 1), -1
#: dtypes of elements -> (cudaDataType_t, cublasComputeType_t, the dtype of alpha and beta)
TYPES: dict[np.dtype, tuple[int, int, np.dtype]] = {
    np.dtype(np.float16): (2, 68, np.dtype("f4")),
    BFLOAT16: (14, 68, np.dtype("f4")),
    np.dtype(np.float32): (0, 68, np.dtype("f4")),
    np.dtype(np.float64): (1, 70, np.dtype("f8")),
    np.dtype(np.complex64): (4, 68, np.dtype("c8")),
    np.dtype(np.complex128): (5, 70, np.dtype("c16")),
}
#: CUBLAS_COMPUTE_32F and CUBLAS_COMPUTE_32F_FAST_TF32
FLOAT32, TF32 = 68, 77
STATUS = {1: "CUBLAS_STATUS_NOT_INITIALIZED", 3: "CUBLAS_STATUS_ALLOC_FAILED", 7: "CUBLAS_STATUS_INVALID_VALUE",
           8: "CUBLAS_STATUS_ARCH_MISMATCH", 11: "CUBLAS_STATUS_MAPPING_ERROR", 13: "CUBLAS_STATUS_EXECUTION_FAILED",
           14: "CUBLAS_STATUS_INTERNAL_ERROR", 15: "CUBLAS_STATUS_NOT_SUPPORTED", 16: "CUBLAS_STATUS_LICENSE_ERROR"}
#: the numbers that alpha and beta nearly always are, where cuBLAS can read them
_NUMBERS: dict[tuple[np.dtype, complex], np.ndarray] = {
    (dtype, value): np.array(value, dtype) for dtype in map(np.dtype, ("f4", "f8", "c8", "c16"))
    for value in (0, 1)}
_NUMBER_AT = {key: array.ctypes.data for key, array in _NUMBERS.items()}


class _Handle:
    """A handle of cuBLAS's, and what it was set to last."""

    __slots__ = ("__weakref__", "captured", "stream", "value", "workspace")

    def __init__(self, value: int) -> None:
        self.value = value
        self.stream: int | None = None
        self.captured: Any = None
        self.workspace: DeviceMemory | None = None


class _Handles(threading.local):
    """The handles of a thread, by device."""

    def __init__(self) -> None:
        self.found: dict[int, _Handle] = {}


class Products:
    """cuBLAS on the GPUs of a runtime.

    Args:
        runtime: the `CupyRuntime`.
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._functions: Any = None
        self._lock = threading.Lock()
        self._handles = _Handles()
        self._kept: dict[tuple[np.dtype, complex], np.ndarray] = {}
        self._idle: dict[int, list[int]] = {}  # handles of threads that have ended, by device
        self._workspaces: dict[tuple[int, int], DeviceMemory] = {}  # by device and stream
        self._of_graphs: weakref.WeakValueDictionary[tuple[int, int], DeviceMemory] = weakref.WeakValueDictionary()

    def multiply(self, product: Product) -> None:
        """Start a batch of products on the current stream of its device, which is CUDA's current device.

        cuBLAS has matrices column by column, so it is given the transposed product: B's columns times A's rows.

        Raises:
            RuntimeError: cuBLAS refuses (PyTorch's text).
        """
        a, b, c, dtype, m, n, k, transposed, rows, steps, batch, alpha, beta, tf32, out, _ = product
        handle = self.handle(c[0].device.index)
        element, compute, numbers = TYPES[dtype]
        if tf32 and compute == FLOAT32 and dtype.itemsize > 2:
            compute = TF32
        result = element if out is None else TYPES[out][0]
        first = _NUMBER_AT.get((numbers, alpha))
        second = _NUMBER_AT.get((numbers, beta))
        kept = []  # numbers that are read within the call
        if first is None:
            kept.append(np.array(alpha, numbers))
            first = kept[-1].ctypes.data
        if second is None:
            kept.append(np.array(beta, numbers))
            second = kept[-1].ctypes.data
        x, y, z = (0 if memory.segment is None else memory.segment.address + memory.offset + offset
                   for memory, offset in (a, b, c))
        if batch == 1:
            status = self._functions.cublasGemmEx_64(
                handle, _TRANSPOSED[transposed[1]], _TRANSPOSED[transposed[0]], n, m, k, first, y, element, rows[1],
                x, element, rows[0], second, z, result, rows[2], compute, _ALGORITHM)
        else:
            status = self._functions.cublasGemmStridedBatchedEx_64(
                handle, _TRANSPOSED[transposed[1]], _TRANSPOSED[transposed[0]], n, m, k, first, y, element, rows[1],
                steps[1], x, element, rows[0], steps[0], second, z, result, rows[2], steps[2], batch, compute,
                _ALGORITHM)
        if status:
            raise _error(status, "cublasGemmEx" if batch == 1 else "cublasGemmStridedBatchedEx")

    def call(self, product: Product) -> tuple[int, list[Any]]:
        """The address of cuBLAS's function for a product that was computed before, and its arguments.

        Returns:
            arguments: None for the handle, places of the matrices, numbers.
        """
        a, b, c, dtype, m, n, k, transposed, rows, steps, batch, alpha, beta, tf32, out, _ = product
        element, compute, numbers = TYPES[dtype]
        if tf32 and compute == FLOAT32 and dtype.itemsize > 2:
            compute = TF32
        result = element if out is None else TYPES[out][0]
        first, second = (_NUMBER_AT.get((numbers, each)) or self._number(numbers, each) for each in (alpha, beta))
        head = [None, _TRANSPOSED[transposed[1]], _TRANSPOSED[transposed[0]], n, m, k, first]
        if batch == 1:
            return libraries.address(self._functions, "cublasGemmEx_64"), [
                *head, b, element, rows[1], a, element, rows[0], second, c, result, rows[2], compute, _ALGORITHM]
        return libraries.address(self._functions, "cublasGemmStridedBatchedEx_64"), [
            *head, b, element, rows[1], steps[1], a, element, rows[0], steps[0], second, c, result, rows[2], steps[2],
            batch, compute, _ALGORITHM]

    def _number(self, dtype: np.dtype, value: complex) -> int:
        """The address of a number that stays."""
        found = self._kept.setdefault((dtype, value), np.array(value, dtype))
        return int(found.ctypes.data)

    def handle(self, device: int) -> int:
        """This thread's handle for a GPU, which is CUDA's current device: its stream is the current one.

        Raises:
            OSError: cuBLAS is not installed.
            RuntimeError: it refuses (PyTorch's text).
        """
        found = self._handles.found.get(device)
        if found is None:
            found = self._handles.found[device] = self._new_handle(device)
        runtime = self._runtime
        stream = runtime.current_stream(device)
        captured = runtime.captured.get(stream)
        if found.stream != stream or found.captured is not captured:
            found.workspace = self._workspace(device, stream, captured)
            functions = self._functions
            self._check(functions.cublasSetStream_v2(found.value, runtime.stream_address(device, stream)),
                        "cublasSetStream")
            memory = found.workspace
            if memory is not None and memory.segment is not None:
                self._check(functions.cublasSetWorkspace_v2(
                    found.value, memory.segment.address + memory.offset, memory.nbytes), "cublasSetWorkspace")
            found.stream, found.captured = stream, captured
        return int(found.value)

    def _new_handle(self, device: int) -> _Handle:
        with self._lock:
            if self._functions is None:
                self._functions = libraries.functions(self._runtime.library("cublas"), PROTOTYPES)
            idle = self._idle.setdefault(device, [])
            if idle:
                value = idle.pop()
            else:
                made = ctypes.c_void_p()
                self._check(self._functions.cublasCreate_v2(ctypes.byref(made)), "cublasCreate")
                value = made.value or 0
        handle = _Handle(value)
        weakref.finalize(handle, idle.append, value).atexit = False
        return handle

    def _workspace(self, device: int, stream: int, captured: Any) -> DeviceMemory:
        """The memory that products of a stream use one after the other; of graphs, those that share a pool."""
        runtime = self._runtime
        used: Any = self._workspaces
        if captured is not None:
            if captured.replayed_on is not None:
                stream = captured.replayed_on
            else:
                used, stream = self._of_graphs, runtime.pools.get((device, stream), stream)
        with self._lock:
            found = used.get((device, stream))
            if found is None:
                found = used[device, stream] = runtime.allocators[device].allocate(self._size(device), stream)
        if captured is not None and not any(each is found for each in captured.kept):
            captured.kept.append(found)
        return found

    def _size(self, device: int) -> int:
        """The bytes of a workspace: as in PyTorch, CUBLAS_WORKSPACE_CONFIG's, else 32 MiB, before Hopper 8.1 MiB."""
        pairs = re.findall(r":(\d+):(\d+)", os.environ.get("CUBLAS_WORKSPACE_CONFIG", ""))
        if pairs:
            return sum(1024 * int(size) * int(count) for size, count in pairs)
        return 4096 * 8 * 1024 if self._runtime.properties(device).major == 9 else (4096 * 2 + 16 * 8) * 1024

    def end_capture(self, device: int) -> None:
        """Let this thread's handle for a GPU forget the graph that its products were captured for."""
        found = self._handles.found.get(device)
        if found is not None and found.captured is not None:
            found.stream = found.captured = found.workspace = None

    def clear_workspaces(self) -> None:
        """Give the workspaces of streams back, after all that uses them; products make new ones."""
        with self._lock:
            self._workspaces.clear()
        self._handles = _Handles()

    @staticmethod
    def _check(status: int, name: str) -> None:
        if status:
            raise _error(status, name)


def _error(status: int, name: str) -> RuntimeError:
    return RuntimeError(f"CUDA error: {STATUS.get(status, 'unknown error')} when calling `{name}`")


__all__ = ["FLOAT32", "PROTOTYPES", "STATUS", "TF32", "TYPES", "Products"]
