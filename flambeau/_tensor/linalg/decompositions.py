"""Dense linear algebra: inverses, solvers, decompositions, eigenvalues and functions composed of them."""

from __future__ import annotations

from functools import wraps
from math import inf, prod
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.elementless_array import ElementlessArray
from ...engine.tensor_interface import layer
from ...errstate import run_in_quiet
from ...kernels import lapack
from ...modes import active_tracer, active_transforms, grad_mode, inference_used, special
from ...ops.declare import REGISTRY
from ...ops.linalg.matrix_checks import check_floating, check_matrices
from ...shapes import are_vectors, broadcast_shapes, wrap_dim
from ...warning_location import warn_once
from ..argument_errors.out_arguments import check_records_nothing
from ..dispatch.apply import apply
from ..dispatch.handlers import host_elements
from ..dispatch.out_tensors import copy_out, write_out
from ..dispatch.public_functions import public_function
from ..fastpath.repeated_calls import repeated
from ..return_types import _FIELDS, named
from ..shape.reshaping import reshaped
from ..tensor import Tensor, wrap

__all__ = [
    "cholesky", "det", "inverse", "linalg_cholesky", "linalg_cholesky_ex", "linalg_cond", "linalg_diagonal",
    "linalg_eigvals", "linalg_eigvalsh", "linalg_inv", "linalg_inv_ex", "linalg_lstsq", "linalg_lu_factor_ex",
    "linalg_matrix_rank", "linalg_pinv", "linalg_solve", "linalg_solve_ex", "linalg_svd", "linalg_svdvals",
    "linalg_tensorinv", "linalg_tensorsolve", "linalg_vander", "logdet", "matrix_exp", "pinverse", "qr",
    "slogdet", "svd",
]


_CHOLESKY = (
    "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a future PyTorch release.\n"
    "L = torch.cholesky(A)\nshould be replaced with\nL = torch.linalg.cholesky(A)\nand\n"
    "U = torch.cholesky(A, upper=True)\nshould be replaced with\nU = torch.linalg.cholesky(A).mH\n"
    "This transform will produce equivalent results for all valid (symmetric positive definite) inputs.")
_QR = ("torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future PyTorch release.\nThe "
       "boolean parameter 'some' has been replaced with a string parameter 'mode'.\nQ, R = torch.qr(A, some)\nshould "
       "be replaced with\nQ, R = torch.linalg.qr(A, 'reduced' if some else 'complete')")


class LinAlgError(RuntimeError):
    """Raised for a matrix that has no such decomposition or inverse."""


LinAlgError.__name__ = LinAlgError.__qualname__ = "_LinAlgError"


def _write_out(result: Any, out: Any, called: str = "", function: str = "", name: str = "result") -> Any:
    """The result, or `out` with the result written to it: by PyTorch's operator `called`, or by a recorded copy.

    Args:
        function: of a function that is composed, and names itself and its result if `out` has too small a dtype.
        name: of that result.
    """
    if out is None:
        return result
    if function and not dtypes.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"{function}: Expected {name} to be safely castable from {result.dtype.scalar_name} dtype, "
                           f"but got {name} with dtype {out.dtype.scalar_name}")
    if not called:
        return copy_out(result, out)
    check_records_nothing(called, (result,), (out,))
    return write_out(REGISTRY["mm"], result.to(out.dtype) if function else result, out)


def _first_failure(info: Tensor) -> tuple[str, int] | None:
    """The first failure in LAPACK's `info`: (its position as text, its code); None if there is none."""
    if special[0]:
        from ..dispatch.batched_tensor import BatchedTensor

        if type(info) is BatchedTensor:
            info = info._value
        elif active_tracer.get() is not None:
            bool(info.any())  # a guard of the program: its calls fail as this one does
    a = host_elements(info)
    if isinstance(a, ElementlessArray) or not np.logical_or.reduce(a, None):  # `any` goes through a function of Python
        return None
    if a.ndim == 0:
        return "", int(a)
    flat = a.reshape(-1)
    at = int(flat.nonzero()[0][0])
    return f"(Batch element {at}): ", int(flat[at])


