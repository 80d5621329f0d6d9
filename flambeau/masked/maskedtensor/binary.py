"""Operators of two tensors of which one at least is masked; two masks must agree."""

from __future__ import annotations

from typing import Any

from ... import devices
from ..._tensor import Tensor
from ...ops import aten
from .core import OPERATORS, _masks_match, _positions, _tensors_match, is_masked_tensor, mapped, wrap_result
from .unary import with_values

BINARY_NAMES = [
    "add", "atan2", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift",
    "bitwise_right_shift", "div", "divide", "floor_divide", "fmod", "logaddexp", "logaddexp2", "mul", "multiply",
    "nextafter", "remainder", "sub", "subtract", "true_divide", "eq", "ne", "le", "ge", "greater", "greater_equal",
    "gt", "less_equal", "lt", "less", "maximum", "minimum", "fmax", "fmin", "not_equal",
]
INPLACE_BINARY_NAMES = [f"{name}_" for name in BINARY_NAMES
                        if name not in ("logaddexp", "logaddexp2", "fmin", "minimum", "maximum", "fmax")]


def _get_at_least_one_mask(a: Any, b: Any) -> Tensor:
    """The mask of the operands.

    Raises:
        TypeError: neither has one.
        ValueError: they have two that differ.
    """
    if not is_masked_tensor(a) and not is_masked_tensor(b):
        raise TypeError("At least one of `a` and `b` must be a MaskedTensor")
    if not _masks_match(a, b):
        raise ValueError("a and b must have matching masks")
    mask: Tensor = (a if is_masked_tensor(a) else b).get_mask()
    return mask


def _apply_native_binary(packet: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply an operator to the data of both operands.

    Raises:
        ValueError: there are keyword arguments, or the masks or positions differ.
        TypeError: a third argument is a tensor.
    """
    if kwargs:
        raise ValueError("len(kwargs) must equal 0")
    if any(isinstance(a, Tensor) for a in args[2:]):
        raise TypeError("MaskedTensor binary ops do not support Tensor arguments aside from the lhs and rhs")
    if not _masks_match(*args[:2]):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    a, b, *rest = mapped(args, lambda x: x.get_data())
    if a.layout == devices.strided:
        result = packet(a, b, *rest)
    else:
        if isinstance(b, Tensor) and b.layout == a.layout:
            name = "sparse_coo" if a.layout == devices.sparse_coo else "sparse_csr"
            if not all(_tensors_match(x, y) for x, y in zip(_positions(a), _positions(b), strict=True)):
                raise ValueError(f"{name} indices must match. If you need support for this, please open an issue on "
                                 "Github.")
            if a.size() != b.size():
                raise ValueError("input1 and input2 must have the same size for binary functions.")
            b = b.values()
        result = with_values(a, packet(a.values(), b, *rest))
    if packet.__name__.endswith("_"):
        args[0]._set_data_mask(result, mapped(args[0], lambda x: x.get_mask()))
        return args[0]
    mask = _get_at_least_one_mask(*args[:2])
    return wrap_result(result, mask.expand_as(result) if a.layout == devices.strided else mask)


NATIVE_BINARY_FNS = [getattr(aten, name) for name in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(aten, name) for name in INPLACE_BINARY_NAMES]
OPERATORS.update(dict.fromkeys((*BINARY_NAMES, *INPLACE_BINARY_NAMES), _apply_native_binary))


def _is_native_binary(packet: Any) -> bool:
    return packet in NATIVE_BINARY_FNS or packet in NATIVE_INPLACE_BINARY_FNS


__all__ = ["BINARY_NAMES", "INPLACE_BINARY_NAMES", "NATIVE_BINARY_FNS", "NATIVE_INPLACE_BINARY_FNS"]
