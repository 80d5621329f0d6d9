"""How tensors go into pickles and come out of them: the functions that pickles name, as PyTorch names them.

A pickled tensor is a call: `_rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks)`.
`Tensor.__reduce_ex__` writes that call down; the functions here answer it. In files they are called
`torch._utils._rebuild_tensor_v2` and so on (`serialization.names`), so that PyTorch answers it too.
"""

from __future__ import annotations

import copyreg
from collections import OrderedDict
from typing import Any

import numpy as np

from .. import dtypes
from ..backends.numpy.memory import address, element_strides, owner
from ..shapes import contiguous_strides
from .memory import _TRANSIENT, _refuse_storage, _warn_of_hooks
from .parameter import Parameter
from .storage import TypedStorage, UntypedStorage
from .tensor import Tensor, wrap

# ----- into a pickle -------------------------------------------------------------------------


def call_for(x: Tensor) -> tuple[Any, tuple[Any, ...]]:
    """The function and the arguments that make a tensor again, its class and attributes aside."""
    _refuse_storage(x)
    _warn_of_hooks(x)
    a = x._array
    whole = owner(a)
    if not (whole.flags.c_contiguous or whole.flags.f_contiguous) or any(s < 0 for s in a.strides):
        a = whole = np.array(a, order="C", copy=True)  # memory that came from outside and no storage can describe
    storage = UntypedStorage.of(whole)
    offset = (address(a) - address(whole)) // a.itemsize if a.size else 0
    where = (offset, tuple(a.shape), tuple(element_strides(a)))
    if x.dtype in dtypes.WIDE_UNSIGNED:
        return _rebuild_tensor_v3, (storage, *where, x._requires_grad, OrderedDict(), x.dtype)
    return _rebuild_tensor_v2, (TypedStorage(storage, x.dtype), *where, x._requires_grad, OrderedDict())


def __reduce_ex__(self: Tensor, protocol: Any) -> Any:
    """The call that makes this tensor again.

    Raises:
        NotImplementedError: it has hidden dimensions (PyTorch's text).
    """
    state = self.__getstate__()
    call, arguments = call_for(self)
    if type(self) is Tensor and not state:
        return call, arguments
    return _rebuild_from_type_v2, (call, type(self), arguments, state)


def parameter_reduce_ex(self: Parameter, protocol: Any) -> Any:
    """The call that makes this parameter again."""
    state = self.__getstate__()
    if state:
        return _rebuild_parameter_with_state, (self.data, self._requires_grad, OrderedDict(), state)
    return _rebuild_parameter, (self.data, self._requires_grad, OrderedDict())


def __getstate__(self: Tensor) -> Any:
    """The attributes that a program gave this tensor: a dict, or that and one of slots; None where there are none."""
    own = {name: value for name, value in self.__dict__.items() if name not in _TRANSIENT}
    cls = type(self)
    if cls is Tensor or cls is Parameter:
        return own or None
    slots = {name: getattr(self, name) for name in copyreg._slotnames(cls)  # type: ignore[attr-defined]
             if name not in Tensor.__slots__ and hasattr(self, name)}
    return (own or None, slots) if slots else own or None


def __setstate__(self: Tensor, state: Any) -> None:
    """Take what files of PyTorch before 0.4 say of a tensor."""
    if self._node is not None:
        raise RuntimeError("__setstate__ can be only called on leaf Tensors")
    if len(state) == 4:
        self.set_(*state)
        return
    if len(state) == 5:
        self.data = state[0]
        state = (state[3], state[4], state[2])
    self.requires_grad, _, _ = state


# ----- out of a pickle -----------------------------------------------------------------------


