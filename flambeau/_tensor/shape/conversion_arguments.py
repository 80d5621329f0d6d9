"""The arguments of `Tensor.to` and `Module.to`: three forms of calls, as PyTorch's parser tells them apart."""

from __future__ import annotations

from typing import Any

from ... import devices, dtypes
from ..tensor import Tensor

_FORMS = (("device", "dtype", "non_blocking", "copy"), ("dtype", "non_blocking", "copy"),
          ("tensor", "non_blocking", "copy"))
_FLAGS = ("non_blocking", "copy")


def parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> (
        tuple[devices.device | None, dtypes.dtype | None, bool, bool, Any]):
    """The device, the dtype, `non_blocking`, `copy` and the memory format of a call of `to`.

    Args:
        args: by position, without the tensor or module.
        kwargs: by name.

    Raises:
        TypeError: the arguments fit none of the forms (PyTorch's text).
        RuntimeError: an unknown device type, or an index where there is no accelerator.

    >>> import flambeau as torch
    >>> from flambeau._tensor.shape.conversion_arguments import parse_to
    >>> parse_to(("cpu", torch.float64), {"copy": True})
    (device(type='cpu'), flambeau.float64, False, True, None)
    """
    for form in _FORMS:
        given = dict(zip(form, args, strict=False))
        if len(args) > len(form) or given.keys() & kwargs.keys():
            continue
        given.update(kwargs)
        memory_format = given.pop("memory_format", None)
        if given.keys() <= set(form) and _fit(form, given) and (
                memory_format is None or isinstance(memory_format, devices.memory_format)):
            break
    else:
        raise _refusal(args, kwargs)
    non_blocking, copy = (bool(given.get(flag, False)) for flag in _FLAGS)
    if form[0] == "tensor":
        return given["tensor"]._device, given["tensor"].dtype, non_blocking, copy, memory_format
    device, dtype = given.get("device"), given.get("dtype")
    return (None if device is None else devices.of_argument(device), None if dtype is None else _dtype(dtype),
            non_blocking, copy, memory_format)


def _fit(form: tuple[str, ...], given: dict[str, Any]) -> bool:
    for name, value in given.items():
        if name in _FLAGS:
            fits = isinstance(value, bool)
        elif name == "tensor":
            fits = isinstance(value, Tensor)
        elif name == "dtype":
            fits = value is None or isinstance(value, dtypes.dtype) or _of_python(value) if form[0] == "device" else (
                _is_dtype(value))
        else:
            fits = value is None or devices.is_device(value)
        if not fits:
            return False
    return form[0] == "device" or form[0] in given


def _of_python(value: Any) -> bool:
    """Whether a value is one of Python's number types."""
    return isinstance(value, type) and value in dtypes.OF_PYTHON


def _is_dtype(value: Any) -> bool:
    """Whether a value is a dtype, one of Python's number types, or, as for PyTorch's parser, a number of one."""
    return isinstance(value, (dtypes.dtype, bool, float, complex)) or _of_python(value)


def _dtype(value: Any) -> dtypes.dtype:
    if isinstance(value, (bool, float, complex)):
        value = next(kind for kind in (bool, float, complex) if isinstance(value, kind))
    return dtypes.of_argument(value, "to")


def _refusal(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Exception:
    from ..argument_errors.messages import METHOD, explained

    return explained(METHOD, "to", args, kwargs) or TypeError(
        f"to(): the arguments {args} and {kwargs} are no device, dtype or tensor")


__all__ = ["parse_to"]
