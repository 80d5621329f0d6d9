"""`Join`: processes with fewer inputs than others."""

from __future__ import annotations

from ...c10d.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
