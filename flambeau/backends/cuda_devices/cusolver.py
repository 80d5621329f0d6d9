"""Linear algebra by cuSOLVER and cuBLAS: factorizations and solutions of batches of column-major matrices, in place.

Batches of small matrices take one launch where the libraries have a function for batches; otherwise matrices come one
after the other. `info` is written by the device, an int32 for each matrix, so that nothing waits.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref, c_char, c_int, c_void_p
from typing import Any

import numpy as np

from ...codegen.gpu.matrices import addresses
from .array import DeviceArray
from .cublas import Products
from .libraries import functions
from .strided_copies import start

#: rows and columns up to which a batch of matrices is factored by one launch
_SMALL, _SMALL_JACOBI = 128, 32
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_LETTERS = {"f": "S", "d": "D", "F": "C", "D": "Z"}
_P, _I = c_void_p, c_int
#: function of cuSOLVER, without the prefix and letter -> parameters after the handle; "lwork" queries write an int
_SOLVER: dict[str, Sequence[Any]] = {
    "potrf_bufferSize": (_I, _I, _P, _I, _P), "potrf": (_I, _I, _P, _I, _P, _I, _P),
    "potrfBatched": (_I, _I, _P, _I, _P, _I),
    "getrf_bufferSize": (_I, _I, _P, _I, _P), "getrf": (_I, _I, _P, _I, _P, _P, _P),
    "getrs": (_I, _I, _I, _P, _I, _P, _P, _I, _P),
    "geqrf_bufferSize": (_I, _I, _P, _I, _P), "geqrf": (_I, _I, _P, _I, _P, _P, _I, _P),
    "orgqr_bufferSize": (_I, _I, _I, _P, _I, _P, _P), "orgqr": (_I, _I, _I, _P, _I, _P, _P, _I, _P),
    "ormqr_bufferSize": (_I, _I, _I, _I, _I, _P, _I, _P, _P, _I, _P),
    "ormqr": (_I, _I, _I, _I, _I, _P, _I, _P, _P, _I, _P, _I, _P),
    "syevd_bufferSize": (_I, _I, _I, _P, _I, _P, _P), "syevd": (_I, _I, _I, _P, _I, _P, _P, _I, _P),
    "syevjBatched_bufferSize": (_I, _I, _I, _P, _I, _P, _P, _P, _I),
    "syevjBatched": (_I, _I, _I, _P, _I, _P, _P, _I, _P, _P, _I),
    "gesvdj_bufferSize": (_I, _I, _I, _I, _P, _I, _P, _P, _I, _P, _I, _P, _P),
    "gesvdj": (_I, _I, _I, _I, _P, _I, _P, _P, _I, _P, _I, _P, _I, _P, _P),
    "gesvdjBatched_bufferSize": (_I, _I, _I, _P, _I, _P, _P, _I, _P, _I, _P, _P, _I),
    "gesvdjBatched": (_I, _I, _I, _P, _I, _P, _P, _I, _P, _I, _P, _I, _P, _P, _I),
    "gesvd_bufferSize": (_I, _I, _P),
    "gesvd": (c_char, c_char, _I, _I, _P, _I, _P, _P, _I, _P, _I, _P, _I, _P, _P),
}
_BLAS: dict[str, Sequence[Any]] = {
    "trsm_v2": (_I, _I, _I, _I, _I, _I, _P, _P, _I, _P, _I),
    "trsmBatched": (_I, _I, _I, _I, _I, _I, _P, _P, _I, _P, _I, _I),
    "getrfBatched": (_I, _P, _I, _P, _P, _I), "getrsBatched": (_I, _I, _I, _P, _I, _P, _P, _I, _P, _I),
    "geqrfBatched": (_I, _I, _P, _I, _P, _P, _I),
}
#: names of LAPACK's functions for complex numbers that differ
_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "syevjBatched": "heevjBatched"}
_SOLVER_STATUS = {1: "NOT_INITIALIZED", 2: "ALLOC_FAILED", 3: "INVALID_VALUE", 4: "ARCH_MISMATCH", 5: "MAPPING_ERROR",
                  6: "EXECUTION_FAILED", 7: "INTERNAL_ERROR", 8: "MATRIX_TYPE_NOT_SUPPORTED", 9: "NOT_SUPPORTED"}
_BLAS_STATUS = {1: "NOT_INITIALIZED", 3: "ALLOC_FAILED", 7: "INVALID_VALUE", 8: "ARCH_MISMATCH", 11: "MAPPING_ERROR",
                13: "EXECUTION_FAILED", 14: "INTERNAL_ERROR", 15: "NOT_SUPPORTED"}
_NONE, _TRANSPOSE, _ADJOINT = 0, 1, 2
_LOWER, _UPPER = 0, 1


def _named(kind: str, letter: str) -> str:
    stem, _, query = kind.partition("_buffer")
    if letter in "CZ":
        stem = _COMPLEX.get(stem, stem)
    return f"{letter}{stem}{'_buffer' if query else ''}{query}"


class LinearAlgebra:
    """The factorizations and solutions of a runtime's devices; all methods are for use within `Runtime.launch`.

    Matrices are arrays (batch, m, n) whose matrices are dense and column-major, float32 to complex128.

    Args:
        runtime: a `CupyRuntime`.
        products: its products, whose handles of cuBLAS are used.

    Raises:
        OSError: cuSOLVER or cuBLAS is not installed.
    """

    def __init__(self, runtime: Any, products: Products) -> None:
        self._runtime, self._products = runtime, products
        self._solver = functions(runtime.library("cusolver"), {
            "cusolverDnCreate": (_P,), "cusolverDnSetStream": (_P, _P),
            "cusolverDnCreateSyevjInfo": (_P,), "cusolverDnCreateGesvdjInfo": (_P,),
            **{f"cusolverDn{_named(kind, letter)}": (_P, *types) for kind, types in _SOLVER.items()
               for letter in "SDCZ"}})
        self._blas = functions(runtime.library("cublas"), {
            f"cublas{letter}{kind}": (_P, *types) for kind, types in _BLAS.items() for letter in "SDCZ"})
        self._handles: dict[Any, int] = {}
        self._lock = threading.RLock()

    # ----- calls -----

    def _handle(self, device: int, name: str) -> int:
        """A handle, or parameters of Jacobi methods, made once for a device."""
        found = self._handles.get((device, name))
        if found is None:
            made = c_void_p()
            _check(getattr(self._solver, name)(byref(made)), name)
            found = self._handles[device, name] = made.value or 0
        return found

    def _call(self, kind: str, a: DeviceArray, *args: Any) -> None:
        """Call a function for matrices of an array's dtype on the current stream of its device."""
        self._each(kind, a, [args])

    def _each(self, kind: str, a: DeviceArray, calls: Iterable[Sequence[Any]]) -> None:
        """Call a function for one matrix after the other."""
        runtime, device = self._runtime, a.torch_device.index
        letter = _LETTERS[a.dtype.char]
        if runtime.current.recording is not None:
            runtime.current.recording.refuse()
        with self._lock:
            if kind in _BLAS:
                name, library = f"cublas{letter}{kind}", self._blas
                handle = self._products.handle(device)
            else:
                name, library = f"cusolverDn{_named(kind, letter)}", self._solver
                handle = self._handle(device, "cusolverDnCreate")
                _check(library.cusolverDnSetStream(handle, runtime.stream_address(
                    device, runtime.current_stream(device))), "cusolverDnSetStream")
            function = getattr(library, name)
            for args in calls:
                status = function(handle, *args)
                if status:
                    _check(status, name)

    def _workspace(self, kind: str, a: DeviceArray, *args: Any, after: Sequence[Any] = ()) -> tuple[Any, int, int]:
        """Memory that a function works in: the block, its address, and its size in elements.

        Args:
            args, after: the arguments of the query before and after the address of its result.
        """
        size = c_int()
        self._call(f"{kind}_bufferSize", a, *args, byref(size), *after)
        block = self._runtime.allocate(a.torch_device.index, max(size.value, 1) * a.itemsize)
        return block, self._runtime.address_of((block, 0)), size.value

    def _at(self, a: DeviceArray) -> int:
        """The address of the first element."""
        return int(self._runtime.address_of((a.memory, a.byte_offset)))

    def _all(self, *arrays: DeviceArray) -> Iterator[tuple[int, ...]]:
        """The addresses of the matrices, or vectors, of arrays, for one batch element after the other."""
        firsts = [self._at(each) for each in arrays]
        if len(arrays[0]) == 1:
            return iter([tuple(firsts)])
        last = len(arrays[0])
        return zip(*(range(first, first + last * each.strides[0], each.strides[0]) for first, each in zip(
            firsts, arrays, strict=True)), strict=True)

    def _pointers(self, a: DeviceArray) -> tuple[DeviceArray, int]:
        """The addresses of all matrices, an array on the device, and its address."""
        made = self._new(a, (len(a),), _INT64)
        start(self._runtime, [addresses(self._at(a), a.strides[0], len(a))], [(made.memory, made.byte_offset)])
        return made, self._at(made)

    def _new(self, a: DeviceArray, shape: Sequence[int], dtype: np.dtype) -> DeviceArray:
        found: DeviceArray = self._runtime.empty(a.torch_device.index, shape, dtype)
        return found

    # ----- factorizations -----

    def potrf(self, a: DeviceArray, upper: bool, info: DeviceArray) -> None:
        """Cholesky factors over the triangle that is read; the other triangle is not touched.

        Args:
            info: (batch,), the orders of the first leading minors that are not positive, or 0.
        """
        count, n = a.shape[:2]
        fill = _UPPER if upper else _LOWER
        if count > 1:
            kept, pointers = self._pointers(a)
            self._call("potrfBatched", a, fill, n, pointers, n, self._at(info), count)
            del kept
            return
        _kept, work, size = self._workspace("potrf", a, fill, n, self._at(a), n)
        self._call("potrf", a, fill, n, self._at(a), n, work, size, self._at(info))

    def getrf(self, a: DeviceArray, pivots: DeviceArray | None, info: DeviceArray) -> None:
        """LU factors with partial pivoting, or none.

        Args:
            pivots: (batch, min(m, n)), from 1 on; None: rows are not swapped.
            info: (batch,), the first zero pivots, or 0.
        """
        count, m, n = a.shape
        if count > 1 and m == n <= _SMALL:
            _kept, pointers = self._pointers(a)
            self._call("getrfBatched", a, n, pointers, n, None if pivots is None else self._at(pivots),
                       self._at(info), count)
            return
        _kept, work, _ = self._workspace("getrf", a, m, n, self._at(a), m)
        if pivots is None:
            self._each("getrf", a, ((m, n, x, m, work, None, status) for x, status in self._all(a, info)))
        else:
            self._each("getrf", a, ((m, n, x, m, work, order, status) for x, order, status in self._all(
                a, pivots, info)))

    def geqrf(self, a: DeviceArray, tau: DeviceArray) -> None:
        """R and the reflectors below it.

        Args:
            tau: (batch, min(m, n)), the reflectors' factors.
        """
        count, m, n = a.shape
        if count > 1 and max(m, n) <= _SMALL:
            _a, pointers = self._pointers(a)
            _tau, factors = self._pointers(tau)
            info = c_int()
            self._call("geqrfBatched", a, m, n, pointers, m, factors, byref(info), count)
            return
        _kept, work, size = self._workspace("geqrf", a, m, n, self._at(a), m)
        status = self._new(a, (1,), _INT32)
        at = self._at(status)
        self._each("geqrf", a, ((m, n, x, m, t, work, size, at) for x, t in self._all(a, tau)))

    def orgqr(self, a: DeviceArray, tau: DeviceArray) -> None:
        """The first n columns of the product of reflectors, over the reflectors.

        Args:
            a: (batch, m, n), m ≥ n.
            tau: (batch, k), k ≤ n.
        """
        _, m, n = a.shape
        k = tau.shape[-1]
        _kept, work, size = self._workspace("orgqr", a, m, n, k, self._at(a), m, self._at(tau))
        status = self._new(a, (1,), _INT32)
        at = self._at(status)
        self._each("orgqr", a, ((m, n, k, x, m, t, work, size, at) for x, t in self._all(a, tau)))

    def ormqr(self, a: DeviceArray, tau: DeviceArray, c: DeviceArray, left: bool, adjoint: bool) -> None:
        """The product of reflectors, or its conjugate transpose, times C, or C times it, over C.

        Args:
            a: (batch, m, k), the reflectors.
        """
        _, m, n = c.shape
        k, rows = tau.shape[-1], a.shape[1]
        operation = _NONE if not adjoint else _ADJOINT if a.dtype.kind == "c" else _TRANSPOSE
        shape = (int(not left), operation, m, n, k)
        _kept, work, size = self._workspace("ormqr", a, *shape, self._at(a), rows, self._at(tau), self._at(c), m)
        status = self._new(a, (1,), _INT32)
        at = self._at(status)
        self._each("ormqr", a, ((*shape, x, rows, t, y, m, work, size, at) for x, t, y in self._all(a, tau, c)))

    # ----- solutions -----

    def getrs(self, lu: DeviceArray, pivots: DeviceArray, b: DeviceArray, transposed: bool, adjoint: bool) -> None:
        """The solutions of A X = B, Aᵀ X = B or Aᴴ X = B by LU factors, over B.

        Args:
            pivots: (batch, n).
            b: (batch, n, k).
        """
        count, n, k = b.shape
        operation = _ADJOINT if adjoint else _TRANSPOSE if transposed else _NONE
        if count > 1 and n <= _SMALL:
            _lu, factors = self._pointers(lu)
            _b, sides = self._pointers(b)
            info = c_int()
            self._call("getrsBatched", lu, operation, n, k, factors, n, self._at(pivots), sides, n, byref(info), count)
            return
        status = self._new(lu, (1,), _INT32)
        at = self._at(status)
        self._each("getrs", lu, ((operation, n, k, x, n, order, y, n, at) for x, order, y in self._all(lu, pivots, b)))

    def trsm(self, a: DeviceArray, b: DeviceArray, upper: bool, adjoint: bool, unitriangular: bool,
             transposed: bool = False) -> None:
        """The solutions of A X = B, Aᵀ X = B or Aᴴ X = B, for triangular A, over B.

        Args:
            upper: the triangle of A that is read.
            b: (batch, n, k).
        """
        count, n, k = b.shape
        one = np.ones((), a.dtype)
        operation = _ADJOINT if adjoint else _TRANSPOSE if transposed else _NONE
        shape = 0, _UPPER if upper else _LOWER, operation, int(unitriangular), n, k, one.ctypes.data
        if count > 1:
            _a, factors = self._pointers(a)
            _b, sides = self._pointers(b)
            self._call("trsmBatched", a, *shape, factors, n, sides, n, count)
            return
        self._call("trsm_v2", a, *shape, self._at(a), n, self._at(b), n)

    # ----- decompositions -----

    def syevd(self, a: DeviceArray, values: DeviceArray, upper: bool, info: DeviceArray) -> None:
        """Eigenvalues in ascending order, and eigenvectors over the matrices.

        Args:
            values: (batch, n), real.
            upper: the triangle that is read.
            info: (batch,), 0 where the method converged.
        """
        count, n = a.shape[:2]
        shape = (1, _UPPER if upper else _LOWER, n)
        if count > 1 and n <= _SMALL_JACOBI:
            parameters = self._handle(a.torch_device.index, "cusolverDnCreateSyevjInfo")
            _kept, work, size = self._workspace("syevjBatched", a, *shape, self._at(a), n, self._at(values),
                                                after=(parameters, count))
            self._call("syevjBatched", a, *shape, self._at(a), n, self._at(values), work, size, self._at(info),
                       parameters, count)
            return
        _kept, work, size = self._workspace("syevd", a, *shape, self._at(a), n, self._at(values))
        self._each("syevd", a, ((*shape, x, n, w, work, size, status) for x, w, status in self._all(a, values, info)))

    def gesvdj(self, a: DeviceArray, s: DeviceArray, u: DeviceArray, v: DeviceArray, info: DeviceArray) -> None:
        """Singular value decompositions A = U diag(S) Vᴴ by Jacobi rotations; A is overwritten.

        Args:
            s: (batch, k), real, k = min(m, n).
            u, v: (batch, m, m) and (batch, n, n), or k columns of both.
            info: (batch,), 0 where the method converged.
        """
        count, m, n = a.shape
        parameters = self._handle(a.torch_device.index, "cusolverDnCreateGesvdjInfo")
        whole = u.shape[2] == m and v.shape[2] == n

        first = self._at(a), m, self._at(s), self._at(u), m, self._at(v), n
        if count > 1 and max(m, n) <= _SMALL_JACOBI and whole:
            _kept, work, size = self._workspace("gesvdjBatched", a, 1, m, n, *first, after=(parameters, count))
            self._call("gesvdjBatched", a, 1, m, n, *first, work, size, self._at(info), parameters, count)
            return
        shape = (1, int(not whole), m, n)
        _kept, work, size = self._workspace("gesvdj", a, *shape, *first, after=(parameters,))
        self._each("gesvdj", a, ((*shape, x, m, w, p, m, q, n, work, size, status, parameters)
                                 for x, w, p, q, status in self._all(a, s, u, v, info)))

    def gesvd(self, a: DeviceArray, s: DeviceArray, u: DeviceArray, vh: DeviceArray, info: DeviceArray) -> None:
        """Singular value decompositions by QR iterations, for matrices with m ≥ n; A is overwritten.

        Args:
            vh: (batch, n, n), other than for `gesvdj` the conjugate transpose.
        """
        _, m, n = a.shape
        job = b"A" if u.shape[2] == m else b"S"
        _kept, work, size = self._workspace("gesvd", a, m, n)
        real = np.dtype(a.dtype.char.lower())
        rest = self._new(a, (max(n, 1),), real)
        at = self._at(rest)
        self._each("gesvd", a, ((job, b"A", m, n, x, m, w, p, m, q, n, work, size, at, status)
                                for x, w, p, q, status in self._all(a, s, u, vh, info)))


def _check(status: int, name: str) -> None:
    """Check what a function returns.

    Raises:
        RuntimeError: it failed (PyTorch's text).
    """
    if status:
        library, names = ("CUBLAS", _BLAS_STATUS) if name.startswith("cublas") else ("CUSOLVER", _SOLVER_STATUS)
        text = f"{library}_STATUS_{names[status]}" if status in names else str(status)
        raise RuntimeError(f"{'CUDA' if library == 'CUBLAS' else 'cusolver'} error: {text}, when calling `{name}`")


__all__ = ["LinearAlgebra"]
