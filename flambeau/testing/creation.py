"""`make_tensor`: test tensors with random values of any dtype, within bounds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from .._tensor import Tensor
from .._tensor import functions as fn
from ..devices import device as Device
from ..devices import memory_format as MemoryFormat
from ..dtypes import dtype as DType
from ..dtypes import finfo, iinfo


def _bounds(low: float | None, high: float | None, default: tuple[float, float], lowest: float, upper: float,
            dtype: DType, continuous: bool) -> tuple[Any, Any]:
    """The interval [low, high) of the values, clipped to the range [lowest, upper) of the dtype.

    Raises:
        ValueError: a bound is NaN, or the interval is empty or outside the range of the dtype.
    """
    low = default[0] if low is None else low
    high = default[1] if high is None else high
    if any(isinstance(bound, float) and math.isnan(bound) for bound in (low, high)):
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and continuous:
        warnings.warn("Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated "
                      "since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.", FutureWarning,
                      stacklevel=3)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= upper:
        raise ValueError(f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only "
                         f"supports [{lowest}, {upper})")
    low, high = min(max(low, lowest), upper), min(max(high, lowest), upper)
    return (low, high) if continuous else (math.ceil(low), math.ceil(high))


def make_tensor(*shape: Any, dtype: DType, device: str | Device, low: float | None = None, high: float | None = None,
                requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: MemoryFormat | None = None) -> Tensor:
    """A tensor of random values, uniform in [low, high).

    See https://docs.pytorch.org/docs/stable/testing.html#torch.testing.make_tensor

    Args:
        shape: sizes, or a sequence of sizes.
        dtype: dtype of the tensor.
        device: its device.
        low: lower bound (default -9, for bool 0), clipped to the range of the dtype.
        high: upper bound (default 9, for integers 10, for bool 2), clipped to the range of the dtype.
        requires_grad: whether the tensor requires grad.
        noncontiguous: return every second element of a tensor of twice the width, if there are two elements.
        exclude_zero: replace 0 by 1; for floating point dtypes, by the smallest normal number.
        memory_format: memory format of the tensor; excludes `noncontiguous`.

    Raises:
        TypeError: `dtype` is not a dtype.
        ValueError: the interval is empty or outside the range of the dtype; `requires_grad` of an integer dtype;
            `noncontiguous` together with `memory_format`.

    >>> import flambeau as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.testing.make_tensor(3, dtype=torch.float32, device="cpu", low=0, high=1)
    tensor([0.4963, 0.7682, 0.0885])
    """
    if len(shape) == 1 and isinstance(shape[0], Sequence):
        shape = tuple(shape[0])
    if not isinstance(dtype, DType):
        raise TypeError(f"The requested dtype '{dtype}' is not supported by torch.testing.make_tensor().")
    continuous = dtype.is_floating_point or dtype.is_complex
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
                         f"{noncontiguous=} and {memory_format=}")
    if requires_grad and not continuous:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    noncontiguous = noncontiguous and math.prod(shape) > 1
    if noncontiguous:
        shape = (*shape[:-1], 2 * shape[-1])

    if continuous:
        limit = finfo(dtype)
        low, high = _bounds(low, high, (-9, 9), limit.min, limit.max, dtype, continuous)
        result: Tensor = fn.empty(shape, device=device, dtype=dtype)
        _draw(fn.view_as_real(result) if dtype.is_complex else result, low, high)
    else:
        boolean = dtype.name == "bool"
        lowest, upper = (0, 2) if boolean else (iinfo(dtype).min, iinfo(dtype).max + (dtype.name != "int64"))
        low, high = _bounds(low, high, (0, 2) if boolean else (-9, 10), lowest, upper, dtype, continuous)
        result = fn.randint(low, high, shape, device=device, dtype=dtype)

    if noncontiguous:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        result[result == 0] = finfo(dtype).tiny if continuous else 1
    if continuous:
        result.requires_grad = requires_grad
    return result


def _draw(x: Tensor, low: float, high: float) -> None:
    """Fill with uniform random values, even if `high - low` overflows the dtype."""
    if high - low >= finfo(x.dtype).max:
        x.uniform_(low / 2, high / 2).mul_(2)
    else:
        x.uniform_(low, high)


__all__ = ["make_tensor"]
