"""Names of TorchScript's exporter, which packages import: they refuse when they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..environment.left_out import refusing_function

REASON = ("functions of TorchScript's exporter are not there; torch.onnx.export takes `custom_translation_table`")


def refusing(module: str, *names: str) -> dict[str, Callable[..., Any]]:
    """Functions of a module that refuse."""
    prefix = f"torch.onnx.{module}." if module else "torch.onnx."
    return {name: refusing_function(prefix + name, REASON) for name in names}


def undecorated(*args: Any, **kwargs: Any) -> Any:
    """A decorator of functions that only that exporter would call: the function."""
    return lambda function: function


__all__ = ["REASON", "refusing", "undecorated"]
