"""Tensors of one value, or of none yet, by shape or after another tensor."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.compiled import room, room_like
from ...backends.numpy.memory import copy_as, lying
from ...dtypes import dtype as dtype_type
from ...engine.saved.saved_tensor_mutation import about_to_write
from ...modes import special
from ..tensor import Tensor, as_leaf
from ..tracer_notifications import tell_created, tell_overwritten
from .from_data import array_of, finished, legacy_constructor, number_array, sizes, tensor

__all__ = ["empty", "empty_like", "empty_permuted", "empty_strided", "full", "full_like", "ones", "ones_like", "zeros",
           "zeros_like"]


def put_out(array: np.ndarray, out: Tensor, dtype: dtype_type | None = None) -> Tensor:
    """Put a made array into the tensor given as `out=`, resizing it where its shape differs.

    Raises:
        RuntimeError: another dtype was asked for than `out` has.
    """
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    about_to_write(out)
    target = out._array
    if out._array.shape == array.shape:
        out._array[...] = dtypes.cast(array, out._array.dtype)
    else:
        if out._array.size:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out._array.shape)}, which "
                f"does not match the required output shape {list(array.shape)}. This behavior is deprecated, and in a "
                "future PyTorch release outputs will not be resized unless they have zero elements. You can explicitly "
                "reuse an out tensor t by resizing it, inplace, to zero elements with t.resize_(0).", UserWarning,
                stacklevel=4)
        out._array = dtypes.cast(array, out._array.dtype)
    out._bump_version()
    if special[0]:
        tell_created(array)
        tell_overwritten(out, array, out._array is not target)
    return out


_MISSING: Any = object()


def _either(args: tuple[Any, ...], size: Any, name: str) -> tuple[Any, ...]:
    """The sizes, given by place or as `size=`."""
    if size is _MISSING:
        return args
    if args:
        raise TypeError(f"{name}() got multiple values for argument 'size'")
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"{name}(): argument 'size' must be tuple of ints, not {type(size).__name__}")
    return (size,)


def _made(fill: Any, size: tuple[Any, ...], name: str, dtype: dtype_type | None, device: Any, requires_grad: bool,
          out: Any = None) -> Tensor:
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    if len(size) > 1 and isinstance(size[0], (tuple, list)):
        raise TypeError(f"{name}() takes 1 positional argument but {len(size)} were given")
    shape = sizes(size, name)
    d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    if fill is None or (fill == 0 and not isinstance(fill, complex)):
        array = np.zeros(shape, d.numpy)
    else:
        array = room(shape, d.numpy)
        array[...] = number_array(fill, d)
    if out is not None:
        return put_out(array, out, dtype)
    return finished(array, device, requires_grad)


def zeros(*args: Any, size: Any = _MISSING, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
          device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros.

    >>> import flambeau as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _made(0, _either(args, size, "zeros"), "zeros", dtype, device, requires_grad, out)


def ones(*args: Any, size: Any = _MISSING, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
         device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A tensor of ones.

    >>> import flambeau as torch
    >>> torch.ones(2)
    tensor([1., 1.])
    """
    return _made(1, _either(args, size, "ones"), "ones", dtype, device, requires_grad, out)


def empty(*args: Any, size: Any = _MISSING, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
          device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
          memory_format: Any = None) -> Tensor:
    """A tensor whose elements are not set to anything.

    >>> import flambeau as torch
    >>> torch.empty(2, 3).shape
    flambeau.Size([2, 3])
    """
    given = _either(args, size, "empty")
    if not given:
        raise TypeError('empty() missing 1 required positional arguments: "size"')
    shape = sizes(given, "empty")
    if out is not None:
        return put_out(room(shape, out.dtype.numpy), out, dtype)
    array = room(shape, (dtype or dtypes.get_default_dtype()).numpy)
    return finished(_laid_out(array, memory_format), device, requires_grad, unset=True)


def _laid_out(array: np.ndarray, memory_format: Any) -> np.ndarray:
    if memory_format is None or memory_format.name in ("contiguous_format", "preserve_format"):
        return array
    return copy_as(array, memory_format)


def empty_strided(size: Any, stride: Any, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor with the given strides whose elements are not set to anything.

    >>> import flambeau as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(size)} and {len(stride)}")
    d = dtype or dtypes.get_default_dtype()
    count = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    memory = room((count,), d.numpy)
    array = lying(memory, size, tuple(s * d.itemsize for s in stride)) if count else room(size, d.numpy)
    return finished(array, device, requires_grad, unset=True)


