"""`torch._utils`: functions that PyTorch's modules share, as far as programs import them."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .. import config, dtypes
from .._tensor import Tensor, functions
from .._tensor.memory import pickling
from ..accelerators.absent import device_index
from ..compiler import api as compiler
from ..runtime.exception_wrapper import ExceptionWrapper, KeyErrorMessage


def _element_size(dtype: Any) -> int:
    """The number of bytes of an element.

    Raises:
        RuntimeError: not a dtype.
    """
    if not isinstance(dtype, dtypes.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device; of the CPU -1 where that is allowed."""
    if isinstance(device, str):
        device = functions.empty(0).device.__class__(device)
    kind = getattr(device, "type", "cuda")
    if kind == "cpu" and not allow_cpu:
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    result: int = device_index(device, kind, optional, allow_cpu)
    return result


def _get_available_device_type() -> None:
    """The type of the accelerator: none."""


def _get_current_device_index() -> int:
    return -1


def _get_all_device_indices() -> list[int]:
    return []


def _get_device_module(device_type: str) -> Any:
    from ..accelerators.accelerator import get_device_module

    return get_device_module(device_type)


def cpu_count() -> int | None:
    """The number of processors."""
    return os.cpu_count()


def _import_dotted_name(name: str) -> Any:
    """The object of a dotted name, `torch.nn.Linear`."""
    head, *rest = name.split(".")
    found: Any = importlib.import_module(head)
    for part in rest:
        found = getattr(found, part)
    return found


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """The elements of tensors of one dtype, as one vector."""
    return functions.cat([x.contiguous().view(-1) for x in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of a vector in the shapes of tensors: the inverse of `_flatten_dense_tensors`."""
    found, start = [], 0
    for x in tensors:
        found.append(flat.narrow(0, start, x.numel()).view_as(x))
        start += x.numel()
    return tuple(found)


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> Iterator[Tensor]:
    """Tensors in the order in which another list has their dtypes."""
    by_dtype: dict[Any, list[Tensor]] = {}
    for x in tensors:
        by_dtype.setdefault(x.type(), []).append(x)
    iterators = {key: iter(values) for key, values in by_dtype.items()}
    return iter([next(iterators[x.type()]) for x in ordered_tensors])


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Groups of tensors of one dtype, of about `size_limit` bytes each."""
    groups: dict[Any, tuple[list[Tensor], int]] = {}
    for x in tensors:
        size = x.numel() * x.element_size()
        group, total = groups.get(x.type(), ([], 0))
        if group and total + size > size_limit:
            yield group
            group, total = [], 0
        groups[x.type()] = ([*group, x], total + size)
    yield from (group for group, _ in groups.values() if group)


class _ClassPropertyDescriptor:
    def __init__(self, fget: Any) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget.__get__(instance, type(instance) if owner is None else owner)()


def classproperty(func: Callable[..., Any]) -> _ClassPropertyDescriptor:
    """A property of a class."""
    return _ClassPropertyDescriptor(func if isinstance(func, (classmethod, staticmethod)) else classmethod(func))


def _handle_complex(tensor: Any) -> Any:
    """A complex tensor as real numbers; any other value as it is."""
    return functions.view_as_real(tensor) if isinstance(tensor, Tensor) and tensor.is_complex() else tensor


def is_compiling() -> bool:
    """Whether a function is being traced: the deprecated name of `torch.compiler.is_compiling`."""
    warnings.warn("`torch._utils.is_compiling` is deprecated. Use `torch.compiler.is_compiling` instead.",
                  FutureWarning, stacklevel=2)
    return compiler.is_compiling()


def __getattr__(name: str) -> Any:
    if not name.startswith("__") and hasattr(pickling, name):
        return getattr(pickling, name)
    raise AttributeError(f"module '{config.module_name}._utils' has no attribute '{name}'")


#: set what a pickled object of a subclass holds besides its data
_set_obj_state = pickling._set_state

__all__ = ["ExceptionWrapper", "KeyErrorMessage"]
