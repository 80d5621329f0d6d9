"""`torch._dynamo.utils.counters`: what was compiled in this process, by kind."""

from __future__ import annotations

from collections import Counter, defaultdict

#: "frames": calls that were traced ("total"), and compiled ("ok"); "stats": programs ("unique_graphs") and the
#: operators in them ("calls_captured"); "graph_break": reasons
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)

__all__ = ["counters"]
