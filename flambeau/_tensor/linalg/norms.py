"""Vector and matrix norms, `pairwise_distance` and `cosine_similarity`."""

from __future__ import annotations

from inspect import unwrap
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import SparseArray
from ...engine.grad_mode import no_grad
from ...engine.tensor_interface import layer
from ...modes import special
from ...ops.declare import REGISTRY
from ...ops.linalg.matrix_checks import check_floating
from ...shapes import broadcast_shapes, wrap_dim
from ..argument_errors.guards import NOT_GIVEN
from ..argument_errors.messages import explained
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.apply import apply
from ..dispatch.out_tensors import copy_out, write_out
from ..dispatch.promotion import result_type
from ..fastpath.by_arity import F32, F64
from ..fastpath.repeated_calls import launched, observing, repeated
from ..fastpath.unary_with_parameters import positional_parameters
from ..methods.sparse import implementation as sparse_implementation
from ..reduction.dims import as_index, dims
from ..tensor import Tensor

_COMPLEX_ORDER = "linalg.{}_norm: Expected a non-complex scalar as the order of norm."
_EXACT_OUT = "linalg.{} expected out tensor dtype {{result}} but got: {{out}}"

__all__ = ["cosine_similarity", "linalg_matrix_norm", "linalg_norm", "linalg_vector_norm", "norm",
           "pairwise_distance"]

_vector_norm = positional_parameters(REGISTRY["linalg_vector_norm"])
_ADD_SCALAR, _NORM_IN_DIMS, _CLAMP_MIN = (
    REGISTRY[name] for name in ("_add_scalar", "_norm_in_dims", "_clamp_min_scalar"))
_INF = float("inf")


def _other_names(name: str, names: dict[str, Any], input: Any, ord: Any, dim: Any,
                 keepdim: bool) -> tuple[Any, Any, bool]:
    """The input, `dim` and `keepdim` of a norm, from PyTorch's name of the input and NumPy's names of parameters.

    Raises:
        TypeError: an argument is unknown or given twice.
    """
    rest = dict(names)
    for key in ("input", "x", "a"):
        if key in rest and input is NOT_GIVEN:
            input = rest.pop(key)
    for key in ("axis", "keepdims"):
        if key in rest and key == "axis" and dim in (None, (-2, -1)):
            dim = rest.pop(key)
        elif key in rest and key == "keepdims" and keepdim is False:
            keepdim = rest.pop(key)
    if rest or input is NOT_GIVEN:
        given = {"ord": ord, "dim": dim, "keepdim": keepdim, **names}
        defaults = ({"ord": None, "dim": None} if name == "linalg_norm" else {"ord": 2, "dim": None}
                    if name == "linalg_vector_norm" else {"ord": "fro", "dim": (-2, -1)}) | {"keepdim": False}
        named = {key: value for key, value in given.items() if key not in defaults or value != defaults[key]}
        error = explained("torch", name, () if input is NOT_GIVEN else (input,), named)
        raise error or TypeError(f"{name}() got an unexpected keyword argument '{next(iter(rest))}'")
    return input, dim, keepdim


