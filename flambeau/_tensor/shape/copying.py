"""Copies, conversions and fills: what moves elements from one memory to another."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import config, devices, dtypes
from ...backends.compiled import copy, mover
from ...backends.compiled.thresholds import MOVES
from ...backends.numpy.memory import (
    CHANNELS_LAST,
    address,
    copy_as,
    filled,
    is_contiguous,
    owner,
    refuse_number,
    strided,
)
from ...dtypes import dtype as dtype_type
from ...modes import active_tracer, inference, special
from ...ops.declare import REGISTRY
from ...shapes import broadcast_shapes
from ...warning_location import outside
from ..dispatch.apply import apply
from ..dispatch.inplace import overwrite
from ..dispatch.write_checks import check_overlap, check_writable, is_tracked
from ..fastpath.views import copying
from ..tensor import Tensor, wrap

__all__ = ["clone", "contiguous", "detach_copy", "fill", "resize_as_", "to", "zero_"]


_clone, _cast = copying("clone"), copying("_to_copy")


# ----- conversions -------------------------------------------------------------------------

_COMPLEX_TO_REAL = "Casting complex values to real discards the imaginary part"


def _converted(self: Tensor, dtype: dtype_type | None, copy: bool, memory_format: Any) -> Tensor:
    if dtype is None:
        dtype = self.dtype
    a = self._array
    if a.dtype == dtype.numpy and not copy:
        if memory_format is None or memory_format is devices.preserve_format or (
                a.__class__ is np.ndarray and is_contiguous(a, memory_format)):
            return self
    elif a.dtype.kind == "c" and dtype.numpy.kind not in "cb":
        warnings.warn(_COMPLEX_TO_REAL, UserWarning, stacklevel=outside())
    if memory_format is None and not special[0]:
        return _cast(self, copy_as(a) if a.dtype == dtype.numpy else dtypes.cast(a, dtype.numpy))
    if self._requires_grad and dtype.numpy.kind not in "fcV":  # whose history nobody asks for
        self = self.detach()
    return apply(REGISTRY["_to_copy"], [self], {"dtype": dtype, "memory_format": memory_format})


def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False,
       copy: bool = False, memory_format: Any = None, other: Any = None) -> Tensor:
    """This tensor with another dtype or device; itself where nothing changes and no copy is asked for.

    >>> import flambeau as torch
    >>> torch.ones(2).to(torch.int64)
    tensor([1, 1])
    """
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and isinstance(rest[0], dtype_type):
        dtype = rest.pop(0)
    elif rest and not isinstance(rest[0], bool) and (
            rest[0] is None or isinstance(rest[0], (str, devices.device, int))):
        device = rest.pop(0)
        if rest and (rest[0] is None or isinstance(rest[0], dtype_type)):
            dtype = rest.pop(0)
    elif rest:
        raise TypeError(f"to() received an invalid combination of arguments - got ({type(rest[0]).__name__}), but "
                        "expected one of:\n * (torch.device device = None, torch.dtype dtype = None, bool non_blocking "
                        "= False, bool copy = False, *, torch.memory_format memory_format = None)\n * (torch.dtype "
                        "dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = "
                        "None)\n * (Tensor tensor, bool non_blocking = False, bool copy = False, *, "
                        "torch.memory_format memory_format = None)\n")
    if len(rest) > 1:
        copy = bool(rest[1])
    if other is not None:
        dtype = other.dtype
    if device is not None:
        if isinstance(device, int):
            raise RuntimeError("Cannot access accelerator device when none is available.")
        devices.check(device)
    return _converted(self, dtype, copy, memory_format)


def _named(name: str, dtype: dtype_type) -> Any:
    def call(self: Tensor, memory_format: Any = None) -> Tensor:
        return _converted(self, dtype, False, memory_format)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"This tensor as {dtype.name}."
    return call


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The name of this tensor's type; with a dtype, this tensor converted to it."""
    if dtype is None:
        return f"{config.module_name}.{self.dtype.legacy}"
    if isinstance(dtype, str):
        legacy = dtype.rpartition(".")[2]
        found = next((d for d in dtypes.ALL if d.legacy == legacy), None)
        if found is None or legacy == dtype:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = found
    elif not isinstance(dtype, dtype_type):
        dtype = dtypes.OF_PYTHON.get(dtype) or dtype.dtype
    return _converted(self, dtype, False, None)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor, converted to the other's dtype."""
    return _converted(self, other.dtype, False, None)


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy, through which gradients flow.

    >>> import flambeau as torch
    >>> torch.clone(torch.ones(2))
    tensor([1., 1.])
    """
    if special[0]:
        return apply(REGISTRY["clone"], [input], {"memory_format": memory_format})
    return _clone(input, copy_as(input._array, memory_format))


def _refuse_format(x: Tensor, memory_format: Any) -> None:
    if special[0] and x._array.__class__ is not np.ndarray and memory_format not in (None, devices.contiguous_format):
        raise RuntimeError("NYI: querying is_contiguous inside of vmap for memory_format other than "
                           "torch.contiguous_format")


def contiguous(input: Tensor, memory_format: Any = devices.contiguous_format) -> Tensor:
    """This tensor with its elements in the order of the format: itself where they are."""
    _refuse_format(input, memory_format)
    if is_contiguous(input._array, memory_format):
        return input
    return clone(input, memory_format=memory_format)


def is_contiguous_(self: Tensor, memory_format: Any = None) -> bool:
    """Whether the elements lie in the order of the format."""
    _refuse_format(self, memory_format)
    return is_contiguous(self._array, memory_format)


def detach_copy(input: Tensor) -> Tensor:
    """A copy without history."""
    if special[0] and input._array.__class__ is not np.ndarray:
        return clone(input.detach())
    return wrap(input._array.copy())


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """This tensor on the CPU: itself."""
    return self if memory_format is None else _converted(self, None, False, memory_format)


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """This tensor on a CUDA device.

    Raises:
        AssertionError: this build has none.
    """
    devices.check(devices.device("cuda"))
    raise AssertionError("Torch not compiled with CUDA enabled")


# ----- writes ------------------------------------------------------------------------------


def copy_(self: Tensor, src: Any, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `src`, stretched and converted as needed, into this tensor.

    >>> import flambeau as torch
    >>> torch.zeros(2).copy_(torch.tensor([1, 2]))
    tensor([1., 2.])
    """
    a = self._array
    if not isinstance(src, Tensor):
        if isinstance(src, (bool, int, float, complex, np.generic)):
            from ..creation.from_data import number_array
            from ..tracer_notifications import tell_created

            src = wrap(number_array(src, dtypes.of_scalar(src.item() if isinstance(src, np.generic) else src)))
            if special[0]:
                tell_created(src._array)
        else:
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    check_writable(self, is_tracked((self, src)))
    given = src._array
    itself = given.__class__ is a.__class__ is np.ndarray and (
        given.shape == a.shape and given.strides == a.strides and given.dtype == a.dtype
        and address(given) == address(a))
    if not itself:
        check_overlap(a, given)
    if given.shape != a.shape:
        shape = broadcast_shapes(a.shape, given.shape)
        if shape != a.shape:
            raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(shape)}")
    values = src._array
    if values.dtype.kind == "c" and a.dtype.kind not in "cb" and a.size:
        warnings.warn(_COMPLEX_TO_REAL, UserWarning, stacklevel=outside())

    def compute() -> None:
        if not itself:
            copy(a, dtypes.cast(values, a.dtype))

    return overwrite(REGISTRY["_copy"], [self, src], {}, compute)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a number or a 0-d tensor.

    >>> import flambeau as torch
    >>> torch.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    a = self._array
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} "
                               "dimensions.")
        number = value._array
        check_writable(self, is_tracked((self, value)))
        check_overlap(a)
        if number.dtype.kind == "c" and a.dtype.kind not in "cb" and a.size:
            warnings.warn(_COMPLEX_TO_REAL, UserWarning, stacklevel=outside())

        def compute() -> None:
            a[...] = dtypes.cast(number, a.dtype)

        return overwrite(REGISTRY["_fill_tensor_"], [self, value], {}, compute)
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        name = type(value).__name__
        raise TypeError(f"fill_() received an invalid combination of arguments - got ({name}), but expected one of:\n "
                        "* (Tensor value)\n      didn't match because some of the arguments have invalid types: "
                        f"(!{name}!)\n * (Number value)\n      didn't match because some of the arguments have invalid "
                        f"types: (!{name}!)\n")
    refuse_number(value, self.dtype)

    def compute_number() -> None:
        copy(a, filled(value, a.dtype))

    return overwrite(REGISTRY["_fill_scalar_"], [self], {"value": value}, compute_number)


