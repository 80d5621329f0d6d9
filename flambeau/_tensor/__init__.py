"""The tensor: storage, views, in-place writes, operator dispatch, and the functions and methods of tensors."""

from __future__ import annotations

from typing import Any

from .. import devices
from ..engine.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from . import functions
from .dispatch import batching_rules, vmap_gradients  # noqa: F401
from .methods import installation  # noqa: F401
from .overriding import dispatched, dispatched_factories, dispatched_out, overload_calls  # noqa: F401
from .parameter import Parameter
from .tensor import Tensor


def _resolve_cuda(device: devices.device) -> Any:
    """A CUDA device with its index, None where there is none; what tensors on devices need is imported now."""
    from .accelerated import resolve  # which takes this function's place

    return resolve(device)


def _device_errors() -> Any:
    """The module that makes errors for arguments that are no device, imported when one is needed."""
    from .argument_errors import device_arguments

    return device_arguments


devices.cuda_resolver[0] = _resolve_cuda
devices.errors[:] = [_device_errors]

__all__ = ["Parameter", "Tensor", "enable_grad", "functions", "is_grad_enabled", "no_grad", "set_grad_enabled"]
