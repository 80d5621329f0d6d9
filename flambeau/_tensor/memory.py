"""A tensor's memory: numbers, arrays, copies, dtypes and devices; what other libraries see of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import dtypes
from ..backends.numpy.memory import address, lying, owner
from ..engine.tensor_interface import layer
from ..modes import active_tracer, grad_mode, inference, special
from .dispatch.batched_tensor import detached
from .dispatch.promotion import result_type as promoted_type
from .tensor import INFERENCE, Tensor, wrap
from .tracer_notifications import tell_reading

__all__ = ["detach", "from_dlpack", "is_complex", "is_floating_point", "is_nonzero", "is_signed", "is_tensor",
           "result_type"]


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a tensor."""
    return isinstance(obj, Tensor)


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype that arithmetic of two tensors, or of a tensor and a number, gives.

    >>> import flambeau as torch
    >>> torch.result_type(torch.tensor([1, 2], dtype=torch.int), 1.0)
    flambeau.float32
    """
    return promoted_type([tensor1, tensor2])


def is_complex(input: Tensor) -> bool:
    """Whether the tensor's elements are complex numbers."""
    return input._array.dtype.kind == "c"


def is_floating_point(input: Tensor) -> bool:
    """Whether the tensor's elements are floating point numbers."""
    return input._array.dtype.kind in "fV"


def detach(self: Tensor) -> Tensor:
    """The same memory without history; writes to either are counted for both.

    >>> import flambeau as torch
    >>> torch.ones(1, requires_grad=True).detach().requires_grad
    False
    """
    watched = special[0]
    if watched and self._array.__class__ is not np.ndarray:
        return detached(self)  # type: ignore[arg-type]
    out: Tensor = wrap(self._array)
    if self._counter is None:
        self._counter = [0]
    out._counter = self._counter
    if watched and (tracer := active_tracer.get()) is not None:
        tracer.on_view(out)
    if self._inference:
        _infer(out)
    return out


def _infer(x: Tensor) -> None:
    """Make `x`, which shows an inference tensor's memory, one too; but outside inference mode it may be written to."""
    x._inference, x._counter = True, INFERENCE if inference.get() else [0]


def item(self: Tensor) -> Any:
    """The only element, as a Python number.

    Raises:
        RuntimeError: there is not exactly one element.
    """
    a = self._array
    if a.__class__ is not np.ndarray:
        a.item()  # which refuses
    if a.size != 1:
        raise RuntimeError(f"a Tensor with {a.size} elements cannot be converted to Scalar")
    if special[0]:
        tell_reading(self, "item()")
    if a.dtype == dtypes.BFLOAT16:
        a = dtypes.widen(a)
    return a.item()


def _refuse_hidden(self: Tensor) -> None:
    """Refuse to show the memory of a batch.

    Raises:
        RuntimeError: the tensor has hidden dimensions (PyTorch's text).
    """
    if special[0] and self._array.__class__ is not np.ndarray:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
    if special[0]:
        tell_reading(self, "numpy() or tolist()")


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The array of this tensor: the same memory.

    Raises:
        RuntimeError: the tensor requires grad.
        TypeError: NumPy has no such dtype (bfloat16).
    """
    _refuse_hidden(self)
    if force:
        return self._array if self._array.dtype != dtypes.BFLOAT16 else dtypes.widen(self._array)
    if self._requires_grad and grad_mode.get():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._array.dtype.kind == "V":
        raise TypeError("Got unsupported ScalarType BFloat16")
    return self._array[...]  # another array on that memory: its shape may be set without this tensor's changing


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
    a = numpy(self)
    if dtype is not None and a.dtype != dtype:
        return a.astype(dtype)
    return a.copy() if copy else a


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    _refuse_hidden(self)
    return dtypes.widen(self._array).tolist()


# ----- what other libraries see -------------------------------------------------------------


def __array_wrap__(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
    # what NumPy's functions give where a tensor took part: a tensor, of uint8 where it should be bool
    array = np.asarray(array)
    return layer.functions.from_numpy(array.astype(np.uint8) if array.dtype.kind == "b" else array)


def __dlpack__(self: Tensor, *, stream: Any = None, **protocol: Any) -> Any:
    """A capsule that other libraries take this tensor's memory from.

    Raises:
        BufferError: the tensor requires grad.
    """
    _refuse_hidden(self)
    if self._requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self._array.dtype == dtypes.BFLOAT16:
        raise BufferError("bfloat16 arrays cannot be exported: NumPy has no such dtype")
    a = self._array
    if not a.flags.writeable:
        a = a.copy()
    return a.__dlpack__(**{k: v for k, v in protocol.items() if v is not None})


def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    return self._array.__dlpack_device__()


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor in another library's memory.

    >>> import flambeau as torch
    >>> import numpy as np
    >>> torch.from_dlpack(np.ones(2, np.float32))
    tensor([1., 1.])
    """
    if isinstance(ext_tensor, Tensor):
        return detach(ext_tensor) if not copy else wrap(ext_tensor._array.copy())
    if isinstance(ext_tensor, np.ndarray):
        array = ext_tensor
    else:
        array = np.from_dlpack(ext_tensor)
    return wrap(array.copy() if copy or not array.flags.writeable else array)


