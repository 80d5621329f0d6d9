"""Comparisons of two values that are not containers: None, booleans, numbers, tensors and tensor-likes.

Each function returns a comparison, or None if the types of the values do not fit. The comparison raises `Mismatch` if
the values differ.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .. import dtypes
from .._tensor import Tensor
from .._tensor import functions as fn
from ..backends.sparse_array import format_name, has_sparse
from .mismatch import Mismatch, scalar_message, tensor_message
from .tolerances import tolerances

Path = tuple[Any, ...]
Comparison = Callable[[], None]

_NUMBER_DTYPES = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)


@dataclass(slots=True)
class Closeness:
    """The options of `assert_close`."""

    allow_subclasses: bool = True
    rtol: float | None = None
    atol: float | None = None
    equal_nan: bool = False
    check_device: bool = True
    check_dtype: bool = True
    check_layout: bool = True
    check_stride: bool = False


def none_pair(actual: Any, expected: Any, path: Path, _: Closeness) -> Comparison | None:
    """None equals None only."""
    if actual is not None and expected is not None:
        return None

    def compare() -> None:
        if actual is not expected:
            raise Mismatch(f"None mismatch: {actual} is not {expected}", path)

    return compare


def boolean_pair(actual: Any, expected: Any, path: Path, _: Closeness) -> Comparison | None:
    """Booleans of Python and NumPy must be equal."""
    if not (isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_))):
        return None

    def compare() -> None:
        if bool(actual) is not bool(expected):
            raise Mismatch(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}", path)

    return compare


def number_pair(actual: Any, expected: Any, path: Path, closeness: Closeness) -> Comparison | None:
    """Numbers of Python and NumPy are compared with the tolerances of their dtype."""
    number_types = (*_NUMBER_DTYPES, np.number)
    if not (isinstance(actual, number_types) and isinstance(expected, number_types)):
        return None
    a: Any = actual.item() if isinstance(actual, np.number) else actual
    b: Any = expected.item() if isinstance(expected, np.number) else expected
    rtol, atol = tolerances(closeness.rtol, closeness.atol, (_NUMBER_DTYPES[type(a)], _NUMBER_DTYPES[type(b)]), path)

    def compare() -> None:
        if closeness.check_dtype and type(a) is not type(b):
            raise Mismatch(f"The (d)types do not match: {type(a)} != {type(b)}.", path)
        if a == b or (closeness.equal_nan and cmath.isnan(a) and cmath.isnan(b)):
            return
        difference = abs(a - b)
        if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(b)):
            raise Mismatch(scalar_message(a, b, rtol, atol), path)

    return compare


def tensor_like_pair(actual: Any, expected: Any, path: Path, closeness: Closeness) -> Comparison | None:
    """Tensors and arguments of `as_tensor`, if one type is a subclass of the other."""
    if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
        return None
    if not closeness.allow_subclasses and type(actual) is not type(expected):
        return None
    try:
        a, b = (x if isinstance(x, Tensor) else fn.as_tensor(x) for x in (actual, expected))
    except Exception:  # not a tensor-like
        return None
    rtol, atol = tolerances(closeness.rtol, closeness.atol, (a.dtype, b.dtype), path)
    return partial(_compare_tensors, a, b, path, closeness, rtol, atol)


def _compare_tensors(actual: Tensor, expected: Tensor, path: Path, closeness: Closeness, rtol: float,
                     atol: float) -> None:
    compare_attributes(actual, expected, path, closeness)
    a, b = equalized(actual.detach(), expected.detach())
    if has_sparse((a, b)):
        compare_sparse(a, b, path, closeness.equal_nan, rtol, atol)
    else:
        compare_dense(a, b, path, closeness.equal_nan, rtol, atol)


def equalized(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Two tensors on one device, of one dtype, of one layout.

    >>> import flambeau as torch
    >>> equalized(torch.ones(2), torch.ones(2, dtype=torch.int64))
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    if a.device != b.device:
        a, b = a.cpu(), b.cpu()
    if a.dtype != b.dtype:
        common = dtypes.promote_types(*(dtypes.int64 if x.dtype in _UNSIGNED else x.dtype for x in (a, b)))
        a, b = a.to(common), b.to(common)
    if has_sparse((a, b)) and a.layout != b.layout:
        a, b = a.to_dense(), b.to_dense()
    return a, b


def compare_dense(a: Tensor, b: Tensor, path: Path, equal_nan: bool, rtol: float, atol: float,
                  subject: str | None = None) -> None:
    """Compare the elements of two dense tensors of one shape and dtype; `subject` says in messages what they are."""
    matches = fn.isclose(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)
    if fn.all(matches):
        return
    if a._array.ndim:
        raise Mismatch(tensor_message(a, b, matches, rtol, atol, subject or "Tensor-likes"), path)
    raise Mismatch(scalar_message(a.item(), b.item(), rtol, atol, subject or "Scalars"), path)


def compare_sparse(actual: Tensor, expected: Tensor, path: Path, equal_nan: bool, rtol: float, atol: float) -> None:
    """Compare the components of two sparse tensors of one layout: indices for equality, values for closeness."""
    a: Any = actual._array
    b: Any = expected._array
    kind = f"sparse {format_name(a)} tensors"
    if actual.is_sparse and a.sparse_dim != b.sparse_dim:
        raise Mismatch(f"The number of sparse dimensions in {kind} does not match: {a.sparse_dim} != {b.sparse_dim}",
                       path)
    if a.nnz != b.nnz:
        raise Mismatch(f"The number of specified values in {kind} does not match: {a.nnz} != {b.nnz}", path)
    if actual.is_sparse:
        indices = {"indices": (a.indices, b.indices)}
    else:
        names = ("crow_indices", "col_indices") if a.by_row else ("ccol_indices", "row_indices")
        common = np.promote_types(a.plain.dtype, b.plain.dtype)
        indices = {names[0]: (a.compressed.astype(common), b.compressed.astype(common)),
                   names[1]: (a.plain.astype(common), b.plain.astype(common))}
    for name, (x, y) in indices.items():
        compare_dense(fn.from_numpy(x), fn.from_numpy(y), path, False, 0, 0, f"Sparse {format_name(a)} {name}")
    compare_dense(actual._values() if actual.is_sparse else actual.values(),
                  expected._values() if expected.is_sparse else expected.values(), path, equal_nan, rtol, atol,
                  f"Sparse {format_name(a)} values")


def compare_attributes(actual: Tensor, expected: Tensor, path: Path, closeness: Closeness) -> None:
    """Compare shape, layout, strides, device and dtype of two tensors, as far as is asked for."""
    attributes: list[tuple[str, Any, Any]] = [("shape", actual.shape, expected.shape)]
    if closeness.check_layout:
        attributes.append(("layout", actual.layout, expected.layout))
    if closeness.check_stride and not has_sparse((actual, expected)):
        attributes.append(("stride()", actual.stride(), expected.stride()))
    if closeness.check_device:
        attributes.append(("device", actual.device, expected.device))
    if closeness.check_dtype:
        attributes.append(("dtype", actual.dtype, expected.dtype))
    for name, a, b in attributes:
        if a != b:
            raise Mismatch(f"The values for attribute '{name}' do not match: {a} != {b}.", path)


#: name in error messages -> function; tried in this order
PAIR_TYPES: dict[str, Callable[[Any, Any, Path, Closeness], Comparison | None]] = {
    "NonePair": none_pair, "BooleanPair": boolean_pair, "NumberPair": number_pair, "TensorLikePair": tensor_like_pair}

__all__ = ["PAIR_TYPES", "Closeness", "Comparison", "Path", "compare_attributes", "compare_dense", "compare_sparse",
           "equalized"]