@launched
def linalg_vector_norm(x: Any = NOT_GIVEN, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None,
                       out: Any = None, **names: Any) -> Any:
    """The vector norm (Σ |x|ᵖ)^(1/p) over the dimensions `dim` (all if None).

    Args:
        x: any shape, floating point or complex.
        ord: p; inf is the largest and -inf the smallest magnitude, 0 counts the nonzero elements.
        dtype: convert `x` to it first; it must not be narrower.

    Raises:
        RuntimeError: the dtype of `x` is neither floating point nor complex.

    >>> import flambeau as torch
    >>> torch.linalg.vector_norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    if names:
        x, dim, keepdim = _other_names("linalg_vector_norm", names, x, ord, dim, keepdim)
    if ord.__class__ is not int:
        if isinstance(ord, (Tensor, np.generic)):
            ord = ord.item()
        if isinstance(ord, complex):
            if isinstance(x, Tensor):
                check_floating("linalg.vector_norm", x, low=True)
            raise RuntimeError(_COMPLEX_ORDER.format("vector"))
        if not isinstance(ord, (int, float)):
            raise TypeError("linalg_vector_norm(): argument 'ord' (position 2) must be Number, not "
                            f"{type(ord).__name__}")
    if dim.__class__ is not int:
        dim = dims("linalg_vector_norm", dim)
    if dtype is not None and isinstance(x, Tensor):
        if not (x.dtype.is_floating_point or x.dtype.is_complex):
            raise RuntimeError("linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
                               f"{x.dtype.scalar_name}")
        x, dtype = _converted("linalg.vector_norm", x, dtype)
    result = _vector_norm(x, ord, dim, keepdim, dtype)
    if out is None:
        return result
    check_records_nothing("linalg_vector_norm", (x,), (out,))
    return write_out(REGISTRY["linalg_vector_norm"], result, out)


def _converted(name: str, x: Tensor, dtype: Any) -> tuple[Tensor, Any]:
    have, dtype = x.dtype, dtypes.of_argument(dtype, name)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name}: dtype should be floating point or complex, but got {dtype.scalar_name}")
    if dtype.is_complex != have.is_complex:
        kinds = ("complex", "real") if have.is_complex else ("real", "complex")
        raise RuntimeError(f"{name}: dtype should be {kinds[0]} for {kinds[0]} inputs, but got {dtype.scalar_name}")
    if dtype.rank < have.rank:
        raise RuntimeError(f"{name}: the dtype of the input ({have.scalar_name}) should be convertible without "
                           f"narrowing to the specified dtype ({dtype.scalar_name})")
    if dtype is have:
        return x, None
    if have.name == "float32" and dtype.name == "float64":
        return x, dtype
    return x.to(dtype), None


def linalg_matrix_norm(A: Any = NOT_GIVEN, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *,
                       dtype: Any = None, out: Any = None, **names: Any) -> Any:
    """The norm of matrices in the last two dimensions (or `dim`).

    Args:
        ord: "fro", "nuc", ±1, ±2 or ±inf.

    Raises:
        RuntimeError: another order, fewer than two dimensions, or the same one twice.

    >>> import flambeau as torch
    >>> torch.linalg.matrix_norm(torch.tensor([[3., 0.], [0., 4.]]))
    tensor(5.)
    """
    if names:
        A, dim, keepdim = _other_names("linalg_matrix_norm", names, A, ord, dim, keepdim)
    result = _matrix_norm(A, ord, dim, keepdim, dtype)
    return result if out is None else copy_out(result, out, _EXACT_OUT.format("matrix_norm"))


def _matrix_norm(A: Any, ord: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    xp = layer.functions
    name = "linalg.matrix_norm"
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if isinstance(ord, complex):
        raise RuntimeError(_COMPLEX_ORDER.format("matrix"))
    if isinstance(ord, (int, float)) and abs(ord) not in (1, 2, _INF):
        raise RuntimeError(f"{name}: Order {ord:g} not supported.")
    if A._array.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    kind = A._array.dtype.kind
    if kind not in "fcV":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype.scalar_name}")
    if A._array.dtype in dtypes.NARROW and (ord == "nuc" or ord in (2, -2)):
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {A.dtype.scalar_name}")
    dim = (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, dim))}")
    ndim = A._array.ndim
    rows, columns = wrap_dim(int(dim[0]), ndim), wrap_dim(int(dim[1]), ndim)
    if rows == columns:
        raise RuntimeError(f"{name}: dims must be different. Got ({rows}, {columns})")
    if dtype is not None:
        A, to = _converted(name, A, dtype)
        A = A if to is None else A.to(to)
    if ord == "fro":
        return _vector_norm(A, 2, (rows, columns), keepdim, None)
    if ord == "nuc" or abs(ord) == 2:
        rest = [i for i in range(ndim) if i not in (rows, columns)]
        values = xp.linalg_svdvals(A.permute(*rest, rows, columns))
        if ord == "nuc":
            result = values.sum(-1)
        else:
            result = _greatest(values, -1, False) if ord > 0 else values.amin(-1)
        if keepdim:
            for axis in sorted((rows, columns)):
                result = result.unsqueeze(axis)
        return result
    inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
    if not keepdim and inner < outer:
        outer -= 1
    sums = _vector_norm(A, 1.0, inner, keepdim, None)
    return _greatest(sums, outer, keepdim) if ord > 0 else sums.amin(outer, keepdim)


def _greatest(norms: Any, dim: int, keepdim: bool) -> Any:
    """The largest of norms along a dimension; 0 for an empty dimension."""
    if norms._array.shape[dim]:
        return norms.amax(dim, keepdim)
    return layer.functions.zeros_like(norms.detach().sum(dim, keepdim))


def linalg_norm(A: Any = NOT_GIVEN, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None,
                dtype: Any = None, **names: Any) -> Any:
    """A vector norm or, for two dimensions (of the tensor or in `dim`), a matrix norm.

    Raises:
        RuntimeError: `ord` is given for more dimensions than two.

    >>> import flambeau as torch
    >>> torch.linalg.norm(torch.tensor([[3., 0.], [0., 4.]]), 1)
    tensor(4.)
    """
    if names:
        A, dim, keepdim = _other_names("linalg_norm", names, A, ord, dim, keepdim)
    dim = (dim,) if isinstance(dim, int) else dim if dim is None else tuple(dim)
    if dim is not None and len(dim) not in (1, 2):
        raise RuntimeError("linalg.norm: If dim is specified, it must be of length 1 or 2. Got "
                           f"[{', '.join(map(str, dim))}]")
    if ord is not None:
        ndim = A._array.ndim
        if dim is None and ndim not in (1, 2):
            raise RuntimeError("linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got "
                               f"{ndim}D.")
        if isinstance(ord, str) or len(dim if dim is not None else range(ndim)) == 2:
            return linalg_matrix_norm(A, ord, (0, 1) if dim is None else dim, keepdim, dtype=dtype, out=out)
    result = linalg_vector_norm(A, 2.0 if ord is None else ord, dim, keepdim, dtype=dtype)
    return result if out is None else copy_out(result, out, _EXACT_OUT.format("norm"))


@launched
def norm(input: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None) -> Any:
    """The norm of all elements as a vector, or over `dim`; `p` may be a number, "fro" or "nuc".

    Deprecated in PyTorch in favour of `linalg.vector_norm` and `linalg.matrix_norm`.

    >>> import flambeau as torch
    >>> torch.norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    if dim.__class__ is not int:
        if dim is not None and not isinstance(dim, (tuple, list)) and as_index(dim) is None:
            raise TypeError("linalg_vector_norm(): argument 'dim' (position 3) must be tuple of ints, not "
                            f"{type_name(dim)}")
        dim = dims("norm", dim)
    if isinstance(p, str):
        if p == "fro" and (dim is None or dim.__class__ is int or len(dim) <= 2):
            p = 2
            if dtype is not None and isinstance(input._array, SparseArray):
                raise ValueError("dtype argument is not supported in frobenius norm")
        else:
            if dim is None:
                dim = tuple(range(input._array.ndim)) if p == "nuc" or p == "fro" else (-2, -1)
            return linalg_matrix_norm(input, p, dim, keepdim, dtype=dtype, out=out)
    elif p is None:
        p = 2.0
    elif isinstance(p, (tuple, list)):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' (position 2) must be Number, not {type_name(p)}")
    if dtype is not None or out is not None:
        if isinstance(input._array, SparseArray):
            return sparse_implementation("reductions", "norm")(input, p, dim, keepdim, dtype)
        return linalg_vector_norm(input, p, dim, keepdim, dtype=dtype, out=out)
    return _vector_norm(input, p, dim, keepdim, None)


