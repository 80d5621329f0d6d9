"""`torch.nn.functional`: stateless layers, activations and losses.

Names in `_OPERATORS` are tensor functions, re-exported. The rest is defined in `functionals/`, one file per family:
compositions of operators, argument checks, deprecated arguments.
"""

from __future__ import annotations

import importlib
from typing import Any

from .._tensor import functions as _fn
from .._tensor.overriding.entry_points import register_namespace
from . import grad as grad
from .functionals.activation import *  # noqa: F403
from .functionals.attention import *  # noqa: F403
from .functionals.distance import *  # noqa: F403
from .functionals.dropout import *  # noqa: F403
from .functionals.embedding import *  # noqa: F403
from .functionals.fractional_pooling import *  # noqa: F403
from .functionals.grid_sampling import *  # noqa: F403
from .functionals.grouped_mm import ScalingType as ScalingType
from .functionals.grouped_mm import SwizzleType as SwizzleType
from .functionals.grouped_mm import grouped_mm as grouped_mm
from .functionals.grouped_mm import scaled_grouped_mm as scaled_grouped_mm
from .functionals.grouped_mm import scaled_mm as scaled_mm
from .functionals.linear_cross_entropy import *  # noqa: F403
from .functionals.loss import *  # noqa: F403
from .functionals.margin_loss import *  # noqa: F403
from .functionals.normalization import *  # noqa: F403
from .functionals.padding import *  # noqa: F403
from .functionals.pooling import *  # noqa: F403
from .functionals.resample import *  # noqa: F403
from .functionals.torch_names import native_channel_shuffle as native_channel_shuffle

#: tensor functions re-exported unchanged
_OPERATORS = (
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "bilinear", "celu_", "conv1d", "conv2d", "conv3d",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "conv_tbc", "gelu", "hardshrink", "hardtanh_",
    "linear", "logsigmoid", "max_unpool1d", "max_unpool2d", "max_unpool3d", "pdist", "prelu",
    "relu_", "rrelu_", "scaled_dot_product_attention", "selu_", "softplus", "softshrink",
)
globals().update({name: getattr(_fn, name) for name in _OPERATORS if hasattr(_fn, name)})
unfold, fold = _fn.unfolded, _fn.folded  # `fn.unfold` is Tensor.unfold, which differs
for _function, _name in ((unfold, "unfold"), (fold, "fold")):  # what handlers are shown, and pickles refer to
    _function.__name__ = _function.__qualname__ = _name
    _function.__module__ = __name__
del _function, _name

#: names that TorchScript's annotations have here -> the module below the package that defines them
_DEFINED_IN = {**dict.fromkeys(("BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "boolean_dispatch"),
                               "jit.internal"),
               **dict.fromkeys(("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"),
                               "overrides")}


def assert_int_or_pair(arg: Any, arg_name: str, message: str) -> None:
    """Raise AssertionError unless an argument is an int or has two elements.

    Args:
        arg: the argument.
        arg_name: its name, for the message.
        message: a text with a place for the name.
    """
    if not (isinstance(arg, int) or len(arg) == 2):
        raise AssertionError(message.format(arg_name))


def __getattr__(name: str) -> Any:
    if name in _DEFINED_IN:
        return getattr(importlib.import_module(f"{__name__.partition('.')[0]}.{_DEFINED_IN[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


#: numbers of the modes of `grid_sample`
GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}

__all__ = sorted(  # noqa: PLE0605
    name for name, value in globals().items() if callable(value) and not name.startswith("_")
    and name not in ("Any", "assert_int_or_pair", "register_namespace"))
#: functions of which handlers see only the one that they call
_CALLS_OF_OTHERS = ("upsample", "upsample_bilinear", "upsample_nearest")
register_namespace("torch.nn.functional.", lambda: {
    name: globals()[name] for name in __all__ if name not in _CALLS_OF_OTHERS})
