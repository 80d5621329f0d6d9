"""The names of types in the messages of PyTorch's argument parser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ... import config
from ..tensor import Tensor
from .call_sites import call_site

_HEAP_TYPE = 1 << 9
_OWN_NAMES = {"dtype": "torch.dtype", "device": "torch.device", "layout": "torch.layout", "Size": "torch.Size",
              "memory_format": "torch.memory_format", "qscheme": "torch.qscheme", "Generator": "torch._C.Generator"}
#: functions whose operators PyTorch calls otherwise
_PARSED_AS = {"logsigmoid": "log_sigmoid"}
_PACKAGE = __name__.partition(".")[0]


def type_name(value: Any) -> str:
    """The name of a value's type in messages, `Tensor`, `numpy.ndarray`, `torch.Size`."""
    kind = type(value)
    if kind is Tensor:
        return "Tensor"
    name, module = kind.__name__, kind.__module__
    if module.partition(".")[0] in (_PACKAGE, config.module_name):  # another one while `torch` means this package
        return _OWN_NAMES.get(name, name)
    return name if kind.__flags__ & _HEAP_TYPE or module == "builtins" else f"{module}.{name}"


def check_tensors(values: Iterable[Any]) -> None:
    """Raise PyTorch's error unless all arguments of a function of any number of tensors are tensors, or foreign."""
    for i, x in enumerate(values):
        if not isinstance(x, Tensor) and not hasattr(type(x), "__torch_function__"):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type_name(x)}")


def not_a_tensor(function: str, value: Any, name: str = "input", position: int = 1) -> TypeError:
    """PyTorch's error for an argument of a function that should be a tensor."""
    function = _PARSED_AS.get(function, function)
    site = call_site()
    named = site is not None and site.name in ("", function) and name in site.by_name
    where = "" if named else f" (position {position})"
    return TypeError(f"{function}(): argument '{name}'{where} must be Tensor, not {type_name(value)}")


__all__ = ["check_tensors", "not_a_tensor", "type_name"]
