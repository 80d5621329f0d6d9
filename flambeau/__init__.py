"""flambeau: PyTorch's define-by-run autograd in pure Python.

    import flambeau as torch

This module holds the public namespace only; the names are defined in the packages below. Each behaves as documented at
https://docs.pytorch.org/docs/stable/index.html.
"""

from __future__ import annotations

import importlib
from math import e, inf, nan, pi
from typing import Any

from . import _tensor_display, autograd, config, devices, dtypes, shapes
from ._tensor import Tensor, functions
from ._tensor.printing import set_printoptions
from .devices import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    layout,
    memory_format,
    preserve_format,
    sparse_coo,
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
from .shapes import Size
from .version import __version__

tensor = functions.tensor

for _dtype in dtypes.ALL:
    globals()[_dtype.name] = _dtype
half, float, double = dtypes.float16, dtypes.float32, dtypes.float64
short, int, long = dtypes.int16, dtypes.int32, dtypes.int64
cfloat, cdouble = dtypes.complex64, dtypes.complex128
newaxis = None

# `repr` and pickles name these classes by the public path, as `flambeau.Size`.
for _class in (Tensor, Size, device, dtype, finfo, iinfo, layout, memory_format):
    _class.__module__ = __name__

#: subpackages imported on first access, so that `import flambeau` stays fast
_LAZY = ("compiler", "cuda", "func", "functorch", "linalg", "nn", "optim", "profiler", "random", "serialization",
         "special", "storage", "testing", "utils", "viz")

#: public name -> the module that defines it, imported on first access
_DEFINED_IN = {"TypedStorage": "storage", "UntypedStorage": "storage", "load": "serialization", "save": "serialization",
         "vmap": "func", "compile": "compiler", **dict.fromkeys((
    "are_deterministic_algorithms_enabled", "get_default_device", "get_deterministic_debug_mode",
    "get_float32_matmul_precision", "get_num_interop_threads", "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled", "set_default_device",
    "set_default_tensor_type", "set_deterministic_debug_mode", "set_float32_matmul_precision", "set_flush_denormal",
    "set_num_interop_threads", "set_num_threads", "set_warn_always", "typename", "use_deterministic_algorithms",
), "switches")}

#: names of `functions` that are not in `torch`: PyTorch has them in `nn.functional`, in `random` or as methods, or
#: not at all; so are all names with the prefix `linalg_` or `special_`
_NOT_IN_TORCH = frozenset((
    "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool2d",
    "avg_pool3d", "binary_cross_entropy", "cross_entropy", "elu", "gelu", "glu", "hardsigmoid", "hardswish",
    "hardtanh", "huber_loss", "leaky_relu", "linear", "logsigmoid", "max_pool2d_with_indices",
    "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "nll_loss",
    "relu6", "scaled_dot_product_attention", "silu", "smooth_l1_loss", "soft_margin_loss", "softplus", "softshrink",
    "unfold", "contiguous", "expand", "expand_as", "repeat", "reshape_as", "sum_to_size", "to", "view", "view_as",
    "fork_rng", "ComplexDoubleTensor", "ComplexFloatTensor", "bagged_embedding", "clamp_below", "col2im", "folded",
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

#: PyTorch's name of a module -> the name here
_MODULE_ALIASES = {"_dynamo": "compiler.dynamo", "_functorch": "compiler.functorch", "_inductor": "compiler.inductor",
              "_tensor_str": "_tensor.printing", "_utils": "_tensor.pickling", "return_types": "_tensor.return_types"}


def _is_public(name: str) -> bool:
    """Whether a name of `functions` is public in `torch`."""
    if name.endswith("_"):
        return name in _INPLACE_IN_TORCH
    return not name.startswith(("_", "linalg_", "special_")) and name not in _NOT_IN_TORCH and (
        name not in functions._internal)


def __getattr__(name: str) -> Any:
    if name in _DEFINED_IN:
        return getattr(importlib.import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
    if name in _MODULE_ALIASES:
        return importlib.import_module(f"{__name__}.{_MODULE_ALIASES[name]}")
    if name in _LAZY:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
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
    return sorted({*globals(), *_LAZY, *_DEFINED_IN, *_INPLACE_IN_TORCH, *filter(_is_public, dir(functions))})
