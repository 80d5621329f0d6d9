"""Draws: samples of a generator in new arrays, in `out=` and in a tensor's layout, on every device and under `vmap`.

The functions of random tensors draw through `sample`, inside `generators.lock`.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ... import devices, dtypes
from ...backends.compiled.thresholds import LARGE_SEEN
from ...backends.numpy.memory import in_memory_of
from ...backends.sparse_array import CooArray, SparseArray, not_implemented
from ...dtypes import dtype as dtype_type
from ...engine.tensor_interface import layer
from ...errstate import run_in_quiet
from ...kernels import random as kernels
from ...kernels.memory_format import empty_in_layout, with_preserved_strides
from ...modes import active_tracers, device_memory, dispatch_in_use, inference_used, special
from ...ops.declare import REGISTRY
from ..argument_errors.out_arguments import check_records_nothing
from ..dispatch.complex_half import warn_of_complex_half
from ..dispatch.handlers import handlers
from ..dispatch.inplace import apply_inplace, record_underived
from ..dispatch.out_tensors import give_shape
from ..dispatch.write_checks import check_overlap, check_writable, is_tracked, prepare_write
from ..meta import is_meta, meta_array, reserved
from ..overriding.dispatch import Draw, is_on_accelerator
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_overwritten
from .constants import with_flag
from .factory_arguments import finished, makes_meta, wrap_new
from .generators import Generator, default_generator, generator_for_device, lock


def generator_on(device: Any, generator: Generator | None) -> Generator | None:
    """The generator of a factory with this argument `device=`: by default that of the CUDA device.

    Once such devices are in use, `accelerated.factories` chooses it; this serves the call that finds them.
    """
    target = devices.storage_device(device)
    return generator_for_device[0](generator, target) if target.type == "cuda" else generator


_SMALL = 1024


def sample(kernel: Any, generator: Generator | None, *args: Any) -> Any:
    """Call a sampling kernel, with memory from the caching allocator for large results."""
    engine = (default_generator if generator is None else generator).engine
    if generator is not None and generator._philox:
        return handlers.sample_on_device(kernel.__name__, generator, args)
    if args[0].__class__ is int and args[0] < _SMALL:  # a number of samples
        return kernel(engine, *args)
    return run_in_quiet(kernel, (engine, *args)) if LARGE_SEEN[0] and not special[0] else kernel(engine, *args)


def wrap_sample(array: np.ndarray, out: Tensor | None, device: Any, requires_grad: bool, called: str = "") -> Tensor:
    """The sample as a tensor, or `out` with the sample written to it by PyTorch's operator `called`."""
    if array.dtype == dtypes.COMPLEX32:
        warn_of_complex_half()
    if device is not None or devices.ambient[0] is not None:
        target = devices.storage_device(device)
        if target is devices.META or (out is None and target is not devices.CPU):
            return wrap_new(array, target, requires_grad)
    if out is not None:
        if called:
            check_records_nothing(called, (), (out,))
        elif out._requires_grad and out._array.shape != array.shape:
            raise RuntimeError("cannot resize variables that require grad")
        check_overlap(out._array)
        if out._array.dtype != array.dtype:
            raise RuntimeError(f"dtype {dtypes.of(array.dtype).scalar_name} does not match dtype of out parameter "
                               f"({out.dtype.scalar_name})")
        prepare_write(out)
        if is_meta(out):
            if out._array.shape != array.shape:
                out._array = meta_array(array.shape, array.dtype)
        elif out._array.shape == array.shape:
            out._array[...] = array
        else:
            out._array = array if active_tracers[0] else in_memory_of(out._array, array)
        out._bump_version()
        if called and out._requires_grad:
            record_underived(called, None, out)
        if special[0]:
            notify_overwritten(out, array, out._array is array)
        return with_flag(out, requires_grad) if called or requires_grad else out
    tensor: Tensor = wrap(array)
    return finished(tensor, requires_grad) if requires_grad or inference_used[0] else tensor


def new_sample(kernel: Any, shape: tuple[int, ...], d: dtype_type, generator: Generator | None, out: Tensor | None,
               dtype: dtype_type | None, device: Any, requires_grad: bool, called: str, *args: Any) -> Tensor:
    """Samples as a new tensor or in `out`: what factories of random tensors do once their arguments are parsed.

    Args:
        kernel: a sampling kernel, of a number of samples and `args`.
        d: the dtype of the samples; `dtype` is the one that was asked for.
        called: ATen's name of the operator with `out=`; "" for one that resizes `out` and fills it.
    """
    if device is not None or devices.ambient[0] is not None:
        if makes_meta(device):  # no number is drawn
            return wrap_new(reserved(shape, d.numpy), device, requires_grad)
        generator = generator_on(device, generator)
    if out is not None:
        prepare_out(called, out, shape, dtype)
    with lock:
        stream = sample(kernel, generator, prod(shape), *args)
    return wrap_sample(stream.reshape(shape), out, device, requires_grad, called)


