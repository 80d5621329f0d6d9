"""Checks of shapes and of numbers of dimensions, and the shapes that follow from others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import flambeau as torch

__all__ = [
    "DimsSequenceType", "DimsType", "ShapeType", "StrideType", "canonicalize_dim", "canonicalize_dims",
    "check_is_matrix", "compute_reduction_output_shape", "extract_dims_from_varargs", "extract_shape_from_varargs",
    "infer_size", "infer_size_shapes", "is_expandable_to", "is_same_shape", "is_valid_permutation", "prod",
    "reduction_dims", "same_shape", "set_correction", "validate_dim_length", "validate_dimension_indices",
    "validate_exclusive_idx", "validate_idx", "validate_no_repeating_dims", "validate_shape", "validate_strides"]

ShapeType = torch.Size | list[int] | tuple[int, ...]
StrideType = list[int] | tuple[int, ...]
DimsType = int | list[int] | tuple[int, ...]
DimsSequenceType = list[int] | tuple[int, ...]


def same_shape(a: Any, b: Any, *, allow_rhs_unbacked: bool = False) -> bool:
    """Whether two shapes are equal."""
    return tuple(a) == tuple(b)


is_same_shape = same_shape


def validate_dim_length(length: int) -> None:
    """Check that a size is not negative.

    Raises:
        AssertionError: it is.
    """
    if length < 0:
        raise AssertionError(f"length must be non-negative, got {length}")


def validate_shape(shape: Any) -> None:
    """Check that a value is a shape.

    Raises:
        AssertionError: it is no sequence, or a size is negative.
    """
    if not isinstance(shape, Sequence):
        raise AssertionError(f"shape must be a Sequence, got {type(shape)}")
    for length in shape:
        validate_dim_length(length)


def validate_strides(strides: Any) -> None:
    """Check that a value is strides.

    Raises:
        AssertionError: it is no sequence, or a stride is negative.
    """
    if not isinstance(strides, Sequence):
        raise AssertionError(f"strides must be a Sequence, got {type(strides)}")
    for stride in strides:
        if stride < 0:
            raise AssertionError(f"stride must be non-negative, got {stride}")


def validate_idx(rank: int, idx: int) -> None:
    """Check that a dimension is one of a tensor's of this rank; 0 is one of a tensor without dimensions.

    Raises:
        AssertionError: it is not.
    """
    if not isinstance(idx, int):
        raise AssertionError(f"idx must be Dim, got {type(idx)}")
    if not isinstance(rank, int):
        raise AssertionError(f"rank must be Dim, got {type(rank)}")
    if not (0 <= idx < rank or idx == 0):
        raise AssertionError(f"idx {idx} is out of bounds for rank {rank}")


def validate_dimension_indices(rank: int, indices: Sequence[int]) -> None:
    """`validate_idx` of each."""
    for idx in indices:
        validate_idx(rank, idx)


def validate_exclusive_idx(rank: int, ex_idx: int) -> None:
    """Check the end of a range of dimensions.

    Raises:
        AssertionError: it is none.
    """
    if not isinstance(ex_idx, int):
        raise AssertionError(f"ex_idx must be Dim, got {type(ex_idx)}")
    if not isinstance(rank, int):
        raise AssertionError(f"rank must be Dim, got {type(rank)}")
    if not 0 < ex_idx <= rank:
        raise AssertionError(f"ex_idx {ex_idx} is out of bounds for rank {rank} (must be in (0, rank])")


def canonicalize_dim(rank: int, idx: int, wrap_scalar: bool = True) -> int:
    """A dimension counted from the first.

    Raises:
        IndexError: there is no such dimension.

    >>> from flambeau._prims_common import canonicalize_dim
    >>> canonicalize_dim(3, -1)
    2
    """
    if rank < 0:
        raise IndexError(f"Rank cannot be negative but got {rank}")
    if rank == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {idx} but tensor has no dimensions")
        rank = 1
    if not -rank <= idx < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {idx})")
    return idx + rank if idx < 0 else idx


def canonicalize_dims(rank: int, indices: Any, wrap_scalar: bool = True) -> Any:
    """`canonicalize_dim` of one dimension or of each."""
    if isinstance(indices, int):
        return canonicalize_dim(rank, indices, wrap_scalar)
    return tuple(canonicalize_dim(rank, x, wrap_scalar) for x in indices)


def is_valid_permutation(rank: int, perm: Any) -> bool:
    """Whether a sequence has each of the first `rank` numbers once."""
    return isinstance(perm, Sequence) and sorted(perm) == list(range(rank))


def check_is_matrix(A: torch.Tensor, f_name: str, arg_name: str = "A") -> None:
    """Check that a tensor has two dimensions or more.

    Raises:
        RuntimeError: it has fewer.
    """
    if A.ndim < 2:
        raise RuntimeError(f"{f_name}: The input tensor {arg_name} must have at least 2 dimensions.")


def extract_dims_from_varargs(dims: Any) -> Any:
    """The dimensions of a call with each as an argument, or with all as one.

    Raises:
        AssertionError: a sequence and more.
    """
    if dims and isinstance(dims[0], Sequence):
        if len(dims) != 1:
            raise AssertionError("Expected exactly 1 element in dims when first element is a Sequence, "
                                 f"got {len(dims)}")
        return dims[0]
    return dims


def extract_shape_from_varargs(shape: Any, validate: bool = True) -> Any:
    """The shape of a call with each size as an argument, or with all as one.

    Raises:
        AssertionError: it is no shape.
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = shape[0]
    if validate:
        validate_shape(shape)
    return shape


