"""Arrays with a conjugate or negative bit: views whose elements are the conjugates or negatives of those in memory.

NumPy's functions, ufuncs and methods on such an array compute with its elements (`resolve`), views of it are arrays of
the same class, and assignments to it reach the memory. Only what reads memory by its address, and `np.asarray`, ignore
the bits: such readers resolve first. The dtype of float32 and float64 views is equal, but not identical, to NumPy's:
fast paths, which test the identity, leave them to the dispatcher.
"""

from __future__ import annotations

from typing import Any

import numpy as np

ndarray = np.ndarray

#: [whether an array with a bit was ever made]: until then nothing looks for one
bits_used = [False]


class _Marked(dict):
    """The dtype of views with bits for each plain one: equal, but not identical."""

    def __missing__(self, dtype: np.dtype) -> np.dtype:
        made = self[dtype] = np.dtype(dtype, metadata={"bits": "resolve"})
        return made


_marks: dict[np.dtype, np.dtype] = _Marked()


class BitView(np.ndarray):
    """An array whose elements are functions of those in memory: `conjugate`, `negative` or both.

    Indexing and NumPy's view functions return an array of the same class; everything else is computed on the elements.
    """

    conjugated = False
    negated = False

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **kwargs: Any) -> Any:
        operands = [resolve(x) for x in inputs]
        if method == "at":
            ufunc.at(*operands, **kwargs)
            if isinstance(inputs[0], BitView):
                inputs[0][...] = operands[0]
            return None
        if "where" in kwargs:
            kwargs["where"] = resolve(kwargs["where"])
        if out is None:
            return getattr(ufunc, method)(*operands, **kwargs)
        results = getattr(ufunc, method)(*operands, out=tuple(resolve(x) for x in out), **kwargs)
        for target, result in zip(out, results if isinstance(results, tuple) else (results,), strict=True):
            if isinstance(target, BitView):
                target[...] = result
        return out[0] if len(out) == 1 else out

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _VIEW_FUNCTIONS:
            return super().__array_function__(function, types, args, kwargs)
        convert = memory_of if function in _SHAPE_FUNCTIONS else resolve
        new_args = _map(convert, args)
        new_kwargs = {name: _map(convert, value) for name, value in kwargs.items()}
        result = function(*new_args, **new_kwargs)
        if function in _WRITERS and isinstance(args[0], BitView):
            args[0][...] = new_args[0]
        out = kwargs.get("out")
        if isinstance(out, BitView):
            out[...] = new_kwargs["out"]
            return out
        return result

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return resolve(self) if dtype is None else resolve(self).astype(dtype)

    def __getitem__(self, key: Any) -> Any:
        out = super().__getitem__(key)
        if out.__class__ is not self.__class__:
            return apply_bits(out, self.conjugated, self.negated)  # a scalar
        return out if _root(out) is _root(self) else resolve(out)

    def __setitem__(self, key: Any, value: Any) -> None:
        memory = memory_of(self)
        memory[resolve(key)] = apply_bits(resolve(value), self.conjugated, self.negated)

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(len(self))])

    @property
    def real(self) -> Any:
        """The real part, a view."""
        part = memory_of(self).real
        return _marked(part, NegativeView) if self.negated else part

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Any:
        """The imaginary part, a view."""
        part = memory_of(self).imag
        return _marked(part, NegativeView) if self.conjugated != self.negated else part

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    @property
    def flat(self) -> Any:
        """The elements in row-major order."""
        return resolve(self).flat

    def reshape(self, *shape: Any, **kwargs: Any) -> Any:
        """A view with another shape, or a resolved copy."""
        out = super().reshape(*shape, **kwargs)
        return out if _root(out) is _root(self) else resolve(out)

    def ravel(self, *args: Any, **kwargs: Any) -> Any:
        """A flat view, or a resolved copy."""
        out = super().ravel(*args, **kwargs)
        return out if _root(out) is _root(self) else resolve(out)

    def view(self, *args: Any, **kwargs: Any) -> Any:
        """A view of the memory, as another dtype or class; the bits remain on a view of the same kind of numbers."""
        out = super().view(*args, **kwargs)
        if out.__class__ is self.__class__ and self.conjugated and out.dtype.kind != "c":
            raise RuntimeError("a conjugate view cannot be viewed as another dtype")
        return _marked(memory_of(out), out.__class__) if isinstance(out, BitView) else out


class ConjugateView(BitView):
    """An array with the conjugate bit."""

    conjugated = True


class NegativeView(BitView):
    """An array with the negative bit."""

    negated = True


class ConjugateNegativeView(BitView):
    """An array with both bits."""

    conjugated = True
    negated = True


def _class(conjugated: bool, negated: bool) -> type:
    if conjugated:
        return ConjugateNegativeView if negated else ConjugateView
    return NegativeView if negated else ndarray


def _root(x: Any) -> Any:
    while x.base is not None:
        x = x.base
    return x


def _map(convert: Any, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_map(convert, x) for x in value]) if not hasattr(value, "_fields") else value
    return convert(value)


def _marked(memory: Any, kind: Any) -> Any:
    """A plain array as one with bits."""
    return ndarray.view(memory, _marks[memory.dtype], kind)