def prepare_out(called: str, out: Tensor, shape: tuple[int, ...], dtype: dtype_type | None) -> None:
    """Check an `out=` tensor and give it its shape, before numbers are drawn or dtypes refused, as PyTorch does.

    Raises:
        RuntimeError: it requires grad, or has not the dtype that is asked for.
    """
    if called:
        check_records_nothing(called, (), (out,))
    if dtype is not None and dtype is not out.dtype:
        raise RuntimeError(f"dtype {dtype.scalar_name} does not match dtype of out parameter ({out.dtype.scalar_name})")
    if out._array.shape != shape and not out._requires_grad:
        if not special[0]:
            give_shape(out, shape)
        if not called:  # PyTorch resizes it by a call of its own
            out._bump_version()


def any_meta(*values: Any) -> bool:
    return any(map(is_meta, values))


def in_vmap() -> bool:
    """Whether a `vmap` level is active (`vmap_random`)."""
    from ..dispatch.batched_tensor import active_levels

    return bool(active_levels())


def draw_in_vmap(make: Any, shape: tuple[int, ...], out: Any = None) -> Any:
    from ..dispatch.vmap_random import draw_batched

    return draw_batched(make, shape, out)


def draw_in_vmap_from(make: Any, inputs: list[Any], out: Any = None) -> Any:
    from ..dispatch.vmap_random import draw_batched_from

    return draw_batched_from(make, inputs, out)


def own_part(x: Tensor) -> Tensor:
    """What a process draws for: its part of a distributed tensor, else the tensor."""
    part: Tensor = x._own_part() if special[0] and getattr(type(x), "_has_parts", False) else x
    return part


def sample_like(input: Tensor, d: dtype_type, memory_format: Any, sampler: Any, operator: str = "normal_", *,
                 over: bool = False) -> np.ndarray:
    """Samples in an array of the input's shape and memory format, in PyTorch's order.

    Args:
        sampler: called with the number of elements, and whether PyTorch's output would be contiguous.
        operator: ATen's name of what fills the array; only `normal_` fills the values of a compressed sparse one.
        over: the samples are for the input itself, in place: use its strides.
    """
    if special[0]:
        input = own_part(input)
    a = input._array if not device_memory.count else handlers.stand_in(input)
    if isinstance(a, SparseArray):
        if operator != "normal_" or isinstance(a, CooArray):
            raise not_implemented(operator, a.layout)
        with lock:
            samples = sampler(a.values.size, True).reshape(a.values.shape)
        return a.copy().with_values(samples)
    is_row_major = memory_format is not None and memory_format.name == "contiguous_format"
    empty: Any = None
    contiguous = a.__class__ is np.ndarray and a.flags.c_contiguous and 1 not in a.shape
    is_row_major = is_row_major or contiguous
    if not contiguous:
        empty = np.empty_like(a, d.numpy, "C" if is_row_major else "K") if over or is_row_major else (
            empty_in_layout(a, d.numpy))
        contiguous = (a if over else empty).flags.c_contiguous
    with lock:
        stream = sampler(a.size, contiguous)
    if stream.__class__ is not np.ndarray:  # of a device's generator
        return stream if over else stream.placed(np.empty(a.shape, d.numpy) if empty is None else empty)
    result = stream.reshape(a.shape) if contiguous else kernels.place(stream, empty)
    return result if is_row_major else with_preserved_strides(result, a)


def fill(self: Tensor, key: str, sampler: Any, others: tuple[Tensor, ...] = (), overload: str = "default",
         args: tuple[Any, ...] = (), generator: Generator | None = None) -> Tensor:
    """Fill a tensor with random numbers.

    Args:
        key: the operator's name in the registry.
        sampler: as for `sample_like`.
        others: tensors of parameters, which the operator's node gets.
        overload, args, generator: what handlers see as `aten` operator (`Draw`).
    """
    if special[0] and in_vmap():
        from ..dispatch.vmap_random import fill_batched

        return fill_batched(self, key, sampler)
    if dispatch_in_use[0] and layer.is_handled(self) and not is_meta(self) and not is_on_accelerator(self) and (
            not getattr(type(self), "_has_parts", False)):
        check_writable(self, is_tracked([self, *others]))
        return apply_inplace(REGISTRY[key], [self, *others], {"values": Draw(
            key[1:key.rindex("_") + 1], overload, args, generator)})
    check_writable(self, is_tracked([self, *others]))
    if is_meta(self):  # no number is drawn
        return apply_inplace(REGISTRY[key], [self, *others], {"values": self._array})
    values = sample_like(self, self.dtype, None, sampler, over=True)
    return apply_inplace(REGISTRY[key], [self, *others], {"values": values})