def _tensor_on(storage: Any, dtype: dtypes.dtype, storage_offset: int, size: Any, stride: Any) -> Tensor:
    memory = getattr(storage, "_untyped_storage", storage)._memory
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
        return wrap(np.ndarray(size, dtype.numpy, memory[:0], 0, tuple(s * item for s in steps) or None))
    needed = item * (1 + storage_offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)))
    if needed > memory.size:
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {storage_offset}, "
                           f"and itemsize {item} requiring a storage size of {needed} are out of bounds for storage "
                           f"of size {memory.size}")
    whole = owner(memory)
    if whole.dtype == dtype.numpy and whole.shape == size and whole.size * item == memory.size == needed \
            and whole.strides == tuple(s * item for s in stride):
        return wrap(whole)
    return wrap(np.ndarray(size, dtype.numpy, memory, storage_offset * item, tuple(s * item for s in stride)))


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor that shows a storage."""
    return _tensor_on(storage, storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool,
                       backward_hooks: Any, metadata: Any = None) -> Tensor:
    """A tensor that shows a storage; `metadata` says whether it is to be conjugated or negated."""
    made = _with_bits(_rebuild_tensor(storage, storage_offset, size, stride), storage, metadata)
    made.requires_grad = requires_grad
    return made


def _rebuild_tensor_v3(storage: Any, storage_offset: int, size: Any, stride: Any, requires_grad: bool,
                       backward_hooks: Any, dtype: dtypes.dtype, metadata: Any = None) -> Tensor:
    """A tensor of `dtype` that shows the bytes of a storage."""
    made = _with_bits(_tensor_on(storage, dtype, storage_offset, size, stride), storage, metadata)
    made.requires_grad = requires_grad
    return made


def _with_bits(shown: Tensor, storage: Any, metadata: Any) -> Tensor:
    """A tensor whose bits say that its numbers are not those in memory: a copy, with the numbers that it means."""
    if not metadata or not (metadata.get("conj") or metadata.get("neg")):
        return shown

    def meant() -> np.ndarray:
        found = shown.conj() if metadata.get("conj") else shown
        return (found.neg() if metadata.get("neg") else found)._array

    made: Tensor = wrap(np.array(meant(), copy=True))
    awaiting = getattr(storage, "_untyped_storage", storage)._awaiting
    if awaiting is not None:
        awaiting.append((made, meant))
    return made


def arrived(storage: UntypedStorage) -> None:
    """The bytes of a storage are there at last: give them to the tensors that are copies of it."""
    for made, meant in storage._awaiting or ():
        made._array[...] = meant()
    storage._awaiting = None


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    """A parameter of a tensor."""
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """A parameter of a tensor, with a program's own attributes."""
    return _give(Parameter(data, requires_grad), state)


def _rebuild_from_type_v2(func: Any, new_type: type, args: Any, state: Any) -> Any:
    """A tensor of a subclass, or with a program's own attributes."""
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    if getattr(new_type, "__setstate__", __setstate__) is not __setstate__:
        made.__setstate__(state)
        return made
    return _give(made, state)


def _give(made: Any, state: Any) -> Any:
    if isinstance(state, tuple) and len(state) != 2:
        raise RuntimeError(f"Invalid serialized state: {state}")
    for part in state if isinstance(state, tuple) else (state,):
        for name, value in (part or {}).items():
            setattr(made, name, value)
    return made


def _rebuild_device_tensor_from_cpu_tensor(data: Tensor, dtype: dtypes.dtype, device: Any, requires_grad: bool) -> Any:
    """A tensor of a device without storages of its own (XLA): here, on the CPU."""
    made = data.to(dtype)
    made.requires_grad = requires_grad
    return made


def _rebuild_device_tensor_from_numpy(data: np.ndarray, dtype: dtypes.dtype, device: Any, requires_grad: bool) -> Any:
    """The same, as older versions wrote it."""
    return _rebuild_device_tensor_from_cpu_tensor(wrap(np.asarray(data)), dtype, device, requires_grad)


def _refusing(kind: str) -> Any:
    def rebuild(*args: Any) -> Any:
        raise NotImplementedError(f"the file holds a {kind} tensor, which flambeau does not have")

    return rebuild


_rebuild_qtensor = _refusing("quantized")
_rebuild_sparse_tensor = _refusing("sparse")
_rebuild_nested_tensor = _refusing("nested")
_rebuild_meta_tensor_no_storage = _refusing("meta")
_rebuild_wrapper_subclass = _refusing("wrapper")

#: those that `torch.load` calls also with `weights_only=True`
REBUILDERS: dict[str, Any] = {name: globals()[name] for name in (
    "_rebuild_parameter", "_rebuild_parameter_with_state", "_rebuild_qtensor", "_rebuild_tensor",
    "_rebuild_tensor_v2", "_rebuild_tensor_v3", "_rebuild_sparse_tensor", "_rebuild_meta_tensor_no_storage",
    "_rebuild_nested_tensor", "_rebuild_wrapper_subclass", "_rebuild_device_tensor_from_numpy",
    "_rebuild_device_tensor_from_cpu_tensor")}

METHODS: dict[str, Any] = {"__reduce_ex__": __reduce_ex__, "__getstate__": __getstate__, "__setstate__": __setstate__}
Parameter.__reduce_ex__ = parameter_reduce_ex  # type: ignore[assignment]
