"""Storage locations: the device tag saved with each storage, and the device to which it is restored."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from .._tensor.memory.storage import UntypedStorage
from ..devices import check, cuda, current_cuda, device

MAP_LOCATION: TypeAlias = Callable[[UntypedStorage, str], UntypedStorage] | device | str | dict[str, str] | None

_CPU_HINT = ("If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
             "to map your storages to the CPU.")

_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(priority: int, tagger: Callable[[Any], str | None],
                     deserializer: Callable[[Any, str], Any]) -> None:
    """Register the functions that tag and restore storages of a device.

    Args:
        priority: pairs with a smaller number are tried first.
        tagger: `storage -> str | None`: the location of a storage, None for storages of other devices.
        deserializer: `(storage, location) -> storage | None`: the storage moved to a location, None for other devices.

    >>> import flambeau as torch
    >>> torch.serialization.register_package(
    ...     30, lambda storage: None, lambda storage, location: storage if location == "npu" else None)
    >>> storage = torch.ones(2).untyped_storage()
    >>> torch.serialization.default_restore_location(storage, "npu") is storage
    True
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """The location of a storage, such as "cpu".

    Raises:
        RuntimeError: no registered tagger knows it.

    >>> import flambeau as torch
    >>> torch.serialization.location_tag(torch.ones(2).untyped_storage())
    'cpu'
    """
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_typename(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, moved to a location.

    Raises:
        RuntimeError: no registered deserializer accepts the location (PyTorch's messages).

    >>> import flambeau as torch
    >>> storage = torch.ones(2).untyped_storage()
    >>> torch.serialization.default_restore_location(storage, "cpu") is storage
    True
    """
    for _, _, deserializer in _packages:
        restored = deserializer(storage, location)
        if restored is not None:
            return restored
    raise RuntimeError(f"don't know how to restore data location of {_typename(storage)} (tagged with {location})")


def restore_function(map_location: Any) -> Callable[[Any, str], Any]:
    """A function `(storage, location) -> storage` that implements the argument `map_location` of `load`."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, device)):
        target: Any = str(map_location) if isinstance(map_location, device) else map_location
        return lambda storage, location: default_restore_location(storage, target)

    def restore(storage: Any, location: str) -> Any:
        restored = map_location(storage, location)
        return default_restore_location(storage, location) if restored is None else restored

    return restore


def _typename(storage: Any) -> str:
    return "torch.storage.UntypedStorage" if isinstance(storage, UntypedStorage) else type(storage).__name__


def _raise_if_on(location: str, kind: str, has_module: bool) -> None:
    if location != kind and not re.match(f"{kind}(:|[0-9]+)", location):
        return
    if not has_module:
        raise RuntimeError(f"The {kind.upper()} device module is not registered. {_CPU_HINT}")
    raise RuntimeError(f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() "
                       f"is False. {_CPU_HINT}")


def validate_cuda_device(location: str) -> int:
    """The index of a CUDA device of a location: the current device's where it names none.

    Raises:
        RuntimeError: there is no CUDA device, or none of that index (PyTorch's texts).

    >>> import flambeau as torch
    >>> torch.serialization.validate_cuda_device("cuda:0")
    Traceback (most recent call last):
    RuntimeError: Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. ...
    """
    current = current_cuda()
    if current is None or current.index is None:
        _raise_if_on("cuda", "cuda", True)
        return 0
    index = device("cuda" if location == "cuda" else location).index
    if index is None:
        return current.index
    try:
        check(cuda(index))
    except RuntimeError:
        from ..backends.cuda_devices import current_runtime

        count = current_runtime().count
        raise RuntimeError(f"Attempting to deserialize object on CUDA device {index} but torch.cuda.device_count() is "
                           f"{count}. Please use torch.load with map_location to map your storages to an existing "
                           "device.") from None
    return index


def _restore_on_cuda(storage: Any, location: str) -> Any:
    if location == "cuda" or re.match("cuda(:|[0-9]+)", location):
        return storage.cuda(validate_cuda_device(location))
    return None


def validate_hpu_device(location: str) -> None:
    """Raise: no HPU is available.

    Raises:
        RuntimeError: always, for any location.

    >>> import flambeau as torch
    >>> torch.serialization.validate_hpu_device("hpu:0")
    Traceback (most recent call last):
    RuntimeError: The HPU device module is not registered. ...
    """
    _raise_if_on("hpu", "hpu", False)


def _restore_on_meta(storage: Any, location: str) -> Any:
    return UntypedStorage(storage.nbytes(), device="meta") if location == "meta" else None


def _reject_mps(storage: Any, location: str) -> None:
    if location.startswith("mps"):
        raise RuntimeError("torch.UntypedStorage(): Storage device not recognized: mps")


def _no_tag(storage: Any) -> None:
    return None


register_package(10, lambda storage: "cpu" if storage.device.type == "cpu" else None,
                 lambda storage, location: storage if location == "cpu" else None)
register_package(20, lambda storage: str(storage.device) if storage.device.type == "cuda" else None, _restore_on_cuda)
register_package(21, _no_tag, _reject_mps)
register_package(22, lambda storage: "meta" if storage.device.type == "meta" else None, _restore_on_meta)
register_package(23, _no_tag, lambda storage, location: _raise_if_on(location, "privateuseone", False))
register_package(24, _no_tag, lambda storage, location: _raise_if_on(location, "hpu", False))
register_package(25, _no_tag, lambda storage, location: _raise_if_on(location, "xpu", True))
register_package(26, _no_tag, lambda storage, location: _raise_if_on(location, "mtia", True))
