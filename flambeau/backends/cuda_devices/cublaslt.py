"""Matrix products with a bias on GPUs by cuBLASLt, which adds it before the result is rounded and written.

The address of the bias is part of the description of a product, so each product sets it. Algorithms need no workspace.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ...codegen.gpu.launches import VECTOR
from ...dtypes import BFLOAT16
from ...runtime import compilation
from . import libraries
from .cublas import STATUS, TF32, TYPES
from .launch_stub import STREAM, Word
from .runtime import Product

_INT, _WIDE, _POINTER, _ADDRESS, _SIZE = ctypes.c_int, ctypes.c_int64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t
#: the functions of `cublasLt.h` that are called, with the types of their parameters
PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (_POINTER,),
    "cublasLtMatmulDescCreate": (_POINTER, _INT, _INT),
    "cublasLtMatmulDescSetAttribute": (_POINTER, _INT, _POINTER, _SIZE),
    "cublasLtMatrixLayoutCreate": (_POINTER, _INT, _ADDRESS, _ADDRESS, _WIDE),
    "cublasLtMatmulPreferenceCreate": (_POINTER,),
    "cublasLtMatmulPreferenceSetAttribute": (_POINTER, _INT, _POINTER, _SIZE),
    "cublasLtMatmulAlgoGetHeuristic": (_POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _INT,
                                       _POINTER, _POINTER),
    "cublasLtMatmul": (_POINTER, _POINTER, _POINTER, _ADDRESS, _POINTER, _ADDRESS, _POINTER, _POINTER, _ADDRESS,
                       _POINTER, _ADDRESS, _POINTER, _POINTER, _ADDRESS, _SIZE, _POINTER),
}
#: attributes of a product (cublasLtMatmulDescAttributes_t), and CUBLASLT_EPILOGUE_BIAS
_TRANSPOSE_A, _TRANSPOSE_B, _EPILOGUE, _BIAS_POINTER, _BIAS = 3, 4, 7, 8, 4
#: attributes of a preference (cublasLtMatmulPreferenceAttributes_t): bytes of workspace; alignments of A, B, C, D
_MOST_WORKSPACE, _ALIGNMENTS = 1, (5, 6, 7, 8)
#: dtypes of factors for which there are epilogues
DTYPES = (np.dtype(np.float16), BFLOAT16, np.dtype(np.float32))


class _Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: an algorithm, and what it needs."""

    _fields_ = (("algorithm", ctypes.c_uint64 * 8), ("workspace", _SIZE), ("state", _INT), ("waves", ctypes.c_float),
                ("reserved", _INT * 4))


class _Plan:
    """How a product is computed: its description, the layouts of its matrices, and the algorithm."""

    __slots__ = ("a", "algorithm", "b", "bias", "c", "description")

    def __init__(self, description: int, layouts: list[int], heuristic: _Heuristic) -> None:
        self.description, (self.a, self.b, self.c) = description, layouts
        self.algorithm = heuristic.algorithm
        self.bias = ctypes.c_uint64()  # from which cuBLASLt reads the address of the bias


#: alpha and beta
_ONE, _ZERO = ctypes.c_float(1), ctypes.c_float(0)
#: the fewest elements of a result for each element of a row of the first factor: fewer want the algorithms of cuBLAS
#: that divide the sums, which need a workspace
_RATIO = 256


def adds_bias(dtype: np.dtype, m: int, n: int, k: int) -> bool:
    """Whether `BiasedProducts` is for a product of matrices of m x k and k x n elements.

    >>> adds_bias(np.dtype(np.float32), 1024, 1024, 1024), adds_bias(np.dtype(np.float64), 1024, 1024, 1024)
    (True, False)
    """
    return dtype in DTYPES and m * n >= _RATIO * k > 0


@cache
def _store() -> int:
    """The address of a C function that writes 64 bits, of a description for example, and returns 0."""
    source = """
define i32 @store_word(ptr %to, i64 %value) {
  store i64 %value, ptr %to
  ret i32 0
}
"""
    return int(compilation.load(source, ("store_word",), lambda: source).address("store_word"))


