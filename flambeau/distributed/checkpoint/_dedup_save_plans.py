"""What several processes would write is written by one."""

from __future__ import annotations

import dataclasses

from .metadata import MetadataIndex
from .planner import SavePlan

__all__ = ["dedup_save_plans"]


def dedup_save_plans(all_plans: list[SavePlan], save_to_lowest_rank: bool = False) -> list[SavePlan]:
    """Leave each item in one plan: in that which has the fewest bytes so far, or in the first.

    Args:
        all_plans: the plans of all processes.
        save_to_lowest_rank: whether the first process with an item keeps it.
    """
    holders: dict[MetadataIndex, list[int]] = {}
    sizes: dict[MetadataIndex, int] = {}
    for rank, plan in enumerate(all_plans):
        for item in plan.items:
            holders.setdefault(item.index, []).append(rank)
            sizes[item.index] = item.tensor_storage_size() or 1  # of other objects the size is not known
    loads = [0] * len(all_plans)
    chosen: dict[MetadataIndex, int] = {}
    for index, ranks in holders.items():
        rank = chosen[index] = min(ranks) if save_to_lowest_rank else min(ranks, key=lambda each: (loads[each], each))
        loads[rank] += sizes[index]
    return [dataclasses.replace(plan, items=[item for item in plan.items if chosen[item.index] == rank])
            for rank, plan in enumerate(all_plans)]
