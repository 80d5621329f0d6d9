"""`torch.nn._reduction`: reductions of losses as the numbers that PyTorch's kernels take."""

from __future__ import annotations

import warnings

from .functionals.reduction import legacy_reduction, reduction_number


def get_enum(reduction: str) -> int:
    """The number of a reduction.

    Raises:
        ValueError: it is unknown.

    >>> import flambeau as torch
    >>> torch.nn._reduction.get_enum("sum")
    2
    """
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
    return reduction_number(reduction)


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that the deprecated arguments mean; both default to True.

    >>> import flambeau as torch
    >>> torch.nn._reduction.legacy_get_string(False, None, emit_warning=False)
    'sum'
    """
    return legacy_reduction(True if size_average is None else size_average, reduce, "", emit_warning, 3)


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that the deprecated arguments mean."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))
