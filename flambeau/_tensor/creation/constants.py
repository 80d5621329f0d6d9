"""Factories of constant and uninitialised tensors: `zeros`, `full`, `empty`, `*_like` and `new_*`."""

from __future__ import annotations

import warnings
from math import copysign
from types import NoneType
from typing import Any

import numpy as np

from ... import dtypes
from ...backends.bit_views import BitView, memory_of
from ...backends.compiled import empty_array, empty_array_like
from ...backends.elementless_array import MetaArray, addresses_of, meta_array
from ...backends.numpy.memory import copy_as, view_memory
from ...backends.numpy.uninitialized import fill_uninitialized
from ...backends.sparse_array import SparseArray, not_implemented
from ...devices import CPU, META, ambient, strided
from ...dtypes import dtype as dtype_type
from ...kernels.memory_format import noted, preserved_strides, with_preserved_strides
from ...modes import active_tracers, device_memory, filled_memory, special
from ...warning_location import user_stacklevel
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import type_name
from ..dispatch.handlers import handlers
from ..dispatch.inplace import record_underived
from ..dispatch.write_checks import prepare_write
from ..fastpath.repeated_layouts import known_results
from ..meta import is_meta, reserved
from ..methods.sparse import implementation as sparse_implementation
from ..overriding.dispatch import is_on_accelerator
from ..overriding.other_objects import with_other_object
from ..shape.resizing import resize_
from ..tensor import Tensor, set_requires_grad
from ..tracer_notifications import notify_created, notify_overwritten
from .element_arrays import fill_new, to_array
from .factory_arguments import makes_meta, parse_sizes, refuse_pinned, refuse_sparse, wrap_new
from .from_data import tensor
from .legacy_constructor import check_legacy_device, legacy_constructor

__all__ = ["empty", "empty_like", "empty_permuted", "empty_strided", "full", "full_like", "ones", "ones_like", "zeros",
           "zeros_like"]


def write_new_out(name: str, array: np.ndarray, out: Tensor, dtype: dtype_type | None = None,
                  requires_grad: bool = False) -> Tensor:
    """Write a new array into the `out=` tensor of a factory, resizing that where its shape differs.

    Raises:
        RuntimeError: `dtype` is not that of `out`, or `out` requires grad.
    """
    check_records_nothing(name, (), (out,))
    if isinstance(out._array, SparseArray):
        return sparse_implementation("likes", "clear")(out, array.shape)
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    prepare_write(out)
    target, resized = out._array, False
    writes = name != "empty"  # which leaves the elements that there are
    if target.__class__ is MetaArray:
        if target.shape != array.shape:
            out._array = meta_array(array.shape, target.dtype)
    elif out._array.shape == array.shape:
        if writes:
            out._array[...] = dtypes.cast(array, out._array.dtype)
    else:
        if target.base is not None or isinstance(target, BitView) or (
                not active_tracers[0] and 0 < array.size <= target.size):  # its memory, which others may share
            flag = out._requires_grad
            if name not in ("empty", "randn"):  # PyTorch asks for the flag in these only
                out._requires_grad = False
            try:
                resize_(out, array.shape)  # which counts as the write
            finally:
                out._requires_grad = flag
            if writes:
                out._array[...] = dtypes.cast(array, target.dtype)
            resized = True
        else:
            out._array = dtypes.cast(array, target.dtype)
    if not resized and (writes or out._array is not target):
        out._bump_version()
    if out._requires_grad and writes:
        record_underived(name, None, out)
    if special[0] and (writes or resized or out._array is not target):
        notify_created(array)
        notify_overwritten(out, array, out._array is not target)
    return with_flag(out, requires_grad)


def with_flag(out: Tensor, requires_grad: bool) -> Tensor:
    """The `out=` tensor of a factory, which sets its flag as that of a new tensor."""
    if requires_grad:
        return set_requires_grad(out)
    if out._requires_grad and out.is_leaf:
        out._requires_grad = False
    return out


_MISSING: Any = object()



def _size_argument(args: tuple[Any, ...], size: Any, name: str) -> tuple[Any, ...]:
    """The sizes, passed by position or as `size=`."""
    if size is _MISSING:
        return args
    if args:
        raise TypeError(f"{name}() got multiple values for argument 'size'")
    if not isinstance(size, (tuple, list)):
        raise TypeError(f"{name}(): argument 'size' must be tuple of ints, not {type_name(size)}")
    return (size,)


