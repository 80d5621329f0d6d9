# ruff: noqa: N999  (the name is PyTorch's)
"""`torch._C`: the names of PyTorch's compiled extension that programs import, under their private names there."""

from __future__ import annotations

import enum
import importlib
from typing import Any

from ._tensor import Tensor
from ._tensor.creation.generators import Generator
from ._tensor.linalg.decompositions import LinAlgError as _LinAlgError
from ._tensor.overriding import dispatch, protocol
from ._tensor.overriding.protocol import DisableTorchFunction, DisableTorchFunctionSubclass
from ._tensor.overriding.protocol import EnableTorchFunction as _EnableTorchFunction
from ._tensor.tensor import TensorBase
from .devices import device, layout, memory_format
from .dtypes import dtype
from .overrides import _get_function_stack_at, _is_torch_function_mode_enabled, _len_torch_function_stack
from .overrides import _pop_mode as _pop_torch_function_stack
from .overrides import _push_mode as _push_on_torch_function_stack
from .overrides import has_torch_function as _has_torch_function
from .overrides import has_torch_function_unary as _has_torch_function_unary
from .overrides import has_torch_function_variadic as _has_torch_function_variadic
from .shapes import Size

_TensorBase = TensorBase
_disabled_torch_function_impl, _disabled_torch_dispatch_impl = protocol.DISABLED, dispatch.DISABLED_DISPATCH
_TensorMeta: Any = type(Tensor)

#: what the extension was built with: linear algebra, Fourier transforms
has_lapack = has_spectral = True


class _TorchFunctionState(enum.Enum):
    """Whether `__torch_function__` is enabled: values of `_get_torch_function_state`."""

    ENABLED = protocol.ENABLED
    SUBCLASSES_DISABLED = protocol.SUBCLASSES_DISABLED
    ALL_DISABLED = protocol.ALL_DISABLED


def _get_torch_function_state() -> _TorchFunctionState:
    return _TorchFunctionState(protocol.disabled.get())


def _set_torch_function_state(state: _TorchFunctionState) -> None:
    protocol.disabled.set(state.value)


def _is_torch_function_enabled() -> bool:
    return protocol.disabled.get() == protocol.ENABLED


def _is_torch_function_all_disabled() -> bool:
    return protocol.disabled.get() == protocol.ALL_DISABLED


def _len_torch_dispatch_stack() -> int:
    return len(dispatch.dispatch_modes.get())


def _get_dispatch_stack_at(index: int) -> Any:
    return dispatch.dispatch_modes.get()[index]


_DisableTorchDispatch = dispatch.without_handlers


def _add_docstr(function: Any, doc: str) -> Any:
    """Set the docstring of a function; the function."""
    function.__doc__ = doc
    return function


__path__: list[str] = []  # it has submodules, in memory


def __getattr__(name: str) -> Any:
    """Names that are defined above this layer."""
    if not name.startswith("__"):
        extension = importlib.import_module(f"{__package__}.environment.extension")
        if hasattr(extension, name):
            return getattr(extension, name)
    raise AttributeError(f"module 'torch._C' has no attribute '{name}'")


__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "Generator", "Size", "TensorBase",
           "_DisableTorchDispatch", "_EnableTorchFunction", "_LinAlgError", "_TensorBase", "_TensorMeta",
           "_TorchFunctionState", "_add_docstr", "_disabled_torch_dispatch_impl",
           "_disabled_torch_function_impl", "_get_dispatch_stack_at", "_get_function_stack_at",
           "_get_torch_function_state", "_has_torch_function", "_has_torch_function_unary",
           "_has_torch_function_variadic", "_is_torch_function_all_disabled", "_is_torch_function_enabled",
           "_is_torch_function_mode_enabled", "_len_torch_dispatch_stack", "_len_torch_function_stack",
           "_pop_torch_function_stack", "_push_on_torch_function_stack", "_set_torch_function_state",
           "device", "dtype", "layout", "memory_format"]
