"""Choosing between values, where bounds and operands may be tensors, numbers or left out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import dtypes
from ...engine.tensor_interface import layer
from ...ops.declare import REGISTRY
from ..dispatch.apply import apply
from ..dispatch.binding import functions_of, in_place, write_out
from ..tensor import Tensor

__all__ = ["clamp", "clip", "where"]


def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """input where the condition holds, else other; the positions where it holds, if neither is given.

    >>> import flambeau as torch
    >>> torch.where(torch.tensor([True, False]), 1., 0.)
    tensor([1., 0.])
    """
    if input is None and other is None:
        if condition._array.__class__ is not np.ndarray:
            raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape. Attempted to "
                               "vmap over aten::where. Please file an issue at "
                               "https://github.com/pytorch/pytorch/issues if you need this feature.")
        return layer.functions.nonzero(condition, as_tuple=True)
    if not isinstance(condition, Tensor):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    kind = condition._array.dtype
    if kind.kind != "b":
        if kind != np.uint8:
            raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor with dtype "
                               f"{condition.dtype.scalar_name}")
        warnings.warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
                      "future version of PyTorch. Use a boolean condition instead.", UserWarning, stacklevel=2)
        condition = condition.to(dtypes.bool_)
    if out is not None:
        return functions_of(REGISTRY["where"])(condition, input, other, out=out)
    for name, x in (("input", input), ("other", other)):
        if not isinstance(x, (Tensor, bool, int, float, complex, np.generic)):
            raise TypeError(f"where(): argument '{name}' must be Tensor, not {type(x).__name__}")
    input, other = (x.item() if isinstance(x, np.generic) else x for x in (input, other))
    return apply(REGISTRY["where"], [condition, input, other])


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where the condition holds, else other."""
    return where(condition, self, other)


def _bounded(min: Any, max: Any) -> tuple[str, list[Any], dict[str, Any]]:
    """The operator that these bounds ask for, and its arguments after the input."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        for name, bound in (("min", min), ("max", max)):
            if not isinstance(bound, Tensor) and bound is not None:
                raise TypeError(f"clamp(): argument '{name}' must be Tensor, not {type(bound).__name__}")
        if max is None:
            return "_clamp_below", [min], {}
        if min is None:
            return "_clamp_above", [max], {}
        return "_clamp_tensors", [min, max], {}
    return "_clamp_scalars", [], {"min": min, "max": max}


def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """Limited to [min, max]; either bound may be left out, and may be a tensor.

    >>> import flambeau as torch
    >>> torch.clamp(torch.tensor([-2., 0.5, 3.]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    key, bounds, params = _bounded(min, max)
    op = REGISTRY[key]
    if not isinstance(input, Tensor):
        raise TypeError(f"clamp(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    found = apply(op, [input, *bounds], params)
    return found if out is None else write_out(op, found, out)


clip = clamp


def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clamp`, written over this tensor."""
    key, bounds, params = _bounded(min, max)
    return in_place(REGISTRY[key])(self, *bounds, **params)


METHODS: dict[str, Any] = {"where": _where_method, "clamp": clamp, "clip": clamp, "clamp_": clamp_, "clip_": clamp_}
