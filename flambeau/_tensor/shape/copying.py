"""Copies, dtype conversions, fills, and changes of a tensor's memory (`resize_`, `set_`)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import config, devices, dtypes
from ...backends.bit_views import bits_used, memory_of, resolve, with_bits_of
from ...backends.compiled import copy, copy_kernels, new_copy
from ...backends.compiled.thresholds import CASTS, COPIES, NARROW_CASTS
from ...backends.elementless_array import (
    ElementlessArray,
    MetaArray,
    elementless_used,
    plain_dtype,
    reserved,
    without_elements,
)
from ...backends.numpy.memory import (
    CHANNELS_LAST,
    address,
    check_scalar_fits,
    convert_scalar,
    copy_as,
    element_strides,
    is_contiguous,
    owner,
    strided_view,
    suggested_memory_format,
)
from ...backends.sparse_array import SparseAccess, SparseArray, format_name, not_implemented
from ...dtypes import dtype as dtype_type
from ...engine.grad_mode import grad_mode
from ...engine.tensor_interface import layer
from ...kernels.memory_format import with_preserved_strides
from ...modes import active_tracer, active_transforms, filled_memory, inference, special
from ...ops.declare import REGISTRY
from ...shapes import broadcast_shapes, contiguous_strides
from ...warning_location import user_stacklevel
from ..argument_errors.out_arguments import check_records_nothing
from ..dispatch.apply import apply
from ..dispatch.binding import write_out
from ..dispatch.bit_resolution import resolved
from ..dispatch.complex_half import warn_of_complex_half
from ..dispatch.handlers import handlers
from ..dispatch.inplace import apply_inplace, overwrite
from ..dispatch.write_checks import COMPLEX_TO_REAL, check_overlap, check_writable, is_tracked, warn_of_real_parts
from ..fastpath.views import copy_function
from ..meta import NO_DATA, is_meta, lacks_elements, make_meta
from ..methods.sparse import implementation as sparse_implementation
from ..overriding.other_objects import with_other_object
from ..tensor import INFERENCE, Tensor, wrap
from .lazy_clones import share

__all__ = ["clone", "contiguous", "detach_copy", "fill", "resize_as_", "to", "zero_"]


_clone, _cast = copy_function("clone"), copy_function("_to_copy")


# ----- conversions -------------------------------------------------------------------------

def _converted(self: Tensor, dtype: dtype_type | None, copy: bool, memory_format: Any) -> Tensor:
    if dtype is None:
        dtype = self.dtype
    a = self._array
    if a.dtype == dtype.numpy and not copy:
        if memory_format is None or memory_format is devices.preserve_format or (
                a.__class__ is np.ndarray and suggested_memory_format(a) == memory_format.name):
            return self
    elif dtypes.is_complex(a.dtype) and not (dtype.is_complex or dtype is dtypes.bool_) and a.size:
        warnings.warn(COMPLEX_TO_REAL, UserWarning, stacklevel=user_stacklevel())
    if dtype is dtypes.complex32:
        warn_of_complex_half()
    if memory_format is None and not special[0] and not (elementless_used[0] and isinstance(a, ElementlessArray)):
        if bits_used[0]:
            a = resolve(a)
        try:
            if a.dtype == dtype.numpy:
                return _cast(self, copy_as(a))
            return _cast(self, with_preserved_strides(dtypes.cast(a, dtype.numpy), a))
        except NotImplementedError:
            pass  # `apply` dispatches sparse and meta tensors
    if self._requires_grad and dtype.numpy.kind not in "fcV":  # PyTorch records no history
        self = self.detach()
    return apply(REGISTRY["_to_copy"], [self], {"dtype": dtype, "memory_format": memory_format})


def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False,
       copy: bool = False, memory_format: Any = None, other: Any = None) -> Tensor:
    """This tensor with another dtype or device; itself if nothing changes and `copy` is False.

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
        if rest and (rest[0] is None or isinstance(rest[0], (dtype_type, type))):
            dtype = rest.pop(0)
    elif rest and isinstance(rest[0], type) and rest[0] in dtypes.OF_PYTHON:
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
    elif dtype is not None and dtype.__class__ is not dtype_type:
        dtype = dtypes.of_argument(dtype, "to")
    if device is None and other is not None and other._device is not self._device:
        device = other._device
    if device is not None:
        if isinstance(device, int) and devices.current_cuda() is None:
            raise RuntimeError("Cannot access accelerator device when none is available.")
        target = devices.storage_device(device)
        if target is not self._device:
            return _moved(self, target, dtype, memory_format, bool(non_blocking or (rest and rest[0])))
    return _converted(self, dtype, copy, memory_format)