@repeated
def linalg_inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices, A⁻¹.

    Args:
        A: (..., n, n), floating point or complex.

    Raises:
        LinAlgError: A is singular.

    >>> import flambeau as torch
    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    inverse, info = apply(REGISTRY["linalg_inv_ex"], [A])
    failure = _first_failure(info)
    if failure is not None:
        raise LinAlgError(f"linalg.inv: {failure[0]}The diagonal element {failure[1]} is zero, the inversion could not "
                          "be completed because the input matrix is singular.")
    return _write_out(inverse, out, "linalg_inv_ex")


def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.inv`.

    >>> import flambeau as torch
    >>> torch.inverse(torch.eye(1) * 2)
    tensor([[0.5000]])
    """
    return linalg_inv(input, out=out)


@repeated
def linalg_solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """The solution X of A X = B, or of X A = B if not `left`.

    Args:
        A: (..., n, n).
        B: (..., n, k) or (..., n).

    Raises:
        LinAlgError: A is singular.

    >>> import flambeau as torch
    >>> torch.linalg.solve(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([1., 2.]))
    tensor([0.5000, 0.5000])
    """
    result, info = apply(REGISTRY["linalg_solve_ex"], [A, B], {"left": left})
    failure = _first_failure(info)
    if failure is not None:
        raise LinAlgError(f"torch.linalg.solve: {failure[0]}The solver failed because the input matrix is singular.")
    return _write_out(result, out, "_linalg_solve_ex")


@repeated
def linalg_cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """The Cholesky factor: L, lower triangular, with A = L Lᴴ.

    Args:
        A: (..., n, n), Hermitian and positive definite.
        upper: return Lᴴ.

    Raises:
        LinAlgError: A is not positive definite.

    >>> import flambeau as torch
    >>> torch.linalg.cholesky(torch.tensor([[4., 0.], [0., 9.]]))
    tensor([[2., 0.],
            [0., 3.]])
    """
    factor, info = apply(REGISTRY["linalg_cholesky_ex"], [A], {"upper": upper})
    failure = _first_failure(info)
    if failure is not None:
        raise LinAlgError(f"linalg.cholesky: {failure[0]}The factorization could not be completed because the input is "
                          f"not positive-definite (the leading minor of order {failure[1]} is not positive-definite).")
    return _write_out(factor, out, "linalg_cholesky_ex")


def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`linalg.cholesky`, which takes its place: this function is deprecated.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.cholesky(torch.eye(1) * 4)
    tensor([[2.]])
    """
    if not isinstance(input, Tensor):
        raise TypeError("cholesky(): argument 'input' must be Tensor")  # a guard says more
    if out is not None:
        check_records_nothing("cholesky", (input,), (out,))
    warn_once(_CHOLESKY)
    if out is not None:  # PyTorch's calls the function without
        warn_once(_CHOLESKY)
    factor, info = apply(REGISTRY["_cholesky"], [input], {"upper": upper})
    failure = _first_failure(info)
    if failure is not None:
        raise LinAlgError(f"cholesky: {failure[0]}The factorization could not be completed because the input is not "
                          f"positive-definite (the leading minor of order {failure[1]} is not positive-definite).")
    return _write_out(factor, out, "linalg_cholesky_ex", "cholesky")


def _checks_errors(key: str, message: str, error: type[RuntimeError] = LinAlgError) -> Any:
    """The function of an operator that returns LAPACK's `info` last, and raises with `check_errors`.

    Args:
        message: of a failure, with `{batch}` and `{code}`.
        error: its class.
    """
    generated = public_function(REGISTRY[key])

    @wraps(generated)
    def call(*args: Any, check_errors: bool = False, **named: Any) -> Any:
        result = generated(*args, check_errors=check_errors, **named)
        if check_errors:
            failure = _first_failure(result[-1])
            if failure is not None:
                raise error(message.format(batch=failure[0], code=failure[1]))
        return result

    return call


linalg_inv_ex = _checks_errors("linalg_inv_ex", "linalg.inv_ex: {batch}The diagonal element {code} is zero, the "
                               "inversion could not be completed because the input matrix is singular.")
linalg_solve_ex = _checks_errors("linalg_solve_ex", "torch.linalg.solve_ex: {batch}The solver failed because the input "
                                 "matrix is singular.")
linalg_cholesky_ex = _checks_errors("linalg_cholesky_ex", "linalg.cholesky_ex: {batch}The factorization could not be "
                                    "completed because the input is not positive-definite (the leading minor of order "
                                    "{code} is not positive-definite).")
linalg_lu_factor_ex = _checks_errors("linalg_lu_factor_ex", "torch.linalg.lu_factor_ex: {batch}U[{code},{code}] is "
                                     "zero and using it on lu_solve would result in a division by zero. If you still "
                                     "want to perform the factorization, consider calling linalg.lu(A, pivot) or "
                                     "linalg.lu_factor_ex(A, pivot)", RuntimeError)


# ----- determinants ----------------------------------------------------------------------


det = public_function(REGISTRY["linalg_det"])


def slogdet(input: Tensor, *, out: Any = None) -> Any:
    """`linalg.slogdet`.

    >>> import flambeau as torch
    >>> torch.slogdet(torch.tensor([[-1.]])).sign
    tensor(-1.)
    """
    result = public_function(REGISTRY["linalg_slogdet"])(input, out=out)
    return named("slogdet", _FIELDS["slogdet"], out is not None)(result)


matrix_exp = public_function(REGISTRY["linalg_matrix_exp"])


def logdet(input: Tensor) -> Tensor:
    """log(det(input)); nan where the determinant is negative.

    >>> import flambeau as torch
    >>> torch.logdet(torch.tensor([[1., 0.], [0., 1.]]))
    tensor(0.)
    """
    check_matrices("logdet", input, square=True)
    check_floating("logdet", input)
    fn = layer.functions
    sign, logarithm = apply(REGISTRY["linalg_slogdet"], [input])
    if input.dtype.is_complex:
        return fn.log(sign) + logarithm
    return fn.where(sign.detach() == -1, float("nan"), logarithm)


# ----- eigenvalues and singular values ---------------------------------------------------


_DOUBLES = (np.dtype(np.float32), np.dtype(np.float64))


def _values_alone(A: Any, compute: Any, *args: Any) -> Any:
    """Values without their vectors, where nothing is recorded and the matrices are plain; None elsewhere."""
    a = getattr(A, "_array", None)
    if special[0] or inference_used[0] or active_transforms[0] or a.__class__ is not np.ndarray or (
            a.dtype not in _DOUBLES or a.ndim < 2 or not a.size or (A._requires_grad and grad_mode.get())):
        return None
    return wrap(run_in_quiet(compute, (a, *args)))


def linalg_eigvalsh(A: Tensor, UPLO: str = "L", *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of a Hermitian matrix, ascending.

    >>> import flambeau as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[2., 0.], [0., 1.]]))
    tensor([1., 2.])
    """
    if out is None and UPLO in ("L", "U") and isinstance(A, Tensor) and A._array.shape[-2:] == A._array.shape[-1:] * 2:
        values: Tensor | None = _values_alone(A, lapack.eigvalsh, UPLO)
        if values is not None:
            return values
    if out is not None:
        check_records_nothing("_linalg_eigh", (A,), (out,))
        check_matrices("linalg.eigh", A, square=True)
        _check_dtype_of_values(A, out)
    return _write_out(apply(REGISTRY["linalg_eigh"], [A], {"UPLO": UPLO})[0], out, "_linalg_eigh")


def _check_dtype_of_values(A: Tensor, out: Tensor) -> None:
    """Check that `out=` has the dtype of real values of a matrix, before anything is computed."""
    dtype = A.dtype.to_real() if A.dtype.is_complex else A.dtype
    if A._array.ndim > 1 and isinstance(out, Tensor) and dtype.is_floating_point and out.dtype is not dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {dtypes.C_NAMES[dtype.name]}, but got "
                           f"{dtypes.C_NAMES[out.dtype.name]} instead")


def linalg_eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of a square matrix, complex.

    >>> import flambeau as torch
    >>> torch.linalg.eigvals(torch.tensor([[2.]]))
    tensor([2.+0.j])
    """
    if out is not None:
        check_records_nothing("linalg_eigvals", (A,), (out,))
    if out is not None or not (A._requires_grad and grad_mode.get()):  # else it is that of `linalg.eig`
        if out is None and not (A.dtype.is_floating_point or A.dtype.is_complex):
            raise RuntimeError(f"Unknown Complex ScalarType for {A.dtype.scalar_name}")
        check_matrices("linalg.eigvals", A, square=True)
    values = apply(REGISTRY["linalg_eig"], [A])[0]
    if out is not None:
        values = values.detach()
    return _write_out(values, out, "linalg_eigvals", "torch.linalg.eigvals", "eigenvalues")


def _check_driver(A: Tensor, driver: str | None) -> None:
    if driver is not None:
        check_matrices("linalg.svd", A)
        check_floating("linalg.svd", A, low=True)
    if driver is not None and A._array.size:
        raise RuntimeError("torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with "
                           "cuSOLVER backend.")


@wraps(public_function(REGISTRY["linalg_svd"]))
def linalg_svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    _check_driver(A, driver)
    return public_function(REGISTRY["linalg_svd"])(A, full_matrices, out=out)


def linalg_svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values, descending.

    Raises:
        RuntimeError: `driver` is given, which is for CUDA.

    >>> import flambeau as torch
    >>> torch.linalg.svdvals(torch.tensor([[3.], [4.]]))
    tensor([5.])
    """
    if out is not None:
        check_records_nothing("_linalg_svd", (A,), (out,))
        _check_dtype_of_values(A, out)
    _check_driver(A, driver)
    if out is None:
        values: Tensor | None = _values_alone(A, lapack.svdvals)
        if values is not None:
            return values
    return _write_out(apply(REGISTRY["linalg_svd"], [A], {"full_matrices": False})[1], out, "_linalg_svd")


def svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """The singular value decomposition (U, S, V), input = U diag(S) Vᴴ; `linalg.svd` returns Vᴴ.

    >>> import flambeau as torch
    >>> torch.svd(torch.tensor([[3.], [4.]])).S
    tensor([5.])
    """
    fn = layer.functions
    if input._array.ndim < 2:
        raise RuntimeError("linalg.svd: input should have at least 2 dimensions, but has "
                           f"{input._array.ndim} dimensions instead")
    check_floating("linalg.svd", input, low=True)
    u, s, vh = apply(REGISTRY["linalg_svd"], [input], {"full_matrices": not some})
    if not compute_uv:
        shape = input._array.shape
        u = fn.zeros((*shape[:-1], shape[-2]), dtype=input.dtype)
        vh = fn.zeros((*shape[:-2], shape[-1], shape[-1]), dtype=input.dtype)
    v = fn.transpose(vh, -2, -1).conj()
    result = (u, s, v)
    if out is not None:
        result = write_out(REGISTRY["linalg_svd"], list(result), out)
    return named("svd", _FIELDS["svd"], out is not None)(result)


def qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """`linalg.qr`, which takes its place: this function is deprecated.

    >>> import warnings
    >>> import flambeau as torch
    >>> with warnings.catch_warnings(action="ignore"):
    ...     torch.qr(torch.eye(1)).R.abs()
    tensor([[1.]])
    """
    if not isinstance(input, Tensor):
        raise TypeError("qr(): argument 'input' must be Tensor")  # a guard says more
    warn_once(_QR)
    result = apply(REGISTRY["linalg_qr"], [input], {"mode": "reduced" if some else "complete"})
    if out is not None:
        result = write_out(REGISTRY["linalg_qr"], list(result), out)
    return named("qr", _FIELDS["qr"], out is not None)(result)


def _epsilon(A: Tensor) -> float:
    """The machine epsilon of the real dtype of `A`."""
    if A._array.dtype.kind not in "fc" or A._array.dtype == dtypes.HALF:
        raise RuntimeError("This function doesn't handle types other than float and double")
    return dtypes.finfo(A.dtype.to_real()).eps


def _tolerances(A: Tensor, atol: Any, rtol: Any) -> tuple[Any, Any]:
    """The absolute and relative tolerances for singular values that count as 0, with defaults."""
    if rtol is None:
        rtol = _epsilon(A) * max(A._array.shape[-2:])
        if isinstance(atol, Tensor):
            rtol = layer.functions.where(atol > 0, 0.0, rtol)
        elif atol is not None and atol > 0:
            rtol = 0.0
    return (0.0 if atol is None else atol), rtol


def linalg_pinv(A: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None,
                out: Tensor | None = None) -> Tensor:
    """The Moore-Penrose inverse.

    Args:
        hermitian: assume that A is Hermitian.
        atol, rtol: singular values up to max(atol, rtol · σ₁) count as 0.

    >>> import flambeau as torch
    >>> torch.linalg.pinv(torch.tensor([[2.], [0.]]))
    tensor([[0.5000, 0.0000]])
    """
    kind = A._array.dtype
    if out is not None and A._array.ndim < 2:
        wrap_dim(-2, A._array.ndim)
    if A._array.ndim < 2 or kind.kind not in "fc" or kind == dtypes.HALF:
        raise RuntimeError(f"linalg.pinv({A.dtype.scalar_name}{{{list(A._array.shape)}}}): expected a tensor with 2 or "
                           "more dimensions of float, double, cfloat or cdouble types")
    for name, value in (("atol", atol), ("rcond", rcond), ("rtol", rtol)):
        if isinstance(value, Tensor) and value.dtype.is_complex:
            raise RuntimeError(f"torch.linalg.pinv: {name} tensor of complex type is not supported. Got "
                               f"{value.dtype.scalar_name}")
    if hermitian:
        check_matrices("linalg.eigh", A, square=True)
    low, rtol_value = _tolerances(A, atol, rcond if rcond is not None else rtol)
    return _write_out(_pseudoinverse(A, low, rtol_value, hermitian), out, "linalg_pinv", "linalg.pinv")


def _pseudoinverse(A: Tensor, atol: Any, rtol: Any, hermitian: bool) -> Tensor:
    op = REGISTRY["linalg_pinv"]
    if special[0]:
        from ..dispatch.batched_tensor import align_levels, expand_levels, is_batched, make_batched, vmap_levels

        if is_batched(atol, rtol):
            levels = vmap_levels([A, atol, rtol])
            low, rtol_value = (align_levels(x, levels, A._array.ndim - 2)._array if isinstance(x, Tensor) else x
                               for x in (atol, rtol))
            params = {"atol": low, "rtol": rtol_value, "hermitian": hermitian}
            return make_batched(apply(op, [expand_levels(A, levels)], params), levels)
    low, rtol_value = (x._array if isinstance(x, Tensor) else x for x in (atol, rtol))
    return apply(op, [A], {"atol": low, "rtol": rtol_value, "hermitian": hermitian})


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv`.

    >>> import flambeau as torch
    >>> torch.pinverse(torch.tensor([[2.], [0.]]))
    tensor([[0.5000, 0.0000]])
    """
    return linalg_pinv(input, rcond)


def linalg_matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None,
                       out: Tensor | None = None) -> Tensor:
    """The rank: the number of singular values greater than max(atol, rtol · σ₁).

    >>> import flambeau as torch
    >>> torch.linalg.matrix_rank(torch.eye(3))
    tensor(3)
    """
    check_matrices("torch.linalg.matrix_rank", A, "input")
    fn = layer.functions
    x = A.detach()
    low, rtol_value = _tolerances(A, atol, rtol) if tol is None else (None, None)
    if not A._array.size:
        return _write_out(fn.zeros(A._array.shape[:-2], dtype=dtypes.int64), out, "sum", "torch.linalg.matrix_rank")
    s = fn.abs(linalg_eigvalsh(x)) if hermitian else linalg_svdvals(x)
    if tol is not None:
        limit = tol if isinstance(tol, Tensor) else fn.full((), float(tol), dtype=s.dtype)
    else:
        absolute, relative = (x.to(s.dtype) if isinstance(x, Tensor) else fn.full((), x, dtype=s.dtype)
                              for x in (low, rtol_value))
        limit = fn.maximum(absolute, relative * fn.amax(s, -1))
    return _write_out(fn.sum(s > fn.unsqueeze(limit, -1), -1), out, "sum", "torch.linalg.matrix_rank")


def linalg_cond(A: Tensor, p: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number, ‖A‖ₚ ‖A⁻¹‖ₚ.

    >>> import flambeau as torch
    >>> torch.linalg.cond(torch.eye(2))
    tensor(1.)
    """
    fn, called = layer.functions, f"linalg.cond(ord={p:g})" if isinstance(p, (int, float)) else f"linalg.cond(ord={p})"
    if isinstance(p, str):
        check_matrices(called, A, square=True)
    elif A._array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in (None, 2, -2, "fro", "nuc", inf, -inf, 1, -1):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not A._array.size:
        none = fn.zeros(A._array.shape[:-2], dtype=A.dtype.to_real())
        return _write_out(none, out, function="linalg.cond")
    if p in (None, 2, -2):
        s = linalg_svdvals(A)
        low, high = fn.narrow(s, -1, -1, 1), fn.narrow(s, -1, 0, 1)
        return _write_out(fn.squeeze(low / high if p == -2 else high / low, -1), out, function="linalg.cond")
    check_matrices(called, A, square=True)
    if p == "nuc":  # whose norms ask for singular values first
        check_floating("linalg.svd", A, low=True)
        if A._array.dtype in dtypes.NARROW:
            raise NotImplementedError(f"\"linalg_svd_cpu\" not implemented for '{A.dtype.scalar_name}'")
    inverse, info = apply(REGISTRY["linalg_inv_ex"], [A])
    failed = _first_failure(info) is not None
    if failed:
        inverse = fn.where((info != 0)[..., None, None], 0, inverse)
    result = fn.linalg_matrix_norm(A, p) * fn.linalg_matrix_norm(inverse, p)
    if failed:
        result = fn.where(info != 0, inf, result)
    return _write_out(result, out, function="linalg.cond")


