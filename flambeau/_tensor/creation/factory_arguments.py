"""What factories share: arguments for sizes, pinned memory and layouts, and the wrapping of arrays and storages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ... import devices, dtypes
from ...backends.elementless_array import without_elements
from ...backends.sparse_array import not_implemented
from ...devices import strided
from ...dtypes import dtype as dtype_type
from ...engine.grad_mode import inference
from ...modes import filled_memory, inference_used, special
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.complex_half import warn_of_complex_half
from ..dispatch.handlers import handlers
from ..meta import reserved_like
from ..tensor import INFERENCE, Tensor, wrap
from ..tracer_notifications import notify_created

if TYPE_CHECKING:
    from ..memory.storage import UntypedStorage


def makes_meta(device: Any) -> bool:
    """Whether a factory with this argument `device=` makes a meta tensor."""
    return devices.storage_device(device) is devices.META


def finished(made: Tensor, requires_grad: bool) -> Tensor:
    """A new tensor with its flags: whether it requires gradients, and that it was made in inference mode.

    Raises:
        RuntimeError: `requires_grad` for an integer dtype.
    """
    if requires_grad:
        if made._array.dtype.kind not in "fcV":
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made.requires_grad = True
    if inference.get():
        made._inference, made._counter = True, INFERENCE
    return made


def wrap_new(array: np.ndarray, device: Any, requires_grad: bool, unset: bool = False) -> Tensor:
    """A tensor on a new array.

    Args:
        unset: the elements are uninitialised.

    Raises:
        RuntimeError: `requires_grad` for an integer dtype.
    """
    if array.dtype is dtypes.COMPLEX32:
        warn_of_complex_half()
    target = devices.CPU if device is None and devices.ambient[0] is None else devices.storage_device(device)
    if target is devices.META:
        array = without_elements(reserved_like(array))
    elif unset and filled_memory[0]:
        from ...backends.numpy.uninitialized import fill_uninitialized  # rarely needed

        fill_uninitialized(array)
    out: Tensor = wrap(array)
    if target is not devices.CPU and target is not devices.META and out._device is not target:
        out = handlers.uninitialised(array, target) if unset else handlers.transfer(out, target)
    elif special[0] and target is devices.CPU:
        notify_created(array, unset)
    return finished(out, requires_grad) if requires_grad or inference_used[0] else out


def parse_sizes(size: tuple[Any, ...], name: str = "zeros", out: Any = None) -> tuple[int, ...]:
    """The shape, from positional sizes or one sequence of sizes.

    Args:
        out: a tensor that gets this shape.

    Raises:
        TypeError: a size is not an integer.
        RuntimeError: a size is negative.
    """
    if len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    if not size or ({int}.issuperset(map(type, size)) and min(size) >= 0):
        return size
    result = []
    for i, s in enumerate(size):
        try:
            if s.__class__ is bool and i == 0:  # PyTorch looks at the first size only
                raise TypeError
            n = s.__index__()
        except (AttributeError, TypeError):
            kind = type_name(s)
            where = f"must be tuple of ints, not {kind}" if len(size) == 1 else (
                f"must be tuple of ints, but found element of type {kind} at pos {i}")
            raise TypeError(f"{name}(): argument 'size' (position 1) {where}") from None
        if n < 0:
            if out is not None and isinstance(out, Tensor):
                check_records_nothing(name, (), (out,))
                raise RuntimeError("numel: integer multiplication overflow")
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {list(size)}")
        result.append(n)
    return tuple(result)


def refuse_pinned(device: Any = None, layout: Any = None, name: str = "", pin_memory: Any = True) -> None:
    """Raise PyTorch's error for memory that is to be pinned for a device where none is, unless no memory is asked for.

    Args:
        device, layout: of the tensor that is to be made.
        name: the function's.
        pin_memory: what it was given.
    """
    if pin_memory is not True:
        raise TypeError(f"{name}(): argument 'pin_memory' must be bool, not {type_name(pin_memory)}")
    if layout is not None and layout is not strided:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if device is not None and makes_meta(device):
        return
    raise RuntimeError("pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is "
                       "available on this system.")


def refuse_sparse(layout: Any, operator: str) -> None:
    """Raise PyTorch's error for a sparse tensor that is to be filled by an operator without a kernel for it."""
    if layout is not None and layout is not strided:
        raise not_implemented(operator, layout)


def on_storage(storage: UntypedStorage, dtype: dtype_type) -> Tensor:
    """A tensor on the memory of a storage, of as many elements as fit."""
    from ..memory.storage import attach_storage

    d = dtype.numpy
    out: Tensor = wrap(storage._memory[:storage._memory.size // d.itemsize * d.itemsize].view(d))
    attach_storage(out, storage)
    return out
