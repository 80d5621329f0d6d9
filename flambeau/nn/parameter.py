"""`Parameter` and `Buffer`: tensors that a module registers on assignment, and their uninitialized variants."""

from __future__ import annotations

from typing import Any, ClassVar, NoReturn

import numpy as np

from .._tensor import Parameter, Tensor
from .._tensor import functions as fn
from .._tensor.overriding.entry_points import forget_instance
from .._tensor.overriding.protocol import SUBCLASSES_DISABLED, disabled
from .._tensor.parameter import _ParameterMeta as _ParameterMeta
from .._tensor.tensor import wrap
from ..shapes import Size

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin",
           "is_lazy"]


class _BufferMeta(type):
    # a buffer is a plain Tensor with the attribute `_is_buffer`, so operators need no subclass handling
    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)

    def __getattr__(cls, name: str) -> Any:  # the methods of tensors, as functions of the class
        return getattr(Tensor, name)


class Buffer(metaclass=_BufferMeta):
    """A tensor that a module registers as a buffer on assignment.

    Args:
        data: the tensor; empty by default.
        persistent: whether the buffer is part of the module's `state_dict`.

    >>> import flambeau as torch
    >>> m = torch.nn.Module()
    >>> m.scale = torch.nn.Buffer(torch.ones(2))
    >>> list(m.state_dict())
    ['scale']
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Tensor:  # type: ignore[misc]
        if data is None:
            data = fn.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


#: methods and properties of an uninitialized tensor that work
_ALLOWED = frozenset((
    "__hash__", "size", "copy_", "is_complex", "is_floating_point", "half", "float", "double", "char", "short", "int",
    "long", "cuda", "cpu", "to", "get_device", "_has_compatible_shallow_copy_type", "requires_grad_",
))


class UninitializedTensorMixin:
    """A tensor without shape and values, until `materialize` turns it into one of the class `cls_to_become`.

    Its dtype and device are known; functions of it raise ValueError.
    """

    __slots__ = ()
    cls_to_become: ClassVar[type]

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Give the tensor a shape, and uninitialized values.

        Args:
            shape: the shape.
            device: the device, by default the tensor's.
            dtype: the dtype, by default the tensor's.

        >>> import flambeau as torch
        >>> weight = torch.nn.UninitializedParameter()
        >>> weight.materialize((2, 3))
        >>> weight.shape, type(weight).__name__
        (flambeau.Size([2, 3]), 'Parameter')
        """
        token = disabled.set(SUBCLASSES_DISABLED)
        try:
            own: Any = self
            own.data = fn.empty(shape, device=own.device if device is None else device,
                                dtype=own.dtype if dtype is None else dtype)
            own.__class__ = self.cls_to_become
        finally:
            disabled.reset(token)
        forget_instance(self)

    @property
    def shape(self) -> NoReturn:
        """Raises RuntimeError: the shape is unknown."""
        raise RuntimeError("Can't access the shape of an uninitialized parameter or buffer. This error usually happens "
                           "in `load_state_dict` when trying to load an uninitialized parameter into an initialized "
                           "one. Call `forward` to initialize the parameters before accessing their attributes.")

    def size(self, dim: int | None = None) -> Any:
        """That of a tensor of shape (0,)."""
        return (Size([0]) if dim is None else Size([0])[dim])

    def share_memory_(self) -> NoReturn:
        """Raises RuntimeError: there is no memory."""
        raise RuntimeError("Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize "
                           "the parameters before calling `module.share_memory()`.")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        own: Any = self
        if id(self) not in memo:
            memo[id(self)] = type(own)(own.requires_grad, own.device, own.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad,)  # type: ignore[attr-defined]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _ALLOWED or not hasattr(func, "__code__") or name in ("__get__", "__set__"):
            return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]
        raise ValueError(f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using"
                         f" a `LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When"
                         " using LazyModules Call `forward` with a dummy batch to initialize the parameters before "
                         "calling torch functions")


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer is uninitialized.

    Args:
        param: any object.

    >>> import flambeau as torch
    >>> torch.nn.parameter.is_lazy(torch.nn.LazyLinear(3).weight)
    True
    """
    return isinstance(param, UninitializedTensorMixin)


def _empty(cls: type, requires_grad: bool, device: Any, dtype: Any) -> Any:
    kind = fn.empty(0, device=device, dtype=dtype)._array.dtype
    result = wrap(np.zeros(0, kind), cls)
    result._requires_grad = requires_grad
    return result


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is not yet known.

    Args:
        requires_grad: whether gradients are computed for it.
        device: its device.
        dtype: its dtype.

    >>> import flambeau as torch
    >>> torch.nn.UninitializedParameter()
    <UninitializedParameter>
    """

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        return _empty(cls, requires_grad, device, dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer whose shape is not yet known.

    Args:
        requires_grad: whether gradients are computed for it.
        device: its device.
        dtype: its dtype.
        persistent: whether it is part of the module's `state_dict`.

    >>> import flambeau as torch
    >>> torch.nn.UninitializedBuffer()
    <UninitializedBuffer>
    """

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
                persistent: bool = True) -> Any:
        result = _empty(cls, requires_grad, device, dtype)
        result.persistent, result._is_buffer = persistent, True
        return result