def _moved(self: Tensor, target: devices.device, dtype: Any, memory_format: Any, non_blocking: bool) -> Tensor:
    """A copy on another device."""
    if target is devices.META:
        return _converted(make_meta(self.detach()), dtype, True, memory_format)  # nothing is copied
    if self._device is devices.META:
        raise NotImplementedError(NO_DATA)
    moved: Tensor = handlers.transfer(self, target, dtype, memory_format, not non_blocking)
    return moved


def _conversion(name: str, dtype: dtype_type) -> Any:
    target = dtype.numpy
    # by number: hashing a dtype takes longer than the cast of a small array
    most = {source.num: NARROW_CASTS if dtypes.HALF in (source, target) else CASTS
            for source in dtypes.exact_sources(target)}
    castable = frozenset() if dtype.is_complex else frozenset(
        source.num for source in dtypes.REAL_SOURCES if source != target)
    from_bfloat16 = not dtype.is_complex and target != dtypes.BFLOAT16

    def call(self: Tensor, *unfit: Any, memory_format: Any = None) -> Tensor:
        if unfit:
            raise TypeError(f"{name}() takes 0 positional arguments but {len(unfit)} "
                            f"{'was' if len(unfit) == 1 else 'were'} given")
        a = self._array
        if memory_format is None and not special[0] and a.__class__ is np.ndarray and (
                a.flags.c_contiguous and 1 not in a.shape):
            source = a.dtype
            limit = most.get(source.num)
            if limit is not None and a.size <= limit[0]:
                return _cast(self, a.astype(target))
            if source.num in castable or (from_bfloat16 and source is dtypes.BFLOAT16):
                return _cast(self, dtypes.cast(a, target))
        return _converted(self, dtype, False, memory_format)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = (f"This tensor converted to {dtype.name}.\n\n    >>> import flambeau as torch\n"
                    f"    >>> torch.ones(2).{name}().dtype\n    flambeau.{dtype.name}\n    ")
    return call


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """The legacy name of this tensor's type; with a dtype, this tensor converted to it.

    >>> import flambeau as torch
    >>> torch.ones(1).type(torch.int64)
    tensor([1])
    """
    if dtype is None:
        if isinstance(self._array, SparseArray):
            if not self.is_sparse:
                raise RuntimeError(f"Unimplemented backend Sparse{format_name(self._array).title()}CPU")
            return f"{config.module_name}.sparse.{self.dtype.legacy}"
        where = "" if self._device is devices.CPU else f"{self._device.type}."
        return f"{config.module_name}.{where}{self.dtype.legacy}"
    if dtype is Tensor or dtype == "torch.Tensor":  # the type of tensors of the default dtype
        dtype = dtypes.get_default_dtype()
    elif isinstance(dtype, str):
        legacy = dtype.rpartition(".")[2]
        result = next((d for d in dtypes.ALL if d.legacy == legacy), None)
        if result is None or legacy == dtype:
            raise ValueError(f"invalid type: '{dtype}'")
        if dtype.endswith(f".cuda.{legacy}"):
            return to(self, "cuda" if self._device.type != "cuda" else self._device, result)
        dtype = result
        if self._device.type == "cuda":
            return to(self, devices.CPU, dtype)
    elif not isinstance(dtype, dtype_type):
        if not isinstance(dtype, type):
            raise TypeError("dtype must be a type, str, or dtype object")
        if not isinstance(getattr(dtype, "dtype", None), dtype_type):  # no class such as torch.FloatTensor
            raise ValueError(f"invalid type: '{dtype.__name__}'")
        dtype = dtype.dtype  # type: ignore[attr-defined]
    return _converted(self, dtype, False, None)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """This tensor, converted to the dtype of `other`.

    >>> import flambeau as torch
    >>> torch.ones(1).type_as(torch.tensor(1))
    tensor([1])
    """
    if other._device is not self._device:
        return to(self, other._device, other.dtype)
    return _converted(self, other.dtype, False, None)


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy; gradients flow to the original.

    >>> import flambeau as torch
    >>> torch.clone(torch.ones(2))
    tensor([1., 1.])
    """
    if special[0]:
        return apply(REGISTRY["clone"], [input], {"memory_format": memory_format})
    try:
        a = input._array
        if memory_format is None and a.__class__ is np.ndarray and a.size <= COPIES[0]:
            array = a.__copy__()  # in the order of `a`, and quicker than `copy`
            if array.strides == a.strides:
                return _clone(input, array)
        return _clone(input, copy_as(a, memory_format))
    except SparseAccess:
        return apply(REGISTRY["clone"], [input], {"memory_format": memory_format})
    except AttributeError as error:
        return with_other_object(error, clone, (input,))


def _lazy_clone(self: Tensor) -> Tensor:
    """A copy that shares the memory until one of the two is written to; gradients flow to the original.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> y = x._lazy_clone()
    >>> x.zero_(), y
    (tensor([0., 0.]), tensor([1., 1.]))
    """
    a = self._array
    if special[0] and (active_tracer.get() is not None or lacks_elements(self)):
        return clone(self)
    array = share(a) if a.__class__ is np.ndarray else None
    if array is None:
        return clone(self)
    if not is_tracked((self,)):
        return wrap(array, type(self))
    recorded = clone(self)
    recorded._array = array
    return recorded


def _check_memory_format(x: Tensor, memory_format: Any) -> None:
    if special[0] and not isinstance(x._array, np.ndarray) and memory_format not in (None, devices.contiguous_format):
        raise RuntimeError("NYI: querying is_contiguous inside of vmap for memory_format other than "
                           "torch.contiguous_format")


def contiguous(input: Tensor, memory_format: Any = devices.contiguous_format) -> Tensor:
    """This tensor if its memory has the given format, else a copy that has.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).T.contiguous().stride()
    (2, 1)
    """
    a = input._array
    if a.__class__ is np.ndarray and memory_format is devices.contiguous_format:
        if a.flags.c_contiguous:
            return input
        if not special[0]:
            return _clone(input, new_copy(a))
    _check_memory_format(input, memory_format)
    try:
        if is_contiguous(a, memory_format):
            return input
    except SparseAccess:
        pass
    return clone(input, memory_format=memory_format)


def is_contiguous_(self: Tensor, *, memory_format: Any = None) -> bool:
    """Whether the memory has the given format.

    >>> import flambeau as torch
    >>> torch.ones(2, 3).T.is_contiguous()
    False
    """
    _check_memory_format(self, memory_format)
    try:
        return is_contiguous(self._array, memory_format)
    except SparseAccess:
        if not self.is_sparse:
            raise RuntimeError(f"Sparse {format_name(self._array)} tensors do not have is_contiguous") from None
        return False


def detach_copy(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """A copy without a graph.

    >>> import flambeau as torch
    >>> torch.detach_copy(torch.ones(1))
    tensor([1.])
    """
    if out is not None:
        check_records_nothing("detach_copy", (input,), (out,))
        return write_out(REGISTRY["slice_copy"], input.detach(), out)
    if special[0] and not isinstance(input._array, np.ndarray):
        return clone(input.detach())
    result = wrap(input._array.copy())
    if input._requires_grad and grad_mode.get():
        from ...engine.nodes.unsupported_derivatives import NotImplemented

        result._requires_grad = True
        result._node = NotImplemented("derivative for aten::detach_copy is not implemented", (input,))
    if inference.get():
        result._inference, result._counter = True, INFERENCE
    return result


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """This tensor on the CPU: itself if it is there.

    >>> import flambeau as torch
    >>> x = torch.ones(2)
    >>> x.cpu() is x
    True
    """
    if self._device is not devices.CPU:
        return _moved(self, devices.CPU, None, memory_format, False)
    return self if memory_format is None else _converted(self, None, False, memory_format)


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """This tensor on a CUDA device; itself if it is there.

    Args:
        device: an index or a CUDA device; default: the current one.
        non_blocking: whether the host goes on while pinned memory is copied.

    Raises:
        AssertionError: there is no CUDA device.
        RuntimeError: another kind of device (PyTorch's text).

    >>> import flambeau as torch
    >>> torch.ones(2).cuda()
    Traceback (most recent call last):
    AssertionError: Torch not compiled with CUDA enabled
    """
    wanted = devices.device("cuda") if device is None else devices.device(device)
    if wanted.type != "cuda":
        raise RuntimeError("Invalid device, must be cuda device")
    target = devices.check(wanted)
    if target is self._device:
        return self if memory_format is None else _converted(self, None, False, memory_format)
    return _moved(self, target, None, memory_format, bool(non_blocking))


# ----- in place ----------------------------------------------------------------------------


def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Copy the elements of `other`, broadcast and converted to this tensor's shape and dtype.

    >>> import flambeau as torch
    >>> torch.zeros(2).copy_(torch.tensor([1, 2]))
    tensor([1., 2.])
    """
    a, src = self._array, other
    if not isinstance(src, Tensor):
        if isinstance(src, (bool, int, float, complex, np.generic)):
            from ..creation.from_data import scalar_array
            from ..tracer_notifications import notify_created

            src = wrap(scalar_array(src, dtypes.of_scalar(src.item() if isinstance(src, np.generic) else src)))
            if special[0]:
                notify_created(src._array)
        else:
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    if bits_used[0]:
        src = resolved(src)
    tracked = is_tracked((self, src))
    check_writable(self, tracked)
    source = src._array
    same_memory = source.__class__ is a.__class__ is np.ndarray and (
        source.shape == a.shape and source.strides == a.strides and source.dtype == a.dtype
        and address(source) == address(a))
    if not same_memory:
        try:
            check_overlap(a, source)
        except SparseAccess:
            return sparse_implementation("resizing", "copy_sparse_")(self, src)
    if source.shape != a.shape:
        shape = broadcast_shapes(a.shape, source.shape)
        if shape != a.shape:
            raise RuntimeError(f"output with shape {list(a.shape)} doesn't match the broadcast shape {list(shape)}")
    values = src._array
    if dtypes.is_complex(values.dtype):
        warn_of_real_parts(self)

    if values.dtype is a.dtype and not (
            tracked or special[0] or active_transforms[0] or bits_used[0]) and a.__class__ is np.ndarray:
        if not same_memory:
            copy(a, values)
        self._bump_version()
        return self

    def compute() -> None:
        if not same_memory:
            copy(a, dtypes.cast(values, a.dtype))

    try:
        return overwrite(REGISTRY["_copy"], [self, src], {}, compute)
    except SparseAccess:
        return sparse_implementation("resizing", "copy_sparse_")(self, src)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Set every element to `value`, a scalar or a 0-d tensor.

    >>> import flambeau as torch
    >>> torch.zeros(2).fill_(3)
    tensor([3., 3.])
    """
    try:
        a = self._array
    except AttributeError as error:
        from ..argument_errors.messages import FUNCTION, explained  # imported when it fails only

        raise explained(FUNCTION, "fill_", (self, value), {}) or error from None
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} "
                               "dimensions.")
        number = resolve(value._array)
        check_writable(self, is_tracked((self, value)))
        check_overlap(a)
        if dtypes.is_complex(number.dtype):
            warn_of_real_parts(self)

        def compute() -> None:
            a[...] = dtypes.cast(number, a.dtype)

        return overwrite(REGISTRY["_fill_tensor_"], [self, value], {}, compute)
    if not isinstance(value, (bool, int, float, complex, np.generic)):
        name = type(value).__name__
        raise TypeError(f"fill_() received an invalid combination of arguments - got ({name}), but expected one of:\n "
                        "* (Tensor value)\n      didn't match because some of the arguments have invalid types: "
                        f"(!{name}!)\n * (Number value)\n      didn't match because some of the arguments have invalid "
                        f"types: (!{name}!)\n")
    check_scalar_fits(value, self.dtype)

    def compute_number() -> None:
        copy(a, convert_scalar(value, a.dtype))

    return overwrite(REGISTRY["_fill_scalar_"], [self], {"value": value}, compute_number)


def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor of `input`'s shape with every element `value`.

    >>> import flambeau as torch
    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])
    """
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} "
                               "dimensions.")
        return apply(REGISTRY["_fill_tensor"], [input, value])
    check_scalar_fits(value, input.dtype)
    return apply(REGISTRY["_fill_scalar"], [input], {"value": value})