class BiasedProducts:
    """cuBLASLt on the GPUs of a runtime.

    Args:
        runtime: the `CupyRuntime`.
    """

    def __init__(self, runtime: Any) -> None:
        self._runtime = runtime
        self._functions: Any = None
        self._lock = threading.Lock()
        self._handles: dict[int, int] = {}  # by device
        self._plans: dict[tuple[Any, ...], _Plan] = {}

    def multiply(self, product: Product) -> None:
        """Start a product with a bias on the current stream of its device, which is CUDA's current device.

        Raises:
            OSError: cuBLASLt is not installed.
            RuntimeError: it refuses (PyTorch's text).
        """
        assert product.bias is not None
        assert product.batch == 1
        device = product.c[0].device.index
        a, b, c, bias = (self._runtime.address_of(each) for each in (product.a, product.b, product.c, product.bias))
        stream = self._runtime.stream_address(device, self._runtime.current_stream(device))
        recording = self._runtime.current.recording
        with self._lock:
            plan = self._plan(product, device, (b, a, c, bias), False)
            plan.bias.value = bias
            self._call("cublasLtMatmulDescSetAttribute", plan.description, _BIAS_POINTER, ctypes.byref(plan.bias), 8)
            self._call("cublasLtMatmul", self._handles[device], plan.description, ctypes.byref(_ONE), b, plan.a, a,
                       plan.b, ctypes.byref(_ZERO), c, plan.c, c, plan.c, plan.algorithm, 0, 0, stream)
            if recording is not None:
                self._record(recording, product, self._plan(product, device, (b, a, c, bias), True))

    def _record(self, recording: Any, product: Product, plan: _Plan) -> None:
        """Note the calls of a product; they are repeated without this lock, under the interpreter's."""
        assert product.bias is not None
        at = ctypes.addressof(plan.bias)
        recording.call(_store(), [at, product.bias])
        recording.call(libraries.address(self._functions, "cublasLtMatmulDescSetAttribute"), [
            plan.description, _BIAS_POINTER, at, 8])
        recording.call(libraries.address(self._functions, "cublasLtMatmul"), [
            self._handles[product.c[0].device.index], plan.description, ctypes.addressof(_ONE), product.b, plan.a,
            product.a, plan.b, ctypes.addressof(_ZERO), product.c, plan.c, product.c, plan.c,
            ctypes.addressof(plan.algorithm), 0, 0, Word(STREAM)])

    def _plan(self, product: Product, device: int, addresses: Sequence[int], recorded: bool) -> _Plan:
        """The plan of products like this one: another for recordings, which set its bias at any time.

        Args:
            addresses: of the matrices and the bias; a recording serves others that are aligned as well, or to 16 bytes.
        """
        most = VECTOR if recorded else 256
        alignments = [min(address & -address, most) or most for address in addresses]
        key = (device, product.dtype, product.out, product.m, product.n, product.k, product.transposed, product.rows,
               product.tf32, recorded, *alignments)
        found = self._plans.get(key)
        if found is None:
            found = self._plans[key] = self._planned(product, device, alignments)
        return found

    def _planned(self, product: Product, device: int, alignments: Sequence[int]) -> _Plan:
        """The plan of a product: of the transposed one, since cuBLASLt has matrices column by column."""
        if self._functions is None:
            self._functions = libraries.functions(self._runtime.library("cublasLt"), PROTOTYPES)
        if device not in self._handles:
            self._handles[device] = self._made("cublasLtCreate")
        kind, compute, _ = TYPES[product.dtype]
        compute = TF32 if product.tf32 and product.dtype == np.float32 else compute
        description = self._made("cublasLtMatmulDescCreate", compute, TYPES[np.dtype(np.float32)][0])
        first, second = product.transposed
        for attribute, value in ((_TRANSPOSE_A, int(second)), (_TRANSPOSE_B, int(first)), (_EPILOGUE, _BIAS)):
            self._set("cublasLtMatmulDescSetAttribute", description, attribute, ctypes.c_int32(value))
        # an address that is aligned as biases are: the search looks at that alone
        self._set("cublasLtMatmulDescSetAttribute", description, _BIAS_POINTER, ctypes.c_uint64(alignments[3]))
        result = kind if product.out is None else TYPES[product.out][0]
        m, n, k = product.m, product.n, product.k
        shapes = ((k, n) if second else (n, k), (m, k) if first else (k, m), (n, m))
        distances = (product.rows[1], product.rows[0], product.rows[2])
        layouts = [self._made("cublasLtMatrixLayoutCreate", each, *shape, distance) for each, shape, distance in zip(
            (kind, kind, result), shapes, distances, strict=True)]
        preference = self._made("cublasLtMatmulPreferenceCreate")
        self._set("cublasLtMatmulPreferenceSetAttribute", preference, _MOST_WORKSPACE, ctypes.c_uint64(0))
        for attribute, bytes_ in zip(_ALIGNMENTS, (*alignments[:3], alignments[2]), strict=True):
            self._set("cublasLtMatmulPreferenceSetAttribute", preference, attribute, ctypes.c_uint32(bytes_))
        found, count = _Heuristic(), ctypes.c_int()
        self._call("cublasLtMatmulAlgoGetHeuristic", self._handles[device], description, *layouts, layouts[2],
                   preference, 1, ctypes.byref(found), ctypes.byref(count))
        if not count.value or found.state:
            raise RuntimeError(f"CUDA error: {STATUS[15]} when calling `cublasLtMatmulAlgoGetHeuristic`")
        return _Plan(description, layouts, found)

    def _made(self, name: str, *arguments: Any) -> int:
        """The object that a function makes."""
        made = ctypes.c_void_p()
        self._call(name, ctypes.byref(made), *arguments)
        return made.value or 0

    def _set(self, name: str, owner: int, attribute: int, value: Any) -> None:
        self._call(name, owner, attribute, ctypes.byref(value), ctypes.sizeof(value))

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._functions, name)(*arguments)
        if status:
            raise RuntimeError(f"CUDA error: {STATUS.get(status, 'unknown error')} when calling `{name}`")


__all__ = ["DTYPES", "PROTOTYPES", "BiasedProducts", "adds_bias"]
