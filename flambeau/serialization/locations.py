"""Where storages lie: the tag written beside each, and where it is put when it is read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .._tensor.storage import UntypedStorage
from ..devices import device

_ON_A_CPU = ("If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
             "to map your storages to the CPU.")

_packages: list[tuple[int, Callable[[Any], str | None], Callable[[Any, str], Any]]] = []


def register_package(priority: int, tagger: Callable[[Any], str | None],
                     deserializer: Callable[[Any, str], Any]) -> None:
    """Let `tagger(storage)` say where storages lie and `deserializer(storage, location)` put them there.

    Both give None for what is not theirs; those of a lower priority number are asked first.
    """
    _packages.append((priority, tagger, deserializer))
    _packages.sort(key=lambda package: package[0])


def location_tag(storage: Any) -> str:
    """Where a storage lies, as "cpu"."""
    for _, tagger, _ in _packages:
        location = tagger(storage)
        if location:
            return location
    raise RuntimeError(f"don't know how to determine data location of {_typename(storage)}")


def default_restore_location(storage: Any, location: str) -> Any:
    """The storage, put where its tag says.

    Raises:
        RuntimeError: there is no such place here (PyTorch's texts).
    """
    for _, _, deserializer in _packages:
        found = deserializer(storage, location)
        if found is not None:
            return found
    raise RuntimeError(f"don't know how to restore data location of {_typename(storage)} (tagged with {location})")


def restorer(map_location: Any) -> Callable[[Any, str], Any]:
    """What puts storages where `map_location`, an argument of `load`, says."""
    if map_location is None:
        return default_restore_location
    if isinstance(map_location, dict):
        return lambda storage, location: default_restore_location(storage, map_location.get(location, location))
    if isinstance(map_location, (str, bytes, device)):
        place: Any = str(map_location) if isinstance(map_location, device) else map_location
        return lambda storage, location: default_restore_location(storage, place)

    def restore(storage: Any, location: str) -> Any:
        found = map_location(storage, location)
        return default_restore_location(storage, location) if found is None else found

    return restore


def _typename(storage: Any) -> str:
    return "torch.storage.UntypedStorage" if isinstance(storage, UntypedStorage) else type(storage).__name__


def _refuse(location: str, kind: str, has_module: bool) -> None:
    if location != kind and not re.match(f"{kind}(:|[0-9]+)", location):
        return
    if not has_module:
        raise RuntimeError(f"The {kind.upper()} device module is not registered. {_ON_A_CPU}")
    raise RuntimeError(f"Attempting to deserialize object on a {kind.upper()} device but torch.{kind}.is_available() "
                       f"is False. {_ON_A_CPU}")


def validate_cuda_device(location: str) -> None:
    """Refuse a CUDA device, of which there is none."""
    _refuse("cuda", "cuda", True)


def validate_hpu_device(location: str) -> None:
    """Refuse an HPU, of which there is none."""
    _refuse("hpu", "hpu", False)


def _refuse_meta(storage: Any, location: str) -> None:
    if location == "meta":
        raise NotImplementedError("flambeau has no meta tensors: load with map_location='cpu', or inside "
                                  "torch.serialization.skip_data() to leave the storages unread")


def _refuse_mps(storage: Any, location: str) -> None:
    if location.startswith("mps"):
        raise RuntimeError("torch.UntypedStorage(): Storage device not recognized: mps")


def _nowhere(storage: Any) -> None:
    return None


register_package(10, lambda storage: "cpu" if storage.device.type == "cpu" else None,
                 lambda storage, location: storage if location == "cpu" else None)
register_package(20, _nowhere, lambda storage, location: _refuse(location, "cuda", True))
register_package(21, _nowhere, _refuse_mps)
register_package(22, _nowhere, _refuse_meta)
register_package(23, _nowhere, lambda storage, location: _refuse(location, "privateuseone", False))
register_package(24, _nowhere, lambda storage, location: _refuse(location, "hpu", False))
register_package(25, _nowhere, lambda storage, location: _refuse(location, "xpu", True))
register_package(26, _nowhere, lambda storage, location: _refuse(location, "mtia", True))
