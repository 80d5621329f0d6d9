"""Methods that call a Python function for each element: `apply_`, `map_` and `map2_`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...dtypes import float32
from ...engine.saved.saved_tensor_mutation import before_write
from ..argument_errors.type_names import not_a_tensor
from ..creation.from_data import tensor
from ..tensor import Tensor
from ..tracer_notifications import notify_read


def _check(name: str, self: Tensor, function: Any) -> None:
    if self._requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if not callable(function):
        raise TypeError(f"'{type(function).__name__}' object is not callable")


def _values(x: Tensor) -> np.ndarray:
    notify_read(x, "a Python function is called for each element")
    narrow = x.dtype.itemsize == 2 and x.dtype.is_floating_point
    return x.to(float32).numpy() if narrow else x.numpy()


def _as_float(value: Any) -> float:
    """Raises TypeError for what is no real number, a string for instance."""
    return math.ldexp(value, 0)


def _as_complex(value: Any) -> complex:
    return value if isinstance(value, complex) else _as_float(value)


def _as_bool(value: Any) -> bool:
    return bool(value if isinstance(value, (float, complex)) else operator.index(value))


def _as_integer(value: Any, dtype: np.dtype[Any]) -> int:
    """The value as an integer of a dtype; negative ones wrap around in unsigned dtypes."""
    bounds = np.iinfo(dtype)
    if isinstance(value, float):
        if not bounds.min <= value <= bounds.max:  # NaN as well
            raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
        return int(value)
    number = operator.index(value)
    if dtype == np.uint64 and number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if dtype != np.uint64 and not -2 ** 63 <= number < 2 ** 63:
        raise ValueError("Overflow when unpacking long long")
    if not (bounds.min or -int(bounds.max)) <= number <= bounds.max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow")
    return number & int(bounds.max) if bounds.min == 0 else number


def _converter(dtype: np.dtype[Any]) -> Callable[[Any], Any]:
    """The conversion of what a Python function returns to an element of a dtype."""
    kind: Any = {"f": _as_float, "c": _as_complex, "b": _as_bool}.get(dtype.kind)
    return kind or (lambda value: _as_integer(value, dtype))


@np.errstate(over="ignore")
def _write(self: Tensor, function: Callable[..., Any], *operands: np.ndarray) -> Tensor:
    """Write the function's value at each element, in row-major order, up to one that cannot be converted."""
    before_write(self)
    out = operands[0].copy()
    convert = _converter(out.dtype)
    try:
        for index in np.ndindex(*out.shape):
            out[index] = convert(function(*(x[index].item() for x in operands)))
    finally:
        self.data.copy_(tensor(out))  # the version stays, as in PyTorch
    return self


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by a Python function's value of it; slow.

    Raises:
        RuntimeError: the tensor requires grad, or a value is too large for its dtype.
        TypeError: a value is no number.

    >>> import flambeau as torch
    >>> torch.tensor([1., 2.]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    _check("apply_", self, callable)
    if self.is_meta:
        return self
    return _write(self, callable, _values(self))


def _operand(name: str, what: str, self: Tensor, other: Any, position: int) -> np.ndarray:
    if not isinstance(other, Tensor):
        raise not_a_tensor(name, other, "other", position)
    if other.dtype is not self.dtype:
        raise TypeError(f"{name}: expected torch.{self.dtype.scalar_name}Tensor for {what} (got "
                        f"torch.{other.dtype.scalar_name}Tensor)")
    return _values(other.expand(*self.shape))


def map_(self: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by a Python function's value of it and the element of `other`; slow.

    Raises:
        RuntimeError: the tensor requires grad, or a value is too large for its dtype.
        TypeError: a value is no number.

    >>> import flambeau as torch
    >>> torch.tensor([1., 2.]).map_(torch.tensor([3., 4.]), lambda x, y: x * y)
    tensor([3., 8.])
    """
    _check("map_", self, callable)
    if self.is_meta:
        return self
    return _write(self, callable, _values(self), _operand("map_", "'other'", self, other, 1))


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by a Python function's value of it and the elements of `x` and `y`; slow.

    Raises:
        RuntimeError: the tensor requires grad, or a value is too large for its dtype.
        TypeError: a value is no number.

    >>> import flambeau as torch
    >>> torch.tensor([1., 2.]).map2_(torch.ones(2), torch.ones(2), lambda a, b, c: a + b + c)
    tensor([3., 4.])
    """
    _check("map2_", self, callable)
    if self.is_meta:
        return self
    return _write(self, callable, _values(self), _operand("map2_", "argument 'x'", self, x, 1),
                  _operand("map2_", "argument 'y'", self, y, 2))


METHODS: dict[str, Any] = {"apply_": apply_, "map_": map_, "map2_": map2_}
