"""`torch._jit_internal`: what PyTorch's own modules share with TorchScript, as far as programs import it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..runtime.futures import Future
from .modifiers import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
    BroadcastingListCls,
    FunctionModifiers,
    _copy_to_script_wrapper,
    _drop,
    _IgnoreContextManager,
    _isinstance,
    _overload,
    _overload_method,
    boolean_dispatch,
    copy_torchscript_modifier,
    export,
    get_torchscript_modifier,
    ignore,
    is_final,
    is_ignored_fn,
    module_has_exports,
    should_drop,
    unused,
)
from .scripting import is_scripting


def _qualified_name(obj: Any, mangle_name: bool = True) -> str:
    """The name that TorchScript gives to a function or class, `__torch__.module.name`."""
    name = getattr(obj, "_jit_override_qualname", None)
    if name is not None:
        return str(name)
    module = obj.__module__
    return f"__torch__.{module}.{obj.__name__}" if mangle_name else f"{module}.{obj.__name__}"


def createResolutionCallbackFromFrame(frames_up: int = 0) -> Callable[[str], Any]:
    """A function that finds names in a caller's scope."""
    import sys

    frame = sys._getframe(frames_up + 1)
    scope = {**frame.f_globals, **frame.f_locals}
    return lambda name: scope.get(name)


def can_compile_class(cls: type) -> bool:
    """Whether TorchScript could compile a class: False."""
    return False


__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "BroadcastingList4", "BroadcastingList5",
           "BroadcastingList6", "BroadcastingListCls", "Final", "FunctionModifiers", "Future",
           "_IgnoreContextManager", "_copy_to_script_wrapper", "_drop", "_isinstance", "_overload",
           "_overload_method", "_qualified_name", "boolean_dispatch", "can_compile_class",
           "copy_torchscript_modifier", "createResolutionCallbackFromFrame", "export", "get_torchscript_modifier",
           "ignore", "is_final", "is_ignored_fn", "is_scripting", "module_has_exports", "should_drop", "unused"]