class _Zeros(dict):
    """The zero of each dtype, cached."""

    def __missing__(self, dtype: np.dtype) -> Any:
        made = self[dtype] = np.zeros((), dtype)[()]
        return made


_zeros = _Zeros()


def zero_(input: Tensor) -> Tensor:
    """Set every element to zero.

    >>> import flambeau as torch
    >>> torch.ones(2).zero_()
    tensor([0., 0.])
    """
    a = input._array
    try:
        owns = a.flags.owndata
    except SparseAccess:
        return apply_inplace(REGISTRY["_zero"], [input], {})
    if not (input._requires_grad or input._base is not None or special[0] or input._inference) and owns:
        kernels = copy_kernels() if a.size > COPIES[0] else None  # nothing to record: the case of `zero_grad`
        if kernels is None or not kernels.copy(a, np.asarray(_zeros[a.dtype])):
            a.fill(_zeros[a.dtype])
        input._bump_version()
        return input

    def compute() -> None:
        copy(a, np.zeros((), a.dtype))

    return overwrite(REGISTRY["_zero"], [input], {}, compute)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal to a scalar; with `wrap`, of a tall matrix also the diagonals of the blocks below.

    >>> import flambeau as torch
    >>> torch.zeros(2, 2).fill_diagonal_(1)
    tensor([[1., 0.],
            [0., 1.]])
    """
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
        if not a.flags.c_contiguous:
            for start in range(columns + 1, rows, columns + 1):
                fill_diagonal_(self[start:], fill_value)
    offset = self.storage_offset()
    fill_(as_strided(self, (length,), (step,), offset), fill_value)
    return self


# ----- changes of the memory ---------------------------------------------------------------


def resize_(self: Tensor, *sizes: Any, memory_format: Any = None) -> Tensor:
    """Change the shape in place, within the same memory if it suffices; new elements are uninitialised.

    Raises:
        RuntimeError: it requires grad.

    >>> import flambeau as torch
    >>> torch.arange(4).resize_(2)
    tensor([0, 1])
    """
    from ..creation.from_data import parse_sizes as shape_of

    if self._requires_grad and not inference.get():
        raise RuntimeError("cannot resize variables that require grad")
    shape = shape_of(sizes, "resize_")
    if isinstance(self._array, SparseArray):
        raise not_implemented("resize_", self._array.layout)
    if special[0] and not isinstance(self._array, np.ndarray):
        return _resize_batched(self, shape, memory_format)
    return _resized(self, shape, memory_format)


def _resize_batched(self: Any, shape: tuple[int, ...], memory_format: Any) -> Tensor:
    """`resize_` of a batched tensor."""
    resize_(self._value, (*(level.size for level in self._levels), *shape), memory_format=memory_format)
    return self


def _notify_memory_change(how: str) -> None:
    """Notify the tracer that a tensor gets other memory."""
    tracer = active_tracer.get() if special[0] else None
    if tracer is not None:
        tracer.on_memory_change(how)


def _check_resize(x: Tensor, shape: tuple[int, ...], memory_format: Any) -> None:
    """Raise PyTorch's RuntimeError for sizes that overflow and formats that do not fit."""
    count, step = 1, 1
    for s in shape:
        count *= s
    for s in reversed(shape):
        if step >= 2 ** 63:
            raise RuntimeError("Stride calculation overflowed")
        step *= s
    if count >= 2 ** 63:
        raise RuntimeError("numel: integer multiplication overflow")
    if count * x._array.itemsize >= 2 ** 63:
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)}")
    if memory_format is devices.preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    if memory_format is not None and memory_format.name in CHANNELS_LAST:
        rank = len(CHANNELS_LAST[memory_format.name][1])
        if len(shape) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {memory_format.name} format")


