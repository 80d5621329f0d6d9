"""Two tensors exchanged in place."""

from __future__ import annotations

import weakref
from typing import Any

from .._tensor import Tensor

_SLOTS = ("_array", "_requires_grad", "_node", "_output_nr", "_grad", "_counter", "_base", "_accumulator")


def _poisoned(gradients: Any) -> None:
    raise RuntimeError("Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when "
                       "you try to run backward on a tensor that was swapped. For a module m with "
                       "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device "
                       "or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. "
                       "To resolve this, please only change the device/dtype before running forward (or after both "
                       "forward and backward).")


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange two tensors: whoever refers to one finds the other afterwards, its class and attributes included.

    Graphs that are alive and end in one of the tensors cannot be differentiated any more.

    Raises:
        RuntimeError: there are weak references to one of them.
        AttributeError: an attribute in `__slots__` is only in one of the classes.

    >>> import flambeau as torch
    >>> a, b = torch.ones(1), torch.zeros(2)
    >>> torch.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([0., 0.]), tensor([1.]))
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = [{name for cls in type(tensor).__mro__ if cls not in (Tensor, object)
              for name in getattr(cls, "__slots__", ())} for tensor in (t1, t2)]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    accumulators = [tensor._accumulator() if tensor._accumulator is not None else None for tensor in (t1, t2)]
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in (*_SLOTS, *slots[0]):
        first, second = getattr(t1, name), getattr(t2, name)
        setattr(t1, name, second)
        setattr(t2, name, first)
    t1._storage, t2._storage = getattr(t2, "_storage", None), getattr(t1, "_storage", None)
    t1._accumulator = t2._accumulator = None
    for accumulator in accumulators:
        if accumulator is not None:
            accumulator.register_prehook(_poisoned)
