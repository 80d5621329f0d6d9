"""The legacy constructors `torch.Tensor(...)` and `torch.FloatTensor(...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import config, devices, dtypes
from ...dtypes import dtype as dtype_type
from ...modes import special
from ...shapes import Size
from ..argument_errors.type_names import type_name
from ..memory.storage_classes import storage_classes
from ..meta import make_meta, mark_meta
from ..tensor import Tensor, wrap
from ..tracer_notifications import notify_created
from .element_arrays import is_sequence, to_array
from .factory_arguments import on_storage, parse_sizes


def _legacy_of_storage(cls: type, dtype: dtype_type, storage: Any) -> Tensor:
    """A tensor on the memory of a storage."""
    from ..memory.storage import TypedStorage

    if isinstance(storage, TypedStorage) and storage.dtype is not dtype:
        raise RuntimeError(f"Expected a Storage of type {dtype.scalar_name} or an UntypedStorage, but got type "
                           f"{storage.dtype.scalar_name} for argument 1 'storage'")
    made = wrap(on_storage(storage.untyped(), dtype)._array, cls)
    return mark_meta(made) if storage.device is devices.META else made


_LEGACY_FORMS = ("*, torch.device device = None", "torch.Storage storage", "Tensor other",
                 "tuple of ints size, *, torch.device device = None", "object data, *, torch.device device = None")


def check_legacy_device(args: tuple[Any, ...], kwargs: dict[str, Any], expected: str) -> None:
    """Raise PyTorch's error unless a legacy constructor may have this argument `device=`.

    Args:
        expected: the type of its device.
    """
    device = kwargs["device"]
    if device is not None and not devices.is_device(device):
        from ..argument_errors.messages import invalid_combination

        raise invalid_combination("new", _LEGACY_FORMS, args, kwargs)
    if args and isinstance(args[0], Tensor):
        raise RuntimeError("Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not "
                           "supported.  Use torch.tensor(...) or torch.as_tensor(...) instead.")
    kind = expected if device is None else devices.of_argument(device).type
    if kind != expected:
        raise RuntimeError(f"legacy constructor expects device type: {expected} but device type: {kind} was passed")


#: [what shows handlers a tensor that a legacy constructor made, given its data, or None where it was made of sizes; the
#: result]; None: there was no handler yet
shown_to_handlers: list[Callable[[Tensor, Any], Any] | None] = [None]


def legacy_constructor(cls: type, dtype: dtype_type, *args: Any, like: devices.device = devices.CPU,
                       **kwargs: Any) -> Tensor:
    """The legacy constructors `torch.FloatTensor(...)` and `torch.Tensor(...)`: from sizes, a sequence or a tensor.

    Args:
        like: the device of the new tensor.
    """
    if "device" in kwargs:
        check_legacy_device(args, kwargs, like.type)
        kwargs.pop("device")
    if len(args) == 1 and isinstance(args[0], storage_classes[0]):
        return _legacy_of_storage(cls, dtype, args[0])
    if "size" in kwargs and not args:
        args = (Size(kwargs.pop("size")),)
    if kwargs:
        args = (*args, *kwargs.values())
    if len(args) > 1 and not hasattr(args[0], "__index__"):
        kinds = ", ".join(f"{config.module_name}.storage.{type(x).__name__}" if isinstance(
            x, storage_classes[0]) else type(x).__name__ for x in args)
        raise TypeError(f"new() received an invalid combination of arguments - got ({kinds}), but expected one of:\n"
                        + "".join(f" * ({form})\n" for form in _LEGACY_FORMS))
    if len(args) == 1 and isinstance(args[0], (np.generic, np.ndarray)) and not args[0].ndim and (
            args[0].dtype.kind in "iu"):
        args = (int(args[0]),)  # a size
    if not args:
        array = np.zeros(0, dtype.numpy)
    elif len(args) == 1 and isinstance(args[0], Tensor):
        if args[0].dtype is not dtype or args[0]._device.type != like.type:
            options = ("TensorOptions(dtype={}, device={}, layout=Strided, requires_grad=false (default), "
                       "pinned_memory=false (default), memory_format=(nullopt))")
            raise TypeError(f"expected {options.format(dtypes.C_NAMES[dtype.name], like)} (got "
                            f"{options.format(dtypes.C_NAMES[args[0].dtype.name], args[0]._device)})")
        array = args[0]._array
    elif len(args) == 1 and isinstance(args[0], (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(args[0]).__name__}'")
    elif len(args) == 1 and not is_sequence(args[0]) and not isinstance(args[0], (int, Size, np.ndarray)) and (
            isinstance(args[0], np.generic) or not hasattr(args[0], "__index__")):
        raise TypeError(f"new(): data must be a sequence (got {type_name(args[0])})")
    elif len(args) == 1 and not isinstance(args[0], (int, Size)):
        array = to_array(args[0], dtype)
    else:
        array = np.zeros(parse_sizes(args, "new"), dtype.numpy)
    if like is devices.META:
        return make_meta(wrap(array, cls))
    if special[0] and not (args and isinstance(args[0], Tensor)):
        notify_created(array)
    made = wrap(array, cls)
    if shown_to_handlers[0] is None or cls is not Tensor:
        return made
    of_sizes = len(args) != 1 or isinstance(args[0], (int, Size))
    shown: Tensor = shown_to_handlers[0](made, None if of_sizes else args[0])
    return shown
