"""Unsupported dtypes: the errors that operators raise for dtypes without a kernel in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: the error for one unsupported dtype: an exception, or a function of the operator's arguments that returns one (None
#: where these arguments are supported)
UnsupportedDtype = Exception | Callable[..., Exception | None]

#: names for groups of dtypes in `unsupported_dtypes=`, larger groups first; a dtype's own name is accepted too
DTYPE_CATEGORIES = {
    "integer": ("uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    "float": ("float16", "bfloat16", "float32", "float64"),
    "unsigned": ("uint16", "uint32", "uint64"),  # PyTorch has few kernels for these
    "narrow": ("float16", "bfloat16"),  # PyTorch's reduced floating point types
    "complex": ("complex64", "complex128"),
}


def not_implemented(kernel: str, *categories: str, empty: bool = True) -> dict[str, UnsupportedDtype]:
    """Return a value for `unsupported_dtypes=`: PyTorch's "not implemented" error of one kernel for these dtypes.

    Args:
        kernel: the kernel's name in PyTorch's message.
        categories: keys of `DTYPE_CATEGORIES` or names of dtypes.
        empty: whether empty tensors raise the error too.
    """
    error = not_implemented_error(kernel)

    def unless_empty(input: Any, *_: Any, **__: Any) -> Exception | None:
        return None if 0 in input.shape else error

    return dict.fromkeys(categories, error if empty else unless_empty)


def after_shapes(errors: dict[str, UnsupportedDtype], unless_empty: str | None = "tensor", scalars: bool = True) -> (
        dict[str, UnsupportedDtype]):
    """Return errors that come after those of `dim`, of `k` and of empty tensors, for which the forward runs and raises.

    Args:
        unless_empty: what must be empty for the forward to run: the "tensor", or the dimension "dim".
        scalars: whether 0-d tensors raise the error.
    """

    def after(error: Exception) -> Callable[..., Exception | None]:
        def if_shapes_fit(input: Any, *, dim: Any = None, k: int | None = None, **_: Any) -> Exception | None:
            shape = input.shape
            rank = len(shape) or 1
            if not all(-rank <= d < rank for d in (() if dim is None else (dim,) if dim.__class__ is int else dim)):
                return None
            if k is not None and k > (shape[-1 if dim is None else dim] if shape else 1):
                return None
            if unless_empty and 0 in (shape if unless_empty == "tensor" or dim is None else shape[dim:][:1]):
                return None
            return error if scalars or shape else None

        return if_shapes_fit

    return {name: after(error) if isinstance(error, Exception) else error for name, error in errors.items()}


def not_implemented_error(kernel: str) -> NotImplementedError:
    """Return PyTorch's error for a kernel that lacks a dtype; `{}` in its text stands for the dtype's name."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{{}}'")


def by_dtype(errors: dict[str, UnsupportedDtype]) -> dict[str, UnsupportedDtype]:
    """Return the errors by name of dtype; a smaller category, or a single dtype, overrides a larger one."""
    result = {name: errors[category] for category, names in DTYPE_CATEGORIES.items() if category in errors
             for name in names}
    return result | {name: error for name, error in errors.items() if name not in DTYPE_CATEGORIES}
