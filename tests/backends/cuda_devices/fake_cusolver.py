"""cuSOLVER, and cuBLAS's solvers, without a GPU: what flambeau calls, by SciPy, on the memory of `fake_cupy`.

Prototypes are those of CUDA 13's `cusolverDn.h` and `cublas_api.h`. Matrices are column-major.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.backends.cuda_devices.c_functions import CFunction, c_function, store

_OPAQUE = ("cusolverDnHandle_t", "cublasHandle_t", "cudaStream_t", "gesvdjInfo_t", "syevjInfo_t")
_DTYPES = {"S": "f4", "D": "f8", "C": "c8", "Z": "c16"}
_WORK = 64
_INT = np.dtype(np.int32)


class _Memory:
    """Arrays in the memory of the stand-in for a GPU."""

    def __init__(self, state: Any, letter: str) -> None:
        self.state, self.dtype = state, np.dtype(_DTYPES[letter])
        self.real = np.dtype(self.dtype.char.lower())

    def matrix(self, address: int, rows: int, columns: int, leading: int, dtype: Any = None) -> np.ndarray:
        """A column-major matrix."""
        dtype = self.dtype if dtype is None else np.dtype(dtype)
        assert leading >= max(rows, 1)
        assert not address % dtype.itemsize
        data = self.state.bytes_at(address, ((columns - 1) * leading + rows) * dtype.itemsize)
        return np.ndarray((rows, columns), dtype, data, 0, (dtype.itemsize, leading * dtype.itemsize))

    def vector(self, address: int, n: int, dtype: Any = None) -> np.ndarray:
        """A vector."""
        return self.matrix(address, n, 1, max(n, 1), dtype)[:, 0]

    def addresses(self, address: int, count: int) -> list[int]:
        """A table of addresses."""
        return [int(each) for each in self.vector(address, count, np.int64)]

    def works(self, address: int, size: int) -> None:
        """Check and overwrite memory that a function works in."""
        assert size >= _WORK
        self.vector(address, size)[...] = np.nan


def _swaps(pivots: np.ndarray) -> list[int]:
    return [int(each) - 1 for each in pivots]


def fake_cusolver(state: Any) -> Any:
    """The library; `state` is that of the module of `fake_cupy`."""
    made: list[CFunction] = []
    streams: dict[int, int] = {}
    state.unconverged = 0  # the `info` of Jacobi methods

    def add(prototype: str, function: Any) -> None:
        made.append(c_function(prototype, *_OPAQUE)(function))

    def create(handle):
        number = 0x9000 + 16 * len(streams)
        streams[number] = 0
        store(handle, number)
        return 0

    for name in ("Create(cusolverDnHandle_t *handle)", "CreateSyevjInfo(syevjInfo_t *info)",
                 "CreateGesvdjInfo(gesvdjInfo_t *info)"):
        add(f"cusolverStatus_t cusolverDn{name}", create)

    def set_stream(handle, stream):
        streams[handle] = stream
        return 0

    add("cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t streamId)", set_stream)
    for letter in "SDCZ":
        _add_solver(letter, _Memory(state, letter), add, lambda handle, work: state.submit(streams[handle], work))
    return SimpleNamespace(**{each.name: each for each in made})


def _add_solver(letter: str, at: _Memory, add: Any, submit: Any) -> None:
    from scipy.linalg import get_lapack_funcs

    is_complex = letter in "CZ"

    def lapack(name: str) -> Any:
        return get_lapack_funcs((name,), dtype=at.dtype)[0]

    def function(name: str, parameters: str) -> Any:
        """A decorator: the function works on the handle's stream."""
        def decorate(work: Any) -> Any:
            def call(handle, *args):
                submit(handle, lambda: work(*args))
                return 0

            add(f"cusolverStatus_t cusolverDn{letter}{name}(cusolverDnHandle_t handle, {parameters})", call)
            return work

        return decorate

    def query(name: str, parameters: str, place: int = -1) -> None:
        def call(handle, *args):
            store(args[place], _WORK, ctypes.c_int)
            return 0

        add(f"cusolverStatus_t cusolverDn{letter}{name}_bufferSize(cusolverDnHandle_t handle, {parameters})", call)

    orgqr, ormqr, syevd, syevj = (("ungqr", "unmqr", "heevd", "heevjBatched") if is_complex else
                                  ("orgqr", "ormqr", "syevd", "syevjBatched"))
    query("potrf", "cublasFillMode_t uplo, int n, float *A, int lda, int *Lwork")
    query("getrf", "int m, int n, float *A, int lda, int *Lwork")
    query("geqrf", "int m, int n, float *A, int lda, int *lwork")
    query(orgqr, "int m, int n, int k, const float *A, int lda, const float *tau, int *lwork")
    query(ormqr, "cublasSideMode_t side, cublasOperation_t trans, int m, int n, int k, const float *A, int lda, "
          "const float *tau, const float *C, int ldc, int *lwork")
    query(syevd, "cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, const float *A, int lda, const float *W, "
          "int *lwork")
    query(syevj, "cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, const float *A, int lda, const float *W, "
          "int *lwork, syevjInfo_t params, int batchSize", -3)
    query("gesvdj", "cusolverEigMode_t jobz, int econ, int m, int n, const float *A, int lda, const float *S, "
          "const float *U, int ldu, const float *V, int ldv, int *lwork, gesvdjInfo_t params", -2)
    query("gesvdjBatched", "cusolverEigMode_t jobz, int m, int n, const float *A, int lda, const float *S, "
          "const float *U, int ldu, const float *V, int ldv, int *lwork, gesvdjInfo_t params, int batchSize", -3)
    query("gesvd", "int m, int n, int *lwork")

    def factor(address, uplo, n, lda, info):
        a = at.matrix(address, n, n, lda)
        assert uplo in (0, 1)
        found, status = lapack("potrf")(np.array(a), lower=uplo == 0, clean=0)
        a[...] = found
        info[...] = status

    @function("potrf", "cublasFillMode_t uplo, int n, float *A, int lda, float *Workspace, int Lwork, int *devInfo")
    def _(uplo, n, a, lda, work, size, info):
        at.works(work, size)
        factor(a, uplo, n, lda, at.vector(info, 1, _INT))

    @function("potrfBatched", "cublasFillMode_t uplo, int n, float *Aarray[], int lda, int *infoArray, int batchSize")
    def _(uplo, n, table, lda, info, count):
        for i, each in enumerate(at.addresses(table, count)):
            factor(each, uplo, n, lda, at.vector(info, count, _INT)[i:i + 1])

    @function("getrf", "int m, int n, float *A, int lda, float *Workspace, int *devIpiv, int *devInfo")
    def _(m, n, a, lda, work, pivots, info):
        at.works(work, _WORK)
        lu(at, lapack("getrf"), at.matrix(a, m, n, lda), pivots, at.vector(info, 1, _INT))

    @function("getrs", "cublasOperation_t trans, int n, int nrhs, const float *A, int lda, const int *devIpiv, "
              "float *B, int ldb, int *devInfo")
    def _(trans, n, nrhs, a, lda, pivots, b, ldb, info):
        solve(at, lapack("getrs"), trans, n, nrhs, a, lda, at.vector(pivots, n, _INT), b, ldb)
        at.vector(info, 1, _INT)[...] = 0

    @function("geqrf", "int m, int n, float *A, int lda, float *TAU, float *Workspace, int Lwork, int *devInfo")
    def _(m, n, a, lda, tau, work, size, info):
        at.works(work, size)
        qr(at, lapack("geqrf"), m, n, a, lda, tau)
        at.vector(info, 1, _INT)[...] = 0

    @function(orgqr, "int m, int n, int k, float *A, int lda, const float *tau, float *work, int lwork, int *info")
    def _(m, n, k, a, lda, tau, work, size, info):
        assert m >= n >= k
        at.works(work, size)
        matrix = at.matrix(a, m, n, lda)
        matrix[...] = lapack(orgqr)(np.array(matrix), np.array(at.vector(tau, k)))[0]
        at.vector(info, 1, _INT)[...] = 0

    @function(ormqr, "cublasSideMode_t side, cublasOperation_t trans, int m, int n, int k, const float *A, int lda, "
              "const float *tau, float *C, int ldc, float *work, int lwork, int *devInfo")
    def _(side, trans, m, n, k, a, lda, tau, c, ldc, work, size, info):
        assert trans in ((0, 2) if is_complex else (0, 1))
        at.works(work, size)
        result = at.matrix(c, m, n, ldc)
        result[...] = lapack(ormqr)("RL"[side == 0], "NTC"[trans], np.array(at.matrix(a, n if side else m, k, lda)),
                                    np.array(at.vector(tau, k)), np.array(result), 64 * max(m, n, 1))[0]
        at.vector(info, 1, _INT)[...] = 0

    def eigenvalues(uplo, matrix, values, info):
        found, vectors, status = lapack(syevd)(np.array(matrix), lower=uplo == 0)
        values[...], matrix[...], info[...] = found, vectors, status

    @function(syevd, "cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, float *A, int lda, float *W, float *work, "
              "int lwork, int *info")
    def _(jobz, uplo, n, a, lda, w, work, size, info):
        assert jobz == 1
        at.works(work, size)
        eigenvalues(uplo, at.matrix(a, n, n, lda), at.vector(w, n, at.real), at.vector(info, 1, _INT))

    @function(syevj, "cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, float *A, int lda, float *W, float *work, "
              "int lwork, int *info, syevjInfo_t params, int batchSize")
    def _(jobz, uplo, n, a, lda, w, work, size, info, params, count):
        assert params
        at.works(work, size)
        for i in range(count):
            eigenvalues(uplo, at.matrix(a + i * n * lda * at.dtype.itemsize, n, n, lda),
                        at.vector(w + i * n * at.real.itemsize, n, at.real), at.vector(info, count, _INT)[i:i + 1])

    def singular(whole, m, n, a, lda, s, u, ldu, v, ldv):
        k = min(m, n)
        found = np.linalg.svd(np.array(at.matrix(a, m, n, lda)), full_matrices=whole)
        at.matrix(u, m, m if whole else k, ldu)[...] = found[0]
        at.vector(s, k, at.real)[...] = found[1]
        at.matrix(v, n, n if whole else k, ldv)[...] = found[2].conj().T
        at.matrix(a, m, n, lda)[...] = np.nan

    @function("gesvdj", "cusolverEigMode_t jobz, int econ, int m, int n, float *A, int lda, float *S, float *U, "
              "int ldu, float *V, int ldv, float *work, int lwork, int *info, gesvdjInfo_t params")
    def _(jobz, econ, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, params):
        assert jobz == 1
        at.works(work, size)
        singular(not econ, m, n, a, lda, s, u, ldu, v, ldv)
        at.vector(info, 1, _INT)[...] = at.state.unconverged

    @function("gesvdjBatched", "cusolverEigMode_t jobz, int m, int n, float *A, int lda, float *S, float *U, int ldu, "
              "float *V, int ldv, float *work, int lwork, int *info, gesvdjInfo_t params, int batchSize")
    def _(jobz, m, n, a, lda, s, u, ldu, v, ldv, work, size, info, params, count):
        assert max(m, n) <= 32
        at.works(work, size)
        item = at.dtype.itemsize
        for i in range(count):
            singular(True, m, n, a + i * lda * n * item, lda, s + i * min(m, n) * at.real.itemsize,
                     u + i * ldu * m * item, ldu, v + i * ldv * n * item, ldv)
        at.vector(info, count, _INT)[...] = 0

    @function("gesvd", "signed char jobu, signed char jobvt, int m, int n, float *A, int lda, float *S, float *U, int "
              "ldu, float *VT, int ldvt, float *work, int lwork, float *rwork, int *info")
    def _(jobu, jobvt, m, n, a, lda, s, u, ldu, vt, ldvt, work, size, rest, info):
        assert m >= n
        assert jobvt == b"A"
        at.works(work, size)
        at.vector(rest, max(n, 1), at.real)[...] = np.nan
        found = np.linalg.svd(np.array(at.matrix(a, m, n, lda)), full_matrices=jobu == b"A")
        at.matrix(u, m, m if jobu == b"A" else n, ldu)[...] = found[0]
        at.vector(s, n, at.real)[...] = found[1]
        at.matrix(vt, n, n, ldvt)[...] = found[2]
        at.vector(info, 1, _INT)[...] = 0


