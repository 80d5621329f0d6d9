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


_QUANTIZATION_NAMES = {
    "classes": """
        AffineQuantizedObserverBase DeQuantStub FakeQuantize FakeQuantizeBase FixedQParamsFakeQuantize
        FixedQParamsObserver FusedMovingAvgObsFakeQuantize Granularity HistogramObserver MappingType MinMaxObserver
        MovingAverageMinMaxObserver MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerAxis PerBlock
        PerChannelMinMaxObserver PerGroup PerRow PerTensor PerToken PlaceholderObserver QConfig QConfigDynamic
        QConfigMapping QuantStub QuantType QuantWrapper RecordingObserver ReuseInputObserver TorchAODType
        UniformQuantizationObserverBase ZeroPointDomain default_debug_observer default_placeholder_observer
        default_reuse_input_observer
    """,
    "functions": """
        add_quant_dequant convert convert_dynamic_jit convert_jit default_activation_only_qconfig
        default_affine_fixed_qparams_fake_quant default_affine_fixed_qparams_observer default_debug_qconfig
        default_dynamic_fake_quant default_dynamic_qat_qconfig default_dynamic_qconfig
        default_dynamic_quant_observer default_embedding_fake_quant default_embedding_fake_quant_4bit
        default_embedding_qat_qconfig default_embedding_qat_qconfig_4bit default_eval_fn default_fake_quant
        default_fixed_qparams_range_0to1_fake_quant default_fixed_qparams_range_0to1_observer
        default_fixed_qparams_range_neg1to1_fake_quant default_fixed_qparams_range_neg1to1_observer
        default_float_qparams_observer default_float_qparams_observer_4bit default_fused_act_fake_quant
        default_fused_per_channel_wt_fake_quant default_fused_wt_fake_quant default_histogram_fake_quant
        default_histogram_observer default_observer default_per_channel_qconfig
        default_per_channel_symmetric_qnnpack_qat_qconfig default_per_channel_symmetric_qnnpack_qconfig
        default_per_channel_weight_fake_quant default_per_channel_weight_observer default_qat_qconfig
        default_qat_qconfig_v2 default_qconfig default_quint8_weight_qconfig default_reuse_input_qconfig
        default_symmetric_fixed_qparams_fake_quant default_symmetric_fixed_qparams_observer
        default_symmetric_qnnpack_qat_qconfig default_symmetric_qnnpack_qconfig default_weight_fake_quant
        default_weight_observer default_weight_only_qconfig disable_fake_quant disable_observer enable_fake_quant
        enable_observer float16_dynamic_qconfig float16_static_qconfig float_qparams_weight_only_qconfig
        float_qparams_weight_only_qconfig_4bit fuse_conv_bn fuse_conv_bn_jit fuse_conv_bn_relu fuse_convtranspose_bn
        fuse_linear_bn fuse_modules fuse_modules_qat fused_per_channel_wt_fake_quant_range_neg_127_to_127
        fused_wt_fake_quant_range_neg_127_to_127 get_block_size get_default_compare_output_module_list
        get_default_custom_config_dict get_default_dynamic_quant_module_mappings
        get_default_dynamic_sparse_quant_module_mappings get_default_float_to_quantized_operator_mappings
        get_default_qat_module_mappings get_default_qat_qconfig get_default_qat_qconfig_dict
        get_default_qat_qconfig_mapping get_default_qconfig get_default_qconfig_dict get_default_qconfig_mapping
        get_default_qconfig_propagation_list get_default_static_quant_module_mappings
        get_default_static_quant_reference_module_mappings get_default_static_sparse_quant_module_mappings
        get_dynamic_quant_module_class get_embedding_qat_module_mappings get_embedding_static_quant_module_mappings
        get_fuser_method get_fuser_method_new get_observer_state_dict get_quantized_operator
        get_static_quant_module_class load_observer_state_dict no_observer_set prepare prepare_dynamic_jit
        prepare_jit prepare_qat propagate_qconfig_ qconfig_equals quantize quantize_dynamic quantize_dynamic_jit
        quantize_jit quantize_qat script_qconfig script_qconfig_dict swap_module
    """,
}

#: dotted name below `torch` -> reason, contents
_CONTENTS: dict[str, tuple[str, dict[str, Any]]] = {
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
MODULES["numa.binding"].NumaOptions.should_fall_back_if_binding_fails = False  # the default of the field

__all__ = ["MODULES"]
