"""`Module.to` and its relatives: in-place conversion of all tensors of a module."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

from .... import dtypes
from ...._tensor import Parameter, Tensor, no_grad
from ...._tensor import functions as fn
from ...._tensor.parameter import clear_gradients
from ...._tensor.shape.conversion_arguments import parse_to
from ....modes import module_changes
from ...swapping import swap_tensors

#: [whether conversion makes new parameters even where the present ones could take the data]
OVERWRITE = [False]

#: [whether conversion and loading exchange parameters with new ones, which then have the same identity]
SWAP = [False]


class ConversionMixin:
    """Mixin of `Module`: conversion of dtype and device; `Parameter` objects keep their identity."""

    training: bool
    _parameters: dict
    _buffers: dict
    children: Callable[[], Any]
    parameters: Callable[..., Any]

    def _apply(self, convert: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Apply `convert` to the data of every parameter, gradient and buffer."""
        module_changes[0] += 1
        if recurse:
            for module in self.children():
                module._apply(convert)
        for name, param in self._parameters.items():
            if param is None:
                continue
            if SWAP[0]:
                _swap_converted(self, name, param, convert)
                continue
            with no_grad():
                data = convert(param)
            grad = param.grad
            if not OVERWRITE[0] and _can_set_data(param, data):
                param.data = data
                new_param = param
            else:
                new_param = Parameter(data, requires_grad=param.requires_grad)
                self._parameters[name] = new_param
            if grad is None:
                continue
            with no_grad():
                grad_data = convert(grad)
            if new_param is param and _can_set_data(grad, grad_data):
                grad.data = grad_data
                new_param.grad = grad
            else:
                new_param.grad = grad_data.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = convert(buffer)
        return self

    def apply(self, fn: Callable[[Any], None]) -> Self:
        """Call `fn` on every descendant, children first, and on this module last.

        Args:
            fn: function of one module.

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
        """Convert all tensors in place: `to(device, dtype)`, `to(dtype)`, `to(tensor)`, `to(memory_format=)`.

        Only floating point and complex tensors are cast.

        Args:
            args: device, dtype, or a tensor that has both, and `non_blocking`.
            kwargs: the same by name, and `memory_format`, applied to 4-D and 5-D tensors.

        Raises:
            TypeError: the dtype is neither floating point nor complex, or the arguments match no overload.

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
            return t.to(device, cast, non_blocking=non_blocking, **keywords)

        try:
            return self._apply(convert)
        except NotImplementedError as error:
            if str(error) != "Cannot copy out of meta tensor; no data!":
                raise
            raise NotImplementedError(f"{error} Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
                                      "when moving module from meta to a different device.") from None

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

    def xpu(self, device: Any = None) -> Self:
        """Move all parameters and buffers to an XPU."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device: Any = None) -> Self:
        """Move all parameters and buffers to an MTIA device."""
        return self._apply(lambda t: t.mtia(device))

    def ipu(self, device: Any = None) -> Self:
        """Move all parameters and buffers to an IPU."""
        return self._apply(lambda t: t.ipu(device))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move all parameters and buffers to `device` without copying values; the new ones are uninitialized."""
        return self._apply(lambda t: fn.empty_like(t, device=device), recurse=recurse)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set `requires_grad` of all parameters."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters.

        Args:
            set_to_none: set them to None instead of zeros.

        >>> import flambeau as torch
        >>> m = torch.nn.Linear(1, 1)
        >>> m(torch.ones(1)).sum().backward()
        >>> m.zero_grad()
        >>> m.weight.grad is None
        True
        """
        clear_gradients(self.parameters(), set_to_none)

    def share_memory(self) -> Self:
        """Move all parameters and buffers to shared memory."""
        return self._apply(lambda t: t.share_memory_())


def _swap_converted(module: Any, name: str, param: Tensor, convert: Callable[[Tensor], Tensor]) -> None:
    """Exchange a parameter, and its gradient, with the converted one."""
    with no_grad():
        data = convert(param)
    grad = param.grad
    path = f"{module._get_name()}.{name}"
    try:
        param.grad = None
        swap_tensors(param, Parameter(data, requires_grad=param.requires_grad))
    except Exception as error:
        param.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {path}") from error
    if grad is None:
        return
    with no_grad():
        new_grad = convert(grad)
    new_grad.requires_grad_(grad.requires_grad)
    try:
        swap_tensors(grad, new_grad)
    except Exception as error:
        raise RuntimeError(f"_apply(): Couldn't swap {path}.grad") from error
    param.grad = grad


def _can_set_data(old: Tensor, new: Tensor) -> bool:
    """Whether `old.data = new` is possible: both are meta tensors, or neither is, with the same layout."""
    return (old.device.type == "meta") == (new.device.type == "meta") and old.layout is new.layout


def _parse_to(args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """The arguments of `to`: device, dtype, non_blocking, memory_format."""
    device, dtype, non_blocking, copy, memory_format = parse_to(args, kwargs)
    if copy:
        raise RuntimeError(".to() does not accept copy argument")
    return device, dtype, non_blocking, memory_format


def _cast(module: Any, dtype: Any) -> Any:
    return module._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)