def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor shaped as `input` with every element `value`.

    >>> import flambeau as torch
    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])
    """
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(f"fill only supports 0-dimension value tensor but got tensor with {value._array.ndim} "
                               "dimensions.")
        return apply(REGISTRY["_fill_tensor"], [input, value])
    refuse_number(value, input.dtype)
    return apply(REGISTRY["_fill_scalar"], [input], {"value": value})


class _Nothing(dict):
    """Zero, by dtype."""

    def __missing__(self, dtype: np.dtype) -> Any:
        made = self[dtype] = np.zeros((), dtype)[()]
        return made


_nothing = _Nothing()


def zero_(input: Tensor) -> Tensor:
    """Set every element to zero."""
    a = input._array
    if not (input._requires_grad or input._base is not None or special[0] or input._inference) and a.flags.owndata:
        by = mover() if a.size > MOVES[0] else None  # nothing to record, as for a gradient between two steps
        if by is None or not by.copy(a, np.asarray(_nothing[a.dtype])):
            a.fill(_nothing[a.dtype])
        input._bump_version()
        return input

    def compute() -> None:
        copy(a, np.zeros((), a.dtype))

    return overwrite(REGISTRY["_zero"], [input], {}, compute)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal to a number; with `wrap`, again below it in tall matrices."""
    a = self._array
    if a.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if a.ndim > 2 and len(set(a.shape)) != 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    from ...backends.numpy.memory import element_strides
    from .strides import as_strided

    strides = element_strides(a)
    step = sum(strides)
    length = min(a.shape)
    if wrap and a.ndim == 2 and a.shape[0] > a.shape[1] + 1:
        rows, columns = a.shape
        length = -(-rows * columns // (columns + 1)) if a.flags.c_contiguous else length
    offset = self.storage_offset()
    fill_(as_strided(self, (length,), (step,), offset), fill_value)
    return self


# ----- the memory itself -------------------------------------------------------------------


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Give this tensor another shape, in its own memory where that suffices; new elements are not set.

    Raises:
        RuntimeError: it requires grad.
    """
    from ..creation.from_data import sizes as shape_of

    if self._requires_grad and not inference.get():
        raise RuntimeError("cannot resize variables that require grad")
    shape = shape_of(sizes, "resize_")
    if special[0] and self._array.__class__ is not np.ndarray:
        return _resized_each(self, shape, memory_format)
    return _resized(self, shape, memory_format)


def _resized_each(self: Any, shape: tuple[int, ...], memory_format: Any) -> Tensor:
    """Give the elements of a batch another shape."""
    resize_(self._value, (*(level.size for level in self._levels), *shape), memory_format=memory_format)
    return self


def _tell_move(how: str) -> None:
    """Tell a function's capture that a tensor is given other memory."""
    tracer = active_tracer.get() if special[0] else None
    if tracer is not None:
        tracer.on_memory_change(how)


def _resized(self: Tensor, shape: tuple[int, ...], memory_format: Any) -> Tensor:
    from math import prod

    _tell_move("resize_")
    a = self._array
    if a.shape != shape:
        self._bump_version()
    elif memory_format is None:
        return self
    whole = owner(a)
    offset = (address(a) - address(whole)) // a.itemsize
    count = prod(shape)
    if (offset + count) * a.itemsize <= whole.nbytes and count:
        steps, step = [], 1
        for s in reversed(shape):
            steps.append(step)
            step *= s
        self._array = strided(a, shape, tuple(reversed(steps)), offset)
    else:
        fresh = np.zeros(offset + count, a.dtype)
        flat = strided(a, (whole.nbytes // a.itemsize,), (1,), 0) if whole.nbytes else fresh[:0]
        keep = min(flat.size, fresh.size)
        fresh[:keep] = flat[:keep]
        self._array = fresh[offset:].reshape(shape)
    if memory_format is not None and memory_format.name in CHANNELS_LAST:
        _, order, back = CHANNELS_LAST[memory_format.name]
        self._array = self._array.reshape([shape[i] for i in order]).transpose(back)
    return self


def resize_as_(input: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give this tensor the other's shape (`resize_`)."""
    if input._requires_grad and not inference.get():
        raise RuntimeError("cannot resize variables that require grad")
    if special[0] and input._array.__class__ is not np.ndarray:
        return _resized_each(input, other._array.shape, memory_format)
    return _resized(input, other._array.shape, memory_format)


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Let this tensor show another tensor's memory, or a storage. There is no derivative.

    Raises:
        RuntimeError: another dtype, or a leaf that requires grad.
    """
    tracked = is_tracked((self, source))
    check_writable(self, tracked)
    _tell_move("set_")
    if self._requires_grad or (isinstance(source, Tensor) and source._requires_grad):
        _lose_history(self, source, tracked)
    self._bump_version()
    return _showing(self, source, storage_offset, size, stride)


def _lose_history(self: Tensor, source: Any, tracked: bool) -> None:
    if not tracked:
        if self._node is None:
            self._accumulator = None  # what was made of the old values is no longer of this leaf
        return
    from ...engine.nodes.unsupported_derivatives import NotImplemented

    node = NotImplemented("derivative for set_ is not implemented",
                          (self, source if isinstance(source, Tensor) else None))
    self._node, self._output_nr, self._requires_grad, self._accumulator = node, 0, True, None


def _showing(self: Tensor, source: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    if source is None:
        self._array = np.zeros(0, self._array.dtype)
        return self
    if isinstance(source, Tensor):
        if source._array.dtype != self._array.dtype:
            raise RuntimeError(f"Could not set tensor of type {dtypes.C_NAMES[source.dtype.name]} to a tensor of type "
                               f"{dtypes.C_NAMES[self.dtype.name]}")
        self._array = source._array if size is None else strided(
            source._array, tuple(size), tuple(stride) if stride is not None else _row_major(size), storage_offset)
        return self
    memory = source._memory.view(self._array.dtype)
    shape = (memory.size,) if size is None else tuple(size)
    self._array = strided(memory, shape, tuple(stride) if stride is not None else _row_major(shape), storage_offset)
    return self


def _row_major(shape: Any) -> tuple[int, ...]:
    from ...shapes import contiguous_strides

    return contiguous_strides(tuple(shape))


_CONVERSIONS = {"float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
                "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16, "char": dtypes.int8,
                "byte": dtypes.uint8, "bool": dtypes.bool_, "cfloat": dtypes.complex64, "cdouble": dtypes.complex128}

METHODS: dict[str, Any] = {
    **{name: _named(name, d) for name, d in _CONVERSIONS.items()},
    "to": to, "type": type_, "type_as": type_as, "contiguous": contiguous, "is_contiguous": is_contiguous_, "cpu": cpu,
    "cuda": cuda, "clone": clone, "copy_": copy_, "fill_": fill_, "zero_": zero_, "fill_diagonal_": fill_diagonal_,
    "resize_": resize_, "resize_as_": resize_as_, "set_": set_,
}