def lu(at: _Memory, getrf: Any, a: np.ndarray, pivots: int, info: np.ndarray) -> None:
    """LU factors, with pivoting if there is an address of pivots."""
    k = min(a.shape)
    if pivots:
        found, order, status = getrf(np.array(a))
        a[...], info[...] = found, status
        at.vector(pivots, k, _INT)[...] = order + 1
        return
    info[...] = 0
    for i in range(k):
        if a[i, i] == 0 and not info[0]:
            info[...] = i + 1
        a[i + 1:, i] /= a[i, i]
        a[i + 1:, i + 1:] -= np.outer(a[i + 1:, i], a[i, i + 1:])


def solve(at: _Memory, getrs: Any, trans: int, n: int, nrhs: int, a: int, lda: int, pivots: np.ndarray, b: int,
          ldb: int) -> None:
    """Solutions by LU factors."""
    sides = at.matrix(b, n, nrhs, ldb)
    sides[...] = getrs(np.array(at.matrix(a, n, n, lda)), np.array(pivots) - 1, np.array(sides), trans=trans)[0]


def qr(at: _Memory, geqrf: Any, m: int, n: int, a: int, lda: int, tau: int) -> None:
    """R and reflectors."""
    matrix = at.matrix(a, m, n, lda)
    found, factors, _, _ = geqrf(np.array(matrix))
    matrix[...] = found
    at.vector(tau, min(m, n))[...] = factors


