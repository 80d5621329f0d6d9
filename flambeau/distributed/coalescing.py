"""Several collectives as one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from ..c10d.options import AllgatherOptions, AllreduceCoalescedOptions, ReduceScatterOptions
from ..c10d.process_group import ProcessGroup
from ..c10d.work import Work
from ..c10d.world import world
from .collective_checks import _with
from .groups.queries import _group_or_default_group


class _CoalescingManager:
    """The works of collectives that were started as one."""

    def __init__(self) -> None:
        self.works: list[Work] = []

    def append(self, work: Work | None = None) -> None:
        """Add a work."""
        if work is not None:
            self.works.append(work)

    def wait(self) -> None:
        """Wait for all of them."""
        for work in self.works:
            work.wait()


@contextlib.contextmanager
def _coalescing_manager(group: ProcessGroup | None = None, device: Any = None,
                        async_ops: bool = False) -> Iterator[_CoalescingManager]:
    """Run the collectives of the block, all of one kind, as one."""
    pg = _group_or_default_group(group)
    operations: list[Any] = world.coalescing.setdefault(pg, [])
    if operations:
        raise ValueError("ProcessGroup has non-empty op list at the start of coalescing")
    if device is not None:
        pg._start_coalescing(device)
    manager = _CoalescingManager()
    try:
        yield manager
        collected = list(operations)
    finally:
        world.coalescing.pop(pg, None)
    if not collected:
        return
    kind = collected[0][0]
    if any(each[0] != kind for each in collected):
        raise RuntimeError("Coalescing manager expects collectives of one kind")
    outputs, inputs = [each[1] for each in collected], [each[2] for each in collected]
    if kind == "allreduce":
        work = pg.allreduce_coalesced(outputs, _with(AllreduceCoalescedOptions(), async_ops, reduceOp=collected[0][3]))
    elif kind == "allgather":
        work = pg.allgather_into_tensor_coalesced(outputs, inputs, _with(AllgatherOptions(), async_ops))
    else:
        work = pg.reduce_scatter_tensor_coalesced(
            outputs, inputs, _with(ReduceScatterOptions(), async_ops, reduceOp=collected[0][3]))
    if async_ops:
        manager.append(work)
    else:
        work.wait()
