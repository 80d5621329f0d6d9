"""`torch.ops.aten`: declared operators under the names of PyTorch's dispatcher, for comparison and printing.

    torch.ops.aten.mm.default       one operator: an overload
    torch.ops.aten.mm               an overload packet: all overloads of a name

A declared operator has one overload or, where PyTorch has another for a scalar input, two. The names of in-place
operators end in an underscore.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .declare import COMPOSITE, REGISTRY, Op

# Overload names other than `name.default`, by registry key.
_TENSOR = ("add", "mul", "sub", "div", "_rsub", "clamp_max", "clamp_min", "copysign", "fmod", "remainder", "frexp",
           "ldexp", "xlogy", "lerp", "masked_fill", "slice", "_split", "unsafe_split", "_clamp_tensors", "_clamp_below",
           "_clamp_above", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift",
           "eq", "ne", "lt", "le", "gt", "ge", "_add_scaled", "_sub_scaled", "floor_divide", "_index", "nextafter")
_SCALAR = ("_copysign_scalar", "_fmod_scalar", "_remainder_scalar", "_lerp_scalar", "_masked_fill_scalar",
           "_rsub_scalar", "_fill_scalar")
_NAMES = {
    **{key: f"{key.strip('_').partition('_scaled')[0]}.Tensor" for key in _TENSOR},
    **{key: f"{key.strip('_').removesuffix('_scalar')}.Scalar" for key in _SCALAR},
    **{f"_{name}_scalar": f"{name}.Tensor" for name in ("add", "sub", "mul", "div")},
    **{f"_{name}_all": f"{name}.default" for name in ("sum", "mean", "prod", "max", "min", "median", "nanmedian",
                                                      "squeeze")},
    **{f"_{name}_dim": f"{name}.dim" for name in ("max", "min", "median", "nanmedian")},
    **{f"_{name}": f"{name}.default" for name in ("adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool2d",
                                                  "avg_pool3d", "max_unpool2d", "max_unpool3d", "as_strided_copy")},
    "_normal_NormalBackward1": "normal.Tensor_float", "_normal_NormalBackward2": "normal.float_Tensor",
    "_normal_NormalBackward3": "normal.Tensor_Tensor",
    "_split": "split.Tensor", "_clamp_tensors": "clamp.Tensor", "_clamp_below": "clamp.Tensor",
    "_clamp_above": "clamp.Tensor", "nextafter": "nextafter.default", "floor_divide": "floor_divide.default",
    "_clamp_scalars": "clamp.default", "_clamp_min_scalar": "clamp_min.default",
    "_clamp_max_scalar": "clamp_max.default", "_scalar_remainder": "remainder.Scalar_Tensor",
    "_div_rounded": "div.Tensor_mode", "_div_rounded_twice": "div.Tensor_mode", "_div_floored": "div.Tensor_mode",
    "pow": "pow.Tensor_Tensor", "_pow_scalar": "pow.Tensor_Scalar", "_scalar_pow": "pow.Scalar",
    "sum": "sum.dim_IntList", "mean": "mean.dim", "prod": "prod.dim_int", "std": "std.correction",
    "var": "var.correction", "std_mean": "std_mean.correction", "var_mean": "var_mean.correction",
    "transpose": "transpose.int", "transpose_copy": "transpose_copy.int", "select": "select.int",
    "unbind": "unbind.int", "unbind_copy": "unbind_copy.int", "_squeeze_dim": "squeeze.dim",
    "_squeeze_dims": "squeeze.dims", "_unsafe_squeeze": "squeeze.dim", "_squeeze_all_copy": "squeeze_copy.default",
    "_squeeze_dim_copy": "squeeze_copy.dim", "_view_dtype": "view.dtype", "_reshape_alias": "_reshape_alias.default",
    "_round_decimals": "round.decimals", "where": "where.self", "_sort_stable": "sort.stable",
    "_scatter": "scatter.src", "_scatter_scalar": "scatter.value", "scatter_reduce": "scatter_reduce.two",
    "_index_fill_scalar": "index_fill.int_Scalar", "_index_fill_tensor": "index_fill.int_Tensor",
    "_fill_tensor": "fill.Tensor", "_fill_scalar_": "fill.Scalar", "_fill_tensor_": "fill.Tensor",
    "_isin": "isin.Tensor_Tensor", "_searchsorted": "searchsorted.Tensor", "_histogram": "histogram.bin_ct",
    "softmax": "_softmax.default", "log_softmax": "_log_softmax.default",
    "logsigmoid": "log_sigmoid_forward.default", "_layer_norm": "native_layer_norm.default",
    "_group_norm": "native_group_norm.default", "_batch_norm": "native_batch_norm.default",
    "_max_pool2d": "max_pool2d_with_indices.default", "_max_pool3d": "max_pool3d_with_indices.default",
    "_nll_loss": "nll_loss_forward.default", "_nll_loss2d": "nll_loss2d_forward.default",
    "_multilabel_margin_loss": "multilabel_margin_loss_forward.default",
    "_flash_attention": "_scaled_dot_product_flash_attention_for_cpu.default",
    "_prelu_kernel": "_prelu_kernel.default", "_rrelu_with_noise": "rrelu_with_noise.default",
    "_embedding_bag_max": "_embedding_bag.default", "_embedding_bag": "_embedding_bag.default",
    "linalg_det": "_linalg_det.default", "linalg_eigh": "_linalg_eigh.default",
    "linalg_slogdet": "_linalg_slogdet.default", "linalg_solve_ex": "_linalg_solve_ex.default",
    "linalg_svd": "_linalg_svd.default", "linalg_pinv": "linalg_pinv.atol_rtol_tensor",
}
#: declared operators that have a second overload for a scalar as the second input
_SCALAR_SECOND = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor",
                            "bitwise_left_shift", "bitwise_right_shift", "xlogy"))


class OpOverload:
    """One overload of an operator, as PyTorch's dispatcher names it.

    >>> import flambeau as torch
    >>> print(torch.ops.aten.mm.default)
    aten.mm.default
    """

    namespace = "aten"

    def __init__(self, packet: OpOverloadPacket, overload: str) -> None:
        self.overloadpacket = packet
        self._overloadname = overload
        self.__name__ = f"{packet.__name__}.{overload}"

    def name(self) -> str:
        """Return the qualified name of the schema, `aten::add.Tensor`."""
        overload = self._overloadname
        return f"aten::{self.overloadpacket.__name__}" + ("" if overload == "default" else f".{overload}")

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"


class OpOverloadPacket:
    """All the overloads of one name.

    >>> import flambeau as torch
    >>> torch.ops.aten.mul.overloads()
    ['Tensor']
    """

    def __init__(self, name: str) -> None:
        self.__name__ = name
        self._overloads: dict[str, OpOverload] = {}

    def _overload(self, name: str) -> OpOverload:
        result = self._overloads.get(name)
        if result is None:
            result = self._overloads[name] = OpOverload(self, name)
        return result

    def overloads(self) -> list[str]:
        """Return the names of the overloads."""
        return list(self._overloads)

    def __getattr__(self, name: str) -> OpOverload:
        result = self.__dict__.get("_overloads", {}).get(name)
        if result is None:
            raise AttributeError(f"The underlying op of 'aten.{self.__dict__.get('__name__')}' has no overload name "
                                 f"'{name}'")
        return result

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


_packets: dict[str, OpOverloadPacket] = {}
_keys: dict[int, str] = {}  # registry key by id of the declaration


def _overload_named(dotted: str, in_place: bool = False) -> OpOverload:
    name, _, overload = dotted.partition(".")
    if in_place:
        name += "_"
    packet = _packets.get(name)
    if packet is None:
        packet = _packets[name] = OpOverloadPacket(name)
    return packet._overload(overload)


def _overload_names(key: str, op: Op) -> Iterator[str]:
    name = _NAMES.get(key)
    if name is None:
        packet = op.name if op.name in REGISTRY or key.startswith("_") else key
        name = f"{packet}.default"
    yield name
    if key in _SCALAR_SECOND:
        yield name.replace("Tensor", "Scalar_Other" if key == "xlogy" else "Scalar")


def _register_all() -> None:
    for key, op in REGISTRY.items():
        if op.kind != COMPOSITE:
            _keys[id(op)] = key
            for name in _overload_names(key, op):
                _overload_named(name)
                _overload_named(name, in_place=True)


def overload_of(op: Op, inputs: Sequence[Any] = (), in_place: bool = False) -> OpOverload:
    """Return the overload of a declared operator that these inputs select."""
    if not _keys:
        _register_all()
    key = _keys.get(id(op))
    if key is None:
        return _overload_named(f"{op.name}.default", in_place)
    names = list(_overload_names(key, op))
    is_scalar = len(names) > 1 and len(inputs) > 1 and isinstance(inputs[1], (bool, int, float, complex))
    return _overload_named(names[is_scalar], in_place)


def __getattr__(name: str) -> OpOverloadPacket:
    if name.startswith("__"):
        raise AttributeError(name)
    if not _keys:
        _register_all()
    try:
        return _packets[name]
    except KeyError:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'") from None


__all__ = ["OpOverload", "OpOverloadPacket", "overload_of"]
