"""`torch.mtia` of a build without Meta's accelerators."""

from __future__ import annotations

from typing import Any

from .absent import StreamContext, constant, dummy_class, nothing, refusing
from .streams import Event, Stream


class DeferredMtiaCallError(Exception):
    """An error in a call that waited for the initialization of the device."""


def _without(name: str) -> Any:
    return refusing(RuntimeError, f"Cannot execute {name}() without MTIA backend.")


def memory_stats(device: Any = None) -> dict[str, Any]:
    """The statistics of the device's allocator: none."""
    return {}


def get_rng_state_all() -> list[Any]:
    """The states of the generators of all devices: none."""
    return []


is_available, is_initialized, _is_compiled, _is_in_bad_fork = (constant(False) for _ in range(4))
is_bf16_supported = constant(True)
device_count = memory_allocated = max_memory_allocated = constant(0)
manual_seed = manual_seed_all = seed = seed_all = empty_cache = reset_peak_memory_stats = nothing
record_memory_history = set_rng_state_all = nothing
current_device = current_stream = default_stream = synchronize = get_device_properties = _without("getCurrentDevice")
get_device_capability = _without("getCurrentDevice")
set_device, snapshot, set_stream = _without("setCurrentDevice"), _without("memorySnapshot"), _without("setStream")
init = get_rng_state = set_rng_state = initial_seed = refusing(
    AssertionError, "Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia."
    "dynamic_library` in your python src file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target "
    "dependency!")
MTIAGraph, stream = dummy_class("MTIAGraph", "torch.mtia"), StreamContext

__all__ = ["Event", "Stream", "StreamContext"]