# ----- least squares and shapes ----------------------------------------------------------


def linalg_lstsq(input: Tensor, b: Tensor, rcond: float | None = None, *, driver: str | None = None,
                 out: Any = None) -> Any:
    """The minimum-norm least-squares solution of A X = B, with residuals, rank and singular values.

    Args:
        input, b: A and B.
        rcond: singular values up to `rcond` times the largest count as 0.
        driver: the LAPACK driver, on which the results other than the solution depend; on CUDA devices gels.

    Raises:
        RuntimeError: shapes do not fit, or there is no such driver.
        LinAlgError: the driver is gels, and a matrix does not have full rank.

    >>> import flambeau as torch
    >>> torch.linalg.lstsq(torch.tensor([[2.], [0.]]), torch.tensor([[4.], [1.]])).solution
    tensor([[2.]])
    """
    if input._array.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    a, sizes = input._array.shape, b._array.shape
    if not sizes:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if input.dtype is not b.dtype:
        raise RuntimeError("torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
                           f"{input.dtype.scalar_name} and other's dtype {b.dtype.scalar_name}")
    if not 0 <= len(a) - len(sizes) <= 1:
        raise RuntimeError("torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - "
                           "other.dim()) <= 1")
    at = -1 if len(sizes) == 1 or are_vectors(a, sizes) else -2
    if a[-2] != sizes[at]:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({at})")
    broadcast_shapes(a[:-2], sizes[:len(a) - 2])
    if input._device.type == "cuda":
        if driver not in (None, "gels"):
            raise RuntimeError("torch.linalg.lstsq: parameter `driver` other than `gels` is not supported on CUDA")
        driver = "gels"
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    relative = _epsilon(input) * max(a[-2:]) if rcond is None else rcond
    try:
        result = apply(REGISTRY["_linalg_lstsq"], [input, b], {"rcond": relative, "driver": driver or "gelsy"})
    except np.linalg.LinAlgError as error:
        raise LinAlgError(str(error)) from None
    batch = input._array.shape[:-2]
    result[2], result[3] = _one_for_each(result[2], batch), _one_for_each(result[3].detach(), batch)
    if out is not None:
        result = write_out(REGISTRY["_linalg_lstsq"], result, out)
    return named("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"), out is not None)(result)