def memory_of(x: Any) -> Any:
    """A plain array on the memory of an array with bits; anything else as it is."""
    if not isinstance(x, BitView):
        return x
    return ndarray.view(x, np.dtype(x.dtype.str), ndarray)


def apply_bits(x: Any, conjugated: bool, negated: bool) -> Any:
    """The conjugate, the negative or both of an array or scalar."""
    if conjugated and np.iscomplexobj(x):
        x = np.conjugate(x)
    return np.negative(x) if negated else x


def resolve(x: Any) -> Any:
    """A new plain array of the elements of an array with bits; anything else as it is."""
    if not isinstance(x, BitView):
        return x
    out: Any = apply_bits(memory_of(x), x.conjugated, x.negated)
    return out if out.__class__ is ndarray else np.asarray(out)


def toggle(x: np.ndarray, conjugate: bool = False, negative: bool = False) -> np.ndarray:
    """A view of an array with its conjugate or negative bit changed."""
    if x.dtype.kind == "V":  # no array function computes the negative of such a dtype
        raise NotImplementedError("views with bits of bfloat16 and dtypes of eight bits")
    kind = _class(getattr(x, "conjugated", False) != conjugate, getattr(x, "negated", False) != negative)
    memory = memory_of(x)
    bits_used[0] = True
    return memory[...] if kind is ndarray else _marked(memory, kind)


def with_bits_of(memory: Any, x: Any) -> Any:
    """A plain array as one with the bits of another array."""
    return _marked(memory, x.__class__) if isinstance(x, BitView) else memory


def bits_of(x: Any) -> tuple[bool, bool]:
    """Whether an array has the conjugate bit, and whether the negative bit."""
    return (x.conjugated, x.negated) if isinstance(x, BitView) else (False, False)


_VIEW_FUNCTIONS = frozenset((
    np.reshape, np.transpose, np.moveaxis, np.rollaxis, np.swapaxes, np.expand_dims, np.squeeze, np.broadcast_to,
    np.ravel, np.diagonal, np.atleast_1d, np.atleast_2d, np.atleast_3d, np.real, np.imag))
_SHAPE_FUNCTIONS = frozenset((
    np.shape, np.ndim, np.size, np.empty_like, np.zeros_like, np.ones_like, np.full_like, np.may_share_memory,
    np.shares_memory, np.result_type, np.can_cast, np.min_scalar_type, np.iscomplexobj, np.isrealobj,
    np.lib.array_utils.byte_bounds))
_WRITERS = frozenset((np.copyto, np.put, np.place, np.putmask, np.fill_diagonal, np.put_along_axis))

#: attributes of arrays that do not depend on elements, return views, or compute by a ufunc
KEPT = frozenset((
    "T", "mT", "base", "ctypes", "data", "device", "dtype", "flags", "itemsize", "nbytes", "ndim", "shape", "size",
    "strides", "swapaxes", "transpose", "squeeze", "diagonal", "setflags", "to_device",
    "__array_interface__", "__array_struct__", "__array_priority__", "__array_finalize__", "__array_namespace__",
    "__array_wrap__", "__dlpack_device__", "__len__", "__class__", "__class_getitem__", "__delattr__", "__delitem__",
    "__dir__", "__doc__", "__getattribute__", "__getstate__", "__hash__", "__init__", "__init_subclass__", "__new__",
    "__setattr__", "__sizeof__", "__subclasshook__", "__buffer__", "__release_buffer__",
    "__abs__", "__add__", "__and__", "__divmod__", "__eq__", "__floordiv__", "__ge__", "__gt__", "__iadd__", "__iand__",
    "__ifloordiv__", "__ilshift__", "__imatmul__", "__imod__", "__imul__", "__invert__", "__ior__", "__ipow__",
    "__irshift__", "__isub__", "__itruediv__", "__ixor__", "__le__", "__lshift__", "__lt__", "__matmul__", "__mod__",
    "__mul__", "__ne__", "__neg__", "__or__", "__pos__", "__pow__", "__radd__", "__rand__", "__rdivmod__",
    "__rfloordiv__", "__rlshift__", "__rmatmul__", "__rmod__", "__rmul__", "__ror__", "__rpow__", "__rrshift__",
    "__rshift__", "__rsub__", "__rtruediv__", "__rxor__", "__sub__", "__truediv__", "__xor__"))
_WRITING_METHODS = frozenset(("fill", "put", "sort", "partition", "byteswap", "setfield"))


def _computed(name: str) -> Any:
    """A method of arrays, on the elements."""
    method = getattr(ndarray, name)

    def call(self: BitView, *args: Any, **kwargs: Any) -> Any:
        values = resolve(self)
        result = method(values, *_map(resolve, args), **{k: resolve(v) for k, v in kwargs.items()})
        if name in _WRITING_METHODS:
            self[...] = values
        out = kwargs.get("out")
        if isinstance(out, BitView):
            raise NotImplementedError(f"{name} into an array with bits")
        return result

    call.__name__ = call.__qualname__ = name
    return call


for _name in dir(ndarray):
    _is_private = _name.startswith("_") and not _name.startswith("__")  # NumPy 2.5's views set their dtype by one
    if _name not in KEPT and _name not in BitView.__dict__ and not _is_private:
        setattr(BitView, _name, _computed(_name))


__all__ = ["BitView", "apply_bits", "bits_of", "bits_used", "memory_of", "resolve", "toggle", "with_bits_of"]