def _filled(fill: Any, size: tuple[Any, ...], name: str, dtype: dtype_type | None, device: Any, requires_grad: bool,
            out: Any = None) -> Tensor:
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    if len(size) > 1 and isinstance(size[0], (tuple, list)):
        raise TypeError(f"{name}() takes 1 positional argument but {len(size)} were given")
    shape = parse_sizes(size, name, out)
    if dtype is not None and dtype.__class__ is not dtype_type:
        dtype = dtypes.of_argument(dtype, name)
    if out is not None and not isinstance(out, Tensor):
        raise TypeError(f"{name}(): argument 'out' must be Tensor, not {type_name(out)}")
    if out is not None and fill.__class__ is complex and not out.dtype.is_complex:
        raise RuntimeError(f"value cannot be converted to type {dtypes.C_NAMES[out.dtype.name]} without overflow")
    d = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    if (device is not None or ambient[0] is not None) and makes_meta(device):
        array = reserved(shape, d.numpy)
    elif fill is None and filled_memory[0]:
        array = empty_array(shape, d.numpy)
        fill_uninitialized(array)
    elif fill is None or (fill == 0 and not isinstance(fill, complex) and copysign(1, fill) > 0):
        array = np.zeros(shape, d.numpy)
    else:
        array = empty_array(shape, d.numpy)
        fill_new(array, fill, d)
    if out is not None:
        return write_new_out(name, array, out, dtype, requires_grad)
    return wrap_new(array, device, requires_grad)


@known_results
def zeros(*args: Any, size: Any = _MISSING, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
          device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A tensor of zeros.

    Args:
        args: the shape, as ints or as one sequence.

    >>> import flambeau as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout, "zeros", pin_memory)
    if layout is not None and layout is not strided:
        _check_layout(layout, out)
        return _sparse(layout, _size_argument(args, size, "zeros"), "zeros", dtype, requires_grad)
    return _filled(0, _size_argument(args, size, "zeros"), "zeros", dtype, device, requires_grad, out)


@known_results
def ones(*args: Any, size: Any = _MISSING, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
         device: Any = None, pin_memory: bool = False, requires_grad: bool = False) -> Tensor:
    """A tensor of ones.

    Args:
        args: the shape, as ints or as one sequence.

    >>> import flambeau as torch
    >>> torch.ones(2)
    tensor([1., 1.])
    """
    if layout is not None and layout is not strided:
        raise RuntimeError("full(...) is not implemented for sparse layout")
    if pin_memory and out is None:
        refuse_pinned(device, None, "ones", pin_memory)
    return _filled(1, _size_argument(args, size, "ones"), "ones", dtype, device, requires_grad, out)


@known_results
def empty(*args: Any, size: Any = _MISSING, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
          device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
          memory_format: Any = None) -> Tensor:
    """A tensor with uninitialised elements.

    Args:
        args: the shape, as ints or as one sequence.

    >>> import flambeau as torch
    >>> torch.empty(2, 3).shape
    flambeau.Size([2, 3])
    """
    if pin_memory and out is None:
        refuse_pinned(device, layout)
    size_args = _size_argument(args, size, "empty")
    if not size_args:
        raise TypeError('empty() missing 1 required positional arguments: "size"')
    if layout is not None and layout is not strided:
        _check_layout(layout, out)
        return _sparse(layout, size_args, "empty", dtype, requires_grad)
    shape = parse_sizes(size_args, "empty")
    if out is not None:
        if out._requires_grad:
            raise RuntimeError("cannot resize variables that require grad")
        write_new_out("empty", empty_array(shape, out.dtype.numpy), out, dtype)
        if filled_memory[0]:
            fill_uninitialized(out._array)
        return out
    if dtype is not None and dtype.__class__ is not dtype_type:
        dtype = dtypes.of_argument(dtype, "empty")
    d = (dtype or dtypes.get_default_dtype()).numpy
    on_meta = (device is not None or ambient[0] is not None) and makes_meta(device)
    array = reserved(shape, d) if on_meta else empty_array(shape, d)
    return wrap_new(_laid_out(array, memory_format), device, requires_grad, unset=True)


def _check_layout(layout: Any, out: Any) -> None:
    if out is not None and layout is not out.layout:
        name = "Strided" if out.layout is strided else "Sparse"
        raise RuntimeError("layout Sparse does not match layout of out parameter (" + name + ")")


def _sparse(layout: Any, size: tuple[Any, ...], name: str, dtype: dtype_type | None, requires_grad: bool) -> Tensor:
    """A sparse tensor of a layout, without elements."""
    shape = parse_sizes(size, name)
    return sparse_implementation("constructors", "empty")(layout, shape, dtype, requires_grad, name)


