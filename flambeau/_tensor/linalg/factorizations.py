"""LU and LDL factorizations, triangular systems, and the functions that PyTorch deprecated in their favor."""

from __future__ import annotations

from typing import Any

from ...ops.declare import REGISTRY
from ...warning_location import warn_once
from ..argument_errors.out_arguments import check_records_nothing
from ..dispatch.apply import apply
from ..dispatch.out_tensors import write_out
from ..dispatch.public_functions import public_function
from ..return_types import _FIELDS, named, result_class
from ..tensor import Tensor
from .decompositions import _first_failure

__all__ = ["linalg_ldl_factor", "linalg_lu", "linalg_lu_factor", "lu", "lu_solve", "lu_unpack", "orgqr",
           "triangular_solve"]

_LU = ("torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and will "
       "be removed in a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\nshould be replaced "
       "with\nLU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\nLU, pivots, info = torch.lu(A, "
       "compute_pivots, get_infos=True)\nshould be replaced with\nLU, pivots, info = "
       "torch.linalg.lu_factor_ex(A, compute_pivots)")
_LU_SOLVE = ("torch.lu_solve is deprecated in favor of torch.linalg.lu_solveand will be removed in a "
             "future PyTorch release.\nNote that torch.linalg.lu_solve has its arguments reversed.\nX = "
             "torch.lu_solve(B, LU, pivots)\nshould be replaced with\nX = torch.linalg.lu_solve(LU, pivots, B)")
_TRIANGULAR_SOLVE = ("torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be "
                     "removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its arguments "
                     "reversed and does not return a copy of one of the inputs.\nX = torch.triangular_solve(B, "
                     "A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B).")
#: the warnings of deprecated functions, each given once in a process
DEPRECATIONS = (_LU, _LU_SOLVE, _TRIANGULAR_SOLVE)


def _named(name: str, operator: str, values: list[Tensor], out: Any) -> Any:
    """The results as a named tuple, or `out` with the results written to it."""
    if out is not None:
        check_records_nothing(operator, values, out)
        values = write_out(REGISTRY[operator], values, out)
    fields = _FIELDS.get(name) or REGISTRY[operator].outputs
    assert fields is not None
    return named(name, fields, out is not None)(values)


def linalg_lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """The LU factorization with partial pivoting, A = P L U.

    Args:
        A: (..., m, n).
        pivot: must be True; without pivoting there is no implementation on CPUs.

    Returns:
        P: (..., m, m), a permutation; L: (..., m, k), lower triangular with ones on the diagonal; U: (..., k, n), upper
        triangular; k = min(m, n).

    >>> import flambeau as torch
    >>> torch.linalg.lu(torch.tensor([[1., 2.], [2., 2.]])).U
    tensor([[2., 2.],
            [0., 1.]])
    """
    p, low, up = apply(REGISTRY["linalg_lu"], [A], {"pivot": pivot})
    return _named("linalg_lu", "linalg_lu", [p.detach(), low, up], out)


def linalg_lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """The LU factorization in compact form: L below the diagonal and U from it on, and the swapped rows.

    Args:
        A: (..., m, n).
        pivot: must be True; without pivoting there is no implementation on CPUs.

    Raises:
        RuntimeError: U has a zero on its diagonal.

    >>> import flambeau as torch
    >>> torch.linalg.lu_factor(torch.tensor([[1., 2.], [2., 2.]])).pivots
    tensor([2, 2], dtype=flambeau.int32)
    """
    result, pivots, info = apply(REGISTRY["linalg_lu_factor_ex"], [A], {"pivot": pivot})
    failure = _first_failure(info)
    if failure is not None:
        raise RuntimeError(f"torch.linalg.lu_factor: {failure[0]}U[{failure[1]},{failure[1]}] is zero and using it on "
                           "lu_solve would result in a division by zero. If you still want to perform the "
                           "factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)")
    return _named("linalg_lu_factor", "linalg_lu_factor_ex", [result, pivots], out)


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *,
              out: Any = None) -> Any:
    """The factors P, L and U of a factorization in compact form.

    Args:
        LU_data, LU_pivots: the results of `linalg.lu_factor`.
        unpack_data: whether L and U are returned; else empty tensors.
        unpack_pivots: whether P is returned; else an empty tensor.

    >>> import flambeau as torch
    >>> torch.lu_unpack(*torch.linalg.lu_factor(torch.tensor([[1., 2.], [2., 2.]]))).L
    tensor([[1.0000, 0.0000],
            [0.5000, 1.0000]])
    """
    p, low, up = apply(REGISTRY["_lu_unpack"], [LU_data, LU_pivots], {
        "unpack_data": unpack_data, "unpack_pivots": unpack_pivots})
    if not unpack_data:
        low, up = low.detach(), up.detach()
    return _named("lu_unpack", "_lu_unpack", [p.detach(), low, up], out)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """`linalg.lu_factor`, or `linalg.lu_factor_ex` with `get_infos`. Deprecated.

    >>> import warnings
    >>> import flambeau as torch
    >>> warnings.simplefilter("ignore")
    >>> torch.lu(torch.tensor([[1., 2.], [2., 2.]]))[1]
    tensor([2, 2], dtype=flambeau.int32)
    """
    result = apply(REGISTRY["linalg_lu_factor_ex"], [A], {"pivot": pivot})
    warn_once(_LU)
    if out is not None:
        if len(out) - int(get_infos) != 2:
            raise TypeError(f"expected tuple of {2 + int(get_infos)} elements but got {len(out)}")
        for target, x in zip(out, result, strict=False):
            target.resize_as_(x).copy_(x)
        return out
    return result_class("_lu_with_info", _FIELDS["_lu_with_info"])(result) if get_infos else tuple(result[:2])


