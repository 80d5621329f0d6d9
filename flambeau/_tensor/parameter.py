"""Parameter: a tensor that modules register and optimizers update."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..backends.bit_views import resolve
from ..modes import device_memory, special
from .dispatch.handlers import handlers
from .overriding.dispatch import is_on_accelerator
from .overriding.protocol import DISABLED
from .printing import parameter_str
from .tensor import Tensor, wrap


def clear_gradients(params: Iterable[Any], set_to_none: bool) -> None:
    """Set the gradients of parameters to None or, unless `set_to_none`, to zero (`zero_grad`)."""
    for param in params:
        grad = param._grad
        if grad is None and not special[0]:
            if not param.is_leaf:
                param.grad  # noqa: B018  (which warns)
            continue
        # also where there is none: the tracer must know that the next call may find one
        if set_to_none:
            param.grad = None
        elif param.grad is not None:
            if grad.grad_fn is not None:
                grad.detach_()
            else:
                grad.requires_grad_(False)
            grad.zero_()


class _ParameterMeta(type):
    # A tensor of another subclass may be marked as a parameter too
    def __instancecheck__(cls, instance: object) -> bool:
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is registered as a parameter of the module it is assigned to.

    Args:
        data: the values, of any shape; the memory is shared.
        requires_grad: whether gradients are computed for it.

    See https://docs.pytorch.org/docs/stable/generated/torch.nn.parameter.Parameter.html

    >>> import flambeau as torch
    >>> torch.nn.Parameter(torch.ones(2))
    Parameter containing:
    tensor([1., 1.], requires_grad=True)
    """

    __slots__ = ()
    __module__ = f"{__name__.partition('.')[0]}.nn.parameter"  # the public name in `repr`
    __torch_function__ = DISABLED  # its operators return tensors

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = wrap(np.zeros(0, np.float32))
        if not isinstance(data, Tensor):
            raise AttributeError(f"'{type(data).__name__}' object has no attribute 'detach': a Parameter is made from "
                                 "a Tensor")
        self: Any
        if type(data) is Tensor or type(data) is cls or isinstance(data, Parameter):
            self = wrap(data._array, cls)
            if data._counter is None:
                data._counter = [0]
            self._counter = data._counter
            if data._inference:  # else `__dict__` would hold it, which packages pass on as arguments
                self._inference = True
        else:
            detached = data.detach()
            if type(detached) is not type(data):
                raise RuntimeError(f"Creating a Parameter from an instance of type {type(data).__name__} requires that "
                                   "detach() returns an instance of the same type, but return type "
                                   f"{type(detached).__name__} was found instead. To use the type as a Parameter, "
                                   "please correct the detach() semantics defined by its __torch_dispatch__() "
                                   "implementation.")
            self = detached.requires_grad_(requires_grad)  # a method, which handlers see
            self._is_param = True
            return self
        if requires_grad:
            if data._array.dtype.kind not in "fcV":
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            self.requires_grad = True
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if device_memory.count and is_on_accelerator(self):
            copied = type(self)(handlers.copy_on_device(self), self._requires_grad)
        else:
            a = resolve(self._array)
            copied = type(self)(wrap(np.array(a, copy=True) if a.__class__ is np.ndarray else a.copy("K")),
                                self._requires_grad)
        memo[id(self)] = copied
        return copied

    def __repr__(self) -> str:  # type: ignore[override]
        return parameter_str(self)
