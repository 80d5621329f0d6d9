"""How two values that are no containers are compared: None, booleans, numbers, tensors and what makes tensors.

A comparison is found first, which fails where the values are of no comparable kinds, and run
afterwards, which fails where they differ.
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
from .mismatch import Mismatch, of_scalars, of_tensors
from .tolerances import tolerances

Where = tuple[Any, ...]
Run = Callable[[], None]

_NUMBERS = {int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}
_UNSIGNED = (dtypes.uint16, dtypes.uint32, dtypes.uint64)


@dataclass(slots=True)
class Closeness:
    """What counts as close: `assert_close`'s options."""

    allow_subclasses: bool = True
    rtol: float | None = None
    atol: float | None = None
    equal_nan: bool = False
    check_device: bool = True
    check_dtype: bool = True
    check_layout: bool = True
    check_stride: bool = False


def of_none(actual: Any, expected: Any, where: Where, _: Closeness) -> Run | None:
    """None is close to None only."""
    if actual is not None and expected is not None:
        return None

    def compare() -> None:
        if actual is not expected:
            raise Mismatch(f"None mismatch: {actual} is not {expected}", where)

    return compare


def of_booleans(actual: Any, expected: Any, where: Where, _: Closeness) -> Run | None:
    """Python's booleans, and NumPy's, must be equal."""
    if not (isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_))):
        return None

    def compare() -> None:
        if bool(actual) is not bool(expected):
            raise Mismatch(f"Booleans mismatch: {bool(actual)} is not {bool(expected)}", where)

    return compare


def of_numbers(actual: Any, expected: Any, where: Where, closeness: Closeness) -> Run | None:
    """Python's numbers, and NumPy's, are close as tensors of their dtype would be."""
    kinds = (*_NUMBERS, np.number)
    if not (isinstance(actual, kinds) and isinstance(expected, kinds)):
        return None
    a: Any = actual.item() if isinstance(actual, np.number) else actual
    b: Any = expected.item() if isinstance(expected, np.number) else expected
    rtol, atol = tolerances(closeness.rtol, closeness.atol, (_NUMBERS[type(a)], _NUMBERS[type(b)]), where)

    def compare() -> None:
        if closeness.check_dtype and type(a) is not type(b):
            raise Mismatch(f"The (d)types do not match: {type(a)} != {type(b)}.", where)
        if a == b or (closeness.equal_nan and cmath.isnan(a) and cmath.isnan(b)):
            return
        apart = abs(a - b)
        if not (cmath.isfinite(apart) and apart <= atol + rtol * abs(b)):
            raise Mismatch(of_scalars(a, b, rtol, atol), where)

    return compare


def of_tensors_alike(actual: Any, expected: Any, where: Where, closeness: Closeness) -> Run | None:
    """Tensors, and what `as_tensor` takes, if the one's type is the other's, or derived from it."""
    if not (isinstance(actual, type(expected)) or isinstance(expected, type(actual))):
        return None
    if not closeness.allow_subclasses and type(actual) is not type(expected):
        return None
    try:
        a, b = (x if isinstance(x, Tensor) else fn.as_tensor(x) for x in (actual, expected))
    except Exception:  # whatever it is, it is not like a tensor
        return None
    rtol, atol = tolerances(closeness.rtol, closeness.atol, (a.dtype, b.dtype), where)
    return partial(_compare_tensors, a, b, where, closeness, rtol, atol)


def _compare_tensors(actual: Tensor, expected: Tensor, where: Where, closeness: Closeness, rtol: float,
                     atol: float) -> None:
    _compare_attributes(actual, expected, where, closeness)
    a, b = actual.detach(), expected.detach()
    if a.device != b.device:
        a, b = a.cpu(), b.cpu()
    if a.dtype != b.dtype:
        common = dtypes.promote_types(*(dtypes.int64 if x.dtype in _UNSIGNED else x.dtype for x in (a, b)))
        a, b = a.to(common), b.to(common)
    matches = fn.isclose(a, b, rtol=rtol, atol=atol, equal_nan=closeness.equal_nan)
    if fn.all(matches):
        return
    if a._array.ndim:
        raise Mismatch(of_tensors(a, b, matches, rtol, atol), where)
    raise Mismatch(of_scalars(a.item(), b.item(), rtol, atol), where)


def _compare_attributes(actual: Tensor, expected: Tensor, where: Where, closeness: Closeness) -> None:
    attributes: list[tuple[str, Any, Any]] = [("shape", actual.shape, expected.shape)]
    if closeness.check_layout:
        attributes.append(("layout", actual.layout, expected.layout))
    if closeness.check_stride:
        attributes.append(("stride()", actual.stride(), expected.stride()))
    if closeness.check_device:
        attributes.append(("device", actual.device, expected.device))
    if closeness.check_dtype:
        attributes.append(("dtype", actual.dtype, expected.dtype))
    for name, a, b in attributes:
        if a != b:
            raise Mismatch(f"The values for attribute '{name}' do not match: {a} != {b}.", where)


#: tried in this order; under the names that errors have for them
KINDS: dict[str, Callable[[Any, Any, Where, Closeness], Run | None]] = {
    "NonePair": of_none, "BooleanPair": of_booleans, "NumberPair": of_numbers, "TensorLikePair": of_tensors_alike}

__all__ = ["KINDS", "Closeness", "Run", "Where"]