def _resized(self: Tensor, shape: tuple[int, ...], memory_format: Any) -> Tensor:
    from math import prod

    _check_resize(self, shape, memory_format)
    _notify_memory_change("resize_")
    a = self._array
    if a.shape != shape:
        self._bump_version()
    elif memory_format is None:
        return self
    is_on_meta = isinstance(a, MetaArray)
    with_bits, a = a, memory_of(a)
    memory_owner = owner(a)
    offset = (address(a) - address(memory_owner)) // a.itemsize
    count = prod(shape)
    if (offset + count) * a.itemsize <= memory_owner.nbytes and count:
        steps, step = [], 1
        for s in reversed(shape):
            steps.append(step)
            step *= s
        self._array = strided_view(a, shape, tuple(reversed(steps)), offset)
    else:
        memory = reserved((offset + count,), plain_dtype(a.dtype)) if is_on_meta else np.zeros(offset + count, a.dtype)
        flat = strided_view(a, (memory_owner.nbytes // a.itemsize,), (1,), 0) if memory_owner.nbytes else memory[:0]
        keep = 0 if is_on_meta else min(flat.size, memory.size)
        memory[:keep] = flat[:keep]
        if filled_memory[0] and not is_on_meta:
            from ...backends.numpy.uninitialized import fill_uninitialized  # rarely needed

            fill_uninitialized(memory[keep:])
        self._array = memory[offset:].reshape(shape)
        storage = getattr(self, "_storage", None)
        if storage is not None:
            storage._memory = memory.view(np.uint8)
    if memory_format is not None and memory_format.name in CHANNELS_LAST:
        _, order, back = CHANNELS_LAST[memory_format.name]
        self._array = self._array.reshape([shape[i] for i in order]).transpose(back)
    self._array = without_elements(self._array) if is_on_meta else with_bits_of(self._array, with_bits)
    return self


def resize_as_(input: Tensor, the_template: Tensor, *, memory_format: Any = None) -> Tensor:
    """`resize_` to the shape of `the_template`.

    Raises:
        RuntimeError: `input` requires grad.

    >>> import flambeau as torch
    >>> torch.resize_as_(torch.arange(4), torch.zeros(1, 2))
    tensor([[0, 1]])
    """
    if input._requires_grad and not inference.get():
        raise RuntimeError("cannot resize variables that require grad")
    if isinstance(input._array, SparseArray):
        return sparse_implementation("resizing", "resize_as_sparse_")(input, the_template)
    if memory_format is devices.preserve_format:
        formats = (devices.channels_last, devices.channels_last_3d)
        a = the_template._array
        memory_format = None if is_contiguous(a, None) else next((f for f in formats if is_contiguous(a, f)), None)
    if special[0] and not isinstance(input._array, np.ndarray):
        return _resize_batched(input, the_template._array.shape, memory_format)
    return _resized(input, the_template._array.shape, memory_format)


def set_(self: Tensor, source: Any = None, storage_offset: int = 0, size: Any = None, stride: Any = None) -> Tensor:
    """Make this tensor a view of the memory of another tensor or a storage, in place. There is no derivative.

    Raises:
        RuntimeError: the dtypes differ, or this is a leaf that requires grad.

    >>> import flambeau as torch
    >>> torch.zeros(1).set_(torch.ones(2))
    tensor([1., 1.])
    """
    tracked = is_tracked((self, source))
    check_writable(self, tracked)
    _notify_memory_change("set_")
    if self._requires_grad or (isinstance(source, Tensor) and source._requires_grad):
        _drop_history(self, source, tracked)
    self._bump_version()
    return _show_memory(self, source, storage_offset, size, stride)


def _drop_history(self: Tensor, source: Any, tracked: bool) -> None:
    if not tracked:
        if self._node is None:
            self._accumulator = None  # gradients for the old memory do not belong to this leaf
        return
    from ...engine.nodes.unsupported_derivatives import NotImplemented

    node = NotImplemented("derivative for set_ is not implemented",
                          (self, source if isinstance(source, Tensor) else None))
    self._node, self._output_nr, self._requires_grad, self._accumulator = node, 0, True, None


def _show_memory(self: Tensor, source: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    if source is not None and (source._device if isinstance(source, Tensor) else source.device) is not self._device:
        raise RuntimeError(f"Attempted to set the storage of a tensor on device \"{self.device}\" to a storage on "
                           f"different device \"{source.device}\".  This is no longer allowed; the devices must match.")
    self._storage = None
    if source is None:
        if self._device is devices.CPU:
            self._array = np.zeros(0, self._array.dtype)
        else:
            self._array = layer.functions.empty(0, dtype=self.dtype, device=self._device)._array
        return self
    if isinstance(source, Tensor):
        if source._array.dtype != self._array.dtype:
            raise RuntimeError(f"Could not set tensor of type {dtypes.C_NAMES[source.dtype.name]} to a tensor of type "
                               f"{dtypes.C_NAMES[self.dtype.name]}")
        if size is None:
            self._array = memory_of(source._array)
            return self
        from ..memory.storage import untyped_storage

        strides = tuple(stride) if stride is not None else contiguous_strides(size)
        _grow(self, stride is not None, untyped_storage(source), tuple(size), strides, storage_offset)
        self._array = strided_view(memory_of(source._array), tuple(size), strides, storage_offset)
        return self
    given = getattr(source, "dtype", self.dtype)  # an UntypedStorage has none
    if given is not self.dtype:
        raise RuntimeError(f"Expected a Storage of type {dtypes.C_NAMES[self.dtype.name]} or an UntypedStorage, but "
                           f"got type {given.scalar_name} for argument 1 'storage'")
    from ..memory.storage import attach_storage

    storage, itemsize = source.untyped(), self._array.dtype.itemsize
    shape = (storage.nbytes() // itemsize,) if size is None else tuple(size)
    strides = tuple(stride) if stride is not None else contiguous_strides(shape)
    _grow(self, stride is not None, storage, shape, strides, storage_offset)
    data = storage._memory
    memory = data[:data.size // itemsize * itemsize].view(plain_dtype(self._array.dtype))
    array = strided_view(memory, shape, strides, storage_offset)
    self._array = without_elements(array) if is_meta(self) else array
    attach_storage(self, storage)
    return self


def _grow(self: Tensor, strided: bool, storage: Any, shape: tuple[int, ...], strides: tuple[int, ...],
          offset: int) -> None:
    """Resize a storage that a tensor is to be on to what it needs, if it gets another shape, or is `strided`."""
    from ..memory.sharing import resize_storage

    itemsize = self._array.itemsize
    if shape == self._array.shape and not (strided and strides != element_strides(self._array)):
        return
    if 0 in shape or offset < 0 or len(shape) != len(strides) or min((*shape, *strides, 0)) < 0:
        return
    needed = itemsize * (1 + offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)))
    if needed > storage.nbytes():
        resize_storage(storage, needed)


_CONVERSIONS = {"float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
                "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16, "char": dtypes.int8,
                "byte": dtypes.uint8, "bool": dtypes.bool_, "chalf": dtypes.complex32, "cfloat": dtypes.complex64,
                "cdouble": dtypes.complex128}

METHODS: dict[str, Any] = {
    **{name: _conversion(name, d) for name, d in _CONVERSIONS.items()},
    "to": to, "type": type_, "type_as": type_as, "contiguous": contiguous, "is_contiguous": is_contiguous_, "cpu": cpu,
    "cuda": cuda, "clone": clone, "copy_": copy_, "fill_": fill_, "zero_": zero_, "fill_diagonal_": fill_diagonal_,
    "resize_": resize_, "resize_as_": resize_as_, "set_": set_, "_lazy_clone": _lazy_clone,
}
