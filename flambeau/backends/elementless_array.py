"""Arrays without elements: the `_array` of a meta tensor.

Shape, dtype, strides and offset are NumPy's, over addresses that nothing reads or writes, so that the operating system
provides no memory. Views of such an array are made by NumPy and are of its class; copies have addresses of their own.
What would read or compute elements raises: the dispatcher infers the metadata of an operator's results instead. The
dtype is equal, but not identical, to NumPy's, and the class is not `ndarray`: fast paths, which test the identity of
one or the other, leave these arrays to the dispatcher, so that they cost other tensors nothing.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from ..kernels.memory_format import preserved_strides

ndarray = np.ndarray
NO_DATA = "Cannot copy out of meta tensor; no data!"

#: [whether such an array was ever made]: until then nothing looks for one
elementless_used = [False]


class _Marked(dict):
    """The dtype of arrays without elements for each plain one: equal, but not identical."""

    def __missing__(self, dtype: np.dtype) -> np.dtype:
        made = self[dtype] = np.dtype(dtype, metadata={"elements": "none"})
        return made


_marks: dict[np.dtype, np.dtype] = _Marked()


class ElementAccess(NotImplementedError, TypeError, IndexError):
    """Elements are read or written by an index; fast paths take it for an operand that does not fit."""


def _refuse() -> NoReturn:
    raise NotImplementedError(NO_DATA)


#: NumPy's functions that look at shapes, strides and dtypes only, or make views
_OF_METADATA: frozenset[Any] = frozenset((
    np.may_share_memory, np.shares_memory, np.shape, np.ndim, np.size, np.transpose, np.swapaxes, np.moveaxis,
    np.rollaxis, np.expand_dims, np.squeeze, np.broadcast_to, np.diagonal, np.result_type, np.can_cast,
    np.iscomplexobj, np.isrealobj, np.matrix_transpose, np.reshape, np.ravel, np.real, np.imag,
    np.lib.array_utils.byte_bounds))
#: those that make an array like another
_LIKE: frozenset[Any] = frozenset((np.empty_like, np.zeros_like, np.ones_like, np.full_like))


class ElementlessArray(ndarray):
    """An array that has shape, strides and dtype only."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        _refuse()

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _LIKE:
            like, *rest = [addresses_of(x) for x in args]
            return np.empty_like(like, *rest[:1] if function is not np.full_like else (), **{
                **{name: value for name, value in kwargs.items() if name != "fill_value"}, "subok": False})
        if function is np.broadcast_to:
            kwargs = {**kwargs, "subok": True}
        if function in _OF_METADATA:
            return super().__array_function__(function, types, args, kwargs)
        return _refuse()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        _refuse()

    def __getitem__(self, index: Any) -> Any:
        for each in index if isinstance(index, tuple) else (index,):
            if isinstance(each, (ndarray, list)):
                raise ElementAccess(NO_DATA)
        result = super().__getitem__(index)
        if not isinstance(result, ElementlessArray):
            _refuse()
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        raise ElementAccess(NO_DATA)

    def __iter__(self) -> Any:
        return iter([self[i, ...] for i in range(len(self))])

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """A view, as another dtype or class."""
        out = super().view(*args, **kwargs)
        return _with_dtype(out, out.dtype) if isinstance(out, ElementlessArray) else out

    @property  # type: ignore[misc]  # nothing is assigned to it
    def real(self) -> Any:
        """The real part, a view."""
        part = addresses_of(self).real
        return without_elements(part, self.__class__)

    @property  # type: ignore[misc]
    def imag(self) -> Any:
        """The imaginary part, a view."""
        return without_elements(addresses_of(self).imag, self.__class__)

    def reshape(self, *shape: Any, order: Any = "C", copy: bool | None = None) -> Any:
        """A view with another shape; where strides do not permit one, an array on other addresses."""
        try:
            return super().reshape(*shape, order=order, copy=False)
        except ValueError:
            if copy is False:
                raise
            return untouched(self, "C").reshape(*shape, order=order)

    def ravel(self, order: Any = "C") -> Any:
        """The elements in one dimension."""
        return self.reshape(-1, order=order)

    flatten = ravel

    def copy(self, order: Any = "C") -> Any:
        """A dense array of the same shape on other addresses, row-major or ("K") in the same layout."""
        return untouched(self, order)

    def __copy__(self) -> Any:
        return untouched(self)

    def __deepcopy__(self, memo: Any) -> Any:
        return untouched(self)

    def astype(self, dtype: Any, order: Any = "K", *others: Any, **options: Any) -> Any:
        """An array of another dtype, in the same layout."""
        return untouched(self, order, dtype)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, strides={self.strides})"

    __str__ = __repr__

    @property
    def flat(self) -> Any:
        """Refused: an iterator over elements."""
        return _refuse()


class MetaArray(ElementlessArray):
    """What a tensor of the device "meta" has for an array."""

    def item(self, *index: Any) -> NoReturn:
        """Refused: there is no element."""
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")


class WrapperArray(ElementlessArray):
    """What a tensor of a subclass without memory has for an array: its `__torch_dispatch__` computes operators."""