def __array_namespace__(self: Tensor, *, api_version: str | None = None) -> Any:
    import sys

    return sys.modules[__name__.partition(".")[0]]


# ----- Python numbers ------------------------------------------------------------------------


def _number(self: Tensor) -> Any:
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return item(self)


def is_nonzero(input: Tensor) -> bool:
    """Whether a tensor's only element is not zero.

    >>> import flambeau as torch
    >>> torch.is_nonzero(torch.tensor([0.]))
    False

    Raises:
        RuntimeError: there is not exactly one element.
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"is_nonzero(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return bool(input)


# ----- copies of the whole object ------------------------------------------------------------


def _refuse_storage(self: Tensor) -> None:
    if special[0] and self._array.__class__ is not np.ndarray:
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy with the same strides and gradient; views of one memory stay views of one memory.

    Raises:
        RuntimeError: the tensor has a history.
    """
    found = memo.get(id(self))
    if found is not None:
        return found
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
                           "at the moment.  If you were attempting to deepcopy a module, this may be because of a "
                           "torch.nn.utils.weight_norm usage, see https://github.com/pytorch/pytorch/pull/103001")
    import copy

    _refuse_storage(self)
    a = self._array
    whole = owner(a)
    if whole is a:
        array = memo.get(id(whole))
        if array is None:
            array = np.array(a, order="K", copy=True)
            memo[id(whole)] = array
            memo.setdefault(id(memo), []).append(whole)
    else:
        copied = memo.get(id(whole))
        if copied is None:
            copied = np.array(whole, order="K", copy=True)
            memo[id(whole)] = copied
            memo.setdefault(id(memo), []).append(whole)
        if not a.size:
            array = a.copy()
        elif whole.dtype == a.dtype:
            array = lying(copied, a.shape, a.strides, address(a) - address(whole))
        else:  # real parts of complex numbers, say
            array = np.ndarray(a.shape, a.dtype, copied, address(a) - address(whole), a.strides)
    out: Tensor = wrap(array, type(self))
    memo[id(self)] = out
    out._requires_grad = self._requires_grad
    out._counter = [1]
    if inference.get():
        out._inference, out._counter = True, INFERENCE
    if self._grad is not None:
        out._grad = copy.deepcopy(self._grad, memo)
    for name, value in self.__dict__.items():
        if name not in _TRANSIENT:
            out.__dict__[name] = copy.deepcopy(value, memo)
    return out


#: attributes that belong to a graph, not to the values
_TRANSIENT = frozenset(("_view_version", "_creation", "_hooks", "_post_accumulate_hooks", "_tangents", "_inference",
                        "_retains", "_own", "_steps", "_depth"))


def __copy__(self: Tensor) -> Tensor:
    _warn_of_hooks(self)
    out: Tensor = wrap(self._array, type(self))
    out._requires_grad = self._requires_grad
    out._counter = [1]
    if inference.get():
        out._inference, out._counter = True, INFERENCE
    out.__dict__.update((name, value) for name, value in self.__dict__.items() if name not in _TRANSIENT)
    return out


def _warn_of_hooks(x: Tensor) -> None:
    import warnings

    for hook in (x._hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can "
                          "decorate the function with @torch.utils.hooks.unserializable_hook to suppress this warning",
                          UserWarning, stacklevel=2)


def as_subclass(self: Tensor, cls: type) -> Any:
    """The same memory and history as an instance of a subclass of `Tensor`."""
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise RuntimeError("cls must be a type that inherits from Tensor")
    found = layer.functions._alias(self)
    out = wrap(found._array, cls)
    out._requires_grad, out._node = found._requires_grad, found._node
    out._base, out._counter = found._base, found._counter
    out.__dict__.update(found.__dict__)
    return out


def _made_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
    """An instance of a subclass with the same memory and no history."""
    out = wrap(data._array, cls)
    out._requires_grad = require_grad
    return out


def _false(self: Tensor) -> bool:
    return False


def _element_size(self: Tensor) -> int:
    return self._array.dtype.itemsize


def is_signed(input: Tensor) -> bool:
    """Whether the dtype has negative numbers."""
    return input._array.dtype.kind not in "bu"


def _attribute_names(self: Tensor) -> list[str]:
    names = {*dir(type(self)), *self.__dict__}
    names.discard("volatile")
    names.discard("__cuda_array_interface__")
    return sorted(name for name in names if not name[0].isdigit())


METHODS: dict[str, Any] = {
    "detach": detach, "item": item, "numpy": numpy, "tolist": tolist, "__array__": __array__,
    "is_complex": is_complex, "is_floating_point": is_floating_point, "is_nonzero": is_nonzero, "is_signed": is_signed,
    "__array_wrap__": __array_wrap__, "__dlpack__": __dlpack__, "__dlpack_device__": __dlpack_device__,
    "__array_namespace__": __array_namespace__,
    "__deepcopy__": __deepcopy__, "__copy__": __copy__, "__dir__": _attribute_names,
    "as_subclass": as_subclass, "_make_subclass": staticmethod(_made_subclass), "is_pinned": _false,
    "is_shared": _false, "element_size": _element_size, "get_device": lambda self: -1,
    "is_coalesced": _false, "is_distributed": _false,
}
