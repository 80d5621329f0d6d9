"""Warnings of a trace: calls that turn a tensor into numbers or arrays, which are constants of what is traced."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

from .._tensor import Tensor, functions
from .._tensor.overriding.function_modes import TorchFunctionMode
from ..warning_location import user_stacklevel


class TracerWarning(Warning):
    """A warning about traced code."""

    @staticmethod
    def ignore_lib_warnings() -> None:
        """Silence the warnings that come from PyTorch itself: there are none."""


def _converting(what: str) -> str:
    return (f"Converting a tensor to a {what} might cause the trace to be incorrect. We can't record the data flow of "
            "Python values, so this value will be treated as a constant in the future. This means that the trace might "
            "not generalize to other inputs!")


def _constant(name: str) -> str:
    return (f"torch.{name} results are registered as constants in the trace. You can safely ignore this warning if you "
            "use this function to create tensors out of constant variables that would be the same every time you call "
            "this function. In any other case, this might cause the trace to be incorrect.")


_LENGTH = ("Using len to get tensor shape might cause the trace to be incorrect. Recommended usage would be "
           "tensor.shape[0]. Passing a tensor of different shape might lead to errors or silently give incorrect "
           "results.")

_METHODS = {
    "item": _converting("Python number"), "__bool__": _converting("Python boolean"),
    "__float__": _converting("Python float"), "__int__": _converting("Python integer"),
    "__complex__": _converting("Python complex"), "tolist": _converting("Python list"),
    "numpy": _converting("NumPy array"), "__array__": _converting("NumPy array"),
    "__contains__": _converting("Python number"), "__len__": _LENGTH}

#: function -> the text of the warning (PyTorch's)
_TEXTS: dict[Callable[..., Any], str] = {
    **{getattr(Tensor, name): text for name, text in _METHODS.items()},
    **{getattr(functions, name): _constant(name) for name in ("tensor", "as_tensor", "from_numpy")},
}

#: where the frames are that pass a call on
_DISPATCH = tuple(f"{__package__.partition('.')[0]}.{name}" for name in ("_tensor", "overrides", "export.tracing"))


def _called_by_program() -> bool:
    """Whether the function that a mode is asked for was called outside the package."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_DISPATCH):
        frame = frame.f_back
    name = "" if frame is None else frame.f_globals.get("__name__", "")
    return bool(name.partition(".")[0] != __package__.partition(".")[0])


class WarnOfConstants(TorchFunctionMode):
    """A mode in which functions whose results a trace takes for constants give a `TracerWarning`."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        text = _TEXTS.get(func)
        if text is not None and _called_by_program():
            warnings.warn(text, TracerWarning, stacklevel=user_stacklevel())
        return func(*args, **(kwargs or {}))


__all__ = ["TracerWarning", "WarnOfConstants"]
