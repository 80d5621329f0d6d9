"""Parameters and buffers of a module, made the same in all processes."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from ..c10d.buckets import broadcast_coalesced

__all__: list[str] = []


def _sync_module_states(module: Any, process_group: Any, broadcast_bucket_size: int, src: int,
                        params_and_buffers_to_ignore: Container[str], broadcast_buffers: bool = True) -> None:
    named = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    states = [each.detach() for name, each in named if name not in params_and_buffers_to_ignore]
    if states:
        broadcast_coalesced(process_group, states, broadcast_bucket_size, src)
