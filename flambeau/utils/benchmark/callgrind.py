"""The names of instruction counts by Callgrind, which are left out."""

from __future__ import annotations

from typing import NamedTuple

from ...environment.left_out import refusing_class

_REASON = "flambeau counts no instructions of C++; use Timer.timeit"


class FunctionCount(NamedTuple):
    """How many instructions a function ran."""

    count: int
    function: str


CallgrindStats = refusing_class("torch.utils.benchmark.CallgrindStats", _REASON)
CopyIfCallgrind = refusing_class("torch.utils.benchmark.CopyIfCallgrind", _REASON)
FunctionCounts = refusing_class("torch.utils.benchmark.FunctionCounts", _REASON)

__all__ = ["CallgrindStats", "CopyIfCallgrind", "FunctionCount", "FunctionCounts"]
