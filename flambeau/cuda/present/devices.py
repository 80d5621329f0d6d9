"""The CUDA devices: how many there are, which is current, and what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...accelerators.absent import device_index
from ...backends.cuda_devices import current_runtime
from ...devices import device as _device


def index_of(device: Any = None) -> int:
    """The index of a device that an argument names: the current one's if it is None or has no index.

    Raises:
        ValueError: another kind of device.
    """
    if device is None:
        return int(current_runtime().current_device())
    if isinstance(device, (str, _device)):
        found = _device(device)
        if found.type == "cuda" and found.index is None:
            return int(current_runtime().current_device())
    return int(device_index(device, "cuda"))


def is_available() -> bool:
    """Whether there is a CUDA device: True."""
    return True


def is_initialized() -> bool:
    """Whether the devices are in use: True."""
    return True


def init() -> None:
    """Nothing is left to do: devices are initialized when they are first used."""


def device_count() -> int:
    """The number of devices."""
    return int(current_runtime().count)


def current_device() -> int:
    """The index of the current device."""
    return int(current_runtime().current_device())


def set_device(device: Any) -> None:
    """Make a device the current one; a negative index changes nothing.

    Raises:
        AcceleratorError: there is no such device (PyTorch's text).
    """
    index = index_of(device)
    if index >= 0:
        current_runtime().set_device(index)


class device:
    """A context manager that makes a device the current one; None, or a negative index, changes nothing."""

    def __init__(self, device: Any) -> None:
        self.idx = -1 if device is None else index_of(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        self.prev_idx = current_device()
        if self.idx >= 0:
            set_device(self.idx)

    def __exit__(self, type: Any, value: Any, traceback: Any) -> Any:
        set_device(self.prev_idx)
        return False


class device_of(device):
    """A context manager that makes the device of a tensor or storage the current one."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


device.__module__ = device_of.__module__ = "torch.cuda"


def get_device_properties(device: Any = None) -> Any:
    """The name, the memory and the other properties of a device.

    Raises:
        AssertionError: there is no such device (PyTorch's text).
    """
    index = index_of(device)
    if not 0 <= index < device_count():
        raise AssertionError("Invalid device id")
    return current_runtime().properties(index)


def get_device_name(device: Any = None) -> str:
    """The name of a device."""
    return str(get_device_properties(device).name)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The compute capability of a device: (major, minor)."""
    found = get_device_properties(device)
    return found.major, found.minor


def synchronize(device: Any = None) -> None:
    """Wait for all work of a device.

    Raises:
        AcceleratorError: a launch has failed.
    """
    current_runtime().synchronize(index_of(device), None)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device can read the memory of another one."""
    index, peer = index_of(device), index_of(peer_device)
    for each in (index, peer):
        if not 0 <= each < device_count():
            raise AssertionError("Invalid peer device id" if each == peer else "Invalid device id")
    return index != peer


def get_arch_list() -> list[str]:
    """The architectures that kernels are made for: those of the devices."""
    return sorted({"sm_{}{}".format(*get_device_capability(i)) for i in range(device_count())})


def get_gencode_flags() -> str:
    """The flags of NVIDIA's compiler for these architectures."""
    return " ".join(f"-gencode compute=compute_{each[3:]},code={each}" for each in get_arch_list())


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current device computes with bfloat16: from capability 8.0 on, or otherwise by conversion."""
    return including_emulation or get_device_capability()[0] >= 8


def is_tf32_supported() -> bool:
    """Whether the current device has TF32: from capability 8.0 on."""
    return get_device_capability()[0] >= 8


def ipc_collect() -> None:
    """Nothing is left to do: no memory is shared with other processes."""


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    if device is None and not optional:
        return int(device_index(device, "cuda"))
    if allow_cpu and isinstance(device, (str, _device)) and _device(device).type == "cpu":
        return -1
    return index_of(device)


def _lazy_call(callable: Callable[[], Any], **kwargs: Any) -> None:
    """Call a function now: the devices are initialized."""
    callable()


def _yes() -> bool:
    return True


NAMES: dict[str, Any] = {each.__name__: each for each in (
    is_available, is_initialized, init, device_count, current_device, set_device, device, device_of,
    get_device_properties, get_device_name, get_device_capability, synchronize, can_device_access_peer, get_arch_list,
    get_gencode_flags, is_bf16_supported, is_tf32_supported, ipc_collect, _get_device_index, _lazy_call)}
NAMES |= {"_lazy_init": init, "_is_compiled": _yes, "_initialized": True}

__all__ = ["NAMES", "index_of"]
