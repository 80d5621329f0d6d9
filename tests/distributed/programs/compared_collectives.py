"""Collectives that differ between two processes, under TORCH_DISTRIBUTED_DEBUG=DETAIL."""

from __future__ import annotations

from typing import Any

from tests.distributed.ranks import Log


def main(torch: Any, rank: int, size: int) -> dict[str, Any]:
    """What collectives of a group report that is made with checks."""
    dist, log = torch.distributed, Log(torch)
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    group = dist.new_group()
    backend = group._get_backend(torch.device("cpu"))
    dist.set_debug_level(dist.DebugLevel.OFF)
    log("wrapper", lambda: (type(backend).__name__, type(backend.wrapped_pg).__name__, backend.name(), group.name()))
    x = torch.ones(2, 3)

    def same(name: str, call: Any) -> None:
        log(name, call)
        log(f"{name}, number", group._get_sequence_number_for_group)

    same("all_reduce", lambda: dist.all_reduce(x, group=group))
    same("operation", lambda: dist.all_reduce(x, group=group) if rank else dist.broadcast(x, 0, group=group))
    same("barrier", lambda: dist.barrier(group) if rank else dist.all_to_all_single(x, x, group=group))
    same("shape", lambda: dist.all_reduce(torch.ones(2, 3 + rank), group=group))
    same("dtype", lambda: dist.all_reduce(torch.ones(2, dtype=torch.float64 if rank else torch.float32), group=group))
    same("all_gather", lambda: dist.all_gather([torch.empty(2), torch.empty(2)], torch.ones(2 + rank), group=group))
    same("all_gather of different shapes", lambda: dist.all_gather([torch.empty(1), torch.empty(2)],
                                                                   torch.ones(1 + rank), group=group))
    same("reduce_scatter_tensor", lambda: dist.reduce_scatter_tensor(torch.empty(2), torch.ones(4), group=group))
    same("two tensors", lambda: dist.reduce_scatter_tensor(torch.empty(2 + rank), torch.ones(4 + 2 * rank),
                                                           group=group))
    same("scatter", lambda: dist.scatter(torch.empty(2), None if rank else [x[0, :2], x[1, :2]], 0, group=group))
    same("all_to_all_single", lambda: dist.all_to_all_single(torch.empty(2), torch.ones(2), group=group))
    same("objects", lambda: dist.all_gather_object([None, None], rank, group=group))
    same("messages", lambda: dist.send(x, 0, group) if rank else dist.recv(x, 1, group))
    work = dist.all_reduce(x, group=group, async_op=True)
    same("async_op", work.wait)
    return log.entries