def _lu_method(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """`torch.lu`."""
    return tuple(lu(self, pivot=pivot, get_infos=get_infos))


def _check_types(name: str, *args: Any) -> None:
    """Check the arguments of a deprecated function, tensors before bools, before it warns.

    Raises:
        TypeError: one has another type; a guard says more.
    """
    if not all(isinstance(x, (Tensor, bool)) for x in args):
        raise TypeError(f"{name}(): an argument has a wrong type")


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.lu_solve`, with its arguments in another order. Deprecated.

    >>> import warnings
    >>> import flambeau as torch
    >>> warnings.simplefilter("ignore")
    >>> torch.lu_solve(torch.tensor([[4.]]), *torch.linalg.lu_factor(torch.tensor([[2.]])))
    tensor([[2.]])
    """
    _check_types("lu_solve", b, LU_data, LU_pivots)
    warn_once(_LU_SOLVE)
    return public_function(REGISTRY["linalg_lu_solve"])(LU_data, LU_pivots, b, out=out)


def linalg_ldl_factor(A: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """The factorization A = L D Lᵀ of a symmetric matrix, or A = L D Lᴴ of a Hermitian one, in compact form.

    Args:
        A: (..., n, n), of which the lower triangle is read.
        hermitian: whether A is Hermitian.

    Raises:
        RuntimeError: D has a zero block.

    >>> import flambeau as torch
    >>> torch.linalg.ldl_factor(torch.tensor([[2., 2.], [2., 4.]])).LD
    tensor([[2., 0.],
            [1., 2.]])
    """
    result, pivots, info = apply(REGISTRY["linalg_ldl_factor_ex"], [A], {"hermitian": hermitian})
    failure = _first_failure(info)
    if failure is not None:
        raise RuntimeError(f"torch.linalg.ldl_factor: Unknown error code: {failure[1]}.")
    return _named("linalg_ldl_factor", "linalg_ldl_factor_ex", [result, pivots], out)


def orgqr(input: Tensor, input2: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.householder_product`.

    >>> import flambeau as torch
    >>> torch.orgqr(*torch.geqrf(torch.tensor([[3.], [4.]])))
    tensor([[-0.6000],
            [-0.8000]])
    """
    return public_function(REGISTRY["linalg_householder_product"])(input, input2, out=out)


def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False, *,
                     out: Any = None) -> Any:
    """The solution X of A X = b with triangular A, and a copy of A. Deprecated: use `linalg.solve_triangular`.

    Args:
        upper: the triangle of A that is read.
        transpose: whether Aᵀ takes the place of A.
        unitriangular: whether the diagonal counts as ones.

    >>> import warnings
    >>> import flambeau as torch
    >>> warnings.simplefilter("ignore")
    >>> torch.triangular_solve(torch.tensor([[4.]]), torch.tensor([[2.]])).solution
    tensor([[2.]])
    """
    _check_types("triangular_solve", b, A, upper, transpose, unitriangular)
    result = apply(REGISTRY["_triangular_solve"], [b, A], {"upper": upper, "transpose": transpose,
                                                           "unitriangular": unitriangular})
    warn_once(_TRIANGULAR_SOLVE)
    return _named("triangular_solve", "_triangular_solve", list(result), out)


def _solve_method(self: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """`torch.lu_solve`."""
    return lu_solve(self, LU_data, LU_pivots)


def _triangular_method(self: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,
                       unitriangular: bool = False) -> Any:
    """`torch.triangular_solve`."""
    return triangular_solve(self, A, upper, transpose, unitriangular)


def _orgqr_method(self: Tensor, input2: Tensor) -> Tensor:
    """`torch.orgqr`."""
    return orgqr(self, input2)


_METHODS = {"lu": _lu_method, "lu_solve": _solve_method, "triangular_solve": _triangular_method,
            "orgqr": _orgqr_method}
for _name, _method in _METHODS.items():
    _method.__name__ = _method.__qualname__ = _name
    _method.__doc__ = globals()[_name].__doc__
METHODS: dict[str, Any] = dict(_METHODS)
