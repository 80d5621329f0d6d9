"""Methods that call a Python function for each element: `apply_`, `map_` and `map2_`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import float32
from ..engine.saved.saved_tensor_mutation import before_write
from .creation.from_data import tensor
from .tensor import Tensor
from .tracer_notifications import notify_read


def _check(name: str, self: Tensor, function: Any) -> None:
    if self._requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
    if not callable(function):
        raise TypeError(f"'{type(function).__name__}' object is not callable")


def _values(x: Tensor) -> np.ndarray:
    notify_read(x, "a Python function is called for each element")
    narrow = x.dtype.itemsize == 2 and x.dtype.is_floating_point
    return x.to(float32).numpy() if narrow else x.numpy()


def _write(self: Tensor, function: Callable[..., Any], *operands: np.ndarray) -> Tensor:
    """Write the function's value at each element, in row-major order."""
    before_write(self)
    kind = {"f": float, "c": complex, "b": bool}.get(operands[0].dtype.kind, int)
    out = np.empty(operands[0].shape, operands[0].dtype)
    for index in np.ndindex(*out.shape):
        out[index] = kind(function(*(x[index].item() for x in operands)))
    self.copy_(tensor(out))
    return self


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by a Python function's value of it; slow.

    Raises:
        RuntimeError: the tensor requires grad.

    >>> import flambeau as torch
    >>> torch.tensor([1., 2.]).apply_(lambda x: x + 1)
    tensor([2., 3.])
    """
    _check("apply_", self, callable)
    return _write(self, callable, _values(self))


def _operand(name: str, what: str, self: Tensor, other: Any, position: int) -> np.ndarray:
    if not isinstance(other, Tensor):
        raise TypeError(f"{name}(): argument 'other' (position {position}) must be Tensor, not {type(other).__name__}")
    if other.dtype is not self.dtype:
        raise TypeError(f"{name}: expected torch.{self.dtype.scalar_name}Tensor for {what} (got "
                        f"torch.{other.dtype.scalar_name}Tensor)")
    return _values(other.expand(*self.shape))


def map_(self: Tensor, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by a Python function's value of it and the element of `other`; slow.

    Raises:
        RuntimeError: the tensor requires grad.

    >>> import flambeau as torch
    >>> torch.tensor([1., 2.]).map_(torch.tensor([3., 4.]), lambda x, y: x * y)
    tensor([3., 8.])
    """
    _check("map_", self, callable)
    return _write(self, callable, _values(self), _operand("map_", "'other'", self, other, 1))


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replace each element by a Python function's value of it and the elements of `x` and `y`; slow.

    Raises:
        RuntimeError: the tensor requires grad.

    >>> import flambeau as torch
    >>> torch.tensor([1., 2.]).map2_(torch.ones(2), torch.ones(2), lambda a, b, c: a + b + c)
    tensor([3., 4.])
    """
    _check("map2_", self, callable)
    return _write(self, callable, _values(self), _operand("map2_", "argument 'x'", self, x, 1),
                  _operand("map2_", "argument 'y'", self, y, 2))


METHODS: dict[str, Any] = {"apply_": apply_, "map_": map_, "map2_": map2_}