def _refusing(name: str) -> Callable[..., Any]:
    def method(self: ElementlessArray, *args: Any, **kwargs: Any) -> Any:
        _refuse()

    method.__name__, method.__qualname__ = name, f"ElementlessArray.{name}"
    method.__doc__ = "Refused: it reads or writes elements."
    return method


for _name in (
        "all", "any", "argmax", "argmin", "argpartition", "argsort", "byteswap", "choose", "clip", "compress", "conj",
        "conjugate", "cumprod", "cumsum", "dot", "dump", "dumps", "fill", "item", "max", "mean", "min", "nonzero",
        "partition", "prod", "put", "repeat", "resize", "round", "searchsorted", "sort", "std", "sum", "take",
        "tobytes", "tofile", "tolist", "trace", "var", "__contains__", "__bool__", "__int__", "__float__",
        "__complex__", "__index__", "__format__", "__dlpack__", "__reduce_ex__"):
    setattr(ElementlessArray, _name, _refusing(_name))


# ----- making them ---------------------------------------------------------------------------

#: bytes from which on an array gets an address range of its own, without the promise of memory
_RESERVED = 1 << 26
_NORESERVE = 0x4000 if hasattr(mmap, "MAP_ANONYMOUS") else 0  # MAP_NORESERVE, which `mmap` names from Python 3.13 on


def reserved(shape: Sequence[int], dtype: np.dtype, strides: Sequence[int] | None = None) -> np.ndarray:
    """A plain array of zeros that nothing has touched.

    Args:
        strides: in elements; default: row-major.

    Raises:
        RuntimeError: there are not as many addresses.
    """
    shape, dtype = tuple(shape), plain_dtype(dtype)
    count = prod(shape)
    if strides is not None and count:
        count = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    size = count * dtype.itemsize
    if size < _RESERVED or not _NORESERVE:
        memory = np.zeros(count, dtype)
    else:
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE
        try:
            memory = np.frombuffer(mmap.mmap(-1, size, flags), np.uint8).view(dtype)
        except (OSError, OverflowError, ValueError):
            raise RuntimeError(f"a meta tensor of {size} bytes: there are not as many addresses") from None
    if strides is None or not memory.size:
        return memory.reshape(shape)
    return np.lib.stride_tricks.as_strided(memory, shape, tuple(s * dtype.itemsize for s in strides))


def plain_dtype(dtype: np.dtype) -> np.dtype:
    """NumPy's dtype for that of an array without elements."""
    if dtype.metadata is None:
        return dtype
    return np.dtype(dtype.descr if dtype.names else dtype.str)


def _with_dtype(array: Any, dtype: np.dtype) -> Any:
    marked = _marks[dtype]
    return array if array.dtype is marked else ndarray.view(array, marked)


def without_elements(array: np.ndarray, kind: type[ElementlessArray] = MetaArray) -> Any:
    """An array without elements on the addresses of another array."""
    if array.__class__ is kind:
        return array
    elementless_used[0] = True
    return ndarray.view(array, _marks[plain_dtype(array.dtype)], kind)


def addresses_of(x: Any) -> Any:
    """A plain array on the addresses of an array without elements; anything else as it is."""
    return ndarray.view(x, plain_dtype(x.dtype), ndarray) if isinstance(x, ElementlessArray) else x


def reserved_like(array: np.ndarray, order: Any = "K", dtype: Any = None, *, dense: bool = False) -> np.ndarray:
    """A plain array of the same shape that nothing has touched: row-major, or ("K") with the same strides.

    Args:
        dense: only their order is kept.
    """
    to = plain_dtype(array.dtype) if dtype is None else np.dtype(dtype)
    if order == "C" or not array.size or (array.flags.c_contiguous and 1 not in array.shape):
        return reserved(array.shape, to)
    return reserved(array.shape, to, [s // array.itemsize for s in (
        preserved_strides(array, array.itemsize) if dense else map(abs, array.strides))])


def untouched(array: ElementlessArray, order: Any = "K", dtype: Any = None) -> Any:
    """An array of the same class and shape on other addresses."""
    return without_elements(reserved_like(array, order, dtype, dense=True), array.__class__)


def meta_array(shape: Sequence[int], dtype: np.dtype, strides: Sequence[int] | None = None) -> MetaArray:
    """What a new meta tensor has for an array; arguments as for `reserved`."""
    array: MetaArray = without_elements(reserved(shape, plain_dtype(dtype), strides))
    return array


def elements_of(x: Any) -> Any:
    """The array itself.

    Raises:
        NotImplementedError: it has no elements (PyTorch's text).
    """
    if isinstance(x, ElementlessArray):
        _refuse()
    return x


def any_without_elements(inputs: Sequence[Any]) -> bool:
    """Whether one of an operator's inputs is a tensor whose array has no elements."""
    for x in inputs:  # noqa: SIM110 - a generator takes twice as long
        if isinstance(getattr(x, "_array", None), ElementlessArray):
            return True
    return False


__all__ = ["NO_DATA", "ElementAccess", "ElementlessArray", "MetaArray", "WrapperArray", "addresses_of",
           "any_without_elements", "elementless_used", "elements_of", "meta_array", "plain_dtype", "reserved",
           "reserved_like", "untouched", "without_elements"]
