"""Stand-in for `torch.testing`: random tensors of a dtype, and closeness as an assertion."""

from __future__ import annotations

from typing import Any

import torch

from .comparing import Comparison, Differs


def make_tensor(*shape: Any, dtype: Any, device: Any = "cpu", low: float | None = None, high: float | None = None,
                requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False,
                memory_format: Any = None) -> Any:
    """Random values between low and high, by default -9 to 9 (whole numbers: to 10; bool: 0 or 1)."""
    if len(shape) == 1 and not isinstance(shape[0], int):
        shape = tuple(shape[0])
    drawn = (*shape[:-1], 2 * shape[-1]) if noncontiguous and shape else shape
    if dtype == torch.bool:
        made = torch.randint(0, 2, drawn).to(dtype)
    elif dtype.is_floating_point or dtype.is_complex:
        low, high = -9.0 if low is None else low, 9.0 if high is None else high
        made = torch.empty(drawn, dtype=torch.float64).uniform_(low, high)
        if dtype.is_complex:
            made = torch.complex(made, torch.empty(drawn, dtype=torch.float64).uniform_(low, high))
        made = made.to(dtype)
    else:
        least = 0 if dtype == torch.uint8 else -9
        made = torch.randint(int(least if low is None else low), int(10 if high is None else high), drawn).to(dtype)
    if exclude_zero:
        made = torch.where(made == 0, torch.ones_like(made), made)
    if drawn is not shape:
        made = made[..., ::2]
    return made.requires_grad_(requires_grad)


def assert_close(actual: Any, expected: Any, *, rtol: float | None = None, atol: float | None = None,
                 equal_nan: bool = False, check_dtype: bool = True, msg: Any = None, **_checks: Any) -> None:
    """Raise AssertionError where the two differ by more than rounding."""
    try:
        Comparison(atol, rtol, equal_nan, check_dtype).check(actual, expected)
    except Differs as error:
        raise AssertionError(str(error) if msg is None else str(msg)) from None
