"""Elementwise operators of sparse tensors: those that keep zeros, and arithmetic with sparse, dense and scalar."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import CompressedArray, CooArray, SparseArray, not_implemented
from ...devices import sparse_csr
from ...engine.tensor_interface import layer
from ...kernels.sparse import flatten_indices, scatter_add
from ..dispatch.promotion import result_type
from ..tensor import Tensor, wrap
from .conversion import coalesced, in_layout, layout_name, to_compressed_array, to_coo_array, to_dense_array
from .merging import merged
from .recording import is_compressed, is_coo, is_sparse, make

#: operators with f(0) = 0, applied to the values of a coalesced tensor
KEEP_ZERO = frozenset((
    "abs", "angle", "asin", "asinh", "atan", "atanh", "ceil", "deg2rad", "erf", "erfinv", "expm1", "floor", "frac",
    "isinf", "isnan", "isneginf", "isposinf", "log1p", "nan_to_num", "rad2deg", "relu", "round", "sgn", "sign",
    "signbit", "sin", "sinh", "sqrt", "tan", "tanh", "trunc", "_round_decimals", "_threshold_backward"))
#: linear ones, which do not need a coalesced tensor
LINEAR = frozenset(("neg", "positive", "conj", "conj_physical", "resolve_conj", "resolve_neg", "real", "imag"))
#: in place, these need a coalesced tensor
_NOT_CHECKED_IN_PLACE = frozenset(("neg", "conj_physical", "zero"))


def unary(op: Any, x: Tensor, params: dict[str, Any]) -> SparseArray:
    """The array of an operator that keeps zeros."""
    a: Any = x._array
    if op.name == "nan_to_num" and isinstance(a, CompressedArray):
        raise not_implemented("nan_to_num.out", a.layout)
    if op.name == "angle" and isinstance(a, CooArray):
        raise not_implemented("angle", a.layout)
    if isinstance(a, CooArray) and not a.coalesced and op.name not in LINEAR:
        a = coalesced(a)
    return a.with_values(_on_values(op, [wrap(a.values)], params)._array)


def _on_values(op: Any, inputs: Sequence[Any], params: dict[str, Any]) -> Tensor:
    """An operator of dense tensors, not recorded."""
    from ...engine.grad_mode import no_grad
    from ..dispatch.apply import apply

    with no_grad():
        return apply(op, [x.detach() if isinstance(x, Tensor) else x for x in inputs], params)


def check_in_place(name: str, x: Tensor) -> None:
    """Check that an operator that keeps zeros may run in place."""
    a: Any = x._array
    if isinstance(a, CooArray) and not a.coalesced and name not in LINEAR:
        raise RuntimeError(f"{name}_ requires coalesced input")


# ----- addition --------------------------------------------------------------------------------


def _scaled(values: np.ndarray, alpha: Any, to: np.dtype) -> np.ndarray:
    values = dtypes.cast(values, to)
    if alpha == 1:
        return values
    return (layer.functions.mul(wrap(values), alpha))._array.astype(to, copy=False) if values.dtype.kind != "V" else (
        dtypes.cast(dtypes.widen(values) * alpha, to))


def _check_alpha(to: np.dtype, alpha: Any) -> None:
    if to.kind in "iub" and isinstance(alpha, float):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")


def add(x: Any, y: Any, alpha: Any = 1, name: str = "add") -> Any:
    """The array of x + alpha * y."""
    if not isinstance(x, Tensor) or (not is_sparse(x) and not x._array.ndim and is_sparse(y) and y._array.ndim):
        shape = list(x._array.shape) if isinstance(x, Tensor) else []
        raise RuntimeError(f"add: expected 'self' and 'other' to have same size, but self has size {shape} while other "
                           f"has size {list(y._array.shape)} (FYI: dense-sparse addition does not currently support "
                           "broadcasting)")
    to = result_type([x, y]).numpy
    _check_alpha(to, alpha)
    a: Any = x._array
    b: Any = y._array if isinstance(y, Tensor) else None
    if isinstance(a, CooArray):
        if not isinstance(b, SparseArray):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        if not isinstance(b, CooArray):
            raise RuntimeError(f"add(sparse, {layout_name(b)}) is not supported")
        return _add_coo(a, b, alpha, to)
    if isinstance(a, CompressedArray):
        if isinstance(b, CompressedArray):
            return _add_compressed(a, b, alpha, to, name)
        if b is None or b.shape != a.shape:
            shape = [] if b is None else list(b.shape)
            raise RuntimeError(f"add: expected 'self' and 'other' to have same size, but self has size {shape} while "
                               f"other has size {list(a.shape)} (FYI: op2-sparse addition does not currently support "
                               "broadcasting)")
        if isinstance(b, SparseArray):
            raise RuntimeError("Expected all tensors to have the same layout")
        return dtypes.cast(to_dense_array(a), to) + _scaled(b, alpha, to)
    if a.shape != b.shape:
        kind = "dense-sparse" if isinstance(b, CooArray) else "op2-sparse"
        raise RuntimeError(f"add: expected 'self' and 'other' to have same size, but self has size {list(a.shape)} "
                           f"while other has size {list(b.shape)} (FYI: {kind} addition does not currently support "
                           "broadcasting)")
    out = np.array(dtypes.cast(a, to), order="C")
    add_into(out, b, alpha)
    return out


def add_into(out: np.ndarray, b: SparseArray, alpha: Any = 1) -> None:
    """Add a multiple of a sparse array to a dense array, in place."""
    if isinstance(b, CooArray):
        if not b.nnz:
            return
        if b.sparse_dim and out.flags.c_contiguous:
            sizes = b.shape[: b.sparse_dim]
            rows = out.reshape(int(np.prod(sizes)), *b.shape[b.sparse_dim:])
            scatter_add(rows, flatten_indices(b.indices, sizes), _scaled(b.values, alpha, out.dtype))
            return
        b = coalesced(b)
        values = _scaled(b.values, alpha, out.dtype)
        if b.sparse_dim:
            at = tuple(b.indices)
            out[at] = dtypes.cast(dtypes.widen(out[at]) + dtypes.widen(values), out.dtype)
        else:
            out[...] = dtypes.cast(dtypes.widen(out) + dtypes.widen(values[0]), out.dtype)
        return
    dense = _scaled(to_dense_array(b), alpha, out.dtype)
    out[...] = dtypes.cast(dtypes.widen(out) + dtypes.widen(dense), out.dtype)


def _add_coo(a: CooArray, b: CooArray, alpha: Any, to: np.dtype) -> CooArray:
    if a.shape != b.shape:
        raise RuntimeError(f"add: expected sizes of 'self' and 'other' to match, but {list(a.shape)} != "
                           f"{list(b.shape)}")
    if not b.nnz:
        return a.with_values(np.array(dtypes.cast(a.values, to)))
    if not a.nnz:
        return b.with_values(np.array(_scaled(b.values, alpha, to)))
    if a.sparse_dim != b.sparse_dim:
        raise RuntimeError(f"add: expected 'self' and 'other' to have same number of sparse dimensions, but self has "
                           f"{a.sparse_dim} sparse dimensions while 'other' has {b.sparse_dim} sparse dimensions")
    first, second = dtypes.cast(a.values, to), _scaled(b.values, alpha, to)
    contiguous = a.values.flags.c_contiguous and b.values.flags.c_contiguous
    if contiguous and a.nnz == b.nnz and (a.indices == b.indices).all():
        values = dtypes.cast(dtypes.widen(first) + dtypes.widen(second), to)
        return CooArray(a.indices.copy(), values, a.shape, a.coalesced and b.coalesced)
    if contiguous:
        indices, values = merged(a.indices, b.indices, (first, second), a.shape[:a.sparse_dim])
        return CooArray(indices, values, a.shape, a.coalesced and b.coalesced)
    indices = np.concatenate([a.indices, b.indices], 1)
    values = np.concatenate([first, second])
    both = CooArray(indices, values, a.shape, False)
    return coalesced(both) if a.coalesced and b.coalesced else both


def _add_compressed(a: CompressedArray, b: CompressedArray, alpha: Any, to: np.dtype, name: str) -> CompressedArray:
    if a.layout is not b.layout:
        raise RuntimeError(f"add: expected 'self' and 'other' to have the same layout, but got {layout_name(a)} and "
                           f"{layout_name(b)}")
    if a.shape != b.shape:
        raise RuntimeError("torch.add: Expected input tensors to have the same shape, but got tensor `self` with "
                           f"shape {list(a.shape)} and tensor `other` with shape {list(b.shape)}")
    same = (a.compressed.shape == b.compressed.shape and a.plain.shape == b.plain.shape
            and (a.compressed == b.compressed).all() and (a.plain == b.plain).all())
    if same:
        values = dtypes.widen(dtypes.cast(a.values, to)) + dtypes.widen(_scaled(b.values, alpha, to))
        return a.with_values(dtypes.cast(values, to))
    total = _add_coo(to_coo_array(a), to_coo_array(b), alpha, to)
    if a.batch_dim:
        raise RuntimeError("add: batched sparse compressed tensors of different structure are not supported")
    out = to_compressed_array(coalesced(total), a.layout, a.block_shape if a.has_blocks else None)
    return CompressedArray(a.layout, out.compressed.astype(a.compressed.dtype), out.plain.astype(a.plain.dtype),
                           out.values, a.shape)


# ----- multiplication and division -------------------------------------------------------------


def mul(op: Any, x: Any, y: Any) -> Any:
    """The array of x * y, where at least one is sparse."""
    exchanged = False
    if not is_sparse(x) or (not x._array.ndim and is_sparse(y) and (
            y._array.ndim or x._array.nnz < 2 <= y._array.nnz)):  # a number times what has more elements
        x, y = y, x
        exchanged = True
    a: Any = x._array
    if not isinstance(y, Tensor) or not y._array.ndim:
        if is_sparse(y):
            y = y.detach().to_dense()
        if isinstance(y, Tensor) and not a.ndim:
            return _mul_dense(op, to_coo_array(a), y._array, result_type([x, y]).numpy)
        scalar = y if not isinstance(y, Tensor) else y.detach()
        return _scale(op, a, scalar)
    to = result_type([x, y]).numpy
    b: Any = y._array
    if isinstance(a, CooArray) and isinstance(b, CooArray):
        return _mul_coo(op, a, b, to)
    if isinstance(a, CooArray) and isinstance(b, CompressedArray):
        raise RuntimeError("Expected result Tensor to be of format CSR")
    if isinstance(a, CompressedArray):
        if exchanged and a.has_blocks:
            raise RuntimeError("Expected result Tensor to be of format CSR")
        if a.has_blocks:
            raise RuntimeError("empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got "
                               f"{layout_name(a)}")
        if a.layout is not sparse_csr:
            raise RuntimeError("Expected result Tensor to be of format CSR")
        if isinstance(b, SparseArray):
            product = _mul_coo(op, to_coo_array(a), to_coo_array(b), to)
            return to_compressed_array(product, a.layout, None)
        if b.shape != a.shape:
            raise RuntimeError(f"sparse_mask(): operands have incompatible sizes; self has size {list(b.shape)} but "
                               f"mask has size {list(a.shape)}")
        if not (a.batch_dim or a.dense_dim):
            picked = b[tuple(_places(a))]
            return a.with_values(_multiply(op, a.values, picked, to))
        dense = make(a).to_dense()
        product = layer.functions.mul(dense, y.detach()).sparse_mask(make(a))
        return product._array
    return _mul_dense(op, a, b, to)


def _places(a: CompressedArray) -> tuple[np.ndarray, np.ndarray]:
    from ...kernels.sparse import decompress

    along = decompress(a.compressed)
    return (along, a.plain) if a.by_row else (a.plain, along)


def _multiply(op: Any, v: np.ndarray, w: np.ndarray, to: np.dtype) -> np.ndarray:
    return _on_values(op, [wrap(dtypes.cast(v, to)), wrap(dtypes.cast(np.ascontiguousarray(w), to))], {})._array


def _scale(op: Any, a: SparseArray, scalar: Any) -> SparseArray:
    if isinstance(scalar, Tensor):
        like = [wrap(a.values) if a.values.ndim else wrap(a.values[None]), scalar]
        return a.with_values(_on_values(op, like, {})._array)
    return a.with_values(layer.functions.mul(wrap(a.values), scalar)._array)


def _mul_dense(op: Any, a: CooArray, b: np.ndarray, to: np.dtype) -> Any:
    """A COO array times a dense one: elements at the places of the first, which is broadcast if it must be."""
    if b.ndim > a.ndim or np.broadcast_shapes(a.shape, b.shape) != a.shape:
        from .shape import broadcast_to

        a = broadcast_to(coalesced(a) if b.ndim > a.ndim else a, np.broadcast_shapes(a.shape, b.shape))
    b = np.broadcast_to(b, a.shape)
    picked = b[tuple(a.indices)] if a.sparse_dim else np.broadcast_to(b, (a.nnz, *b.shape))
    return CooArray(a.indices.copy(), _multiply(op, a.values, picked, to), a.shape, a.coalesced)


def _mul_coo(op: Any, a: CooArray, b: CooArray, to: np.dtype) -> CooArray:
    if a.shape != b.shape or a.sparse_dim != b.sparse_dim:
        if a.sparse_dim == b.sparse_dim and a.ndim == b.ndim and a.shape[: a.sparse_dim] == b.shape[: b.sparse_dim]:
            pass  # the dense dimensions are broadcast
        else:
            raise RuntimeError("sparse_binary_op_intersection_cpu(): expects sparse inputs with equal dimensionality, "
                               "number of sparse dimensions, and shape of sparse dimensions")
    a, b = coalesced(a), coalesced(b)
    sizes = a.shape[: a.sparse_dim]
    left, right = flatten_indices(a.indices, sizes), flatten_indices(b.indices, sizes)
    if not a.sparse_dim:
        first, second = np.arange(min(a.nnz, b.nnz)), np.arange(min(a.nnz, b.nnz))
    else:
        _, first, second = np.intersect1d(left, right, assume_unique=True, return_indices=True)
    values = _multiply(op, a.values[first], b.values[second], to)
    return CooArray(np.ascontiguousarray(a.indices[:, first]), values, (*sizes, *values.shape[1:]), True)


def divide(op: Any, x: Any, y: Any, params: dict[str, Any]) -> Any:
    """The array of x / y, with or without rounding: y is a scalar or a dense tensor without dimensions."""
    floor = op.name == "floor_divide"
    kind = "Sparse floor division" if floor else "Sparse division"
    if is_sparse(y):
        if not y._array.ndim or not is_sparse(x):
            raise RuntimeError(f"{kind} requires a scalar or zero-dim dense tensor divisor (got a sparse divisor)")
        raise RuntimeError(f"{kind} requires a scalar or zero-dim dense tensor divisor (got shape "
                           f"{list(y._array.shape)} for divisor)")
    if is_compressed(x):
        if floor:
            raise not_implemented("floor_divide", x.layout)
        raise RuntimeError(f"unsupported tensor layout: {layout_name(x)}")
    if isinstance(y, Tensor) and y._array.ndim:
        raise RuntimeError(f"{kind} requires a scalar or zero-dim dense tensor divisor (got shape "
                           f"{list(y._array.shape)} for divisor)")
    a: Any = x._array
    rounding = params.get("rounding_mode")
    if (floor or rounding is not None) and isinstance(a, CooArray):
        a = coalesced(a)  # rounding is not linear
    divisor = y.detach() if isinstance(y, Tensor) else y
    values = wrap(a.values)
    fn = layer.functions
    quotient = fn.floor_divide(values, divisor) if floor else fn.div(values, divisor, rounding_mode=rounding)
    return a.with_values(quotient._array)


def power(op: Any, x: Any, exponent: Any) -> Any:
    """The array of x ** exponent."""
    if is_compressed(x):
        raise RuntimeError(f"unsupported tensor layout: {layout_name(x)}")
    if isinstance(exponent, Tensor) or not is_coo(x):
        raise not_implemented("pow.Tensor_Tensor", x.layout if is_sparse(x) else exponent.layout)
    if exponent == 0:
        raise RuntimeError("pow: cannot raise to zeroth power on sparse tensor; it would make the result tensor dense")
    a = coalesced(x._array)
    return a.with_values(layer.functions.pow(wrap(a.values), exponent)._array)


__all__ = ["KEEP_ZERO", "LINEAR", "add", "add_into", "check_in_place", "divide", "in_layout", "mul", "power", "unary"]
