"""`Parameter` and `Buffer`: tensors that a module registers on assignment."""

from __future__ import annotations

from .._tensor import Parameter, Tensor
from .._tensor import functions as fn

__all__ = ["Buffer", "Parameter"]


class _BufferType(type):
    # a buffer is a plain Tensor with the attribute `_is_buffer`, so operators need no subclass handling
    def __instancecheck__(cls, instance: object) -> bool:
        if super().__instancecheck__(instance):
            return True
        return isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(metaclass=_BufferType):
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
