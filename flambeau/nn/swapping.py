"""Two tensors exchanged in place."""

from __future__ import annotations

import weakref
from typing import Any

from .._tensor import Tensor
from .._tensor.overriding.dispatch import forget_wrapper, note_wrapper
from .._tensor.overriding.entry_points import forget_instance, note_instance

_SLOTS = ("_array", "_requires_grad", "_node", "_output_nr", "_grad", "_counter", "_base", "_accumulator")
_UNSET = object()


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
    wrappers = [_forgotten(tensor) for tensor in (t1, t2)]
    try:
        _exchange(t1, t2)
        wrappers.reverse()
    finally:
        for tensor, wrapper in zip((t1, t2), wrappers, strict=True):
            note_instance(tensor)
            if wrapper:
                note_wrapper(tensor)


def _forgotten(tensor: Tensor) -> bool:
    """Drop the references by which handlers are counted, until they are noted again; whether it is a wrapper."""
    forget_instance(tensor)
    return forget_wrapper(tensor)


def _own_slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _exchange(t1: Tensor, t2: Tensor) -> None:
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = [{name for cls in type(tensor).__mro__ if cls not in Tensor.__mro__
              for name in _own_slots(cls)} for tensor in (t1, t2)]
    if slots[0] != slots[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    accumulators = [tensor._accumulator() if tensor._accumulator is not None else None for tensor in (t1, t2)]
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for name in (*_SLOTS, *slots[0]):
        first, second = getattr(t1, name, _UNSET), getattr(t2, name, _UNSET)
        for tensor, value in ((t1, second), (t2, first)):
            if value is not _UNSET:
                setattr(tensor, name, value)
            elif getattr(tensor, name, _UNSET) is not _UNSET:
                delattr(tensor, name)
    t1._storage, t2._storage = getattr(t2, "_storage", None), getattr(t1, "_storage", None)
    t1._accumulator = t2._accumulator = None
    for accumulator in accumulators:
        if accumulator is not None:
            accumulator.register_prehook(_poisoned)