def _one_for_each(result: Tensor, batch: tuple[int, ...]) -> Tensor:
    """What depends on the first operand alone, for each of its matrices: `result` has those of the broadcast batch."""
    shape = result._array.shape
    if not result._array.size or shape[: len(batch)] == batch:
        return result
    for dim, size in enumerate(batch):
        if size != shape[dim]:
            result = layer.functions.narrow(result, dim, 0, 1)
    return result.clone()


def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, a view.

    >>> import flambeau as torch
    >>> torch.linalg.diagonal(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """
    return layer.functions.diagonal(A, offset, dim1, dim2)


def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The Vandermonde matrix, x[i]ʲ for j < N (default: the number of elements of x).

    >>> import flambeau as torch
    >>> torch.linalg.vander(torch.tensor([2, 3]))
    tensor([[1, 2],
            [1, 3]])
    """
    fn = layer.functions
    if x.dtype in (dtypes.bool_, dtypes.float16, dtypes.bfloat16):
        raise RuntimeError("linalg.vander supports floating point, complex, and integer tensors, but got "
                           f"{x.dtype.scalar_name}")
    if not x._array.ndim:
        x = fn.unsqueeze(x, 0)
    n = x._array.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError("N must be greater than 1.")
    column = fn.unsqueeze(x, -1)
    powers = fn.cumprod(fn.expand(column, (*x._array.shape, n - 1)), -1)
    return fn.cat([fn.ones_like(fn.select(powers, -1, 0)).unsqueeze(-1), powers], -1)


def linalg_tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse of A as a linear map from its last dimensions to its first `ind` (`tensordot`).

    >>> import flambeau as torch
    >>> torch.linalg.tensorinv(torch.eye(4).reshape(2, 2, 4), ind=2).shape
    flambeau.Size([4, 2, 2])
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = A._array.shape
    if ind > len(shape):
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {len(shape)}")
    rows, columns = shape[:ind], shape[ind:]
    if prod(rows) != prod(columns):
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), "
                           f"but got {prod(columns)} != {prod(rows)}")
    inverse = linalg_inv(reshaped(A, (prod(rows), prod(columns))))
    return _write_out(reshaped(inverse, (*columns, *rows)), out, function="tensorinv")


