"""`torch.mps` of a build without Apple GPUs."""

from __future__ import annotations

import sys

from .absent import constant, dummy_class, nothing, refusing


def _without(name: str) -> object:
    return refusing(RuntimeError, f"Cannot execute {name}() without MPS backend.")


is_available, device_count, _is_in_bad_fork = constant(False), constant(0), constant(False)
manual_seed = nothing
current_allocated_memory = _without("getCurrentAllocatedMemory")
driver_allocated_memory = _without("getDriverAllocatedMemory")
recommended_max_memory = _without("getRecommendedMaxMemory")
empty_cache, synchronize = _without("emptyCache"), _without("deviceSynchronize")
get_rng_state = set_rng_state = seed = _without("getDefaultGenerator")
set_per_process_memory_fraction = _without("setMemoryFraction")
compile_shader = load_metallib = refusing(RuntimeError, "MPS is not available")
Event = dummy_class("Event", "torch.mps.event", "Cannot execute acquireEvent() without MPS backend.")
event = sys.modules[__name__]
