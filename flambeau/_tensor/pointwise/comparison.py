"""Comparisons of tensors: `equal`, `isclose`, `allclose`; and sign tests with a bool `out=`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.sparse_array import SparseArray, not_implemented
from ...engine.tensor_interface import layer
from ...modes import special
from ...ops.declare import REGISTRY
from ..argument_errors.guards import raise_refusal
from ..argument_errors.messages import unfit
from ..argument_errors.type_names import not_a_tensor
from ..dispatch.public_functions import public_function
from ..meta import is_meta, no_meta_kernel
from ..overriding.first_calls import called_again
from ..tensor import Tensor
from ..tracer_notifications import notify_read

__all__ = ["allclose", "equal", "isclose", "isneginf", "isposinf", "signbit"]


def _with_boolean_out(name: str) -> Any:
    """A predicate whose `out=` must be a bool tensor."""
    op = REGISTRY[name]
    call = public_function(op)

    def classify(input: Tensor, *, out: Any = None) -> Tensor:
        if out is None:
            return call(input)
        if out.dtype is not dtypes.bool_:
            raise RuntimeError(f"{name} does not support non-boolean outputs.")
        return call(input, out=out)

    classify.__name__ = classify.__qualname__ = name
    classify.__doc__ = op.doc
    return classify


isposinf, isneginf, signbit = (_with_boolean_out(name) for name in ("isposinf", "isneginf", "signbit"))


def _check_tensors(name: str, input: Any, other: Any) -> None:
    for position, (argument, x) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(x, Tensor):
            raise_refusal(unfit((name,), (input, other), {}))
            raise not_a_tensor(name, x, argument, position)


def _check_no_batches(text: str, *inputs: Tensor) -> None:
    if any(not isinstance(x._array, np.ndarray) for x in inputs):
        raise RuntimeError(text)


def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements.

    >>> import flambeau as torch
    >>> torch.equal(torch.tensor([1, 2]), torch.tensor([1, 2]))
    True
    """
    try:
        _check_tensors("equal", input, other)
    except TypeError:
        result = called_again(equal, (input, other), {})
        if result is NotImplemented:
            raise
        return result
    if special[0]:
        _check_no_batches("Batching rule not implemented for aten::equal. We could not generate a fallback.", input,
                          other)
        notify_read(input, "equal()")
    if is_meta(input) or is_meta(other):
        raise no_meta_kernel("equal")
    a, b = dtypes.widen(input._array), dtypes.widen(other._array)
    for each in (a, b):
        if isinstance(each, SparseArray):
            raise not_implemented("equal", each.layout)
    return a.shape == b.shape and bool(np.all(a == b))


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Elementwise, whether |input - other| ≤ atol + rtol · |other|.

    Raises:
        RuntimeError: the dtypes differ, or a tolerance is negative.

    >>> import flambeau as torch
    >>> torch.isclose(torch.tensor([1., 2.]), torch.tensor([1., 2.1]))
    tensor([ True, False])
    """
    fn = layer.functions

    _check_tensors("isclose", input, other)
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{input.dtype.scalar_name} did not match {other.dtype.scalar_name}")
    for position, name, value in ((3, "rtol", rtol), (4, "atol", atol)):
        if not isinstance(value, (int, float, np.number)) and (
                not isinstance(value, Tensor) or value._array.ndim or value._requires_grad):
            raise TypeError(f"isclose(): argument '{name}' (position {position}) must be float, not "
                            f"{type(value).__name__}")
        if value < 0 or math.isnan(value):
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")
    from ...engine.grad_mode import no_grad

    with no_grad():
        close: Any = input == other
        if equal_nan and input.dtype.category >= dtypes.FLOATING:
            close = close | (fn.isnan(input) & fn.isnan(other))
        if rtol == 0 and atol == 0:
            return close
        if input.dtype.category < dtypes.FLOATING:
            d = dtypes.get_default_dtype()
            input, other = input.to(d), other.to(d)
        allowed = atol + (rtol * other).abs()
        error = (input - other).abs()
        return close | (fn.isfinite(error) & (error <= allowed))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds for all elements.

    >>> import flambeau as torch
    >>> torch.allclose(torch.tensor([1., 2.]), torch.tensor([1., 2.000001]))
    True
    """
    if special[0] and not (
            isinstance(input._array, np.ndarray) and isinstance(other._array, np.ndarray)):
        raise RuntimeError("vmap over torch.allclose isn't supported yet. Please file an issue at "
                           "https://github.com/pytorch/pytorch/issues if you need this feature.")
    if special[0]:
        _check_no_batches("vmap over torch.allclose isn't supported yet. Please file an issue at "
                          "https://github.com/pytorch/pytorch/issues if you need this feature.", input, other)
        notify_read(input, "allclose()")
    close = isclose(input, other, rtol, atol, equal_nan)
    return bool(np.all(close._array)) if not is_meta(close) else close.all().item()  # which raises


METHODS: dict[str, Any] = {"equal": equal, "isclose": isclose, "allclose": allclose, "isposinf": isposinf,
                           "isneginf": isneginf, "signbit": signbit}
