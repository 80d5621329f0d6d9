"""Changes of a tensor's memory in place: `resize_`, `resize_as_`, `set_`."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...backends.bit_views import memory_of, with_bits_of
from ...backends.elementless_array import MetaArray, plain_dtype, reserved, without_elements
from ...backends.numpy.memory import CHANNELS_LAST, address, element_strides, is_contiguous, owner, strided_view
from ...backends.sparse_array import SparseArray
from ...engine.tensor_interface import layer
from ...modes import active_tracer, filled_memory, inference, special
from ...shapes import contiguous_strides
from ..dispatch.write_checks import check_writable, is_tracked
from ..meta import is_meta
from ..methods.sparse import implementation as sparse_implementation
from ..tensor import Tensor

__all__ = ["resize_as_"]


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Change the shape in place, within the same memory if it suffices; new elements are uninitialised.

    Raises:
        RuntimeError: it requires grad.

    >>> import flambeau as torch
    >>> torch.arange(4).resize_(2)
    tensor([0, 1])
    """
    from ..creation.factory_arguments import parse_sizes as shape_of

    if self._requires_grad and not inference.get():
        raise RuntimeError("cannot resize variables that require grad")
    shape = shape_of(sizes, "resize_")
    if isinstance(self._array, SparseArray):
        return sparse_implementation("resizing", "resize_compressed_")(self, shape)
    if special[0] and not isinstance(self._array, np.ndarray):
        return _resize_batched(self, shape, memory_format)
    return _resized(self, shape, memory_format)


def _resize_batched(self: Any, shape: tuple[int, ...], memory_format: Any) -> Tensor:
    """`resize_` of a batched tensor."""
    resize_(self._value, (*(level.size for level in self._levels), *shape), memory_format=memory_format)
    return self


def _notify_memory_change(how: str) -> None:
    """Notify the tracer that a tensor gets other memory."""
    tracer = active_tracer.get() if special[0] else None
    if tracer is not None:
        tracer.on_memory_change(how)


def _check_resize(x: Tensor, shape: tuple[int, ...], memory_format: Any) -> None:
    """Raise PyTorch's RuntimeError for sizes that overflow and formats that do not fit."""
    count, step = 1, 1
    for s in shape:
        count *= s
    for s in reversed(shape):
        if step >= 2 ** 63:
            raise RuntimeError("Stride calculation overflowed")
        step *= s
    if count >= 2 ** 63:
        raise RuntimeError("numel: integer multiplication overflow")
    if count * x._array.itemsize >= 2 ** 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if memory_format is devices.preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    if memory_format is not None and memory_format.name in CHANNELS_LAST:
        rank = len(CHANNELS_LAST[memory_format.name][1])
        if len(shape) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")


