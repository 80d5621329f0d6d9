"""Reductions, scans and orderings, where a declaration cannot take their arguments."""

from __future__ import annotations

from typing import Any

from ..ops.declare import REGISTRY
from .binding import functions_of
from .fast import unary

__all__ = ["mean", "sum"]


def _whole_or_part(name: str) -> Any:
    """A reduction of all elements (one node) or over some dimensions (another), as PyTorch names them."""
    whole = unary(REGISTRY[f"_{name}_all"], functions_of(REGISTRY[f"_{name}_all"]))
    part = functions_of(REGISTRY[name])

    def call(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None,
             **numpy_names: Any) -> Any:
        if dim is None and not keepdim and not numpy_names and out is None:
            if dtype is not None and input.dtype is not dtype:
                input = input.to(dtype)
            return whole(input)
        if numpy_names:
            dim = numpy_names.pop("axis", dim)
            keepdim = numpy_names.pop("keepdims", keepdim)
            if numpy_names:
                raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(numpy_names))}'")
        return part(input, dim, keepdim, dtype=dtype, out=out)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = REGISTRY[name].doc
    return call


sum = _whole_or_part("sum")
mean = _whole_or_part("mean")

METHODS: dict[str, Any] = {"sum": sum, "mean": mean}
