"""`where` and `clamp`, whose operands may be tensors, scalars or omitted."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import dtypes
from ...engine.tensor_interface import layer
from ...ops.declare import REGISTRY
from ...warning_location import user_stacklevel
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import not_a_tensor, type_name
from ..dispatch.apply import apply
from ..dispatch.out_tensors import write_out
from ..dispatch.promotion import result_type
from ..dispatch.public_functions import inplace_function, public_function
from ..fastpath.repeated_calls import repeated
from ..tensor import Tensor

__all__ = ["clamp", "clip", "where"]


@repeated
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Any = None) -> Any:
    """`input` where the condition is true, else `other`; with the condition alone, `nonzero(as_tuple=True)`.

    >>> import flambeau as torch
    >>> torch.where(torch.tensor([True, False]), 1., 0.)
    tensor([1., 0.])
    """
    if not isinstance(condition, Tensor):
        raise not_a_tensor("where", condition, "condition")
    if input is None and other is None:
        if not isinstance(condition._array, np.ndarray):
            raise RuntimeError("vmap: We do not support batching operators that can output dynamic shape. Attempted to "
                               "vmap over aten::where. Please file an issue at "
                               "https://github.com/pytorch/pytorch/issues if you need this feature.")
        return layer.functions.nonzero(condition, as_tuple=True)
    kind = condition._array.dtype
    if kind.kind != "b":
        if kind != np.uint8:
            raise RuntimeError("where expected condition to be a boolean tensor, but got a tensor with dtype "
                               f"{condition.dtype.scalar_name}")
        warnings.warn("where received a uint8 condition tensor. This behavior is deprecated and will be removed in a "
                      "future version of PyTorch. Use a boolean condition instead.",
                      UserWarning, stacklevel=user_stacklevel())
        condition = condition.to(dtypes.bool_)
    if out is not None:
        for position, (name, x) in enumerate((("input", input), ("other", other)), 2):
            if isinstance(x, (bool, int, float, complex, np.generic)):
                raise not_a_tensor("where", x, name, position)
        return public_function(REGISTRY["where"])(condition, input, other, out=out)
    for name, x in (("input", input), ("other", other)):
        if not isinstance(x, (Tensor, bool, int, float, complex, np.generic)):
            raise TypeError(f"where(): argument '{name}' must be Tensor, not {type_name(x)}")
    input, other = (dtypes.python_number(x) if isinstance(x, np.generic) else x for x in (input, other))
    if input.__class__ is complex or other.__class__ is complex:  # PyTorch converts the other operand beforehand
        input, other = (x.to(result_type([input, other])) if isinstance(x, Tensor) else x for x in (input, other))
    return apply(REGISTRY["where"], [condition, input, other])


def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where the condition is true, else `other`.

    >>> import flambeau as torch
    >>> torch.ones(2).where(torch.tensor([True, False]), 0.)
    tensor([1., 0.])
    """
    return where(condition, self, other)


_BOUNDS = frozenset((int, float, type(None)))
_CLAMP_SCALARS = REGISTRY["_clamp_scalars"]


def _clamp_operator(min: Any, max: Any) -> tuple[str, list[Any], dict[str, Any]]:
    """The operator for these bounds: (its key, the inputs after the first, the parameters)."""
    if min.__class__ in _BOUNDS and max.__class__ in _BOUNDS and (min is not None or max is not None):
        return "_clamp_scalars", [], {"min": min, "max": max}
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(min, Tensor) or isinstance(max, Tensor):
        for name, bound, other in (("min", min, max), ("max", max, min)):
            if not isinstance(bound, Tensor) and bound is not None:
                if other._array.ndim or other.requires_grad:
                    raise TypeError(f"clamp(): argument '{name}' must be Tensor, not {type_name(bound)}")
                min, max = (x.item() if isinstance(x, Tensor) else x for x in (min, max))
                return _clamp_operator(min, max)
        if max is None:
            return "_clamp_below", [min], {}
        if min is None:
            return "_clamp_above", [max], {}
        return "_clamp_tensors", [min, max], {}
    # numbers, whose dtype does not count
    min, max = (dtypes.python_number(x) if isinstance(x, np.generic) or dtypes.is_derived_number(x) else x
                for x in (min, max))
    return "_clamp_scalars", [], {"min": min, "max": max}


@repeated
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Any = None) -> Tensor:
    """The input limited to [min, max]; either bound may be omitted or a tensor.

    >>> import flambeau as torch
    >>> torch.clamp(torch.tensor([-2., 0.5, 3.]), -1, 1)
    tensor([-1.0000,  0.5000,  1.0000])
    """
    if out is None and min.__class__ in _BOUNDS and max.__class__ in _BOUNDS and isinstance(input, Tensor) and (
            min is not None or max is not None):
        return apply(_CLAMP_SCALARS, [input], {"min": min, "max": max})
    key, bounds, params = _clamp_operator(min, max)
    op = REGISTRY[key]
    if not isinstance(input, Tensor):
        raise not_a_tensor("clamp", input)
    if out is not None:
        check_records_nothing("clamp", (input, *bounds), (out,))
    result = apply(op, [input, *bounds], params)
    return result if out is None else write_out(op, result, out)


clip = clamp


def clamp_(self: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """`clamp`, in place.

    >>> import flambeau as torch
    >>> torch.tensor([-2., 3.]).clamp_(0, 1)
    tensor([0., 1.])
    """
    key, bounds, params = _clamp_operator(min, max)
    if complex in map(type, params.values()) and self.is_floating_point():
        raise RuntimeError("value cannot be converted to type double without overflow")
    return inplace_function(REGISTRY[key])(self, *bounds, **params)


METHODS: dict[str, Any] = {"where": _where_method, "clamp": clamp, "clip": clamp, "clamp_": clamp_, "clip_": clamp_}
