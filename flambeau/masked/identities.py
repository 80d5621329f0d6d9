"""The identity of each reduction: the value that does not change it."""

from __future__ import annotations

from math import inf, nan
from typing import Any

from .. import dtypes
from .._tensor import Tensor
from .._tensor import functions as fn


def _reduction_identity(op_name: str, input: Tensor, *args: Any) -> Tensor | None:
    """The value that does not change a reduction, 0-d; None where it depends on the other elements."""
    dtype = input.dtype
    name = op_name.rpartition(".")[2]
    value = _identity(name, dtype, *args)
    if value is None:
        return None
    if name == "median" and not dtype.is_floating_point:
        dtype = dtypes.float32
    return fn.tensor(value, dtype=dtype, device=input.device)


def _identity(name: str, dtype: Any, *args: Any) -> Any:
    integer = not dtype.is_floating_point and dtype is not dtypes.bool_  # `iinfo` refuses complex ones
    if name in ("sum", "cumsum"):
        return 0
    if name in ("prod", "cumprod"):
        return 1
    if name in ("amax", "argmax", "logaddexp", "logsumexp"):
        if dtype.is_floating_point or (dtype.is_complex and name == "logsumexp"):
            return -inf
        if integer:
            return dtypes.iinfo(dtype).min
    if name in ("amin", "argmin"):
        if dtype.is_floating_point:
            return inf
        if integer:
            return dtypes.iinfo(dtype).max
    if name == "norm":
        return inf if args and args[0] == -inf else 0
    if name == "median":
        return nan
    if name in ("mean", "var", "std"):
        return None
    raise NotImplementedError(f"identity of {name} on {dtype} input")
