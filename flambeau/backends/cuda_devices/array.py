"""`DeviceArray`: the shape, strides and dtype of elements that are in a device's memory.

It is what a CUDA tensor has where a CPU tensor has a NumPy array. Views of it are made by NumPy, as views of any array,
over the device's addresses; those of a fake device are over an address range of the host's that stands for its memory
and that nothing writes to. What would read or compute elements raises: elements are seen by kernels alone
(`runtime.Runtime.operand`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ...runtime.numpy_abi import DATA, readable
from .allocator import DeviceMemory

ndarray = np.ndarray
_READABLE = readable()
_pointer = ctypes.c_void_p.from_address
_BYTE = np.dtype(np.uint8)


def _refuse(what: str) -> NoReturn:
    raise TypeError(f"{what} of an array in a device's memory: the host cannot compute with its elements. Apply an "
                    "operator to the tensor, or copy it to the host with Tensor.cpu()")


#: NumPy's functions that look at shapes, strides and dtypes only, or make views
_OF_METADATA: frozenset[Any] = frozenset((
    np.may_share_memory, np.shares_memory, np.shape, np.ndim, np.size, np.transpose, np.swapaxes, np.moveaxis,
    np.expand_dims, np.squeeze, np.broadcast_to, np.result_type, np.can_cast, np.iscomplexobj, np.isrealobj,
    np.matrix_transpose, np.rollaxis,
))


class DeviceArray(ndarray):
    """Elements in a device's memory; a base class of none: NumPy's views of it are of this class, too."""

    @property
    def memory(self) -> Any:
        """The block of memory that the elements are in."""
        whole: Any = self
        while True:  # through arrays, and the objects in between of NumPy's `as_strided`
            base = whole.base
            if base.__class__ is DeviceMemory:
                return base
            if not hasattr(base, "base"):
                return whole._memory
            whole = base

    @property
    def torch_device(self) -> Any:
        """The device."""
        return self.memory.device

    @property
    def byte_offset(self) -> int:
        """The distance in bytes of the first element from the beginning of the block."""
        memory = self.memory
        if memory.address:
            if _READABLE:  # `__array_interface__` makes a dict, and describes a structured dtype
                return (_pointer(id(self) + DATA).value or 0) - int(memory.address)
            return int(self.__array_interface__["data"][0] - memory.address)
        whole: Any = self
        while isinstance(whole.base, ndarray) or isinstance(getattr(whole.base, "base", None), ndarray):
            whole = whole.base if isinstance(whole.base, ndarray) else whole.base.base
        return int(self.__array_interface__["data"][0] - whole.__array_interface__["data"][0])

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        _refuse(f"numpy.{ufunc.__name__}")

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func is np.broadcast_to:
            kwargs = {**kwargs, "subok": True}
        if func in _OF_METADATA:
            return super().__array_function__(func, types, args, kwargs)
        return _refuse(f"numpy.{func.__name__}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        _refuse("numpy.asarray")

    def __getitem__(self, index: Any) -> Any:
        for each in index if isinstance(index, tuple) else (index,):
            if isinstance(each, (ndarray, list)):
                _refuse("an index array")
        result = ndarray.__getitem__(self, index)
        if result.__class__ is not DeviceArray:
            _refuse("an element")
        return result

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """A view with another shape; where there is none, an error: a copy would read the elements."""
        try:
            return ndarray.reshape(self, *shape, order=order, copy=False)
        except ValueError as error:
            if "copy" in str(error).lower():
                _refuse("a reshape that copies")
            raise

    def ravel(self, order: Any = "C") -> Any:
        """A view with one dimension."""
        return self.reshape(-1, order=order)

    def __repr__(self) -> str:
        return f"DeviceArray(shape={self.shape}, dtype={self.dtype}, strides={self.strides}, {self.torch_device})"

    __str__ = __repr__

    def __reduce_ex__(self, protocol: Any) -> Any:
        _refuse("a pickle")

    @property
    def flat(self) -> Any:
        """Refused: an iterator over elements."""
        return _refuse("flat")


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: DeviceArray, *args: Any, **kwargs: Any) -> Any:
        _refuse(name)

    method.__name__, method.__qualname__ = name, f"DeviceArray.{name}"
    method.__doc__ = "Refused: it reads or writes elements."
    return method


_REFUSED = (
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "byteswap", "choose", "clip", "compress",
    "conj", "conjugate", "copy", "cumprod", "cumsum", "dot", "dump", "dumps", "fill", "flatten", "item", "max",
    "mean", "min", "nonzero", "partition", "prod", "put", "repeat", "resize", "round", "searchsorted", "sort", "std",
    "sum", "take", "tobytes", "tofile", "tolist", "trace", "var", "__setitem__", "__iter__", "__contains__",
    "__bool__", "__int__", "__float__", "__complex__", "__index__", "__format__", "__copy__", "__deepcopy__",
    "__dlpack__",
)
for _name in _REFUSED:
    setattr(DeviceArray, _name, _refusing(_name))


def whole(memory: Any) -> DeviceArray:
    """All bytes of a block of memory."""
    if memory.address:
        at = (ctypes.c_char * memory.nbytes).from_address(memory.address)
        addressed: Any = ndarray.__new__(DeviceArray, (memory.nbytes,), _BYTE, at)
        addressed._memory = memory
        return addressed
    array: Any = ndarray.__new__(DeviceArray, (memory.nbytes,), _BYTE)
    array._memory = memory
    memory.stand_in(array.view(ndarray))
    return array


def device_array(memory: Any, shape: Any, dtype: np.dtype, strides: Any = None, offset: int = 0) -> DeviceArray:
    """An array in a block of memory.

    Args:
        strides: in bytes; default: row-major.
        offset: of the first element, in bytes.
    """
    return ndarray.__new__(DeviceArray, tuple(shape), dtype, whole(memory), offset, strides)


def is_device_array(array: Any) -> bool:
    """Whether an array's elements are in a device's memory."""
    return array.__class__ is DeviceArray


__all__ = ["DeviceArray", "device_array", "is_device_array", "whole"]
