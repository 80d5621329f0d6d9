"""Copies and conversions of dtypes, devices and memory formats."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ... import config, devices, dtypes
from ...backends.bit_views import bits_used, resolve
from ...backends.compiled import copy, new_copy
from ...backends.compiled.thresholds import CASTS, COPIES, NARROW_CASTS, SMALL_KERNELS
from ...backends.elementless_array import ElementlessArray, elementless_used
from ...backends.numpy.memory import address, copy_as, is_contiguous, suggested_memory_format
from ...backends.sparse_array import SparseAccess, SparseArray, format_name
from ...devices import device as device_type
from ...dtypes import dtype as dtype_type
from ...engine.grad_mode import grad_mode
from ...kernels.memory_format import with_preserved_strides
from ...modes import active_tracer, active_transforms, inference, special
from ...ops.declare import REGISTRY
from ...shapes import broadcast_shapes
from ...warning_location import user_stacklevel
from ..argument_errors.out_arguments import check_records_nothing
from ..argument_errors.type_names import not_a_tensor, type_name
from ..dispatch.apply import apply
from ..dispatch.bit_resolution import resolved
from ..dispatch.complex_half import warn_of_complex_half
from ..dispatch.handlers import handlers
from ..dispatch.inplace import overwrite
from ..dispatch.out_tensors import write_out
from ..dispatch.write_checks import COMPLEX_TO_REAL, check_overlap, check_writable, is_tracked, warn_of_real_parts
from ..fastpath.repeated_calls import launched
from ..fastpath.repeated_layouts import known_by
from ..fastpath.views import copy_function
from ..meta import NO_DATA, lacks_elements, make_meta
from ..methods.sparse import implementation as sparse_implementation
from ..overriding.other_objects import with_other_object
from ..tensor import INFERENCE, Tensor, wrap
from .conversion_arguments import parse_to
from .lazy_clones import share

__all__ = ["clone", "contiguous", "detach_copy", "to"]


_clone, _cast = copy_function("clone"), copy_function("_to_copy")
#: the most elements of a matrix, and of other arrays, that are copied from a table of places
_FEW, _MOST = 512, 4096


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


def to(self: Tensor, *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False, copy: bool = False,
       memory_format: Any = None, **others: Any) -> Tensor:
    """This tensor with another dtype or device; itself if nothing changes and `copy` is False.

    Args:
        args: `device, dtype, non_blocking, copy`, `dtype, non_blocking, copy` or `tensor, non_blocking, copy`, all but
            the first of the last two optional.
        kwargs: the same by name, and `memory_format`.

    Raises:
        TypeError: other arguments.
        RuntimeError: an unknown device type.
        AssertionError: a CUDA device, and there is none.

    >>> import flambeau as torch
    >>> torch.ones(2).to(torch.int64)
    tensor([1, 1])

    Source: https://docs.pytorch.org/docs/stable/generated/torch.Tensor.to.html
    """
    place, kind, usual = device, dtype, False  # the usual forms need no parser
    if args:
        first = args[0].__class__
        if first is dtype_type:
            if len(args) == 1 and dtype is None and device is None:
                kind, usual = args[0], True
        elif (first is str or first is device_type) and device is None:
            if len(args) == 1:
                place, usual = args[0], True
            elif len(args) == 2 and dtype is None:
                (place, kind), usual = args, True
    elif device is None or device.__class__ is str or device.__class__ is device_type:
        usual = True
    if not usual or others or copy.__class__ is not bool or non_blocking.__class__ is not bool or not (
            kind is None or kind.__class__ is dtype_type) or not (
            memory_format is None or memory_format.__class__ is devices.memory_format):
        named = {"device": device, "dtype": dtype, "memory_format": memory_format}
        others.update((name, value) for name, value in named.items() if value is not None)
        others.update((name, value) for name, value in (("non_blocking", non_blocking), ("copy", copy))
                      if value is not False)
        place, kind, non_blocking, copy, memory_format = parse_to(args, others)
    if place is not None:
        target = devices.storage_device(place)
        if target is not self._device:
            return _moved(self, target, kind, memory_format, non_blocking)
    return _converted(self, kind, copy, memory_format)


def _moved(self: Tensor, target: devices.device, dtype: Any, memory_format: Any, non_blocking: bool) -> Tensor:
    """A copy on another device."""
    if target is devices.META:
        if self._requires_grad and grad_mode.get() and self._array.__class__ is np.ndarray and (
                dtype is None or dtype.is_floating_point or dtype.is_complex):
            return make_meta(apply(REGISTRY["_to_meta"], [self], {
                "dtype": dtype or self.dtype, "memory_format": memory_format}))
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
    return launched(call)


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
    if memory_format is not None and not isinstance(memory_format, type(devices.contiguous_format)):
        raise TypeError(f"contiguous(): argument 'memory_format' must be torch.memory_format, not "
                        f"{type_name(memory_format)}")
    if special[0] and not isinstance(x._array, np.ndarray) and memory_format not in (None, devices.contiguous_format):
        raise RuntimeError("NYI: querying is_contiguous inside of vmap for memory_format other than "
                           "torch.contiguous_format")


def contiguous(input: Tensor, *, memory_format: Any = devices.contiguous_format) -> Tensor:
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
            if SMALL_KERNELS[0] and a.size <= (_FEW if a.ndim < 3 else _MOST) and not input._requires_grad:
                return _permuted_copy(input)
            return _clone(input, new_copy(a))
    _check_memory_format(input, memory_format)
    try:
        if is_contiguous(a, memory_format):
            return input
    except SparseAccess:
        pass
    return clone(input, memory_format=memory_format)


def _row_major_copy(input: Any) -> Any:
    """The launch of `_permuted_copy`."""
    from ..fastpath.copy_launches import picking_launch

    return picking_launch(input._array, np.arange(input._array.size).reshape(input._array.shape))


@known_by(_row_major_copy)
def _permuted_copy(input: Tensor) -> Tensor:
    return _clone(input, new_copy(input._array))


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
        check_overlap(out._array)
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


def cpu(self: Tensor, *, memory_format: Any = None) -> Tensor:
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
    if src.__class__ is Tensor and not (special[0] or active_transforms[0] or bits_used[0]) and (
            a.__class__ is src._array.__class__ is np.ndarray):
        source = src._array
        if a.dtype is source.dtype and a.shape == source.shape and a.base is source.base is None and (
                a is not source) and not ((self._requires_grad or src._requires_grad) and grad_mode.get()):
            copy(a, source)  # both own their memory
            self._bump_version()
            return self
    if not isinstance(src, Tensor):
        if isinstance(src, (bool, int, float, complex, np.generic)):
            from ..creation.element_arrays import scalar_array
            from ..tracer_notifications import notify_created

            src = wrap(scalar_array(src, dtypes.of_scalar(src.item() if isinstance(src, np.generic) else src)))
            if special[0]:
                notify_created(src._array)
        else:
            raise not_a_tensor("copy_", src, "other")
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


_CONVERSIONS = {"float": dtypes.float32, "double": dtypes.float64, "half": dtypes.float16, "bfloat16": dtypes.bfloat16,
                "int": dtypes.int32, "long": dtypes.int64, "short": dtypes.int16, "char": dtypes.int8,
                "byte": dtypes.uint8, "bool": dtypes.bool_, "chalf": dtypes.complex32, "cfloat": dtypes.complex64,
                "cdouble": dtypes.complex128}

METHODS: dict[str, Any] = {
    **{name: _conversion(name, d) for name, d in _CONVERSIONS.items()},
    "to": to, "type": type_, "type_as": type_as, "contiguous": contiguous, "is_contiguous": is_contiguous_, "cpu": cpu,
    "cuda": cuda, "clone": clone, "copy_": copy_, "_lazy_clone": _lazy_clone,
}
