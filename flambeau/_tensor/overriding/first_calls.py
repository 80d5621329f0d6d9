"""The first call with an object of a foreign class: what failed because no handler was asked is called again.

While no handler is in use, public functions do not look for one, and take an object whose class has a
`__torch_function__` for a tensor. It has no array: the call raises, and functions ask here before the error leaves
them. So calls that succeed pay nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType
from typing import Any

from ..tensor import Tensor
from .entry_points import EntryPoint, entries, note_foreign
from .protocol import ENABLED, disabled, overloaded_in_call

_PACKAGE = __name__.partition(".")[0]


def called_again(function: Callable[..., Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The result of a public function that has raised, if an argument is no tensor and overrides it.

    The caller is the code that has raised: a method, whose code is its own, is told from a function by it.

    Args:
        function: what was called, where several functions are of the caller's code.
        args, kwargs: the call.

    Returns:
        NotImplemented where no argument overrides the call, so that the error stands.
    """
    if disabled.get() != ENABLED:
        return NotImplemented
    foreign = {type(x) for x in overloaded_in_call(args, kwargs) if not isinstance(x, Tensor)}
    if not foreign:
        return NotImplemented
    for cls in foreign:
        note_foreign(cls)
    frame: Any = sys._getframe(1)
    entry = _entry_of(frame.f_code, function)
    while (frame := frame.f_back) is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        if _asks(frame.f_code) and any(each.original is frame.f_code for each in entries()):
            return NotImplemented  # a public function called this one, and asks in turn
    return NotImplemented if entry is None else entry.function(*args, **kwargs)


def _asks(code: CodeType) -> bool:
    """Whether a function's code calls `called_again`, after an error."""
    return called_again in code.co_consts or "called_again" in code.co_names


def public_function_of(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The public function or method that is running, of a declared operator: its own, or one written by hand around it.

    Args:
        function: the operator's own.
    """
    name = function.__name__
    names = {f"torch.{name}", f"torch.Tensor.{name}", f"torch.nn.functional.{name}",
             *(f"torch.{space}.{name.removeprefix(space + '_')}" for space in ("linalg", "fft", "special")
               if name.startswith(space + "_"))}
    found = [entry for entry in entries() if entry.name in names or entry.function is function]
    running: Any = None
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        running = next((entry for entry in found if entry.original is frame.f_code), running)
        frame = frame.f_back
    if running is None and found:
        running = next((entry for entry in found if entry.function is function), found[0])
    return None if running is None else running.function


def _entry_of(code: CodeType, function: Callable[..., Any] | None) -> EntryPoint | None:
    """The entry point whose original code runs: that of the function where several share the code."""
    found = [entry for entry in entries() if entry.original is code]
    return found[0] if len(found) == 1 else next((entry for entry in found if entry.function is function), None)


__all__ = ["called_again", "public_function_of"]
