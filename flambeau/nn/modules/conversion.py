"""Changing all tensors of a module at once: their dtype, device, gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

from ... import dtypes
from ..._tensor import Parameter, Tensor, no_grad
from ..._tensor import functions as fn
from ..._tensor.parameter import drop_gradients
from ...modes import configured

TO_SIGNATURES = """\
 * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, \
*, torch.memory_format memory_format = None)
 * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
"""


class Convertible:
    """The part of a module that changes its tensors in place, the parameter objects staying the same."""

    training: bool
    _parameters: dict
    _buffers: dict
    children: Callable[[], Any]
    parameters: Callable[..., Any]

    def _apply(self, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Replace the data of every parameter, gradient and buffer by `convert` of it."""
        configured[0] += 1
        if recurse:
            for module in self.children():
                module._apply(convert)
        for name, param in self._parameters.items():
            if param is None:
                continue
            with no_grad():
                data = convert(param)
            grad = param.grad
            if _shares_kind(param, data):
                param.data = data
                kept = param
            else:
                kept = Parameter(data, requires_grad=param.requires_grad)
                self._parameters[name] = kept
            if grad is None:
                continue
            with no_grad():
                grad_data = convert(grad)
            if kept is param and _shares_kind(grad, grad_data):
                grad.data = grad_data
                kept.grad = grad
            else:
                kept.grad = grad_data.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = convert(buffer)
        return self

    def apply(self, fn: Callable[[Any], None]) -> Self:
        """Call `fn` on every module below this one, children first, and on this one last.

        >>> import flambeau as torch
        >>> _ = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Tanh()).apply(lambda m: print(type(m).__name__))
        ReLU
        Tanh
        Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and cast the parameters and buffers in place: `to(device, dtype)`, `to(dtype)`, `to(tensor)`.

        Only floating point and complex tensors are cast.

        Raises:
            TypeError: the dtype is neither floating point nor complex.

        >>> import flambeau as torch
        >>> torch.nn.Linear(2, 2).to(torch.float64).weight.dtype
        flambeau.float64
        """
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError("nn.Module.to only accepts floating point or complex "
                                f"dtypes, but got desired dtype={dtype}")
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, "
                    "and some modules might not work as expected when using complex tensors as parameters or "
                    "buffers. Please file an issue at "
                    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml "
                    "if a complex module does not work as expected.", stacklevel=2)

        def convert(t: Tensor) -> Tensor:
            cast = dtype if t.is_floating_point() or t.is_complex() else None
            keywords = {}
            if memory_format is not None and t.dim() in (4, 5):
                keywords["memory_format"] = memory_format
            if cast is None and device is None:
                return t.contiguous(**keywords) if keywords else t
            if cast is None:
                return t.to(device, non_blocking=non_blocking, **keywords)
            if device is None:
                return t.to(cast, non_blocking=non_blocking, **keywords)
            return t.to(device, cast, non_blocking, **keywords)

        return self._apply(convert)

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers to `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self) -> Self:
        """Cast all floating point parameters and buffers to float32."""
        return _cast(self, dtypes.float32)

    def double(self) -> Self:
        """Cast all floating point parameters and buffers to float64."""
        return _cast(self, dtypes.float64)

    def half(self) -> Self:
        """Cast all floating point parameters and buffers to float16."""
        return _cast(self, dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast all floating point parameters and buffers to bfloat16."""
        return _cast(self, dtypes.bfloat16)

    def cpu(self) -> Self:
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move all parameters and buffers to the GPU."""
        return self._apply(lambda t: t.cuda(device))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move all parameters and buffers to `device` without their values."""
        return self._apply(lambda t: fn.empty_like(t, device=device), recurse=recurse)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say of all parameters whether their gradients are wanted."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters or, unless `set_to_none`, fill them with zeros."""
        drop_gradients(self.parameters(), set_to_none)

    def share_memory(self) -> Self:
        """Move all parameters and buffers to shared memory."""
        return self._apply(lambda t: t.share_memory_())


def _shares_kind(old: Tensor, new: Tensor) -> bool:
    """Whether `old.data = new` is possible: both have data, or neither has."""
    return (old.device.type == "meta") == (new.device.type == "meta")


def _parse_to(args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, non_blocking and memory format that `to` was called with."""
    given = dict(kwargs)
    positional = list(args)
    device = given.pop("device", None)
    dtype = given.pop("dtype", None)
    non_blocking = given.pop("non_blocking", False)
    memory_format = given.pop("memory_format", None)
    copy = given.pop("copy", False)
    like = given.pop("tensor", None)
    flags = 2
    if positional:
        first = positional.pop(0)
        if isinstance(first, Tensor):
            like = first
        elif isinstance(first, dtypes.dtype):
            dtype = first
        else:
            device = first
            if positional and (positional[0] is None or isinstance(positional[0], dtypes.dtype)):
                dtype = positional.pop(0)
    if positional:
        non_blocking = positional[0]
        copy = positional[1] if len(positional) > 1 else copy
    named_wrong = not isinstance(dtype, dtypes.dtype | None) or not isinstance(like, Tensor | None)
    if given or len(positional) > flags or named_wrong or not isinstance(non_blocking, bool):
        kinds = ", ".join([*(_kind(a) for a in args), *(f"{k}={_kind(v)}" for k, v in kwargs.items())])
        raise TypeError(f"to() received an invalid combination of arguments - got ({kinds}), "
                        f"but expected one of:\n{TO_SIGNATURES}")
    if copy:
        raise RuntimeError(".to() does not accept copy argument")
    if like is not None:
        device, dtype = like.device, like.dtype
    return device, dtype, non_blocking, memory_format


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return type(value).__name__
    return "torch.dtype" if isinstance(value, dtypes.dtype) else type(value).__name__


def _cast(module: Any, dtype: Any) -> Any:
    return module._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)
