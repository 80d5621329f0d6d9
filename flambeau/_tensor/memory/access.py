"""Methods that read or export a tensor's memory: `item`, `numpy`, `tolist`, DLPack, the NumPy protocols, `copy`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import BitView, bits_of, resolve
from ...backends.elementless_array import ElementlessArray
from ...backends.numpy.memory import address, owner, view_memory
from ...backends.sparse_array import LAYOUT_NAMES, SparseArray
from ...engine.tensor_interface import layer
from ...modes import active_tracer, grad_mode, inference, lazy_storages, special
from ...warning_location import user_stacklevel
from ..argument_errors.type_names import not_a_tensor
from ..dispatch.batched_tensor import BatchedTensor, detach_batched
from ..dispatch.promotion import result_type as promoted_type
from ..meta import NO_DATA, is_meta
from ..overriding.dispatch import handles, is_wrapper, note_policy
from ..overriding.other_objects import with_other_object
from ..overriding.protocol import OVERRIDES, kind_of
from ..shape.lazy_clones import make_writable
from ..tensor import INFERENCE, Tensor, slots_of, wrap
from ..tracer_notifications import notify_read

__all__ = ["detach", "is_complex", "is_floating_point", "is_nonzero", "is_signed", "is_tensor",
           "result_type"]


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor.

    >>> import flambeau as torch
    >>> torch.is_tensor(1.0)
    False
    """
    return isinstance(obj, Tensor)


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of arithmetic between two tensors, or a tensor and a scalar.

    >>> import flambeau as torch
    >>> torch.result_type(torch.tensor([1, 2], dtype=torch.int), 1.0)
    flambeau.float32
    """
    return promoted_type([tensor1, tensor2])


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex.

    >>> import flambeau as torch
    >>> torch.is_complex(torch.tensor(1j))
    True
    """
    try:
        dtype = input._array.dtype
        return dtype.kind == "c" or (dtype.kind == "V" and dtypes.is_complex(dtype))
    except AttributeError as error:
        return bool(with_other_object(error, is_complex, (input,)))


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating point type.

    >>> import flambeau as torch
    >>> torch.is_floating_point(torch.tensor(1))
    False
    """
    try:
        dtype = input._array.dtype
        return dtype.kind == "f" or (dtype.kind == "V" and not dtypes.is_complex(dtype))
    except AttributeError as error:
        return bool(with_other_object(error, is_floating_point, (input,)))


def detach(self: Tensor) -> Tensor:
    """A tensor on the same memory without a graph; the two share a version counter.

    >>> import flambeau as torch
    >>> torch.ones(1, requires_grad=True).detach().requires_grad
    False
    """
    intercepted = special[0]
    if intercepted and type(self) is BatchedTensor:
        return detach_batched(self)
    try:
        out: Tensor = wrap(self._array)
    except AttributeError as error:
        return with_other_object(error, detach, (self,))
    if self._counter is None:
        self._counter = [0]
    out._counter = self._counter
    if intercepted and (tracer := active_tracer.get()) is not None:
        tracer.on_view(out)
    if self._inference:
        _mark_inference(out)
    return out


def _mark_inference(x: Tensor) -> None:
    """Mark an alias of an inference tensor as one; an alias made outside inference mode has a counter of its own."""
    x._inference, x._counter = True, INFERENCE if inference.get() else [0]


def item(self: Tensor) -> Any:
    """The only element, as a Python scalar.

    Raises:
        RuntimeError: the tensor has not exactly one element.

    >>> import flambeau as torch
    >>> torch.tensor([2.5]).item()
    2.5
    """
    a = self._array
    if a.__class__ is not np.ndarray:
        if not isinstance(a, BitView) and (not isinstance(a, ElementlessArray) or a.size == 1):
            return a.item()  # raises for a batched tensor, or one without elements
        a = resolve(a)
    if a.size != 1:
        raise RuntimeError(f"a Tensor with {a.size} elements cannot be converted to Scalar")
    if special[0]:
        notify_read(self, "item()")
    if a.dtype.kind == "V":
        a = dtypes.widen(a)
    return a.item()


def _check_not_batched(self: Tensor) -> None:
    """Check that a tensor whose memory is read is not batched, and notify the tracer of the read.

    Raises:
        RuntimeError: it is batched (PyTorch's text).
    """
    if special[0] and not isinstance(self._array, np.ndarray):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    if special[0]:
        notify_read(self, "numpy() or tolist()")


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """A NumPy array on the same memory.

    Args:
        force: detach first; bfloat16 is converted to float32.

    Raises:
        RuntimeError: the tensor requires grad.
        TypeError: NumPy has no such dtype (bfloat16).

    >>> import flambeau as torch
    >>> torch.ones(2).numpy()
    array([1., 1.], dtype=float32)
    """
    if isinstance(self._array, SparseArray):
        raise TypeError(f"can't convert {LAYOUT_NAMES[self._array.layout]} layout tensor to numpy. Use "
                        "Tensor.to_dense() first.")
    _check_not_batched(self)
    if is_meta(self):
        if force:
            raise NotImplementedError(NO_DATA)
        raise TypeError("can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                        "memory first.")
    if lazy_storages[0]:
        make_writable(self._array)
    if force:
        a = resolve(self._array)
        if a.dtype == dtypes.COMPLEX32:
            raise TypeError("Got unsupported ScalarType ComplexHalf")
        return a if a.dtype.kind != "V" else dtypes.widen(a)
    if self._requires_grad and grad_mode.get():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._array.dtype.kind == "V":
        raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
    for bit, name, method in zip(bits_of(self._array), ("conjugate", "negative"), ("conj", "neg"), strict=True):
        if bit:
            raise RuntimeError(f"Can't call numpy() on Tensor that has {name} bit set. Use "
                               f"tensor.resolve_{method}().numpy() instead.")
    return self._array[...]  # a new array object, so that setting its shape does not change this tensor


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    """NumPy's conversion protocol: `np.asarray(tensor)`.

    Raises:
        ValueError: `copy` is False and the dtype differs.
    """
    a = numpy(self)
    if dtype is not None and a.dtype != dtype:
        if copy is False:
            raise ValueError("Unable to avoid copy while creating an array as requested.\nIf using `np.array(obj, "
                             "copy=False)` replace it with `np.asarray(obj)` to allow a copy when needed (no behavior "
                             "change in NumPy 1.x).")
        return a.astype(dtype)
    return a.copy() if copy else a


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python scalars; a scalar for a 0-d tensor.

    >>> import flambeau as torch
    >>> torch.tensor([[1, 2]]).tolist()
    [[1, 2]]
    """
    _check_not_batched(self)
    if is_meta(self):
        raise NotImplementedError(NO_DATA)
    if isinstance(self._array, SparseArray):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    return dtypes.widen(self._array).tolist()


# ----- protocols of other libraries ----------------------------------------------------------


def __array_wrap__(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    """The result of a NumPy function of tensors, as a tensor; of dtype uint8 where NumPy's is bool, as in PyTorch."""
    array = np.asarray(array)
    return layer.functions.from_numpy(array.astype(np.uint8) if array.dtype.kind == "b" else array)


def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> Any:
    """The array API namespace of tensors, `flambeau.interop.array_api`.

    Raises:
        ValueError: the version is not one of the standard's revisions up to 2025.12.

    >>> import flambeau as torch
    >>> torch.ones(2).__array_namespace__().__name__
    'flambeau.interop.array_api'
    """
    import importlib

    if api_version not in (None, "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"):
        raise ValueError(f"array API version {api_version!r} is not supported: versions are 2021.12 to 2025.12")
    return importlib.import_module(f"{__name__.partition('.')[0]}.interop.array_api")


# ----- Python scalars ------------------------------------------------------------------------


def is_nonzero(input: Tensor) -> bool:
    """Whether the only element is not zero.

    >>> import flambeau as torch
    >>> torch.is_nonzero(torch.tensor([0.]))
    False

    Raises:
        RuntimeError: the tensor has not exactly one element.
    """
    if not isinstance(input, Tensor):
        raise not_a_tensor("is_nonzero", input)
    return bool(input)


# ----- copies of the tensor object -----------------------------------------------------------


def _check_has_storage(self: Tensor) -> None:
    if special[0] and type(self) is BatchedTensor:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with the same strides and gradient; tensors that share memory have copies that share memory.

    Raises:
        RuntimeError: the tensor is not a leaf.
    """
    result = memo.get(id(self))
    if result is not None:
        return result
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
                           "at the moment.  If you were attempting to deepcopy a module, this may be because of a "
                           "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001")
    import copy

    if is_wrapper(self):
        return _copy_of_wrapper(self, memo)
    if kind_of(type(self)) == OVERRIDES and type(self.new_empty([])) is not type(self):
        raise RuntimeError("The default implementation of __deepcopy__() for non-wrapper subclasses only works for "
                           "subclass types that implement new_empty() and for which that function returns another "
                           "instance of the same subclass. You should either properly implement new_empty() for your "
                           "subclass or override __deepcopy__() if it is intended behavior for new_empty() to return "
                           "an instance of a different type.")
    _check_has_storage(self)
    a: Any = resolve(self._array)
    storage: Any = a if isinstance(a, SparseArray) else owner(a)
    if isinstance(a, (SparseArray, ElementlessArray)):
        array: Any = a.copy()
    elif storage is a:
        array = memo.get(id(storage))
        if array is None:
            array = np.array(a, order="K", copy=True)
            memo[id(storage)] = array
            memo.setdefault(id(memo), []).append(storage)
    else:
        copied = memo.get(id(storage))
        if copied is None:
            copied = np.array(storage, order="K", copy=True)
            memo[id(storage)] = copied
            memo.setdefault(id(memo), []).append(storage)
        if not a.size:
            array = a.copy()
        elif storage.dtype == a.dtype:
            array = view_memory(copied, a.shape, a.strides, address(a) - address(storage))
        else:  # for example the real part of a complex tensor
            array = np.ndarray(a.shape, a.dtype, copied, address(a) - address(storage), a.strides)
    out: Tensor = wrap(array, type(self))
    memo[id(self)] = out
    out._requires_grad = self._requires_grad
    out._counter = [1]
    if inference.get():
        out._inference, out._counter = True, INFERENCE
    if self._grad is not None:
        out._grad = copy.deepcopy(self._grad, memo)
    _copy_attributes(self, out, memo)
    return out


def _copy_of_wrapper(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of a tensor without memory of its own: its class clones it, and its attributes are copied.

    Raises:
        RuntimeError: the clone is of another class.
    """
    import copy

    token = grad_mode.set(False)
    try:
        out = self.clone()
    finally:
        grad_mode.reset(token)
    if type(out) is not type(self):
        raise RuntimeError("The default implementation of __deepcopy__() for wrapper subclasses only works for "
                           "subclass types that implement clone() and for which cloning returns another instance of "
                           "the same subclass. You should either properly implement clone() for your subclass or "
                           "override __deepcopy__() if it is intended behavior for clone() to return an instance of a "
                           "different type.")
    memo[id(self)] = out
    if self._requires_grad:
        out.requires_grad_()
    if self._grad is not None:
        out._grad = copy.deepcopy(self._grad, memo)
    _copy_attributes(self, out, memo)
    return out


def _copy_attributes(source: Tensor, target: Tensor, memo: dict[int, Any]) -> None:
    """Copy what a program stored in a tensor's dictionary, and in the slots of its class."""
    import copy

    if type(source) is not Tensor:
        for name, value in slots_of(source).items():
            setattr(target, name, copy.deepcopy(value, memo))
    for name, value in source.__dict__.items():
        if name not in TRANSIENT:
            target.__dict__[name] = copy.deepcopy(value, memo)


#: attributes of graph and views, which copies do not get
TRANSIENT = frozenset(("_view_version", "_creation", "_hooks", "_post_accumulate_hooks", "_tangents", "_inference",
                        "_retains_grad", "_own_requires_grad", "_view_steps", "_transform_depth"))


def __copy__(self: Tensor) -> Tensor:
    """Another tensor object on the same memory, with `requires_grad` and without a graph."""
    _warn_of_hooks(self)
    out: Tensor = wrap(self._array, type(self))
    out._requires_grad = self._requires_grad
    out._counter = [1]
    if inference.get():
        out._inference, out._counter = True, INFERENCE
    out.__dict__.update((name, value) for name, value in self.__dict__.items() if name not in TRANSIENT)
    return out


def _warn_of_hooks(x: Tensor) -> None:
    import warnings

    for hook in (x._hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                          "decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                          UserWarning, stacklevel=user_stacklevel())


def as_subclass(self: Tensor, cls: type) -> Any:
    """An alias with the same memory and graph, as an instance of a subclass of `Tensor`.

    >>> import flambeau as torch
    >>> class Weights(torch.Tensor):
    ...     pass
    >>> type(torch.ones(1).as_subclass(Weights)).__name__
    'Weights'
    """
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise RuntimeError("cls must be a type that inherits from Tensor")
    result = layer.functions._alias(self)
    if handles(type(self)):
        return _as_made(result, cls)
    out = wrap(result._array, cls)
    out._requires_grad, out._node = result._requires_grad, result._node
    out._base, out._counter = result._base, result._counter
    out.__dict__.update(result.__dict__)
    return out


def _make_subclass(cls: type, data: Tensor, require_grad: bool = False, *, dispatch_sizes_strides_policy: Any = None,
                   dispatch_device: bool = False, dispatch_layout: bool = False,
                   device_for_backend_keys: Any = None) -> Any:
    """An instance of a subclass on the same memory, without a graph."""
    out = _as_made(data.detach(), cls) if handles(type(data)) else wrap(data._array, cls)
    out._requires_grad = require_grad
    note_policy(out, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return out


def _as_made(made: Tensor, cls: type) -> Any:
    """What a handler of `__torch_dispatch__` made, as an instance of a class; it keeps its own.

    Raises:
        RuntimeError: its own class is not derived from it.
    """
    if isinstance(made, cls):
        return made
    raise RuntimeError(
        f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is already associated to a python "
        f"object of type {type(made).__name__} which is not a subclass of the requested type")


def _always_false(name: str, doc: str) -> Any:
    """A method that returns False."""
    def method(self: Tensor) -> bool:
        return False

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"{doc}\n\n    >>> import flambeau as torch\n    >>> torch.ones(2).{name}()\n    False\n    "
    return method


def _get_device(self: Tensor) -> int:
    """The index of the device: -1 for the CPU.

    >>> import flambeau as torch
    >>> torch.ones(1).get_device()
    -1
    """
    return -1 if self._device.index is None else self._device.index


def record_stream(self: Tensor, s: Any) -> None:
    """Let the memory be used again, once it is freed, only after what a stream has been given until then.

    Raises:
        NotImplementedError: the tensor is on the CPU, whose memory no stream uses.

    >>> import flambeau as torch
    >>> torch.ones(2).record_stream(None)
    Traceback (most recent call last):
    NotImplementedError: Could not run 'aten::record_stream' with arguments from the 'CPU' backend: memory of ...
    """
    raise NotImplementedError("Could not run 'aten::record_stream' with arguments from the 'CPU' backend: memory of "
                              "the CPU is not used by streams. Call it on a tensor of a CUDA device")


def _element_size(self: Tensor) -> int:
    """The size of an element in bytes.

    >>> import flambeau as torch
    >>> torch.ones(2).element_size()
    4
    """
    return self._array.dtype.itemsize


def is_signed(input: Tensor) -> bool:
    """Whether the dtype is signed.

    >>> import flambeau as torch
    >>> torch.is_signed(torch.tensor(1, dtype=torch.uint8))
    False
    """
    return input._array.dtype.kind not in "bu" and input.dtype is not dtypes.float8_e8m0fnu


def _cdata(self: Tensor) -> int:
    """What identifies the tensor among those that are alive; `torch.utils.swap_tensors` exchanges it, too."""
    return id(self.__dict__)


def _attribute_names(self: Tensor) -> list[str]:
    names = {*dir(type(self)), *self.__dict__}
    names.discard("volatile")
    names.discard("__cuda_array_interface__")
    return sorted(name for name in names if not name[0].isdigit())


METHODS: dict[str, Any] = {
    "detach": detach, "item": item, "numpy": numpy, "tolist": tolist, "__array__": __array__,
    "is_complex": is_complex, "is_floating_point": is_floating_point, "is_nonzero": is_nonzero, "is_signed": is_signed,
    "__array_wrap__": __array_wrap__, "__array_namespace__": __array_namespace__,
    "__deepcopy__": __deepcopy__, "__copy__": __copy__, "__dir__": _attribute_names,
    "as_subclass": as_subclass, "_make_subclass": staticmethod(_make_subclass),
    "is_distributed": _always_false("is_distributed", "Whether the tensor is distributed: never."),
    "element_size": _element_size, "record_stream": record_stream, "get_device": _get_device,
    "_cdata": property(_cdata),
}
