"""Non-temporal stores: when a kernel writes its results to memory without reading their cache lines first.

An ordinary store loads the cache line that it writes to. A non-temporal store of a full line
(`codegen.llvm.loop_nests.Operand.store_nontemporal`) does not, which saves a third of the memory traffic of an
elementwise kernel. The results are in no cache afterwards, so such stores pay only where a kernel touches more bytes
than the last-level cache holds for it (`are_faster`). A kernel that is bound by arithmetic becomes slower:
ordinary stores overlap with arithmetic better.
"""

from __future__ import annotations

from . import cpu_cache, nontemporal_threshold, target

#: bytes of a cache line, the unit of memory traffic
CACHE_LINE = 64
#: the arithmetic per element, in additions, up to which a kernel is bound by memory
MAX_WORK = 8


def are_faster(size: int) -> bool:
    """Whether non-temporal stores are faster for a kernel that touches this many bytes once.

    >>> are_faster(1000)
    False
    """
    if target.is_foreign():  # a machine that cannot be measured here
        return False
    last_level = cpu_cache.last_level_size()
    return size >= last_level and size >= nontemporal_threshold.threshold(last_level)


__all__ = ["CACHE_LINE", "MAX_WORK", "are_faster"]
