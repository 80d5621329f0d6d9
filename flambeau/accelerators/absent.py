"""What the modules of absent devices share: functions that refuse, classes without instances, no-op guards."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from .. import devices


def refusing(error: type[Exception], message: str) -> Callable[..., Any]:
    """A function that raises an error, whatever its arguments are."""
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise error(message)

    return refuse


def dummy_class(name: str, module: str, message: str | None = None) -> type:
    """A class of handles of the device: an instance cannot be made.

    Args:
        message: the error's text; default: PyTorch's for a class that the build lacks.
    """
    text = f"Tried to instantiate dummy base class {name}" if message is None else message

    def refuse(cls: type, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(text)

    return type(name, (), {"__new__": refuse, "__module__": module, "__doc__": f"`{name}` of a device that is absent."})


def device_index(device: Any, kind: str, optional: bool = False, allow_cpu: bool = False) -> Any:
    """The index of a device of a kind.

    Args:
        device: an index, a device, a string, or None where it is optional.

    Raises:
        ValueError: another kind of device, or no index.
    """
    if isinstance(device, int):
        return device
    if device is None and optional:
        return None
    found = devices.device(device) if isinstance(device, str) else device
    if isinstance(found, devices.device):
        if allow_cpu and found.type == "cpu":
            return -1
        if found.type != kind:
            raise ValueError(f"Expected a {kind} device, but got: {found}")
        if found.index is not None:
            return found.index
    raise ValueError("Expected a torch.device with a specified index or an integer, but got:" + str(device))


def device_guard(kind: str, module: str, error: type[Exception], message: str) -> tuple[type, type]:
    """The context managers `device` and `device_of`, which select a device for a block.

    Args:
        error: raised on entry for a device, with `message`; no device, or a negative index, selects nothing.
    """
    class device:
        """Select a device for a block; none is there to be selected."""

        def __init__(self, device: Any) -> None:
            self.idx = -1 if device is None else device_index(device, kind)
            self.prev_idx = -1

        def __enter__(self) -> None:
            if self.idx >= 0:
                raise error(message)

        def __exit__(self, type: Any, value: Any, traceback: Any) -> Any:
            return False

    class device_of(device):
        """Select the device of an object for a block; nothing happens for objects elsewhere."""

        def __init__(self, obj: Any) -> None:
            super().__init__(-1)

    device.__module__ = device_of.__module__ = module
    device.__qualname__, device_of.__qualname__ = "device", "device_of"
    return device, device_of


class StreamContext:
    """Select a stream for a block; None selects nothing."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        return None

    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        return None


def constant(value: Any) -> Callable[..., Any]:
    """A function that returns a value, whatever its arguments are."""
    def answer(*args: Any, **kwargs: Any) -> Any:
        return value

    return answer


def nothing(*args: Any, **kwargs: Any) -> None:
    """No effect: the device is absent."""


def statistics(device: Any = None) -> OrderedDict[str, Any]:
    """The statistics of the device's allocator: none."""
    return OrderedDict()


def shared_names(kind: str, module: str, error: type[Exception] = AssertionError) -> dict[str, Any]:
    """The names that `torch.cuda` and `torch.xpu` have in common.

    Args:
        kind: the type of the device, "cuda".
        module: the name of the module, for its classes.
        error: what selecting a device raises.
    """
    title = kind.upper()
    missing = refusing(AssertionError, f"Torch not compiled with {title} enabled")
    device, device_of = device_guard(kind, module, error, f"PyTorch was compiled without {title} support")
    names: dict[str, Any] = {
        "device": device, "device_of": device_of, "StreamContext": StreamContext, "stream": StreamContext,
        "is_available": constant(False), "is_initialized": constant(False), "_is_compiled": constant(False),
        "_is_in_bad_fork": constant(False), "device_count": constant(0), "is_bf16_supported": constant(False),
        "is_tf32_supported": constant(False), "get_gencode_flags": constant(""), "default_generators": (),
        "memory_stats": statistics, "memory_snapshot": constant([]),
    }
    for name in ("_lazy_init", "init", "current_device", "current_stream", "get_device_name", "get_device_properties",
                 "get_device_capability", "synchronize", "mem_get_info", "initial_seed", "can_device_access_peer",
                 "get_per_process_memory_fraction", "set_per_process_memory_fraction", "get_stream_from_external",
                 "get_rng_state"):
        names[name] = missing
    for name in ("empty_cache", "manual_seed", "manual_seed_all", "seed", "seed_all", "set_stream"):
        names[name] = nothing
    for name in ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved"):
        names[name] = constant(0)

    def set_rng_state(new_state: Any, device: Any = kind) -> None:
        """No effect: there is no generator."""

    def set_rng_state_all(new_states: Any) -> None:
        """No effect: there are no generators."""

    def get_rng_state_all() -> list[Any]:
        """The states of the generators of all devices: none."""
        return []

    def get_arch_list() -> list[str]:
        """The architectures that the build supports: none."""
        return []

    def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
        """The statistics of the device's allocator: none."""
        return {}

    def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> Any:
        return device_index(device, kind, optional, allow_cpu)

    functions = (set_rng_state, set_rng_state_all, get_rng_state_all, get_arch_list, memory_stats_as_nested_dict,
                 _get_device_index)
    return names | {each.__name__: each for each in functions}


__all__ = ["StreamContext", "constant", "device_guard", "device_index", "dummy_class", "nothing", "refusing",
           "shared_names", "statistics"]
