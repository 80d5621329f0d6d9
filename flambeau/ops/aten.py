"""`torch.ops.aten`: operators under the names of PyTorch's dispatcher.

    torch.ops.aten.mm.default       one operator: an overload
    torch.ops.aten.mm               an overload packet: all overloads of a name

A declared operator has one overload or, where PyTorch has another for a scalar input, two. The names of in-place
operators end in an underscore.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from .declare import COMPOSITE, REGISTRY, Op
from .overloads import OpOverload, OpOverloadPacket, runner
from .schemas import aten_out_overloads, aten_overloads, aten_schema

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
                                                  "avg_pool3d", "max_unpool2d", "max_unpool3d", "as_strided_copy",
                                                  "fractional_max_pool2d", "fractional_max_pool3d")},
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
    "_threshold_backward": "threshold_backward.default", "_prelu_kernel": "_prelu_kernel.default",
    "_rrelu_with_noise": "rrelu_with_noise.default",
    "_embedding_bag_max": "_embedding_bag.default", "_embedding_bag": "_embedding_bag.default",
    "linalg_det": "_linalg_det.default", "linalg_eigh": "_linalg_eigh.default",
    "linalg_slogdet": "_linalg_slogdet.default", "linalg_solve_ex": "_linalg_solve_ex.default",
    "linalg_svd": "_linalg_svd.default", "linalg_pinv": "linalg_pinv.atol_rtol_tensor",
}
#: declared operators that have a second overload for a scalar as the second input
_SCALAR_SECOND = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "bitwise_and", "bitwise_or", "bitwise_xor",
                            "bitwise_left_shift", "bitwise_right_shift", "xlogy"))

_SCALAR_NAMES = {"xlogy": "Scalar_Other", "bitwise_left_shift": "Tensor_Scalar", "bitwise_right_shift": "Tensor_Scalar"}

#: reductions that have an overload for one dimension and one for several
_BY_DIM = frozenset(("all", "any"))

_packets: dict[str, OpOverloadPacket] = {}
_keys: dict[int, str] = {}  # registry key by id of the declaration
_keys_of: dict[str, list[str]] = {}  # registry keys by name of the overload


def _overload_named(dotted: str, in_place: bool = False) -> OpOverload:
    name, _, overload = dotted.partition(".")
    if in_place:
        name += "_"
    return _packet(name)._overload(overload, aten_schema(name, overload))


def _packet(name: str) -> OpOverloadPacket:
    packet = _packets.get(name)
    if packet is None:
        packet = OpOverloadPacket(name)
        for overload in (*aten_overloads(name), *aten_out_overloads(name)):
            packet._overload(overload, aten_schema(name, overload))
        for each in tuple(_keys_of):
            declared, _, overload = each.partition(".")
            if declared == name:
                packet._overload(overload, aten_schema(name, overload))
        packet = _packets.setdefault(name, packet)  # another thread sees it whole, or makes its own
    return packet


def _overload_names(key: str, op: Op) -> Iterator[str]:
    name = _NAMES.get(key)
    if name is None:
        packet = op.name if op.name in REGISTRY or key.startswith("_") else key
        name = f"{packet}.default"
    yield name
    if key in _SCALAR_SECOND:
        yield name.replace("Tensor", _SCALAR_NAMES.get(key, "Scalar"))
    elif key in _BY_DIM:
        yield f"{key}.dim"
        yield f"{key}.dims"


def _register_all() -> None:
    keys: dict[int, str] = {}
    keys_of: dict[str, list[str]] = {}
    for key, op in REGISTRY.items():
        if op.kind != COMPOSITE:
            keys[id(op)] = key
            for name in _overload_names(key, op):
                keys_of.setdefault(name, []).append(key)
    _keys_of.update(keys_of)
    _keys.update(keys)  # the last one: other threads ask whether it is empty


def overload_of(op: Op, inputs: Sequence[Any] = (), in_place: bool = False, dim: Any = None) -> OpOverload:
    """Return the overload of a declared operator that these inputs, and the dimensions of a reduction, select."""
    if not _keys:
        _register_all()
    key = _keys.get(id(op))
    if key is None:
        return _overload_named(f"{op.name}.default", in_place)
    names = list(_overload_names(key, op))
    if key in _BY_DIM:
        return _overload_named(names[0 if dim is None else 1 if isinstance(dim, int) else 2])
    is_scalar = len(names) > 1 and len(inputs) > 1 and isinstance(inputs[1], (bool, int, float, complex))
    return _overload_named(names[is_scalar], in_place)


def declarations_of(overload: OpOverload) -> list[Op]:
    """Return the declared operators that an overload, or the one that it is the in-place variant of, stands for."""
    if not _keys:
        _register_all()
    name = overload.__name__
    keys = _keys_of.get(name) or _keys_of.get(name.replace("_.", ".", 1)) or []
    return [REGISTRY[key] for key in keys]


def __getattr__(name: str) -> OpOverloadPacket:
    if name == "__path__" or (name.startswith("__") and not aten_overloads(name)):  # `import` asks for the first
        raise AttributeError(name)
    if not _keys:
        _register_all()
    known = _packets.get(name)
    if known is not None:
        return known
    if aten_overloads(name) or f"{name}.default" in _keys_of:
        return _packet(name)
    raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")


runner.aten = lambda: sys.modules[__name__]

__all__ = ["OpOverload", "OpOverloadPacket", "declarations_of", "overload_of"]