def fake_blas_solvers(state: Any, cublas: Any) -> Any:
    """The functions of cuBLAS that solve and factor.

    Args:
        state: that of the module of `fake_cupy`.
        cublas: the functions that there are, among which is that which sets streams.
    """
    made: list[CFunction] = []
    streams: dict[int, int] = {}
    original = cublas.cublasSetStream_v2.function

    def set_stream(handle, stream):
        streams[handle] = stream
        return original(handle, stream)

    cublas.cublasSetStream_v2.function = set_stream

    def add(prototype: str, function: Any) -> None:
        made.append(c_function(prototype, *_OPAQUE)(function))

    for letter in "SDCZ":
        _add_blas(letter, _Memory(state, letter), add, lambda handle, work: state.submit(streams[handle], work))
    return SimpleNamespace(**{each.name: each for each in made})


def _add_blas(letter: str, at: _Memory, add: Any, submit: Any) -> None:
    from scipy.linalg import get_lapack_funcs, solve_triangular

    def lapack(name: str) -> Any:
        return get_lapack_funcs((name,), dtype=at.dtype)[0]

    def function(name: str, parameters: str) -> Any:
        def decorate(work: Any) -> Any:
            def call(handle, *args):
                submit(handle, lambda: work(*args))
                return 0

            add(f"cublasStatus_t cublas{letter}{name}(cublasHandle_t handle, {parameters})", call)
            return work

        return decorate

    def triangular(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb):
        assert side == 0
        sides = at.matrix(b, m, n, ldb)
        matrix = np.array(at.matrix(a, m, m, lda))
        if not diag and not matrix.diagonal().all():
            matrix[range(m), range(m)] = np.nan
        sides[...] = solve_triangular(matrix, np.array(sides), trans=trans, lower=uplo == 0, unit_diagonal=bool(diag),
                                      check_finite=False)

    @function("trsm_v2", "cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t "
              "diag, int m, int n, const float* alpha, const float* A, int lda, float* B, int ldb")
    def _(*args):
        triangular(*args)

    @function("trsmBatched", "cublasSideMode_t side, cublasFillMode_t uplo, cublasOperation_t trans, cublasDiagType_t "
              "diag, int m, int n, const float* alpha, const float* const A[], int lda, float* const B[], int ldb, "
              "int batchCount")
    def _(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb, count):
        for x, y in zip(at.addresses(a, count), at.addresses(b, count), strict=True):
            triangular(side, uplo, trans, diag, m, n, alpha, x, lda, y, ldb)

    @function("getrfBatched", "int n, float* const A[], int lda, int* P, int* info, int batchSize")
    def _(n, a, lda, pivots, info, count):
        for i, each in enumerate(at.addresses(a, count)):
            lu(at, lapack("getrf"), at.matrix(each, n, n, lda), pivots and pivots + 4 * n * i,
               at.vector(info, count, _INT)[i:i + 1])

    @function("getrsBatched", "cublasOperation_t trans, int n, int nrhs, const float* const Aarray[], int lda, "
              "const int* devIpiv, float* const Barray[], int ldb, int* info, int batchSize")
    def _(trans, n, nrhs, a, lda, pivots, b, ldb, info, count):
        order = at.vector(pivots, n * count, _INT)
        for i, (x, y) in enumerate(zip(at.addresses(a, count), at.addresses(b, count), strict=True)):
            solve(at, lapack("getrs"), trans, n, nrhs, x, lda, order[n * i:n * i + n], y, ldb)

    @function("geqrfBatched", "int m, int n, float* const Aarray[], int lda, float* const TauArray[], int* info, "
              "int batchSize")
    def _(m, n, a, lda, tau, info, count):
        for x, y in zip(at.addresses(a, count), at.addresses(tau, count), strict=True):
            qr(at, lapack("geqrf"), m, n, x, lda, y)
