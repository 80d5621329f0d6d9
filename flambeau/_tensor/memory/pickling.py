"""Pickling of tensors: what `Tensor.__reduce_ex__` returns, and the rebuild functions that pickles refer to.

A tensor is pickled as a call, `_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)`. Files name the
functions as PyTorch does, `torch._utils._rebuild_tensor_v2` (`serialization.names`), so that PyTorch can load them.
"""

from __future__ import annotations

import copyreg
from collections import OrderedDict
from importlib import import_module
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import bits_of, memory_of, toggle
from ...backends.numpy.memory import address, element_strides, owner
from ...backends.sparse_array import SparseArray
from ...devices import META
from ...kernels.memory_format import noted
from ...modes import device_memory
from ...runtime.exception_wrapper import ExceptionWrapper as ExceptionWrapper  # PyTorch's `_utils` has them
from ...runtime.exception_wrapper import KeyErrorMessage as KeyErrorMessage
from ...shapes import contiguous_strides
from ..meta import is_meta, mark_meta, meta_array
from ..methods.sparse import implementation as sparse_implementation
from ..parameter import Parameter
from ..tensor import Tensor, wrap
from .access import TRANSIENT, _check_has_storage, _warn_of_hooks
from .storage import TypedStorage, UntypedStorage

# ----- writing -------------------------------------------------------------------------------


def rebuild_call(x: Tensor) -> tuple[Any, tuple[Any, ...]]:
    """The rebuild function of a tensor and its arguments, without class and attributes."""
    if isinstance(x._array, SparseArray):
        return _rebuild_sparse_tensor, sparse_implementation("likes", "rebuild_arguments")(x)
    if is_meta(x):
        return _rebuild_meta_tensor_no_storage, (x.dtype, tuple(x.shape), x.stride(), x._requires_grad)
    _check_has_storage(x)
    _warn_of_hooks(x)
    a = memory_of(x._array)
    conj, neg = bits_of(x._array)
    metadata = ({"conj": True} if conj else {}) | ({"neg": True} if neg else {})
    more = (metadata,) if metadata else ()
    base = owner(a)
    if not (base.flags.c_contiguous or base.flags.f_contiguous) or any(s < 0 for s in a.strides):
        a = base = np.array(a, order="C", copy=True)  # no storage describes such memory
    storage = UntypedStorage.of(base)
    offset = (address(a) - address(base)) // a.itemsize if a.size else 0
    layout = (offset, tuple(a.shape), tuple(element_strides(a)))
    if x.dtype in dtypes.WITHOUT_STORAGE_CLASS:
        return _rebuild_tensor_v3, (storage, *layout, x._requires_grad, OrderedDict(), x.dtype, *more)
    return _rebuild_tensor_v2, (TypedStorage(storage, x.dtype), *layout, x._requires_grad, OrderedDict(), *more)


def tensor_reduce_ex(self: Tensor) -> Any:
    """The call that rebuilds this tensor.

    Raises:
        NotImplementedError: it is batched (PyTorch's text).
    """
    state = self.__getstate__()
    call, arguments = rebuild_call(self)
    if type(self) is Tensor and not state:
        return call, arguments
    return _rebuild_from_type_v2, (call, type(self), arguments, state)


def parameter_reduce_ex(self: Parameter) -> Any:
    """The call that rebuilds this parameter."""
    state = self.__getstate__()
    if state:
        return _rebuild_parameter_with_state, (self.data, self._requires_grad, OrderedDict(), state)
    return _rebuild_parameter, (self.data, self._requires_grad, OrderedDict())


def __getstate__(self: Tensor) -> Any:
    """The user's attributes of this tensor: a dict, or a pair of dict and slots; None where there are none."""
    own = {name: value for name, value in self.__dict__.items() if name not in TRANSIENT}
    cls = type(self)
    if cls is Tensor or cls is Parameter:
        return own or None
    slots = {name: getattr(self, name) for name in copyreg._slotnames(cls)  # type: ignore[attr-defined]
             if name not in Tensor.__slots__ and hasattr(self, name)}
    return (own or None, slots) if slots else own or None


def __setstate__(self: Tensor, state: Any) -> None:
    """Set the state that files of PyTorch before 0.4 contain."""
    if self._node is not None:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if len(state) == 4:
        self.set_(*state)
        return
    if len(state) == 5:
        self.data = state[0]
        state = (state[3], state[4], state[2])
    self.requires_grad, _, _ = state


# ----- reading -------------------------------------------------------------------------------