def infer_size_shapes(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The shape that two shapes are broadcast to.

    Raises:
        RuntimeError: they cannot be.
    """
    ndim = max(len(a), len(b))
    sizes = []
    first, second = ((1,) * (ndim - len(x)) + tuple(x) for x in (a, b))
    for i in reversed(range(ndim)):
        m, n = first[i], second[i]
        if m != n and m != 1 and n != 1:
            raise RuntimeError(f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-jagged "
                               f"dimension {i}")
        sizes.append(n if m == 1 else m)
    return tuple(reversed(sizes))


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """A shape with the number of elements in place of the -1 in it.

    Raises:
        RuntimeError: no shape of that many elements.
    """
    invalid = RuntimeError(f"shape '{list(shape)}' is invalid for input of size {numel}")
    found, size = None, 1
    for i, d in enumerate(shape):
        if d == -1:
            if found is not None:
                raise RuntimeError("only one dimension can be inferred")
            found = i
        elif d < 0:
            raise RuntimeError(f"invalid shape dimension {d}. If this was symbolic, it was assumed to not be -1."
                               "If this was meant to be inferred, please explicitly pass in -1.")
        else:
            size *= d
    if found is None:
        if numel != size:
            raise invalid
        return tuple(shape)
    if size == 0:
        raise invalid if numel else RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous")
    if numel % size:
        raise invalid
    return (*shape[:found], numel // size, *shape[found + 1:])


def compute_reduction_output_shape(shape: Sequence[int], dimensions: Sequence[int]) -> tuple[int, ...]:
    """A shape without some dimensions."""
    for idx in dimensions:
        validate_idx(len(shape), idx)
    return tuple(n for i, n in enumerate(shape) if i not in dimensions)


def validate_no_repeating_dims(dims: Sequence[int]) -> None:
    """Check that no dimension is there twice.

    Raises:
        RuntimeError: one is.
    """
    if len(dims) != len(set(dims)):
        raise RuntimeError("duplicate value in the list of dims")


def reduction_dims(shape: Sequence[int], dims: Sequence[int] | None) -> tuple[int, ...]:
    """The dimensions of a reduction, counted from the first: all for None.

    Raises:
        RuntimeError: one is there twice.
    """
    if dims is None:
        return tuple(range(len(shape)))
    dims = tuple(canonicalize_dim(len(shape), idx) for idx in dims)
    validate_no_repeating_dims(dims)
    return dims


def set_correction(unbiased: bool | None = None, correction: Any = None) -> float:
    """The correction of a variance: 1, unless one of the two arguments says another.

    Raises:
        RuntimeError: both are given.
        ValueError: the correction is no number.
    """
    if correction is not None and unbiased is not None:
        raise RuntimeError("cannot specify both correction and unbiased arguments")
    if correction is None:
        correction = 0.0 if unbiased is False else 1.0
    if not isinstance(correction, (int, float, torch.SymInt, torch.SymFloat)):
        raise ValueError("correction argument should be integer or float")
    return torch.sym_float(correction)


def prod(xs: Sequence[Any]) -> Any:
    """The product of numbers."""
    return math.prod(xs)


def is_expandable_to(shape: Sequence[int], desired: Sequence[int]) -> bool:
    """Whether a tensor of a shape can be expanded to another one.

    >>> from flambeau._prims_common import is_expandable_to
    >>> is_expandable_to((1, 3), (2, 2, 3)), is_expandable_to((2,), (3,))
    (True, False)
    """
    return len(shape) <= len(desired) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(desired), strict=False))
