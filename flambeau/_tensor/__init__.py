"""The tensor: storage, views, in-place writes, operator dispatch, and the functions and methods of tensors."""

from __future__ import annotations

from typing import Any

from .. import devices
from ..engine.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from ..engine.tensor_interface import layer
from ..ops.overload_runner import runner
from . import functions
from .dispatch.handlers import handlers
from .methods import installation  # noqa: F401
from .overriding import entry_points
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


def _load_batching() -> None:
    """What `vmap` needs."""
    from .dispatch import batching_rules, vmap_gradients  # noqa: F401


def _load_dispatch() -> None:
    """What handlers of `__torch_dispatch__` need."""
    from .overriding import dispatched, dispatched_factories, dispatched_out  # noqa: F401


def _load_overload_calls() -> None:
    """What calls of `torch.ops.aten` need."""
    from .overriding import overload_calls  # noqa: F401


def _make_wrapper_subclass(*args: Any, **kwargs: Any) -> Any:
    """A tensor of a subclass without elements of its own; its `__torch_dispatch__` computes every operator.

    Raises:
        TypeError: the class has no `__torch_dispatch__`.
    """
    from .overriding.dispatched_factories import make_wrapper_subclass

    return make_wrapper_subclass(*args, **kwargs)


def __getattr__(name: str) -> Any:
    if name == "_rebuild_from_type_v2":  # pickles name them here, as PyTorch's do
        from .memory import pickling

        return getattr(pickling, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


handlers.register_late(("apply_batched", "write_batched"), _load_batching)
handlers.register_late(("dispatch", "dispatched_write", "copy_before_write", "save_written"), _load_dispatch)
layer.register_late(("is_batched", "batched_gradients", "vmap_cotangents", "has_tangents"), _load_batching)
layer.register_late(("is_handled",), _load_dispatch)
runner.register_late(("call", "resolve", "overridden"), _load_overload_calls)
entry_points.before_installation.append(_load_dispatch)
Tensor._make_wrapper_subclass = staticmethod(_make_wrapper_subclass)  # type: ignore[attr-defined]
devices.cuda_resolver[0] = _resolve_cuda
devices.errors[:] = [_device_errors]

__all__ = ["Parameter", "Tensor", "enable_grad", "functions", "is_grad_enabled", "no_grad", "set_grad_enabled"]