def linalg_tensorsolve(input: Tensor, other: Tensor, dims: Any = None, *, out: Tensor | None = None) -> Tensor:
    """The solution X of tensordot(input, X, X.ndim) = other.

    >>> import flambeau as torch
    >>> torch.linalg.tensorsolve(torch.eye(4).reshape(2, 2, 4), torch.ones(2, 2))
    tensor([1., 1., 1., 1.])
    """
    fn = layer.functions
    if dims is not None:
        d = input._array.ndim
        moved = [wrap_dim(i, d) for i in dims]
        input = fn.permute(input, [*(i for i in range(d) if i not in moved), *moved])
    shape = input._array.shape
    columns = shape[other._array.ndim:]
    rows = prod(other._array.shape)
    if prod(columns) != rows:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
                           f"prod(self.shape[:other.ndim]), but got {prod(columns)} != {rows}")
    solution = linalg_solve(reshaped(input, (rows, prod(columns))), reshaped(other, (rows,)))
    return _write_out(reshaped(solution, columns), out, function="tensorsolve")


METHODS: dict[str, Any] = {"inverse": inverse, "cholesky": cholesky, "det": det, "slogdet": slogdet, "logdet": logdet,
                           "svd": svd, "qr": qr, "pinverse": pinverse, "matrix_exp": matrix_exp}
