"""Type promotion: in which dtype operators compute, and of which dtype their results are."""

from __future__ import annotations

from enum import Enum
from typing import Any

import flambeau as torch

from .dtype_rules import (
    Number,
    corresponding_real_dtype,
    dtype_to_type,
    get_computation_dtype,
    get_higher_dtype,
    get_higher_type,
    is_complex_dtype,
    is_integer_dtype,
    number_type,
    type_to_dtype,
)

__all__ = ["ELEMENTWISE_TYPE_PROMOTION_KIND", "REDUCTION_OUTPUT_TYPE_KIND", "elementwise_dtypes", "reduction_dtypes"]


class ELEMENTWISE_TYPE_PROMOTION_KIND(Enum):
    """How the dtype of an elementwise operator's result follows from the promoted one."""

    DEFAULT = (0,)
    NO_OPMATH = (1,)
    INT_TO_FLOAT = (2,)
    ALWAYS_BOOL = (3,)
    COMPLEX_TO_FLOAT = (4,)
    BOOL_TO_LONG = (5,)


class REDUCTION_OUTPUT_TYPE_KIND(Enum):
    """How the dtype of a reduction's result follows from that of its input."""

    SAME = (0,)
    COMPLEX_TO_FLOAT = (1,)
    KEEP_PROMOTED_TYPE = (2,)
    ALWAYS_BOOL = (3,)


def _promoted(args: tuple[Any, ...]) -> torch.dtype:
    """The dtype that arguments are promoted to: tensors with dimensions go before those without, those before numbers,
    unless a later group has a higher kind.
    """
    highest: type = bool
    groups: tuple[list[torch.dtype], list[torch.dtype]] = ([], [])
    for x in args:
        if isinstance(x, torch.Tensor):
            groups[x.ndim == 0].append(x.dtype)
            highest = get_higher_type(highest, dtype_to_type(x.dtype))
        elif isinstance(x, Number):
            highest = get_higher_type(highest, number_type(x))
        elif x is not None:
            raise RuntimeError(f"Unexpected type {type(x)} when computing elementwise type promotion!")
    for group in groups:
        if any(dtype_to_type(dtype) is highest for dtype in group):
            found: torch.dtype | None = None
            for dtype in group:
                if highest is not bool or dtype is torch.bool:
                    found = get_higher_dtype(found, dtype) if found is None or found is dtype else (
                        torch.promote_types(found, dtype))
            if found is not None:
                return found
        elif highest is complex and any(dtype.is_floating_point for dtype in group):
            real = next(dtype for dtype in group if dtype.is_floating_point)
            for dtype in group:
                real = torch.promote_types(real, dtype)
            return torch.complex128 if real is torch.float64 else torch.complex64 if real is not torch.float16 else (
                torch.complex32)
    return type_to_dtype(highest)


def elementwise_dtypes(*_args: Any, type_promotion_kind: ELEMENTWISE_TYPE_PROMOTION_KIND) -> tuple[
        torch.dtype, torch.dtype]:
    """The dtype in which an elementwise operator computes, and that of its result.

    Args:
        _args: tensors, numbers and None.
        type_promotion_kind: the operator's rule.

    Raises:
        RuntimeError: an argument is something else.

    >>> import flambeau as torch
    >>> from flambeau._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes
    >>> elementwise_dtypes(torch.ones(2, dtype=torch.int32), 1.5,
    ...                    type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT)
    (flambeau.float32, flambeau.float32)
    """
    kind = ELEMENTWISE_TYPE_PROMOTION_KIND
    dtype = _promoted(_args)
    if type_promotion_kind is kind.NO_OPMATH:
        return dtype, dtype
    if type_promotion_kind is kind.INT_TO_FLOAT and (dtype is torch.bool or is_integer_dtype(dtype)):
        dtype = torch.get_default_dtype()
    if type_promotion_kind is kind.BOOL_TO_LONG and dtype is torch.bool:
        return torch.int64, torch.int64
    computation = get_computation_dtype(dtype)
    if type_promotion_kind is kind.COMPLEX_TO_FLOAT and is_complex_dtype(dtype):
        return computation, corresponding_real_dtype(dtype)
    if type_promotion_kind is kind.ALWAYS_BOOL:
        return computation, torch.bool
    return computation, dtype


def reduction_dtypes(arg: torch.Tensor, output_dtype_kind: REDUCTION_OUTPUT_TYPE_KIND,
                     dtype: torch.dtype | None = None) -> tuple[torch.dtype, torch.dtype | None]:
    """The dtype in which a reduction computes, and that of its result; None: the result stays in it.

    >>> import flambeau as torch
    >>> from flambeau._prims_common import REDUCTION_OUTPUT_TYPE_KIND, reduction_dtypes
    >>> reduction_dtypes(torch.ones(2, dtype=torch.float16), REDUCTION_OUTPUT_TYPE_KIND.SAME)
    (flambeau.float32, flambeau.float16)
    """
    kind = REDUCTION_OUTPUT_TYPE_KIND
    given = arg.dtype if dtype is None else dtype
    computation = get_computation_dtype(given)
    if output_dtype_kind is kind.ALWAYS_BOOL:
        return computation, torch.bool
    if output_dtype_kind is kind.KEEP_PROMOTED_TYPE:
        return computation, None
    if output_dtype_kind is kind.COMPLEX_TO_FLOAT and is_complex_dtype(given):
        return computation, corresponding_real_dtype(given)
    return computation, given
