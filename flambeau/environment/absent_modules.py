"""The modules of PyTorch that are left out, with the names that programs import from them."""

from __future__ import annotations

from typing import Any

from .left_out import LeftOut, tree

_FX = "flambeau does not trace symbolically"
_QUANTIZATION = "flambeau has no quantized tensors"


def _false(*args: Any, **kwargs: Any) -> bool:
    return False


def _none(*args: Any, **kwargs: Any) -> None:
    return None


def _undecorated(*args: Any, **kwargs: Any) -> Any:
    """A decorator of functions that only an export would call: the function."""
    return lambda function: function


def _is_contiguous(a: Any, memory_format: Any = None) -> bool:
    return bool(a.is_contiguous() if memory_format is None else a.is_contiguous(memory_format=memory_format))


_QUANTIZATION_NAMES = {
    "classes": ("DeQuantStub QConfig QConfigMapping QuantStub QuantWrapper FakeQuantize MinMaxObserver ObserverBase "
                "HistogramObserver PlaceholderObserver"),
    "functions": ("add_quant_dequant convert default_observer default_per_channel_weight_observer default_qconfig "
                  "default_weight_observer float_qparams_weight_only_qconfig fuse_modules fuse_modules_qat "
                  "get_default_qat_qconfig get_default_qconfig get_default_qconfig_mapping prepare prepare_qat "
                  "propagate_qconfig_ quantize quantize_dynamic quantize_qat swap_module"),
}

#: dotted name below `torch` -> reason, contents
_CONTENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "_custom_ops": ("flambeau defines operators with torch.library", {"functions": "custom_op get_ctx impl"}),
    "_ops": ("flambeau has no higher-order operators", {"classes": "HigherOrderOperator"}),
    "_prims_common": ("it belongs to PyTorch's decompositions", {"values": {
        "is_contiguous_or_false": _is_contiguous, "is_contiguous": _is_contiguous}}),
    "ao": (_QUANTIZATION, {}),
    "ao.nn": (_QUANTIZATION, {}),
    "ao.nn.quantized": (_QUANTIZATION, {"classes": "Conv2d FloatFunctional Linear"}),
    "ao.nn.quantized.dynamic": (_QUANTIZATION, {"classes": "LSTM Linear"}),
    "ao.ns": (_QUANTIZATION, {}),
    "ao.pruning": ("flambeau has torch.nn.utils.prune", {}),
    "ao.quantization": (_QUANTIZATION, _QUANTIZATION_NAMES),
    "ao.quantization.fx": (_QUANTIZATION, {}),
    "ao.quantization.fx._decomposed": (_QUANTIZATION, {}),
    "ao.quantization.quantize_fx": (_QUANTIZATION, {"functions": "convert_fx prepare_fx prepare_qat_fx"}),
    "ao.quantization.observer": (_QUANTIZATION, _QUANTIZATION_NAMES),
    "numa": ("flambeau does not bind processes to processors", {}),
    "numa.binding": ("flambeau does not bind processes to processors", {
        "classes": "NumaOptions", "enums": {"AffinityMode": "NODE SOCKET EXCLUSIVE CORE_COMPLEX"}}),
    "package": ("flambeau does not package code", {"classes": "PackageExporter PackageImporter"}),
    "quantization": (_QUANTIZATION, _QUANTIZATION_NAMES),
    "quantization.quantize_fx": (_QUANTIZATION, {"functions": "convert_fx prepare_fx prepare_qat_fx"}),
    "utils._sympy": (_FX, {}),
    "utils._sympy.numbers": (_FX, {"classes": "IntInfinity"}),
    "utils._sympy.value_ranges": (_FX, {"classes": "ValueRanges"}),
}

MODULES = {name: LeftOut(f"torch.{name}", reason, **contents) for name, (reason, contents) in _CONTENTS.items()}
tree(MODULES)

__all__ = ["MODULES"]