def _laid_out(array: np.ndarray, memory_format: Any) -> np.ndarray:
    if memory_format is None or memory_format.name in ("contiguous_format", "preserve_format"):
        return array
    return copy_as(array, memory_format)


def empty_strided(size: Any, stride: Any, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
                  requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor with the given strides, in elements, and uninitialised elements.

    >>> import flambeau as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    if pin_memory:
        refuse_pinned(device, layout)
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
                           f"({len(stride)})")
    d = dtypes.get_default_dtype() if dtype is None else dtypes.of_argument(dtype, "empty_strided")
    count = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    if (device is not None or ambient[0] is not None) and makes_meta(device):
        return wrap_new(reserved(size, d.numpy, stride), device, requires_grad)
    array = noted(view_memory(empty_array((count,), d.numpy), size, tuple(s * d.itemsize for s in stride)))
    return wrap_new(array, device, requires_grad, unset=True)


def empty_permuted(size: Any, physical_layout: Any, *, dtype: dtype_type | None = None, layout: Any = None,
                   device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """An uninitialised dense tensor whose dimensions have the memory order `physical_layout`, outermost first.

    >>> import flambeau as torch
    >>> torch.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    if pin_memory:
        refuse_pinned(device, layout)
    size, order = tuple(size), tuple(physical_layout)
    if len(size) != len(order):
        raise RuntimeError("Number of dimensions in the tensor input does not match the length of the physical "
                           f"layout; i.e. len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}")
    if sorted(order) != list(range(len(size))):
        raise RuntimeError("Duplicate dim not allowed" if len(set(order)) != len(order) else
                           "Dimension out of range in physical layout")
    chosen = dtypes.get_default_dtype() if dtype is None else dtypes.of_argument(dtype, "empty_permuted")
    array = empty_array([size[d] for d in order], chosen.numpy)
    inverse = [order.index(d) for d in range(len(order))]
    return wrap_new(noted(array.transpose(inverse)), device, requires_grad, unset=True)


_NO_NUMBERS = frozenset((NoneType, list, str, tuple))


@known_results
def full(size: Any, fill_value: Any, *, out: Any = None, dtype: dtype_type | None = None, layout: Any = None,
         device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """A tensor filled with one value; the default dtype is inferred from the value.

    >>> import flambeau as torch
    >>> torch.full((2,), 7)
    tensor([7, 7])
    """
    if layout is not None and layout is not strided:
        raise RuntimeError("full(...) is not implemented for sparse layout")
    if pin_memory and out is None:
        refuse_pinned(device)
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    if size.__class__ is int:
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not int")
    if fill_value.__class__ in _NO_NUMBERS:
        raise TypeError(f"full(): argument 'fill_value' (position 2) must be Number, not {type_name(fill_value)}")
    if dtype is None and out is None:
        dtype = dtypes.of_scalar(fill_value)
        if dtype is dtypes.complex32:  # of the default dtype float16, where `tensor` of a complex number is complex32
            dtype = dtypes.complex64
    return _filled(fill_value, (size,), "full", dtype, device, requires_grad, out)


def _like(input: Tensor, fill: Any, dtype: dtype_type | None, device: Any, requires_grad: bool,
          memory_format: Any = None, layout: Any = None) -> Tensor:
    try:
        a = input._array
    except AttributeError as error:
        public = empty_like if fill is None else ones_like if fill else zeros_like
        return with_other_object(error, public, (input,))
    if a.__class__ is not np.ndarray:
        a = memory_of(a)
        if a.__class__ is MetaArray and device is None:
            device = META
        a = addresses_of(a)
    if isinstance(a, SparseArray) or (layout is not None and layout is not strided):
        if memory_format is not None and layout is not strided:
            raise RuntimeError("memory format option is only supported by strided tensors")
        return sparse_implementation("likes", "like")(input, fill, dtype, layout, requires_grad)
    if device_memory.count and is_on_accelerator(input):
        return handlers.like_on_device(input, fill, dtype, device, requires_grad, memory_format)
    if special[0] and a.__class__ is not np.ndarray:
        from ..dispatch.batched_tensor import make_batched

        return make_batched(_like(input._value, fill, dtype, device, requires_grad, memory_format), input._levels)
    if dtype is not None and dtype.__class__ is not dtype_type:
        name = "empty" if fill is None else "zeros" if fill.__class__ is int and fill == 0 else "ones"
        dtype = dtypes.of_argument(dtype, f"{name}_like")
    d = a.dtype if dtype is None else dtype.numpy
    if device is None and ambient[0] is not None:  # a context is for tensors that are made of no other one
        device = CPU
    on_meta = device is not None and makes_meta(device)
    if on_meta and (memory_format is None or memory_format.name == "preserve_format"):
        strides = None if a.flags.c_contiguous or not a.size else [
            s // a.itemsize for s in preserved_strides(a, a.itemsize)]
        return wrap_new(reserved(a.shape, d, strides), device, requires_grad)
    if memory_format is None and a.flags.c_contiguous and 1 not in a.shape:
        array = empty_array(a.shape, d)
    elif memory_format is None or memory_format.name == "preserve_format":
        array = with_preserved_strides(empty_array_like(a, d, "C" if 0 in a.strides else "K"), a)
    else:
        array = _laid_out(empty_array(a.shape, d), memory_format)
    if fill is not None:
        fill_new(array, fill, dtype or input.dtype)
    return wrap_new(array, device, requires_grad, unset=fill is None)


@known_results
def zeros_like(input: Tensor, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """A tensor of zeros with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.zeros_like(torch.tensor([1, 2]))
    tensor([0, 0])
    """
    if pin_memory:
        refuse_pinned(device, layout)
    return _like(input, 0, dtype, device, requires_grad, memory_format, layout)


@known_results
def ones_like(input: Tensor, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
              requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """A tensor of ones with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.ones_like(torch.tensor([1, 2]))
    tensor([1, 1])
    """
    if pin_memory:
        refuse_pinned(device, layout)
    return _like(input, 1, dtype, device, requires_grad, memory_format, layout)


@known_results
def empty_like(input: Tensor, *, dtype: dtype_type | None = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None) -> Tensor:
    """An uninitialised tensor with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.empty_like(torch.ones(2, 3)).shape
    flambeau.Size([2, 3])
    """
    if pin_memory:
        refuse_pinned(device, layout)
    return _like(input, None, dtype, device, requires_grad, memory_format, layout)


@known_results
def full_like(input: Tensor, fill_value: Any, *, dtype: dtype_type | None = None, layout: Any = None,
              device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
              memory_format: Any = None) -> Tensor:
    """A tensor filled with one value, with the shape and dtype of `input`.

    >>> import flambeau as torch
    >>> torch.full_like(torch.ones(2), 7)
    tensor([7., 7.])
    """
    if pin_memory:
        refuse_pinned(device, layout)
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    elif fill_value is None:
        raise TypeError("full_like(): argument 'fill_value' (position 2) must be Number, not NoneType")
    if dtype is not None:
        dtype = dtypes.of_argument(dtype, "full_like")
    return _like(input, fill_value, dtype, device, requires_grad, memory_format, layout)


# ----- methods: the dtype of another tensor --------------------------------------------------


def _new(self: Tensor, size: tuple[Any, ...], named: dict[str, Any], name: str, fill: Any) -> Tensor:
    if "size" in named:
        size = (named.pop("size"),)
        if not isinstance(size[0], (tuple, list)):
            raise TypeError(f"{name}(): argument 'size' must be tuple of ints")  # a guard says more
    dtype = named.pop("dtype", None) or self.dtype
    device, requires_grad = device_for_new(self, named.pop("device", None)), named.pop("requires_grad", False)
    layout = named.pop("layout", None) or self.layout
    if named:
        if named.pop("pin_memory", False):
            refuse_pinned(device, layout)
        for key in named:
            raise TypeError(f"{name}() got an unexpected keyword argument '{key}'")
    if layout is not strided:
        if fill:
            raise not_implemented("fill_.Scalar", layout)
        return _sparse(layout, size, name.removeprefix("new_"), dtype, requires_grad)
    return _per_example(self, _filled(fill, size, name, dtype, device, requires_grad))


def device_for_new(self: Tensor, device: Any) -> Any:
    """The device of a new tensor with the properties of another one, whatever the context's."""
    if device is None and (ambient[0] is not None or self._array.__class__ is MetaArray):
        return self._device
    return device


def _per_example(self: Tensor, made: Tensor) -> Tensor:
    """The new tensor, expanded to the levels of `self` if that is batched."""
    if special[0] and not isinstance(self._array, np.ndarray):
        from ..dispatch.batched_tensor import expand_levels, make_batched

        value = expand_levels(made, self._levels).clone()
        return make_batched(set_requires_grad(value.detach()) if made._requires_grad else value, self._levels)
    return made


@known_results
def new_zeros(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """A tensor of zeros with this tensor's dtype, or `dtype`.

    >>> import flambeau as torch
    >>> x = torch.tensor([1, 2])
    >>> x.new_zeros(2)
    tensor([0, 0])
    """
    return _new(self, size, named, "new_zeros", 0)


@known_results
def new_ones(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """A tensor of ones with this tensor's dtype, or `dtype`.

    >>> import flambeau as torch
    >>> x = torch.tensor([1, 2])
    >>> x.new_ones(2)
    tensor([1, 1])
    """
    return _new(self, size, named, "new_ones", 1)


@known_results
def new_empty(self: Tensor, *size: Any, **named: Any) -> Tensor:
    """An uninitialised tensor with this tensor's dtype, or `dtype`.

    >>> import flambeau as torch
    >>> torch.tensor([1]).new_empty(2).shape
    flambeau.Size([2])
    """
    return _new(self, size, named, "new_empty", None)


def new_empty_strided(self: Tensor, size: Any, stride: Any, **named: Any) -> Tensor:
    """An uninitialised tensor with the given strides and this tensor's dtype, or `dtype`.

    >>> import flambeau as torch
    >>> torch.tensor([1]).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    named["dtype"] = named.get("dtype") or self.dtype
    named["device"] = device_for_new(self, named.get("device"))
    if special[0] and not isinstance(self._array, np.ndarray):
        from ..dispatch.batched_tensor import make_batched

        extent = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        levels = self._levels
        for level in reversed(levels):
            size, stride, extent = (level.size, *size), (extent, *stride), extent * level.size
        return make_batched(empty_strided(size, stride, **named), levels)
    return empty_strided(size, stride, **named)


@known_results
def new_full(self: Tensor, size: Any, fill_value: Any, *, dtype: dtype_type | None = None, device: Any = None,
             requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:
    """A tensor filled with one value, with this tensor's dtype, or `dtype`.

    >>> import flambeau as torch
    >>> torch.tensor([1]).new_full((2,), 7)
    tensor([7, 7])
    """
    if pin_memory:
        refuse_pinned(device, layout)
    if layout is not None:
        refuse_sparse(layout, "fill_.Scalar")
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    if size.__class__ is int:
        raise TypeError("new_full(): argument 'size' (position 1) must be tuple of ints, not int")
    return _per_example(self, _filled(fill_value, (size,), "new_full", dtype or self.dtype,
                                      device_for_new(self, device), requires_grad))


def new_tensor(self: Tensor, data: Any, *, dtype: dtype_type | None = None, device: Any = None,
               requires_grad: bool = False, layout: Any = None) -> Tensor:
    """A tensor with a copy of `data`, with this tensor's dtype, or `dtype`.

    >>> import flambeau as torch
    >>> torch.tensor([1.]).new_tensor([2, 3])
    tensor([2., 3.])
    """
    device = device_for_new(self, device)
    if isinstance(data, Tensor) and is_meta(data):
        return tensor(data, dtype=dtype or self.dtype, device=self._device if device is None else device,
                      requires_grad=requires_grad)
    if isinstance(data, Tensor) and not isinstance(data._array, np.ndarray):
        return tensor(data, dtype=dtype or self.dtype, device=device, requires_grad=requires_grad)
    if isinstance(data, Tensor):
        warnings.warn("To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
                      "sourceTensor.detach().clone().requires_grad_(True), rather than "
                      "tensor.new_tensor(sourceTensor).", UserWarning, stacklevel=user_stacklevel())
    return _per_example(self, wrap_new(to_array(data, dtype or self.dtype), device, requires_grad))


def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The legacy constructor `torch.Tensor(...)` with this tensor's dtype.

    >>> import flambeau as torch
    >>> torch.ones(2, dtype=torch.float64).new([1, 2])
    tensor([1., 2.], dtype=flambeau.float64)
    """
    if isinstance(self._array, SparseArray):
        return sparse_implementation("likes", "new")(self, *args, **kwargs)
    if "device" in kwargs:
        if args and isinstance(args[0], Tensor):
            raise RuntimeError("Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use "
                               "torch.as_tensor(...) instead.")
        check_legacy_device(args, kwargs, self._device.type)
    return _per_example(self, legacy_constructor(Tensor, self.dtype, *args, like=self._device, **kwargs))


METHODS: dict[str, Any] = {"new_zeros": new_zeros, "new_ones": new_ones, "new_empty": new_empty,
                           "new_empty_strided": new_empty_strided, "new_full": new_full, "new_tensor": new_tensor,
                           "new": new}