def _resized(self: Tensor, shape: tuple[int, ...], memory_format: Any) -> Tensor:
    _check_resize(self, shape, memory_format)
    _notify_memory_change("resize_")
    a = self._array
    if a.shape != shape:
        self._bump_version()
    elif memory_format is None:
        return self
    is_on_meta = isinstance(a, MetaArray)
    with_bits, a = a, memory_of(a)
    memory_owner = owner(a)
    offset = (address(a) - address(memory_owner)) // a.itemsize
    count = prod(shape)
    if (offset + count) * a.itemsize <= memory_owner.nbytes and count:
        steps, step = [], 1
        for s in reversed(shape):
            steps.append(step)
            step *= s
        self._array = strided_view(a, shape, tuple(reversed(steps)), offset)
    else:
        memory = reserved((offset + count,), plain_dtype(a.dtype)) if is_on_meta else np.zeros(offset + count, a.dtype)
        flat = strided_view(a, (memory_owner.nbytes // a.itemsize,), (1,), 0) if memory_owner.nbytes else memory[:0]
        keep = 0 if is_on_meta else min(flat.size, memory.size)
        memory[:keep] = flat[:keep]
        if filled_memory[0] and not is_on_meta:
            from ...backends.numpy.uninitialized import fill_uninitialized  # rarely needed

            fill_uninitialized(memory[keep:])
        self._array = memory[offset:].reshape(shape)
        storage = getattr(self, "_storage", None)
        if storage is not None:
            storage._memory = memory.view(np.uint8)
    if memory_format is not None and memory_format.name in CHANNELS_LAST:
        _, order, back = CHANNELS_LAST[memory_format.name]
        self._array = self._array.reshape([shape[i] for i in order]).transpose(back)
    self._array = without_elements(self._array) if is_on_meta else with_bits_of(self._array, with_bits)
    return self


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the shape of `the_template`.

    Raises:
        RuntimeError: `input` requires grad.

    >>> import flambeau as torch
    >>> torch.resize_as_(torch.arange(4), torch.zeros(1, 2))
    tensor([[0, 1]])
    """
    if input._requires_grad and not inference.get():
        raise RuntimeError("cannot resize variables that require grad")
    if isinstance(input._array, SparseArray):
        return sparse_implementation("resizing", "resize_as_sparse_")(input, the_template)
    if memory_format is devices.preserve_format:
        formats = (devices.channels_last, devices.channels_last_3d)
        a = the_template._array
        memory_format = None if is_contiguous(a, None) else next((f for f in formats if is_contiguous(a, f)), None)
    if special[0] and not isinstance(input._array, np.ndarray):
        return _resize_batched(input, the_template._array.shape, memory_format)
    return _resized(input, the_template._array.shape, memory_format)


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make this tensor a view of the memory of another tensor or a storage, in place. There is no derivative.

    Raises:
        RuntimeError: the dtypes differ, or this is a leaf that requires grad.

    >>> import flambeau as torch
    >>> torch.zeros(1).set_(torch.ones(2))
    tensor([1., 1.])
    """
    if source is not None and not hasattr(source, "device"):
        raise TypeError("set_(): argument 'source' must be a Tensor or a storage")  # a guard says more
    tracked = is_tracked((self, source))
    check_writable(self, tracked)
    _notify_memory_change("set_")
    if self._requires_grad or (isinstance(source, Tensor) and source._requires_grad):
        _drop_history(self, source, tracked)
    result = _show_memory(self, source, storage_offset, size, stride)
    self._bump_version()
    return result


def _drop_history(self: Tensor, source: Any, tracked: bool) -> None:
    if not tracked:
        if self._node is None:
            self._accumulator = None  # gradients for the old memory do not belong to this leaf
        return
    from ...engine.nodes.unsupported_derivatives import NotImplemented

    node = NotImplemented("derivative for set_ is not implemented",
                          (self, source if isinstance(source, Tensor) else None))
    self._node, self._output_nr, self._requires_grad, self._accumulator = node, 0, True, None


def _show_memory(self: Tensor, source: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    if source is not None and (source._device if isinstance(source, Tensor) else source.device) is not self._device:
        raise RuntimeError(f"Attempted to set the storage of a tensor on device \"{self.device}\" to a storage on "
                           f"different device \"{source.device}\".  This is no longer allowed; the devices must match.")
    self._storage = None
    if source is None:
        if self._device is devices.CPU:
            self._array = np.zeros(0, self._array.dtype)
        else:
            self._array = layer.functions.empty(0, dtype=self.dtype, device=self._device)._array
        return self
    if isinstance(source, Tensor):
        if source._array.dtype != self._array.dtype:
            raise RuntimeError(f"Could not set tensor of type {dtypes.C_NAMES[source.dtype.name]} to a tensor of type "
                               f"{dtypes.C_NAMES[self.dtype.name]}")
        if size is None:
            self._array = memory_of(source._array)
            return self
        from ..memory.storage import untyped_storage

        strides = tuple(stride) if stride is not None else contiguous_strides(size)
        _grow(self, stride is not None, untyped_storage(source), tuple(size), strides, storage_offset)
        self._array = strided_view(memory_of(source._array), tuple(size), strides, storage_offset)
        return self
    given = getattr(source, "dtype", self.dtype)  # an UntypedStorage has none
    if given is not self.dtype:
        raise RuntimeError(f"Expected a Storage of type {dtypes.C_NAMES[self.dtype.name]} or an UntypedStorage, but "
                           f"got type {given.scalar_name} for argument 1 'storage'")
    from ..memory.storage import attach_storage

    storage, itemsize = source.untyped(), self._array.dtype.itemsize
    shape = (storage.nbytes() // itemsize,) if size is None else tuple(size)
    strides = tuple(stride) if stride is not None else contiguous_strides(shape)
    _grow(self, stride is not None, storage, shape, strides, storage_offset)
    data = storage._memory
    memory = data[:data.size // itemsize * itemsize].view(plain_dtype(self._array.dtype))
    array = strided_view(memory, shape, strides, storage_offset)
    self._array = without_elements(array) if is_meta(self) else array
    attach_storage(self, storage)
    return self


def _grow(self: Tensor, strided: bool, storage: Any, shape: tuple[int, ...], strides: tuple[int, ...],
          offset: int) -> None:
    """Resize a storage that a tensor is to be on to what it needs, if it gets another shape, or is `strided`."""
    from ..memory.shared_storage import resize_storage

    itemsize = self._array.itemsize
    if shape == self._array.shape and not (strided and strides != element_strides(self._array)):
        return
    if 0 in shape or offset < 0 or len(shape) != len(strides) or min((*shape, *strides, 0)) < 0:
        return
    needed = itemsize * (1 + offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
    if needed > storage.nbytes():
        resize_storage(storage, needed)


METHODS: dict[str, Any] = {"resize_": resize_, "resize_as_": resize_as_, "set_": set_}