def check_norm_dtype(input: Any) -> None:
    """Raise PyTorch's error of norms of its older operator `norm` unless the input is floating point or complex."""
    dtype = input.dtype
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError("norm(): input dtype should be either floating point or complex. Got "
                           f"{dtype.scalar_name} instead.")


def pairwise_distance(x1: Any, x2: Any, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Any:
    """‖x1 - x2 + eps‖ₚ along the last dimension.

    >>> import flambeau as torch
    >>> torch.pairwise_distance(torch.tensor([[3., 4.]]), torch.zeros(1, 2), eps=0)
    tensor([5.])
    """
    difference, dim = x1 - x2, max(x1._array.ndim, x2._array.ndim) - 1
    if eps.__class__ is float and difference.__class__ is Tensor and not (difference._requires_grad or special[0]):
        return _vector_norm(difference + eps, p, dim, keepdim, None)  # the names of nodes do not matter
    return apply(_NORM_IN_DIMS, [apply(_ADD_SCALAR, [difference], {"other": eps})], {
        "ord": p, "dim": dim, "keepdim": keepdim, "dtype": None})  # all of them, so that none has to be completed


@repeated
def cosine_similarity(x1: Any, x2: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """x1 · x2 / (max(‖x1‖, eps) · max(‖x2‖, eps)) along `dim`.

    Args:
        x1, x2: tensors that broadcast with each other and promote to a floating point dtype.

    Raises:
        RuntimeError: the common dtype is not a floating point type.

    >>> import flambeau as torch
    >>> torch.cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    xp = layer.functions
    if not eps >= 0 and (x1.dtype.is_floating_point or x2.dtype.is_floating_point):
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}")
    a, b = x1._array, x2._array
    if a.dtype is not b.dtype or a.dtype.kind != "f":
        dtype = result_type([x1, x2])
        if not dtype.is_floating_point:
            raise RuntimeError("expected common dtype to be floating point, yet common dtype is "
                               f"{dtype.scalar_name}")
        x1, x2 = (x if x.dtype.is_floating_point else x.to(dtype) for x in (x1, x2))
    if a.shape != b.shape:
        shape = broadcast_shapes(a.shape, b.shape)
        x1, x2 = x1.expand(shape), x2.expand(shape)
    return xp.sum((x1 / _clamped_norm(x1, dim, eps)) * (x2 / _clamped_norm(x2, dim, eps)), dim)


def _clamped_norm(x: Any, dim: int, eps: float) -> Any:
    """max(‖x‖, eps); the gradient is that of the norm, even where it is clamped."""
    result = _vector_norm(x, 2, dim, True, None)
    if special[0] and special[0] == observing[0] and not result._requires_grad:  # as an operator that is observed
        return apply(_CLAMP_MIN, [result], {"min": eps})
    if special[0] or result._requires_grad:  # the norm's rule saves its result
        result = result.clone()
    a = result._array
    dt = a.dtype
    if not special[0] and (dt is F32 or dt is F64):  # the tensor is new: no version bump is needed
        np.maximum(a, dt.type(eps), out=a)
        return result
    with no_grad():
        result.clamp_min_(eps)
    return result


@launched
def _norm_method(self: Any, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
    """`torch.norm` of this tensor.

    >>> import flambeau as torch
    >>> torch.tensor([3., 4.]).norm()
    tensor(5.)
    """
    return _norm(self, p, dim, keepdim, None, dtype)


#: `norm` without a look at its own known calls, after one at those of the method
_norm = unwrap(norm)
METHODS: dict[str, Any] = {"norm": _norm_method}
