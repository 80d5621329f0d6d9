"""`ndarray`: NumPy's arrays, on a tensor."""

from __future__ import annotations

import builtins
import math
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import flambeau as torch

from . import _dtypes, _dtypes_impl, _funcs, _ufuncs, _util
from ._indexing import tensor_index, without_negative_steps
from ._normalizations import ArrayLike, Unsupported, normalize_array_like, normalizer

newaxis = None

FLAGS = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY", "FNC", "FORC", "BEHAVED",
         "CARRAY", "FARRAY")
SHORTHAND_TO_FLAGS = {"C": "C_CONTIGUOUS", "F": "F_CONTIGUOUS", "O": "OWNDATA", "W": "WRITEABLE", "A": "ALIGNED",
                      "X": "WRITEBACKIFCOPY", "B": "BEHAVED", "CA": "CARRAY", "FA": "FARRAY"}


class Flags:
    """What an array's memory is like, by name; it cannot be changed.

    >>> Flags({"OWNDATA": True})["O"], Flags({"OWNDATA": True}).owndata
    (True, True)
    """

    def __init__(self, flag_to_value: dict[str, bool]) -> None:
        assert set(flag_to_value) <= {*FLAGS}
        super().__setattr__("_flag_to_value", flag_to_value)

    def __getattr__(self, attr: str) -> Any:
        if attr.islower() and attr.upper() in FLAGS:
            return self[attr.upper()]
        raise AttributeError(f"No flag attribute '{attr}'")

    def __getitem__(self, key: str) -> Any:
        name = SHORTHAND_TO_FLAGS.get(key, key)
        if name not in FLAGS:
            raise KeyError(f"No flag key '{key}'")
        if name not in self._flag_to_value:
            raise NotImplementedError(f"key={name!r}")
        return self._flag_to_value[name]

    def __setattr__(self, attr: str, value: Any) -> None:
        if attr.islower() and attr.upper() in FLAGS:
            self[attr.upper()] = value
        else:
            super().__setattr__(attr, value)

    def __setitem__(self, key: str, value: Any) -> None:
        if key in FLAGS or key in SHORTHAND_TO_FLAGS:
            raise NotImplementedError("Modifying flags is not implemented")
        raise KeyError(f"No flag key '{key}'")


def _method(function: Callable[..., Any], name: str) -> Any:
    def method(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    method.__name__, method.__qualname__, method.__doc__ = name, f"ndarray.{name}", function.__doc__
    return method


_FUNCTIONS = [
    "clip", "nonzero", "repeat", "round", "squeeze", "swapaxes", "ravel", "diagonal", "dot", "trace", "argsort",
    "searchsorted", "argmax", "argmin", "any", "all", "max", "min", "ptp", "sum", "prod", "mean", "var", "std",
    "cumsum", "cumprod", "take", "choose",
]
_UNARY = {"abs": "absolute", "invert": "invert", "pos": "positive", "neg": "negative"}
_COMPARISONS = {"gt": "greater", "lt": "less", "ge": "greater_equal", "le": "less_equal"}
_BINARY = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
           "pow": "power", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
           "lshift": "left_shift", "rshift": "right_shift", "matmul": "matmul"}


class _Unspecified:
    """An argument that was not passed, where None is one."""


_UNSPECIFIED = _Unspecified()


