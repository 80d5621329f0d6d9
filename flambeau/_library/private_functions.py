"""Private functions of `torch` that are operators of `torch.ops.aten`, such as `torch._assert_tensor_metadata`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._tensor import Tensor
from .._tensor.return_types import _FIELDS, named
from ..ops import aten
from ..ops.overloads import OpOverloadPacket


def _function(name: str, operator: OpOverloadPacket) -> Callable[..., Any]:
    """The function of an operator: its first arguments must be tensors, and results with names are named tuples."""
    schema = getattr(operator, operator.overloads()[0])._schema
    fields = _FIELDS.get(name)
    tensors = []
    for argument in schema.arguments:
        if str(argument.type) != "Tensor":
            break
        tensors.append("input" if argument.name == "self" else argument.name)

    def function(*args: Any, **kwargs: Any) -> Any:
        for position, (expected, value) in enumerate(zip(tensors, args, strict=False), 1):
            if not isinstance(value, Tensor) and not hasattr(type(value), "__torch_function__"):
                raise TypeError(f"{name}(): argument '{expected}' (position {position}) must be Tensor, "
                                f"not {type(value).__name__}")
        if "input" in kwargs and "input" in tensors:
            kwargs["self"] = kwargs.pop("input")
        result = operator(*args, **kwargs)
        return result if fields is None else named(name, fields)(result)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`torch.ops.aten.{name}`."
    return function


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    globals()[name] = found = _function(name, getattr(aten, name))
    return found