def empty_permuted(size: Any, physical_layout: Any, *, dtype: dtype_type | None = None, layout: Any = None,
                   device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A dense tensor whose dimensions lie in memory in the order `physical_layout`, outermost first.

    >>> import flambeau as torch
    >>> torch.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    size, order = tuple(size), tuple(physical_layout)
    if len(size) != len(order):
        raise RuntimeError("Number of dimensions in the tensor input does not match the length of the physical "
                           f"layout; i.e. len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}")
    if sorted(order) != list(range(len(size))):
        raise RuntimeError("Duplicate dim not allowed" if len(set(order)) != len(order) else
                           "Dimension out of range in physical layout")
    array = room([size[d] for d in order], (dtype or dtypes.get_default_dtype()).numpy)
    back = [order.index(d) for d in range(len(order))]
    return finished(array.transpose(back), device, requires_grad, unset=True)


def full(size: Any, fill_value: Any, *, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
         device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor filled with one value; its dtype is the value's.

    >>> import flambeau as torch
    >>> torch.full((2,), 7)
    tensor([7, 7])
    """
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    return _made(fill_value, (size,), "full", dtype or dtypes.of_scalar(fill_value), device, requires_grad, out)


def _like(input: Tensor, fill: Any, dtype: dtype_type | None, device: Any, requires_grad: bool,
          memory_format: Any = None) -> Tensor:
    a = input._array
    if special[0] and a.__class__ is not np.ndarray:
        from ..dispatch.batched_tensor import batched

        return batched(_like(input._value, fill, dtype, device, requires_grad, memory_format), input._levels)
    d = a.dtype if dtype is None else dtype.numpy
    if memory_format is None or memory_format.name == "preserve_format":
        array = room_like(a, d, "C" if 0 in a.strides else "K")
    else:
        array = _laid_out(room(a.shape, d), memory_format)
    if fill is not None:
        array[...] = number_array(fill, dtype or input.dtype)
    return finished(array, device, requires_grad, unset=fill is None)


def zeros_like(input: Tensor, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """Zeros, shaped as `input`."""
    return _like(input, 0, dtype, device, requires_grad, memory_format)


def ones_like(input: Tensor, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """Ones, shaped as `input`."""
    return _like(input, 1, dtype, device, requires_grad, memory_format)


def empty_like(input: Tensor, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """Elements not set, shaped as `input`."""
    return _like(input, None, dtype, device, requires_grad, memory_format)


def full_like(input: Tensor, fill_value: Any, *, dtype: dtype_type | None = None, layout: Any = None,
              device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
              memory_format: Any = None) -> Tensor:
    """One value, shaped as `input`."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    return _like(input, fill_value, dtype, device, requires_grad, memory_format)


# ----- like another tensor, as methods -------------------------------------------------------


def _new(self: Tensor, size: tuple[Any, ...], named: dict[str, Any], name: str, fill: Any) -> Tensor:
    if "size" in named:
        size = (named.pop("size"),)
    dtype = named.pop("dtype", None) or self.dtype
    device, requires_grad = named.pop("device", None), named.pop("requires_grad", False)
    return _one_each(self, _made(fill, size, name, dtype, device, requires_grad))


def _one_each(self: Tensor, made: Tensor) -> Tensor:
    """What was made after `self`; where that is a batch, one for each of its elements."""
    if special[0] and self._array.__class__ is not np.ndarray:
        from ..dispatch.batched_tensor import batched
        from ..dispatch.batched_tensor import full as filled_up

        value = filled_up(made, self._levels).clone()
        return batched(as_leaf(value.detach()) if made._requires_grad else value, self._levels)
    return made


def new_zeros(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """Zeros, of this tensor's dtype unless another is named."""
    return _new(self, size, named, "new_zeros", 0)


def new_ones(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """Ones, of this tensor's dtype unless another is named."""
    return _new(self, size, named, "new_ones", 1)


def new_empty(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """Elements not set, of this tensor's dtype unless another is named."""
    return _new(self, size, named, "new_empty", None)


def new_empty_strided(self: Tensor, size: Any, stride: Any, **named: Any) -> Tensor:
    """Elements not set, with the given strides."""
    named["dtype"] = named.get("dtype") or self.dtype
    if special[0] and self._array.__class__ is not np.ndarray:
        from ..dispatch.batched_tensor import batched

        reach = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        levels = self._levels
        for level in reversed(levels):
            size, stride, reach = (level.size, *size), (reach, *stride), reach * level.size
        return batched(empty_strided(size, stride, **named), levels)
    return empty_strided(size, stride, **named)


def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: dtype_type | None = None, device: Any = None,
             requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:
    """One value, of this tensor's dtype unless another is named."""
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    return _one_each(self, _made(fill_value, (size,), "new_full", dtype or self.dtype, device, requires_grad))


def new_tensor(self: Tensor, data: Any, *, dtype: dtype_type | None = None, device: Any = None,
               requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:
    """A tensor with a copy of `data`, of this tensor's dtype unless another is named."""
    if isinstance(data, Tensor) and data._array.__class__ is not np.ndarray:
        return tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)
    return _one_each(self, finished(array_of(data, dtype or self.dtype), device, requires_grad))


def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The legacy constructor, with this tensor's dtype."""
    return _one_each(self, legacy_constructor(Tensor, self.dtype, *args, **kwargs))


METHODS: dict[str, Any] = {"new_zeros": new_zeros, "new_ones": new_ones, "new_empty": new_empty,
                           "new_empty_strided": new_empty_strided, "new_full": new_full, "new_tensor": new_tensor,
                           "new": new}
