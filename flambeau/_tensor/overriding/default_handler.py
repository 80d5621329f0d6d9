"""The default `__torch_function__` of `Tensor`: runs the function and returns its tensors as the subclass."""

from __future__ import annotations

from typing import Any

from .protocol import SUBCLASSES_DISABLED, disabled


def converted(result: Any, cls: type, tensor_class: type) -> Any:
    """A result with its tensors as instances of `cls`."""
    if cls is tensor_class:
        return result
    if isinstance(result, tensor_class):
        return result if isinstance(result, cls) else result.as_subclass(cls)  # type: ignore[attr-defined]
    if isinstance(result, (tuple, list)):
        return type(result)(converted(each, cls, tensor_class) for each in result)
    return result


def run_and_convert(cls: type, func: Any, types: Any, args: Any, kwargs: Any, tensor_class: type,
                    unconverted: Any) -> Any:
    """Run a function without overrides of arguments; convert its result unless it is one of `unconverted`."""
    if not all(issubclass(cls, each) for each in types):
        return NotImplemented
    token = disabled.set(max(disabled.get(), SUBCLASSES_DISABLED))
    try:
        result = func(*args, **(kwargs or {}))
        return result if func in unconverted else converted(result, cls, tensor_class)
    finally:
        disabled.reset(token)


__all__ = ["converted", "run_and_convert"]
