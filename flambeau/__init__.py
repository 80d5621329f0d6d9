"""flambeau: PyTorch's define-by-run autograd in pure Python.

    import flambeau as torch

This module holds the public namespace only; the names are defined in the packages below. Each behaves as documented at
https://docs.pytorch.org/docs/stable/index.html.
"""

from __future__ import annotations

import gc as _gc
import importlib
import sys as _sys
from math import e, inf, nan, pi
from types import FunctionType as _FunctionType
from typing import Any

from . import module_finder as _module_finder

_module_finder.install()
_collects_garbage = _gc.isenabled()
_gc.disable()  # what an import makes stays; to walk through it again and again takes a seventh of the time
try:
    from . import _tensor_display, autograd
finally:
    if _collects_garbage:
        if not _gc.get_freeze_count():  # all objects to the oldest generation: else the next allocation visits them
            _gc.freeze()
            _gc.unfreeze()
        _gc.enable()

from . import config, devices, dtypes, shapes
from ._tensor import Tensor, functions
from ._tensor.overriding.entry_points import register_namespace as _register_namespace
from ._tensor.printing import set_printoptions
from .devices import (
    _mkldnn,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    jagged,
    layout,
    legacy_contiguous_format,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from .dtypes import can_cast, dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from .engine.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
from .engine.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .lazy_modules import pytorch_names as _pytorch_names
from .ops.overload_runner import runner as _overload_runner
from .shapes import Size
from .version import __version__

tensor: Any = functions.tensor

for _dtype in (*dtypes.ALL, *dtypes.WITHOUT_DATA):
    globals()[_dtype.name] = _dtype
half, float, double = dtypes.float16, dtypes.float32, dtypes.float64
short, int, long = dtypes.int16, dtypes.int32, dtypes.int64
cfloat, cdouble, chalf = dtypes.complex64, dtypes.complex128, dtypes.complex32
bit = globals()["uint1"]
newaxis = None

# `repr` and pickles name these classes by the public path, as `flambeau.Size`.
for _class in (Tensor, Size, device, dtype, finfo, iinfo, layout, memory_format):
    _class.__module__ = __name__
for _class in (enable_grad, inference_mode, no_grad, set_grad_enabled):
    _class.__module__ = f"{__name__}.autograd.grad_mode"

#: subpackages imported on first access, so that `import flambeau` stays fast
_LAZY = ("_C", "_custom_op", "_custom_ops", "_dispatch", "_higher_order_ops", "_library", "_ops", "_prims",
         "_prims_common", "_refs", "_subclasses", "amp", "compiler", "cuda", "distributed", "distributions", "export",
         "fft", "func", "functorch", "fx", "interop", "jit", "library", "linalg", "masked", "multiprocessing", "nested",
         "nn", "onnx", "optim", "overrides", "profiler", "random", "serialization", "signal", "sparse", "special",
         "storage", "testing", "utils", "viz")

#: operators of cuDNN, MIOpen, oneDNN and quantization
_OF_OTHER_BACKENDS = """
    batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt batch_norm_gather_stats
    batch_norm_gather_stats_with_counts batch_norm_stats batch_norm_update_stats compiled_with_cxx11_abi
    cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu
    cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable dequantize fake_quantize_per_channel_affine
    fake_quantize_per_tensor_affine has_lapack has_mkl has_openmp has_spectral int_repr
    miopen_batch_norm miopen_convolution miopen_convolution_add_relu miopen_convolution_relu
    miopen_convolution_transpose miopen_ctc_loss miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d
    mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer
    native_norm per_channel_affine per_channel_affine_float_qparams per_channel_symmetric per_tensor_affine
    per_tensor_symmetric q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point
    qscheme quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic
""".split()  # noqa: SIM905

#: operators of `torch.ops.aten` that PyTorch has as functions under their private names
_OF_ATEN = """
    _adaptive_avg_pool2d _adaptive_avg_pool3d _aminmax _assert_scalar _assert_tensor_metadata _batch_norm_impl_index
    _cast_Byte _cast_Char _cast_Double _cast_Float _cast_Half _cast_Int _cast_Long _cast_Short _conj_copy
    _conj_physical _convolution _convolution_mode _embedding_bag _embedding_bag_forward_only
    _functional_assert_async _functional_assert_scalar _functional_sym_constrain_range
    _functional_sym_constrain_range_for_size _fused_rms_norm _index_put_impl_ _is_all_true _is_any_true
    _logcumsumexp _make_dep_token _native_batch_norm_legit _native_batch_norm_legit_no_training _neg_view_copy
    _prelu_kernel _reshape_alias_copy _safe_softmax _scaled_dot_product_attention_math
    _scaled_dot_product_flash_attention_for_cpu _stack _to_cpu _unsafe_index _unsafe_index_put _unsafe_masked_index
    _unsafe_masked_index_put_accumulate _weight_int8pack_mm
""".split()  # noqa: SIM905

#: public name -> the module that defines it, imported on first access
_DEFINED_IN = {"PyTorchFileReader": "serialization.file_reader", "StorageBase": "environment.extension",
                 "DispatchKey": "environment.dispatch_keys", "Tag": "ops.tags",
                 "DispatchKeySet": "environment.dispatch_keys", **dict.fromkeys((
    "Argument", "Block", "FileCheck", "FunctionSchema", "Graph", "Node", "ScriptClass", "ScriptDict", "ScriptList",
    "ScriptMethod", "ScriptObject", "Value",
), "environment.extension"),
                 "CompilationUnit": "jit", "JITException": "jit", "fork": "jit", "wait": "jit",
                 **dict.fromkeys((
    "AnyType", "BoolType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "FutureType", "IntType",
    "ListType", "NoneType", "NumberType", "OptionalType", "PyObjectType", "StreamObjType", "StringType", "TensorType",
    "TupleType", "Type",
), "environment.script_types"),
                 "thread_safe_generator": "random",
                 "_grouped_mm": "nn.functionals.grouped_mm", "_scaled_mm": "nn.functionals.grouped_mm",
                 "_debug_has_internal_overlap": "_tensor.memory.addresses", "Storage": "storage",
                 "autocast": "amp",
                 "_amp_foreach_non_finite_check_and_unscale_": "amp.grad_scaler",
                 "_amp_update_scale_": "amp.grad_scaler", **dict.fromkeys((
    "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache", "get_autocast_cpu_dtype",
    "get_autocast_dtype", "get_autocast_gpu_dtype", "get_autocast_ipu_dtype", "get_autocast_xla_dtype",
    "is_autocast_cache_enabled", "is_autocast_cpu_enabled", "is_autocast_enabled", "is_autocast_ipu_enabled",
    "is_autocast_xla_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype", "set_autocast_cpu_enabled",
    "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype", "set_autocast_ipu_dtype",
    "set_autocast_ipu_enabled", "set_autocast_xla_dtype", "set_autocast_xla_enabled",
), "amp.state"), "ScriptModule": "jit", "ScriptFunction": "jit", "Event": "accelerators.streams",
         "Stream": "accelerators.streams", "Future": "runtime.futures",
         "AcceleratorError": "cuda", "OutOfMemoryError": "cuda.memory", "get_device_module": "accelerators.accelerator",
         **dict.fromkeys((
    "SymBool", "SymFloat", "SymInt", "sym_float", "sym_fresh_size", "sym_int", "sym_ite", "sym_max", "sym_min",
    "sym_not", "sym_sum",
), "environment.symbolic"), **dict.fromkeys((
    "_assert", "_check", "_check_index", "_check_is_size", "_check_not_implemented",
    "_check_tensor_all", "_check_tensor_all_with", "_check_type", "_check_value", "_check_with",
), "environment.checks"),
         **dict.fromkeys(("_assert_async", "sym_constrain_range", "sym_constrain_range_for_size"),
                         "_library.assertion_operators"),
         "TypedStorage": "storage", "UntypedStorage": "storage", "cond": "_higher_order_ops",
         "while_loop": "_higher_order_ops", "GradScaler": "amp", "lobpcg": "autograd.lobpcg",
         "set_anomaly_enabled": "engine.anomaly_mode",
         "sym_sqrt": "environment.symbolic",
         **dict.fromkeys(_OF_OTHER_BACKENDS, "environment.other_backends"),
         **dict.fromkeys(_OF_ATEN, "_library.private_functions"), **dict.fromkeys((
    "BFloat16Storage", "BoolStorage", "ByteStorage", "CharStorage", "ComplexDoubleStorage", "ComplexFloatStorage",
    "DoubleStorage", "FloatStorage", "HalfStorage", "IntStorage", "LongStorage", "QInt8Storage", "QInt32Storage",
    "QUInt2x4Storage", "QUInt4x2Storage", "QUInt8Storage", "ShortStorage", "from_file",
    "is_storage", "_storage_classes"), "storage"), **dict.fromkeys((
    "_fft_c2c", "_fft_c2r", "_fft_r2c"), "_tensor.spectral.fourier"), "load": "serialization", "save": "serialization",
         "vmap": "func", "compile": "compiler", "_disable_dynamo": "compiler.api", **dict.fromkeys((
    "sparse_bsc_tensor", "sparse_bsr_tensor", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor",
    "sparse_csr_tensor",
), "_tensor.sparse.constructors"), **dict.fromkeys(("hspmm", "smm", "sspaddmm"), "_tensor.sparse.sparse_results"),
         **dict.fromkeys((
    "_sparse_broadcast_to", "_sparse_sum", "_sparse_sparse_matmul", "_validate_sparse_bsc_tensor_args",
    "_validate_sparse_bsr_tensor_args", "_validate_sparse_compressed_tensor_args", "_validate_sparse_coo_tensor_args",
    "_validate_compressed_sparse_indices", "_validate_sparse_csc_tensor_args", "_validate_sparse_csr_tensor_args",
    "dsmm", "hsmm", "resize_as_sparse_", "saddmm", "_convert_indices_from_coo_to_csr",
    "_convert_indices_from_csr_to_coo", "ccol_indices_copy",
    "col_indices_copy", "crow_indices_copy", "indices_copy", "row_indices_copy", "values_copy",
), "_tensor.sparse.names"), **dict.fromkeys((
    "_add_relu", "_add_relu_", "_addmm_activation", "_masked_softmax", "_native_multi_head_attention",
    "_transform_bias_rescale_qkv", "_transformer_encoder_layer_fwd"), "nn.functionals.native_attention"),
         **dict.fromkeys((
    "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_default_device",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "typename", "use_deterministic_algorithms",
), "switches"), **dict.fromkeys((
    "gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell",
), "nn.recurrent"), **dict.fromkeys(("_pack_padded_sequence", "_pad_packed_sequence"), "nn.utils.rnn"),
    **dict.fromkeys(("conj", "_conj"), "_tensor.pointwise.complex"), "_neg_view": "_tensor.functions",
    "_weight_norm": "_tensor.neural.normalization", "_segment_reduce": "_tensor.reduction.segments", **dict.fromkeys((
    "binary_cross_entropy_with_logits", "channel_shuffle", "cosine_embedding_loss", "embedding_renorm_",
    "hinge_embedding_loss", "instance_norm", "kl_div", "margin_ranking_loss", "native_channel_shuffle",
    "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "triplet_margin_loss", "_grid_sampler_2d_cpu_fallback",
    "_log_softmax", "_softmax",
), "nn.functionals.torch_names"), **dict.fromkeys((
        "_fused_adagrad_", "_fused_adam_", "_fused_adamw_", "_fused_sgd_"), "optim.fused_updates"), **dict.fromkeys((
    "_dirichlet_grad", "_has_compatible_shallow_copy_type", "_int_mm", "_log_softmax_backward_data",
    "_sample_dirichlet", "_shape_as_tensor", "_softmax_backward_data", "_standard_gamma", "_standard_gamma_grad",
), "_tensor.functions")}

#: names of `functions` that are not in `torch`: PyTorch has them in `nn.functional`, in `random` or as methods, or
#: not at all; so are all names with the prefix `fft_`, `linalg_` or `special_`
_NOT_IN_TORCH = frozenset((
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool2d",
    "avg_pool3d", "binary_cross_entropy", "cross_entropy", "elu", "gelu", "glu", "hardsigmoid", "hardswish",
    "hardtanh", "huber_loss", "leaky_relu", "linear", "logsigmoid", "max_pool2d_with_indices",
    "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "nll_loss",
    "relu6", "scaled_dot_product_attention", "silu", "smooth_l1_loss", "soft_margin_loss", "softplus", "softshrink",
    "unfold", "contiguous", "expand", "expand_as", "repeat", "reshape_as", "sum_to_size", "to", "view", "view_as",
    "fork_rng", "ComplexDoubleTensor", "ComplexFloatTensor", "clamp_below", "col2im", "folded",
    "im2col", "reshaped", "slice", "unfolded",
))

#: the in-place operators that are in `torch`; the others are methods only
_INPLACE_IN_TORCH = frozenset((
    "abs_", "acos_", "acosh_", "addmv_", "alpha_dropout_", "arccos_", "arccosh_", "arcsin_", "arcsinh_", "arctan_",
    "arctanh_", "as_strided_", "asin_", "asinh_", "atan_", "atanh_", "ceil_", "celu_", "clamp_", "clamp_max_",
    "clamp_min_", "clip_", "conj_physical_", "cos_", "cosh_", "deg2rad_", "detach_", "dropout_", "erf_", "erfc_",
    "exp2_", "exp_", "expm1_", "feature_alpha_dropout_", "feature_dropout_", "fill_", "fix_", "floor_", "frac_",
    "gcd_", "i0_", "index_put_", "lcm_", "ldexp_", "log10_", "log1p_", "log2_", "log_", "logit_", "nan_to_num_",
    "neg_", "negative_", "rad2deg_", "reciprocal_", "relu_", "resize_as_", "round_", "rrelu_", "rsqrt_", "selu_",
    "sigmoid_", "sin_", "sinc_", "sinh_", "sqrt_", "square_", "tan_", "tanh_", "threshold_", "trunc_", "xlogy_",
    "zero_",
))

def _is_public(name: str) -> bool:
    """Whether a name of `functions` is public in `torch`."""
    if name.endswith("_"):
        return name in _INPLACE_IN_TORCH
    return not name.startswith(("_", "fft_", "linalg_", "special_")) and name not in _NOT_IN_TORCH and (
        name not in functions._internal)


#: functions that `__torch_function__` never sees
_NEVER_OVERRIDDEN = frozenset((
    "can_cast", "fork_rng", "get_rng_state", "initial_seed", "is_storage", "is_tensor", "manual_seed", "promote_types",
    "seed", "set_rng_state", "broadcast_shapes",
))
#: functions of `nn.functional` that are others in `torch`
_NOT_AS_IN_FUNCTIONAL = ("binary_cross_entropy_with_logits", "cosine_embedding_loss", "embedding_renorm_",
                          "hinge_embedding_loss", "instance_norm", "kl_div", "margin_ranking_loss",
                          "poisson_nll_loss", "triplet_margin_loss")
#: functions of recurrent networks, which `nn` defines
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")
#: functions of sparse tensors and others that are defined outside of `functions`
_ELSEWHERE = (
    "ccol_indices_copy", "channel_shuffle", "col_indices_copy", "crow_indices_copy", "dsmm", "hsmm", "hspmm",
    "indices_copy", "lobpcg", "native_channel_shuffle", "native_norm", "pixel_shuffle", "pixel_unshuffle",
    "resize_as_sparse_", "row_indices_copy", "saddmm", "smm", "sparse_bsc_tensor", "sparse_bsr_tensor",
    "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor", "sspaddmm", "sym_float",
    "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum", "values_copy")
_PREFIXES = ("fft_", "linalg_", "special_")  # of functions that are in a module of this name


#: private functions that are Python's in PyTorch, too, or that no handler sees there
_NOT_OF_ATEN = frozenset(("_assert", "_debug_has_internal_overlap", "_disable_dynamo",
                          "_has_compatible_shallow_copy_type"))


def _own(name: str) -> Any:
    """An attribute of this package, whatever its name in `sys.modules` is at the moment (`flambeau.alias`)."""
    return globals()[name] if name in globals() else __getattr__(name)


def _private_functions() -> dict[str, Any]:
    """The private functions that are operators of ATen in PyTorch: handlers see them as they see public ones."""
    foreach = importlib.import_module(f"{__package__}._tensor.foreach")
    names = [*(name for name in _DEFINED_IN if name.startswith("_") and name not in _NOT_OF_ATEN
               and not name.startswith("_check")),
             *(name for name in vars(foreach) if name.startswith("_foreach_"))]
    found = {name: _own(name) for name in names}
    return {name: each for name, each in found.items() if isinstance(each, _FunctionType)}


def _overridable() -> dict[str, Any]:
    """The functions that `__torch_function__` overrides, by name."""
    functions.load_all()
    names = {name: name for name in (*vars(functions), *_INPLACE_IN_TORCH)
             if _is_public(name) and name not in _NEVER_OVERRIDDEN}
    names.update((name, name.replace("_", ".", 1)) for name in vars(functions) if name.startswith(_PREFIXES))
    found = {public: getattr(functions, name) for name, public in names.items() if hasattr(functions, name)}
    losses = importlib.import_module(f"{__package__}.nn.functionals.torch_names")
    recurrent = importlib.import_module(f"{__package__}.nn.recurrent")
    return found | {name: getattr(losses, name) for name in _NOT_AS_IN_FUNCTIONAL} | {
        name: getattr(recurrent, name) for name in _RECURRENT} | {
        name: _own(name) for name in _ELSEWHERE} | _private_functions() | {
        "conj": importlib.import_module(f"{__package__}._tensor.pointwise.complex").conj}


_register_namespace("torch.", _overridable)
_pytorch_names.install()


def _composite_operators() -> dict[str, Any]:
    """The kernels of overloads that are composed of `nn.functional`, imported when one is called."""
    kernels: dict[str, Any] = importlib.import_module(f"{__package__}._library.composite_operators").KERNELS
    return kernels


def _public_function(name: str) -> Any:
    """A function of this package; None for another object."""
    try:
        found = _own(name)
    except AttributeError:
        return None
    return found if isinstance(found, type(_public_function)) else None


def _has_kernel(name: str, key: Any) -> bool:
    """Whether the operator of a name has a kernel for a dispatch key."""
    found: bool = importlib.import_module(
        f"{__package__}.environment.dispatcher")._dispatch_has_kernel_for_dispatch_key(name, key)
    return found


_overload_runner.composites, _overload_runner.public = _composite_operators, _public_function
_overload_runner.has_kernel = _has_kernel


def __getattr__(name: str) -> Any:
    if name.startswith("_foreach_"):
        return getattr(importlib.import_module(f"{__package__}._tensor.foreach"), name)
    if name in _DEFINED_IN:
        return getattr(importlib.import_module(f"{__package__}.{_DEFINED_IN[name]}"), name)
    if name in _pytorch_names.ALIASES:
        return importlib.import_module(f"{__package__}.{_pytorch_names.ALIASES[name]}")
    if name in _LAZY:
        try:
            return importlib.import_module(f"{__package__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__package__}.{name}":
                raise
    elif name == "torch":  # PyTorch's module imports itself
        return _sys.modules[__package__]
    elif name == "set_vital":  # PyTorch has it outside of its list of names, too
        return importlib.import_module(f"{__package__}.environment.monitor").set_vital
    elif name in _pytorch_names.LEFT_OUT:
        return importlib.import_module(f"{__package__}.environment.absent_modules").MODULES[name]
    elif _is_public(name):
        try:
            value = getattr(functions, name)
        except AttributeError:
            pass
        else:
            globals()[name] = value
            return value
    raise AttributeError(f"module '{config.module_name}' has no attribute '{name}'")


def __dir__() -> list[str]:
    own = f"{__package__}."  # modules of the implementation are attributes once they are imported: which ones is chance
    present = {name for name, value in globals().items() if name in _LAZY or not (
        isinstance(value, type(_sys)) and value.__name__.startswith(own))}
    return sorted({*present, *_LAZY, *_DEFINED_IN, *_INPLACE_IN_TORCH, *filter(_is_public, dir(functions))})
