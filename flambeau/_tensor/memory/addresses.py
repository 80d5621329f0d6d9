"""Where the elements of tensors lie: addresses, offsets in the storage, and whether elements share memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...backends.elementless_array import ElementlessArray
from ...backends.numpy.memory import address, owner
from ...backends.sparse_array import SparseArray
from ...kernels.memory_format import is_dense
from ...modes import active_tracer, lazy_storages, special
from ..overriding.dispatch import is_wrapper
from ..shape.lazy_clones import make_writable
from ..tensor import Tensor


def storage_offset(self: Tensor) -> int:
    """The offset of the first element in the storage, in elements.

    >>> import flambeau as torch
    >>> torch.arange(4)[1:].storage_offset()
    1
    """
    a = self._array
    if a.base is None:  # a sparse array has none
        return 0
    if special[0] and not isinstance(a, np.ndarray):
        return storage_offset(self._value)
    return (address(a) - address(owner(a))) // a.itemsize


def data_ptr(self: Tensor) -> int:
    """The address of the first element; 0 for an empty tensor and for one without memory.

    >>> import flambeau as torch
    >>> x = torch.ones(3)
    >>> x[1:].data_ptr() - x.data_ptr()
    4
    """
    if isinstance(self._array, ElementlessArray) or (special[0] and is_wrapper(self)):
        return 0
    if isinstance(self._array, SparseArray) or (special[0] and not isinstance(self._array, np.ndarray)):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    if special[0]:
        tracer = active_tracer.get()
        if tracer is not None:
            tracer.graph_break("data_ptr() returns an address, which may differ in the next call")
        if lazy_storages[0]:
            make_writable(self._array)
    return address(self._array) if self._array.size else 0


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both tensors have the same memory, shape and strides.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> x.is_set_to(x.detach())
    True
    """
    a, b = self._array, tensor._array
    if special[0] and not (isinstance(a, np.ndarray) and isinstance(b, np.ndarray)):
        raise RuntimeError("Batching rule not implemented for aten::is_set_to. We could not generate a fallback.")
    return owner(a) is owner(b) and address(a) == address(b) and a.shape == b.shape and a.strides == b.strides


def _debug_has_internal_overlap(self: Tensor) -> int:
    """Whether elements of a tensor share memory: 0 if none does, 1 if some do, 2 if the strides do not tell.

    >>> import flambeau as torch
    >>> torch._debug_has_internal_overlap(torch.ones(1).expand(3))
    1
    """
    a = self._array
    if is_dense(a):
        return 0
    return int(any(s == 0 and n > 1 for s, n in zip(a.strides, a.shape, strict=True))) or 2


METHODS: dict[str, Any] = {"storage_offset": storage_offset, "data_ptr": data_ptr, "is_set_to": is_set_to}