def _view_storage(storage: Any, dtype: dtypes.dtype, storage_offset: int, size: Any, stride: Any) -> Tensor:
    memory = getattr(storage, "_untyped_storage", storage)._memory
    kind = type(memory) if device_memory.count and hasattr(memory, "torch_device") else np.ndarray
    size, stride, item = tuple(size), tuple(stride), dtype.itemsize
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(stride)} and {len(size)}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {list(size)}")
    if any(s < 0 for s in stride):
        raise RuntimeError("as_strided: Negative strides are not supported at the moment, got strides: "
                           f"{list(stride)}")
    if storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    if 0 in size:
        steps = stride if stride != contiguous_strides(size) else ()
        return wrap(kind(size, dtype.numpy, memory[:0], 0, tuple(s * item for s in steps) or None))
    needed = item * (1 + storage_offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)))
    if needed > memory.size:
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {storage_offset}, "
                           f"and itemsize {item} requiring a storage size of {needed} are out of bounds for storage "
                           f"of size {memory.size}")
    base = owner(memory)
    if base.dtype == dtype.numpy and base.shape == size and base.size * item == memory.size == needed \
            and base.strides == tuple(s * item for s in stride):
        return wrap(noted(base))
    return wrap(noted(kind(size, dtype.numpy, memory, storage_offset * item, tuple(s * item for s in stride))))


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor on a storage."""
    return _on_device_of(storage, _view_storage(storage, storage.dtype, storage_offset, size, stride))


def _on_device_of(storage: Any, x: Tensor) -> Tensor:
    """A tensor on the memory of a storage; a meta tensor if that is one of the device meta."""
    return mark_meta(x) if storage.device is META else x


def _rebuild_tensor_v2(storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool,
                       backward_hooks: Any, metadata: Any = None) -> Tensor:
    """A tensor on a storage; `metadata` has the conjugate and negative bits."""
    out = _set_bits(_rebuild_tensor(storage, storage_offset, size, stride), metadata)
    out.requires_grad = requires_grad
    return out


def _rebuild_tensor_v3(storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool,
                       backward_hooks: Any, dtype: dtypes.dtype, metadata: Any = None) -> Tensor:
    """A tensor of `dtype` on the bytes of a storage."""
    out = _on_device_of(storage, _view_storage(storage, dtype, storage_offset, size, stride))
    out = _set_bits(out, metadata)
    out.requires_grad = requires_grad
    return out


def _set_bits(out: Tensor, metadata: Any) -> Tensor:
    """Set the bits that the metadata of a new tensor names."""
    if metadata and (metadata.get("conj") or metadata.get("neg")):
        out._array = toggle(out._array, bool(metadata.get("conj")), bool(metadata.get("neg")))
    return out


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A parameter."""
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """A parameter with the user's attributes."""
    return _set_state(Parameter(data, requires_grad), state)


def _rebuild_from_type_v2(func: Any, new_type: type, args: Any, state: Any) -> Any:
    """A tensor of a subclass, or with the user's attributes."""
    out = func(*args)
    if type(out) is not new_type:
        out = out.as_subclass(new_type)
    if new_type.__setstate__ is not Tensor.__setstate__:  # type: ignore[attr-defined]
        out.__setstate__(state)
        return out
    return _set_state(out, state)


def _set_state(out: Any, state: Any) -> Any:
    if isinstance(state, tuple) and len(state) != 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            setattr(out, name, value)
    return out


def _rebuild_device_tensor_from_cpu_tensor(data: Tensor, dtype: dtypes.dtype, device: Any, requires_grad: bool) -> Any:
    """A tensor of a device without storages (XLA), on the CPU."""
    out = data.to(dtype)
    out.requires_grad = requires_grad
    return out


def _rebuild_device_tensor_from_numpy(data: np.ndarray, dtype: dtypes.dtype, device: Any, requires_grad: bool) -> Any:
    """`_rebuild_device_tensor_from_cpu_tensor` of older PyTorch versions."""
    return _rebuild_device_tensor_from_cpu_tensor(wrap(np.asarray(data)), dtype, device, requires_grad)


def _unsupported(kind: str) -> Any:
    def rebuild(*args: Any) -> Any:
        raise NotImplementedError(f"the file holds a {kind} tensor, which flambeau does not support")

    return rebuild


_rebuild_qtensor = _unsupported("quantized")

#: arrays of sparse tensors to check when the file that holds them is loaded: the data of components may come last
unchecked: list[Any] = []


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    """A sparse tensor of its components."""
    out: Tensor = sparse_implementation("likes", "rebuild")(layout, data)
    if sparse_implementation("invariants", "enabled")[0]:
        unchecked.append(out._array)
    return out


def check_sparse_tensors() -> None:
    """Check the sparse tensors that were unpickled while such checks were enabled.

    Raises:
        RuntimeError: an invariant does not hold.
    """
    try:
        for array in unchecked:
            sparse_implementation("invariants", "check_array")(array)
    finally:
        unchecked.clear()


def _rebuild_nested_tensor(buffer: Tensor, sizes: Tensor, strides: Tensor, storage_offsets: Tensor) -> Any:
    """A nested tensor of the strided layout: its components are views of a buffer."""
    memory = buffer.detach()
    parts = [memory.as_strided(*each) for each in zip(
        sizes.tolist(), strides.tolist(), storage_offsets.tolist(), strict=True)]
    make = import_module(f"{__package__.partition('.')[0]}.nested._internal.strided").make
    return make(parts, buffer._requires_grad)




def _rebuild_meta_tensor_no_storage(dtype: dtypes.dtype, size: Any, stride: Any, requires_grad: bool) -> Tensor:
    """A meta tensor."""
    out: Tensor = wrap(meta_array(tuple(size), dtype.numpy, tuple(stride)))
    out._requires_grad = requires_grad
    return out


def _rebuild_wrapper_subclass(cls: Any, dtype: dtypes.dtype, size: Any, stride: Any, storage_offset: int, layout: Any,
                              device: Any, requires_grad: bool) -> Any:
    """A tensor of a subclass without memory of its own; its state comes next."""
    if hasattr(cls, "_unpickled"):
        return cls._unpickled(dtype, size, stride, requires_grad)
    return cls._make_wrapper_subclass(cls, size, strides=stride, dtype=dtype, requires_grad=requires_grad)


#: the rebuild functions that `torch.load` permits with `weights_only=True`
REBUILDERS: dict[str, Any] = {name: globals()[name] for name in (
    "_rebuild_parameter", "_rebuild_parameter_with_state", "_rebuild_qtensor", "_rebuild_tensor",
    "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_sparse_tensor", "_rebuild_meta_tensor_no_storage",
    "_rebuild_nested_tensor", "_rebuild_wrapper_subclass", "_rebuild_device_tensor_from_numpy",
    "_rebuild_device_tensor_from_cpu_tensor")}

METHODS: dict[str, Any] = {"__getstate__": __getstate__, "__setstate__": __setstate__}
