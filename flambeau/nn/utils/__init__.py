"""`torch.nn.utils`: gradients, parameters and padded sequences; submodules are imported on first access."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .spectral_norm import remove_spectral_norm as remove_spectral_norm
from .spectral_norm import spectral_norm as spectral_norm
from .weight_norm import remove_weight_norm as remove_weight_norm
from .weight_norm import weight_norm as weight_norm

if TYPE_CHECKING:
    from .clip_grad import *  # noqa: F403
    from .convert_parameters import *  # noqa: F403

#: file -> its public functions in `nn.utils`. `spectral_norm` and `weight_norm` are imported at once: functions of
#: these names replace the modules of these names, as in PyTorch
_NAMES_IN_FILE = {
    "clip_grad": "clip_grad_norm clip_grad_norm_ clip_grad_value_ clip_grads_with_norm_ get_total_norm",
    "convert_parameters": "parameters_to_vector vector_to_parameters",
    "fusion": "fuse_conv_bn_eval fuse_conv_bn_weights fuse_linear_bn_eval fuse_linear_bn_weights",
    "init": "skip_init",
    "memory_format": "convert_conv2d_weight_memory_format convert_conv3d_weight_memory_format",
}
_FILE_OF = {name: file for file, names in _NAMES_IN_FILE.items() for name in names.split()}
_SUBMODULES = (*_NAMES_IN_FILE, "parametrizations", "parametrize", "prune", "rnn", "stateless",
               "_named_member_accessor")

__all__ = sorted([*_FILE_OF, "parametrizations", "parametrize", "remove_spectral_norm",  # noqa: PLE0605
                  "remove_weight_norm", "rnn", "spectral_norm", "stateless", "weight_norm"])


def __getattr__(name: str) -> Any:
    if name in _FILE_OF:
        value = getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)
        globals()[name] = value
        return value
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
