"""Operators of one masked tensor, which compute the data and keep the mask."""

from __future__ import annotations

from typing import Any

from ... import devices
from ..._tensor import Tensor
from ..._tensor.sparse.constructors import sparse_coo_tensor, sparse_csr_tensor
from ...ops import aten
from .core import OPERATORS, mapped, wrap_result

UNARY_NAMES = [
    "abs", "absolute", "acos", "arccos", "acosh", "arccosh", "angle", "asin", "arcsin", "asinh", "arcsinh", "atan",
    "arctan", "atanh", "arctanh", "bitwise_not", "ceil", "clamp", "clip", "conj_physical", "cos", "cosh", "deg2rad",
    "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1", "fix", "floor", "frac", "lgamma", "log", "log10",
    "log1p", "log2", "logit", "i0", "isnan", "nan_to_num", "neg", "negative", "positive", "pow", "rad2deg",
    "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sgn", "signbit", "sin", "sinc", "sinh", "sqrt", "square",
    "tan", "tanh", "trunc",
]
INPLACE_UNARY_NAMES = [f"{name}_" for name in UNARY_NAMES if name not in ("angle", "positive", "signbit", "isnan")]
#: names of unary and similar operators that masked tensors do not have
UNARY_NAMES_UNSUPPORTED = [
    "atan2", "arctan2", "bitwise_left_shift", "bitwise_right_shift", "copysign", "float_power", "fmod", "frexp",
    "gradient", "imag", "ldexp", "lerp", "logical_not", "hypot", "igamma", "igammac", "mvlgamma", "nextafter",
    "polygamma", "real", "remainder", "true_divide", "xlogy",
]


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """A sparse tensor with the positions of another."""
    if x.layout == devices.sparse_coo:
        return sparse_coo_tensor(x.indices(), values, x.size())
    return sparse_csr_tensor(x.crow_indices(), x.col_indices(), values, x.size())


def _apply_native_unary(packet: Any, *args: Any, **kwargs: Any) -> Any:
    """Apply an operator to the data.

    Raises:
        ValueError: there are keyword arguments.
        TypeError: a later argument is a tensor.
    """
    if kwargs:
        raise ValueError("MaskedTensor unary ops require that len(kwargs) == 0. If you need support for this, please "
                         "open an issue on Github.")
    if any(isinstance(a, Tensor) for a in args[1:]):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    x, *rest = args
    data = x._masked_data
    if data.layout == devices.strided:
        result = packet(data, *rest)
    else:
        if data.layout == devices.sparse_coo:
            data = data.coalesce()
        result = with_values(data, packet(data.values(), *rest))
    if packet.__name__.endswith("_"):
        x._set_data_mask(result, x._masked_mask)
        return x
    return wrap_result(result, mapped(x, lambda each: each._masked_mask))


NATIVE_UNARY_FNS = [getattr(aten, name) for name in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(aten, name) for name in INPLACE_UNARY_NAMES]
OPERATORS.update(dict.fromkeys((*UNARY_NAMES, *INPLACE_UNARY_NAMES), _apply_native_unary))


def _is_native_unary(packet: Any) -> bool:
    return packet in NATIVE_UNARY_FNS or packet in NATIVE_INPLACE_UNARY_FNS


__all__ = ["INPLACE_UNARY_NAMES", "NATIVE_INPLACE_UNARY_FNS", "NATIVE_UNARY_FNS", "UNARY_NAMES",
           "UNARY_NAMES_UNSUPPORTED"]