class ndarray:
    """An array: a tensor with NumPy's methods.

    Attributes:
        tensor: the tensor.

    >>> import flambeau._numpy as np
    >>> np.array([1, 2]) + 0.5
    torch.ndarray([1.5000, 2.5000], dtype=float64)
    """

    tensor: Any

    def __init__(self, t: Any = None) -> None:
        if t is not None and not isinstance(t, torch.Tensor):
            raise ValueError("ndarray constructor is not recommended; prefereither array(...) or zeros/empty(...)")
        self.tensor = torch.Tensor() if t is None else t

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape."""
        return tuple(self.tensor.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(self.tensor.numel())

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return int(self.tensor.ndim)

    @property
    def dtype(self) -> _dtypes.DType:
        """The dtype."""
        return _dtypes.dtype(self.tensor.dtype)

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return int(self.tensor.element_size())

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours, by dimension."""
        return tuple(stride * self.itemsize for stride in self.tensor.stride())

    @property
    def flags(self) -> Flags:
        """What the memory is like."""
        return Flags({"C_CONTIGUOUS": self.tensor.is_contiguous(), "F_CONTIGUOUS": self.T.tensor.is_contiguous(),
                      "OWNDATA": self.tensor._base is None, "WRITEABLE": True})

    @property
    def data(self) -> int:
        """The address of the first element."""
        return int(self.tensor.data_ptr())

    @property
    def nbytes(self) -> int:
        """The bytes of the tensor's storage."""
        return int(self.tensor.untyped_storage().nbytes())

    @property
    def T(self) -> Any:
        """The array with its dimensions in reversed order."""
        return self.transpose()

    @property
    def real(self) -> Any:
        """The real parts."""
        return _funcs.real(self)  # type: ignore[attr-defined]

    @real.setter
    def real(self, value: Any) -> None:
        self.tensor.real = asarray(value).tensor

    @property
    def imag(self) -> Any:
        """The imaginary parts."""
        return _funcs.imag(self)  # type: ignore[attr-defined]

    @imag.setter
    def imag(self, value: Any) -> None:
        self.tensor.imag = asarray(value).tensor

    @property
    def flat(self) -> Any:
        """All elements, in one dimension."""
        return _funcs.ravel(self)  # type: ignore[attr-defined]

    def astype(self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True,
               copy: bool = True) -> ndarray:
        """The array in another dtype.

        Raises:
            NotImplementedError: other options than the default ones.
        """
        for name, value, default in (("order", order, "K"), ("casting", casting, "unsafe"), ("subok", subok, True),
                                     ("copy", copy, True)):
            if value != default:
                raise NotImplementedError(f"astype(..., {name}={value} is not implemented.")
        return ndarray(self.tensor.to(_dtypes.dtype(dtype).torch_dtype))

    @normalizer
    def copy(self: ArrayLike, order: Unsupported = "C") -> Any:
        """A copy."""
        return self.clone()

    @normalizer
    def flatten(self: ArrayLike, order: Unsupported = "C") -> Any:
        """All elements, in one dimension."""
        return torch.flatten(self)

    def resize(self, *new_shape: Any, refcheck: bool = False) -> None:
        """Change the shape in place; new elements are zeros.

        Raises:
            ValueError: a size is negative.
        """
        if refcheck:
            raise NotImplementedError(f"resize(..., refcheck={refcheck} is not implemented.")
        if new_shape in ((), (None,)):
            return
        given = new_shape[0] if len(new_shape) == 1 else new_shape
        sizes = (given,) if isinstance(given, int) else tuple(given)
        if builtins.any(size < 0 for size in sizes):
            raise ValueError("all elements of `new_shape` must be non-negative")
        before = self.tensor.numel()
        self.tensor.resize_(sizes)
        if math.prod(sizes) >= before:
            self.tensor.view(-1)[before:].zero_()

    def view(self, dtype: Any = _UNSPECIFIED, type: Any = _UNSPECIFIED) -> ndarray:
        """The same memory as elements of another dtype."""
        if type is not _UNSPECIFIED:
            raise NotImplementedError(f"view(..., type={type} is not implemented.")
        wanted = self.dtype if dtype is _UNSPECIFIED else _dtypes.dtype(dtype)
        return ndarray(self.tensor.view(wanted.torch_dtype))

    def fill(self, value: Any) -> None:
        """Write one number into all elements."""
        self.tensor.fill_(normalize_array_like(value))

    def tolist(self) -> Any:
        """The elements as nested lists of numbers."""
        return self.tensor.tolist()

    def __iter__(self) -> Iterator[ndarray]:
        return map(ndarray, iter(self.tensor))

    def __str__(self) -> str:
        return re.sub(r"dtype=\w+\.", "dtype=", str(self.tensor).replace("tensor", "torch.ndarray"))

    __repr__ = __str__

    def __eq__(self, other: object) -> Any:
        try:
            return _ufuncs.equal(self, other)  # type: ignore[attr-defined]
        except (RuntimeError, TypeError, NotImplementedError):  # no array: equal to nothing
            return asarray(torch.zeros(self.shape, dtype=torch.bool))

    def __ne__(self, other: object) -> Any:
        return ~(self == other)

    __hash__ = None  # type: ignore[assignment]

    def __index__(self) -> int:
        try:
            return operator.index(self.tensor.item())
        except Exception as error:
            raise TypeError("only integer scalar arrays can be converted to a scalar index") from error

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __complex__(self) -> complex:
        return complex(self.tensor)

    def is_integer(self) -> bool:
        """Whether it is one number without a fractional part."""
        try:
            value = self.tensor.item()
            return bool(int(value) == value)
        except Exception:
            return False

    def __len__(self) -> int:
        if not self.ndim:
            raise IndexError("tuple index out of range")
        return self.shape[0]

    def __contains__(self, x: Any) -> bool:
        return bool(self.tensor.__contains__(_util.ndarrays_to_tensors(x)))

    def transpose(self, *axes: Any) -> Any:
        """The array with its dimensions in another order, or in the reversed one."""
        return _funcs.transpose(self, axes)  # type: ignore[attr-defined]

    def reshape(self, *shape: Any, order: str = "C") -> Any:
        """The elements in another shape."""
        return _funcs.reshape(self, shape, order=order)  # type: ignore[attr-defined]

    def sort(self, axis: int = -1, kind: Any = None, order: Any = None) -> None:
        """Sort in place."""
        _funcs.copyto(self, _funcs.sort(self, axis, kind, order))  # type: ignore[attr-defined]

    def item(self, *args: Any) -> Any:
        """The number; the element at a position of the flattened array, or at a position for each dimension."""
        if not args:
            return self.tensor.item()
        return self.flat[args[0]] if len(args) == 1 else self[args]

    def __getitem__(self, index: Any) -> ndarray:
        tensor, index = without_negative_steps(self.tensor, index)
        index, finish, _ = tensor_index(index, tensor.ndim)
        result: ndarray = finish(ndarray(tensor[index]))
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        index, _, prepare = tensor_index(index, self.ndim)
        if not _dtypes_impl.is_scalar(value):
            value = _util.cast_if_needed(normalize_array_like(value), self.tensor.dtype)
        self.tensor[index] = prepare(value)

    def __divmod__(self, other: Any) -> Any:
        return _ufuncs.divmod(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return _ufuncs.divmod(other, self)

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> Any:
        return self.tensor.__dlpack_device__()


def _add_methods() -> None:
    for name in _FUNCTIONS:
        setattr(ndarray, name, _method(getattr(_funcs, name), name))
    for name in ("conj", "conjugate"):
        setattr(ndarray, name, _method(getattr(_ufuncs, name), name))
    setattr(ndarray, "put", _method(getattr(_funcs, "put"), "put"))  # noqa: B009, B010  (made by a loop)
    for name, ufunc in {**_UNARY, **_COMPARISONS}.items():
        setattr(ndarray, f"__{name}__", _method(getattr(_ufuncs, ufunc), f"__{name}__"))
    for name, ufunc in _BINARY.items():
        function = getattr(_ufuncs, ufunc)
        setattr(ndarray, f"__{name}__", _method(function, f"__{name}__"))
        setattr(ndarray, f"__r{name}__", _method(lambda self, other, f=function: f(other, self), f"__r{name}__"))
        setattr(ndarray, f"__i{name}__", _method(lambda self, other, f=function: f(self, other, out=self),
                                                 f"__i{name}__"))


_add_methods()


def _as_lists(values: Any) -> list[Any]:
    """Nested lists without arrays."""
    plain = [_as_lists(each) if isinstance(each, (list, tuple)) else each for each in values]
    return [each.tensor.tolist() if isinstance(each, ndarray) else each for each in plain]


def array(obj: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", subok: bool = False, ndmin: int = 0,
          like: Any = None) -> ndarray:
    """An array.

    Args:
        obj: an array, a tensor, a number, or nested lists of these.
        dtype: its dtype.
        copy: whether the elements of an array are copied.
        ndmin: the least number of dimensions.

    Raises:
        NotImplementedError: `order`, `subok` and `like`; it cannot become a tensor.

    >>> array([1, 2], ndmin=2)
    torch.ndarray([[1, 2]])
    """
    if subok is not False:
        raise NotImplementedError("'subok' parameter is not supported.")
    if like is not None:
        raise NotImplementedError("'like' parameter is not supported.")
    if order != "K":
        raise NotImplementedError("'order' parameter is not supported.")
    if isinstance(obj, ndarray):
        if copy is False and dtype is None and ndmin <= obj.ndim:
            return obj
        obj = obj.tensor
    elif isinstance(obj, (list, tuple)):
        tensors = obj and all(isinstance(x, torch.Tensor) for x in obj)
        obj = torch.stack(tuple(obj)) if tensors else _as_lists(obj)
    torch_dtype = None if dtype is None else _dtypes.dtype(dtype).torch_dtype
    return ndarray(_util._coerce_to_tensor(obj, torch_dtype, copy, ndmin))


def asarray(a: Any, dtype: Any = None, order: str = "K", *, like: Any = None) -> ndarray:
    """An array, without a copy where there is one already.

    >>> asarray(3.0).dtype
    dtype("float64")
    """
    return array(a, dtype, order=order, like=like, copy=False)


def ascontiguousarray(a: Any, dtype: Any = None, *, like: Any = None) -> ndarray:
    """An array whose elements are in order in memory."""
    result = asarray(a, dtype, like=like)
    result.tensor = result.tensor.contiguous()
    return result


def from_dlpack(x: Any, /) -> ndarray:
    """An array on the memory of another library's."""
    return ndarray(torch.from_dlpack(x))


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Whether a rule allows a cast, between dtypes or arrays.

    >>> can_cast("int32", "float64"), can_cast(float, int)
    (True, False)
    """
    def dtype_of(entry: Any) -> torch.dtype:
        try:
            return _dtypes.dtype(entry).torch_dtype
        except Exception:  # no dtype, but values of one
            return asarray(entry).dtype.torch_dtype

    return _dtypes_impl.can_cast_impl(dtype_of(from_), dtype_of(to), casting)


def result_type(*arrays_and_dtypes: Any) -> _dtypes.DType:
    """The dtype of the result of arrays and dtypes.

    >>> result_type("int64", "float32")
    dtype("float64")
    """
    tensors = []
    for entry in arrays_and_dtypes:
        try:
            tensors.append(asarray(entry).tensor)
        except (RuntimeError, ValueError, TypeError):
            tensors.append(torch.empty(1, dtype=_dtypes.dtype(entry).torch_dtype))
    return _dtypes.dtype(_dtypes_impl.result_type_impl(*tensors))


__all__ = ["FLAGS", "Flags", "array", "asarray", "ascontiguousarray", "can_cast", "from_dlpack", "ndarray", "newaxis",
           "result_type"]
